"""Whatever a provider sends, its reading ends in a reply or in a fault, and in nothing else."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harnesses.anthropic import AnthropicReading
from harnesses.http_agent import AgentReading
from harnesses.message import Reply
from harnesses.openai_chat import ChatReading
from harnesses.openai_responses import ResponsesReading
from harnesses.provider import ProviderFault
from harnesses.usage import anthropic_usage, chat_usage, responses_usage

READINGS = [ChatReading, ResponsesReading, AnthropicReading, AgentReading]

WORDS = st.sampled_from(
    "choices message delta content text tool_calls function name arguments id index finish_reason usage type error output item response status"
    " message_start content_block_start content_block_delta message_delta message_stop content_block tool_use thinking input partial_json reasoning"
    " response.completed response.output_item.done response.failed function_call call_id incomplete_details reason stop length schema reply/1 calls answer"
    " prompt_tokens completion_tokens total_tokens input_tokens output_tokens model code encrypted_content summary refusal reasoning_content".split()
)
VALUES = st.recursive(st.none() | st.booleans() | st.integers(-2, 3) | st.floats(allow_nan=False) | WORDS | st.just("\ud800"), lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=5), max_leaves=25)
RECORDS = st.dictionaries(WORDS, VALUES, min_size=1, max_size=6)


def heard(reading, chunks: list[bytes]) -> Reply | None:
    try:
        for chunk in chunks:
            if reading.feed(chunk):
                break
        reply = reading.end()
    except ProviderFault:
        return None
    assert type(reply) is Reply and type(reply.text) is str
    assert all(type(part) is str for call in reply.tool_calls for part in (call.id, call.name, call.arguments_text))
    return reply


@pytest.mark.parametrize("kind", READINGS)
@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(records=st.lists(RECORDS, max_size=5), whole=st.booleans())
def test_any_json(kind, records: list, whole: bool) -> None:
    texts = [json.dumps(record).encode() for record in records]
    heard(kind(), texts[:1] if whole else [b"data: " + text + b"\n\n" for text in texts])


@pytest.mark.parametrize("kind", READINGS)
@settings(max_examples=30, deadline=None)
@given(chunks=st.lists(st.binary(max_size=40) | st.sampled_from([b"data: {", b"}\n\n", b"data: [DONE]\n\n", b'{"choices":']), max_size=6))
def test_any_bytes(kind, chunks: list) -> None:
    heard(kind(), chunks)


@settings(max_examples=50, deadline=None)
@given(VALUES)
def test_any_usage(said: object) -> None:
    for read in (chat_usage, responses_usage, anthropic_usage):
        usage = read(said)
        assert usage is None or (usage.output_tokens >= 0 and usage.plain_input_tokens >= 0 and usage.reasoning_tokens <= usage.output_tokens)
