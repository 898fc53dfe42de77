"""The catalogue: which endpoint a manifest's provider kind stands for."""

from __future__ import annotations

from harnesses.address import Address
from harnesses.anthropic import Anthropic
from harnesses.endpoint import Endpoint
from harnesses.http import HttpDoor
from harnesses.http_agent import HttpAgent
from harnesses.manifest import ANY_MODEL, ModelManifest
from harnesses.openai_chat import OpenAiChat
from harnesses.openai_responses import OpenAiResponses
from harnesses.pace import Pace
from ledgers.clock import Clock


def http_door(manifest: ModelManifest, address: Address, clock: Clock, pace: Pace | None = None) -> HttpDoor:
    """The door to a manifest's provider; one for all runs that use it, so that its slots are shared.

    `pace` is the host's, shared by every harness that asks it."""
    return HttpDoor(address, manifest.retry, clock, manifest.provider.slots, (pace or Pace(clock)).tighten(manifest.rate))


def endpoint_of(manifest: ModelManifest, model: str, door: HttpDoor) -> Endpoint:
    """The endpoint of a model behind a door. Raises: ValueError when the manifest is for another model or kind."""
    if manifest.provider.model not in (ANY_MODEL, model):
        raise ValueError(f"harness {manifest.name} is for model {manifest.provider.model}, not {model[:80]}")
    match manifest.provider.kind:
        case "openai-chat":
            return OpenAiChat(manifest, model, door)
        case "openai-responses":
            return OpenAiResponses(manifest, model, door)
        case "anthropic":
            return Anthropic(manifest, model, door)
        case "http-agent":
            return HttpAgent(door)
        case kind:
            raise ValueError(f"harness {manifest.name}: {kind} is not asked over HTTP")
