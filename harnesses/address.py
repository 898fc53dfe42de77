"""The address: where a provider answers, and the key it asks for. Both are secrets.

A key goes into one request header and nowhere else. Some servers repeat it in what they answer, so everything that
comes back is blotted before it reaches a journal, an event or a screen.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, replace
from urllib.parse import quote, urlsplit

from harnesses.message import Reply

SECRET_LENGTH_MIN = 8
"""Shorter keys are words like `none`, which a text may well hold."""

TAIL_LENGTH_MIN = 6
"""How much of a secret at the very end of cut-off bytes is taken for its beginning."""

BLOT = b"[secret]"

_ESCAPED = re.compile(rb"\\+u00(2[013-9a-fA-F]|[3467][0-9a-fA-F]|5[0-9abd-fABD-F])")
"""A JSON escape of a printable character, quotes and backslashes left out; of more backslashes inside a text of a text."""
_ESCAPED_TEXT = re.compile(_ESCAPED.pattern.decode())


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
        plain = _ESCAPED.sub(lambda escape: bytes.fromhex(escape[1].decode()), data)
        if any(secret in plain for secret in self._secrets()):
            data = plain
        for secret in self._secrets():
            data = data.replace(secret, BLOT)
            for length in range(min(len(secret) - 1, len(data)), TAIL_LENGTH_MIN - 1, -1):
                if data.endswith(secret[:length]):
                    data = data[:-length] + BLOT
                    break
        return data

    def blotted_text(self, text: str) -> str:
        """Take every secret out of text."""
        plain = _unescaped(text)
        if any(secret.decode() in plain for secret in self._secrets()):
            text = plain
        for secret in self._secrets():
            text = text.replace(secret.decode(), BLOT.decode())
        return text

    def without_secrets(self, reply: Reply) -> Reply:
        """Take every secret out of a reply; the same reply when it holds none, as any honest one does."""
        if not self.repeated_in(reply):
            return reply
        calls = tuple(
            replace(call, id=self.blotted_text(call.id), name=self.blotted_text(call.name), arguments_text=self.blotted_text(call.arguments_text))
            for call in reply.tool_calls
        )
        named = self.blotted_text(reply.model_reported)
        text, reasoned = self.blotted_text(reply.text), self.blotted_text(reply.reasoned)
        return replace(reply, text=text, reasoned=reasoned, tool_calls=calls, model_reported=named, native=None)

    def repeated_in(self, reply: Reply) -> bool:
        """Whether a reply holds a secret once its pieces are put together."""
        calls = [part for call in reply.tool_calls for part in (call.id, call.name, call.arguments_text)]
        said = "\n".join((reply.text, reply.reasoned, reply.model_reported, *calls, repr(reply.native)))
        return any(secret.decode() in said or secret.decode() in _unescaped(said) for secret in self._secrets())

    def _secrets(self) -> list[bytes]:
        """Every form of every secret, longest first."""
        found = {self.key, *_secrets_of(self.url)}
        forms = {form for secret in found for form in (secret, quote(secret, safe=""), json.dumps(secret)[1:-1], secret.replace("/", "\\/"))}
        return sorted((form.encode() for form in forms if len(form) >= SECRET_LENGTH_MIN), key=len, reverse=True)


def _unescaped(text: str) -> str:
    return _ESCAPED_TEXT.sub(lambda escape: chr(int(escape[1], 16)), text)


def _secrets_of(url: str) -> list[str]:
    """What in an address may be a key: credentials, values after the question mark, long path parts with digits in them."""
    parts = urlsplit(url)
    path = [part for part in parts.path.split("/") if len(part) >= 2 * SECRET_LENGTH_MIN and re.search(r"\d", part)]
    query = [pair.partition("=")[2] for pair in parts.query.split("&")]
    return [part for part in (parts.username, parts.password, *query, *path) if part]
