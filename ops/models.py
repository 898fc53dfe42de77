"""The models: stacks that are asked over a wire, put together from a window file, a manifest and the environment.

One door to a provider serves every run that uses the same harness, so that its slots are shared. The tools of a turn are
laid out only when a window has its node; until then a model can be named and hashed, not asked.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from exam.record import Sittings
from exam.sheets import exam_sha256, exam_sheets
from harnesses.catalog import endpoint_of, http_door
from harnesses.http import HttpDoor
from harnesses.manifest import Harness, ModelManifest, TurnLimits, load_harness
from harnesses.mcp_door import McpDoor
from harnesses.model import ModelProvider, ToolboxFor
from harnesses.pace import Pace
from harnesses.provider import Provider
from harnesses.question import Question
from harnesses.stack import Stack
from harnesses.tools import Toolbox, specs_sha256
from ledgers.clock import Clock
from ledgers.errors import StoreFault
from ops.live_tools import LiveTools
from ops.settings import Settings
from prompts.library import load_prompt
from referee.onchain.live import Seat
from referee.onchain.planning import PLAN_TICK
from referee.onchain.toolbox import specs_of
from referee.onchain.window import ModelAsked, RunPlan

EXAM = "exam"
"""Folder of a home in which the record of sittings is."""

PlanOf = Callable[[str], str | None]
"""The frozen plan of a run, if it wrote one."""


@dataclass(slots=True)
class Tables:
    """Lays out the tools of a window's turns, once its node is there."""

    tools: LiveTools | None = None
    plan_of: PlanOf = lambda _run_id: None

    def toolbox(self, harness: Harness, question: Question) -> Toolbox:
        """The tools of one turn, under its quote allowance."""
        assert self.tools is not None, f"{question.run_id} was asked before the window had a node"
        manifest, planning = harness.model_manifest, question.tick == PLAN_TICK
        quotes_max = manifest.limits.quotes_plan_max if planning else manifest.limits.quotes_live_max
        return self.tools.turn(question, names=manifest.tools, quotes_max=quotes_max, plan=None if planning else self.plan_of(question.run_id))


@dataclass(slots=True)
class Models:
    """Every model of one process."""

    settings: Settings
    clock: Clock
    tables: Tables = field(default_factory=Tables)
    _doors: dict[str, HttpDoor | McpDoor] = field(default_factory=dict)
    """By harness."""
    _paces: dict[str, Pace] = field(default_factory=dict)
    """By host."""

    def seat(self, plan: RunPlan) -> Seat:
        """Seat one run of a model. Raises: ValueError, BadSettings, CorruptJournal."""
        asked = plan.stack.model
        assert asked is not None, f"{plan.run_id} has no model"
        harness = load_harness(asked.harness)
        manifest = harness.model_manifest
        stack = model_stack(plan.stack.name, asked, harness)

        self.expect(harness, plan.run_id)

        def tools(question: Question) -> Toolbox:
            return self.tables.toolbox(harness, question)

        return Seat(
            run_id=plan.run_id,
            copy=plan.copy,
            stack=stack,
            provider=self.provider(asked.model, harness, manifest.limits.live, tools),
            prompt=load_prompt(asked.prompt).text,
            seed=0,
            turn_ms_max=manifest.limits.turn_ms_max,
            plan_prompt=load_prompt(asked.plan).text if asked.plan else "",
            plan_ms_max=manifest.limits.plan_ms_max,
            planner=self.provider(asked.model, harness, manifest.limits.plan, tools),
            limits=limits_told(manifest),
            exam_pass=sittings_of(self.settings).pass_of(stack, exam_sha256(exam_sheets())),
        )

    def provider(self, model: str, harness: Harness, limits: TurnLimits, tools: ToolboxFor) -> Provider:
        """Whoever plays a model's turns. Raises: ValueError, BadSettings when its address is not set."""
        door = self._door_of(harness)
        if isinstance(door, McpDoor):
            return door.provider(tools, limits)
        return ModelProvider(endpoint_of(harness.model_manifest, model, door), tools, limits, self.clock)

    def expect(self, harness: Harness, run_id: str) -> None:
        """Let the agent of a run in, where a harness is a door. Raises: ValueError, BadSettings."""
        door = self._door_of(harness)
        if isinstance(door, McpDoor):
            door.expect(run_id)

    async def open(self) -> None:
        """Open every door that agents come in through, before any turn is. Raises: RefereeError when a port cannot be had."""
        for door in self._doors.values():
            if isinstance(door, McpDoor):
                await door.open()

    def _door_of(self, harness: Harness) -> HttpDoor | McpDoor:
        return self._doors.get(harness.sha256) or self._doors.setdefault(harness.sha256, self._door(harness.model_manifest))

    def _door(self, manifest: ModelManifest) -> HttpDoor | McpDoor:
        """The door to a provider, or for those who come in. Raises: ValueError, BadSettings."""
        address = self.settings.provider_address(manifest.provider.name)
        if manifest.provider.kind == "mcp":
            return McpDoor.at(address, specs_of(manifest.tools), self.clock)
        pace = self._paces.setdefault(urlsplit(address.url).netloc, Pace(self.clock))
        return http_door(manifest, address, self.clock, pace)

    async def close(self) -> None:
        """Close every door."""
        for door in self._doors.values():
            await door.close()


def model_stack(name: str, asked: ModelAsked, harness: Harness) -> Stack:
    """The identity of a stack with a model (ONC-01). Raises: ValueError naming a prompt or tool that does not exist."""
    manifest = harness.model_manifest
    plan = (("plan_prompt_sha256", load_prompt(asked.plan).sha256),) if asked.plan else ()
    return Stack(
        name=name,
        provider=f"{manifest.provider.kind}/{manifest.provider.name}",
        model=asked.model,
        harness_sha256=harness.sha256,
        prompt_sha256=load_prompt(asked.prompt).sha256,
        tools_sha256=specs_sha256(specs_of(manifest.tools)),
        params=plan,
    )


def limits_told(manifest: ModelManifest) -> dict[str, int]:
    """The limits of a harness, as its stacks are told them; those that an open door cannot hold are left out."""
    return {name: limit for name, limit in manifest.limits.model_dump().items() if limit is not None}


def sittings_of(settings: Settings) -> Sittings:
    """The record of a home's sittings."""
    return Sittings(settings.home / EXAM)
