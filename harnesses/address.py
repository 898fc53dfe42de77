"""The address: where a provider answers, and the key it asks for. Both are secrets.

A key goes into one request header and nowhere else. Some servers repeat it in what they answer, so everything that
comes back is blotted (blot.py) before it reaches a journal, an event or a screen.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from urllib.parse import unquote, urlsplit

from harnesses.blot import SECRET_LENGTH_MIN, Blotter, blotter_of
from harnesses.message import Reply


@dataclass(frozen=True, slots=True)
class Address:
    """Where a provider answers. Neither part is ever printed."""

    url: str = field(repr=False)
    """Up to and including the version, e.g. `…/v1`; a bare host means `/v1`."""
    key: str = field(default="", repr=False)

    def path(self, rest: str) -> str:
        """The address of one resource below this one, what follows a question mark kept."""
        base, mark, query = self.url.partition("?")
        version = "" if urlsplit(base).path.strip("/") else "/v1"
        return f"{base.rstrip('/')}{version}/{rest}{mark}{query}"

    def blotted(self, data: bytes) -> bytes:
        """Take every secret out of bytes, also one that is cut off at their end."""
        return self._blotter.blotted(data)

    def blotted_text(self, text: str) -> str:
        """Take every secret out of text."""
        return self._blotter.blotted_text(text)

    def without_secrets(self, reply: Reply) -> Reply:
        """Take every secret out of a reply; the same reply when it holds none, as any honest one does."""
        if not self.repeated_in(reply):
            return reply
        calls = tuple(
            replace(
                call,
                id=self.blotted_text(call.id),
                name=self.blotted_text(call.name),
                arguments_text=self.blotted_text(call.arguments_text),
            )
            for call in reply.tool_calls
        )
        named = self.blotted_text(reply.model_reported)
        text, reasoned = self.blotted_text(reply.text), self.blotted_text(reply.reasoned)
        return replace(reply, text=text, reasoned=reasoned, tool_calls=calls, model_reported=named, native=None)

    def repeated_in(self, reply: Reply) -> bool:
        """Whether a reply holds a secret once its pieces are put together."""
        calls = [part for call in reply.tool_calls for part in (call.id, call.name, call.arguments_text)]
        said = "\n".join((reply.text, reply.reasoned, reply.model_reported, *calls, repr(reply.native)))
        return self._blotter.finds(said)

    @property
    def _blotter(self) -> Blotter:
        return blotter_of((self.key,), tuple(_secrets_of(self.url)))


def _secrets_of(url: str) -> list[str]:
    """What in an address may be a key: credentials, values after the question mark, long path parts with digits in
    them."""
    parts = urlsplit(url)
    path = [part for part in parts.path.split("/") if len(part) >= 2 * SECRET_LENGTH_MIN and re.search(r"\d", part)]
    query = [pair.partition("=")[2] for pair in parts.query.split("&")]
    return [
        form
        for part in (parts.username, parts.password, *query, *path)
        if part
        for form in dict.fromkeys((part, unquote(part)))
    ]
