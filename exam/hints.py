"""Hints: what the setting of a host would be when an answer was malformed through no word of the model's own.

The verdict stays what the contract says; a hint tells a model's author what to change before the next sitting.
"""

from __future__ import annotations

from harnesses.outcome import Outcome, Turn

THOUGHT = ("<think", "<|channel|>", "<thinking", "<reasoning", "[THINK]", "◁think▷")
"""How reasoning begins that a host did not keep apart."""

UNREAD = {
    "call_unreadable": "the host refused what its own model wrote as a call or an object: look at its tool parser and "
    "chat template, or leave `response_format` and `tool_choice` to the model",
    "too_deep": "the answer is nested deeper than anything that is asked for: the decision object has at most eight "
    "levels",
    "too_long": "the answer is longer than any that is read: look whether the model repeats itself, and set a `stop`",
}
"""By the word that a turn without a text is told by."""


def hint_of(turn: Turn) -> str:
    """Say what an author may set; empty where nothing of the host's stands out."""
    text = (turn.answer or "").strip()
    stops = {step.stop for step in turn.steps}
    if turn.outcome is Outcome.OUT_OF_OUTPUT and "context_length" in turn.reason:
        return (
            "the conversation is longer than the host lets this model take: serve it with a larger context, or use "
            "a smaller harness"
        )
    if turn.outcome is not Outcome.MALFORMED:
        return ""
    if turn.answer is None:
        return UNREAD.get(turn.reason.partition(":")[0], "")
    if text.startswith(THOUGHT) or "</think>" in text:
        return (
            "the host sends reasoning inside the text: turn its reasoning parser on, or declare the tags as "
            "`[quirks] reasoning_tags` in a manifest of your own"
        )
    if text.startswith("```"):
        return (
            "the answer is a code block: a host that can be asked for `response_format` json_object sends the "
            "object alone"
        )
    if not text and "other" in stops:
        return "the host ended the answer by itself: a content filter or a guard is on; its log says which"
    if not text:
        return (
            "the host sent an empty answer: look at its chat template, and whether all output goes into hidden "
            "reasoning"
        )
    return "the host ended the answer by itself (a content filter?)" if "other" in stops else ""
