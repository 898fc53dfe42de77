"""The dialect: what every provider's way of completing a conversation has in common.

A dialect says how a conversation is written and how an answer is read; asking is the same for all.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import ClassVar

from harnesses.endpoint import StepLimits, Wire
from harnesses.http import HttpDoor
from harnesses.manifest import ModelManifest
from harnesses.message import Message, Reply
from harnesses.reading import AnswerReading, Record
from harnesses.tools import ToolSpec


class Dialect:
    """Completes a conversation by one POST."""

    PATH: ClassVar[str]
    """Where it is posted, below the provider's address."""

    def __init__(self, manifest: ModelManifest, model: str, door: HttpDoor) -> None:
        self._manifest = manifest
        self._model = model
        self._door = door

    async def complete(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec], limits: StepLimits, wire: Wire
    ) -> Reply:
        """Answer once. Raises: ProviderFault, LimitSpent."""
        asking = self._manifest.asking
        written = {**asking.extra_body, **self._body(messages, tools, limits)}
        body = json.dumps(written, ensure_ascii=True, separators=(",", ":")).encode()
        url = self._door.address.path(self.PATH)
        headers = {**asking.extra_headers, **self._headers(self._door.address.key)}
        return await self._door.ask(url, headers, body, limits.deadline_ms, wire, self._reading)

    def _headers(self, key: str) -> Mapping[str, str]:
        return {"Authorization": f"Bearer {key}"} if key else {}

    def _body(self, messages: Sequence[Message], tools: Sequence[ToolSpec], limits: StepLimits) -> Record:
        """Write the request. Raises: LimitSpent when too little output is left to ask."""
        raise NotImplementedError

    def _reading(self) -> AnswerReading:
        """Begin to read an answer."""
        raise NotImplementedError
