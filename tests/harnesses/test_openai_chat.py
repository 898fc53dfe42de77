"""Chat completions: what hosts send, whole and streamed, becomes one reply (API reference, chat completions)."""

import pytest

from harnesses.asking import Asking
from harnesses.message import Message, ToolCall, Usage
from harnesses.provider import ProviderFault
from harnesses.quirks import Quirks, ReasoningTags
from tests.harnesses.wire import KEY, QUOTE, complete, serving, stream, whole

USAGE = {"prompt_tokens": 100, "completion_tokens": 30, "total_tokens": 130, "prompt_tokens_details": {"cached_tokens": 40}, "completion_tokens_details": {"reasoning_tokens": 20}}
COUNTED = Usage(100, 40, 0, 30, 20)


def completion(message: dict, stop: str = "stop", **more: object) -> dict:
    return {"id": "c", "model": "m-1-0901", "choices": [{"index": 0, "message": message, "finish_reason": stop}], "usage": USAGE, **more}


def chunk(delta: dict, stop: str | None = None, **more: object) -> dict:
    return {"id": "c", "model": "m-1-0901", "choices": [{"index": 0, "delta": delta, "finish_reason": stop}], "usage": None, **more}


def call(name: str, arguments: object, **more: object) -> dict:
    return {"type": "function", "function": {"name": name, "arguments": arguments}, **more}


LAST = {"id": "c", "model": "m-1-0901", "choices": [], "usage": USAGE}
DONE = b"data: [DONE]\n\n"


async def test_a_streamed_answer_is_put_together_and_its_usage_read() -> None:
    async with serving(stream(chunk({"role": "assistant", "content": ""}), chunk({"content": "he"}), b": ping\n\n", chunk({"content": "llo"}), chunk({}, "stop"), LAST, DONE, hang=True)) as server:
        reply = await complete(server)
    assert (reply.text, reply.stop, reply.usage, reply.model_reported, reply.tool_calls) == ("hello", "end", COUNTED, "m-1-0901", ())


async def test_the_request_holds_what_the_manifest_says_and_the_key_stands_in_one_header_alone() -> None:
    async with serving(whole(completion({"content": "x"}))) as server:
        await complete(server)
    assert server.paths == ["/v1/chat/completions"]
    assert server.headers[0]["authorization"] == f"Bearer {KEY}"
    body = server.bodies[0]
    assert KEY not in str(body)
    assert body["messages"] == [{"role": "system", "content": "be brief"}, {"role": "user", "content": '{"schema":"question/1"}'}]
    assert body["tools"] == [{"type": "function", "function": {"name": "quote", "description": QUOTE.description, "parameters": QUOTE.parameters}}]
    assert (body["model"], body["max_tokens"], body["tool_choice"], body["stream"]) == ("m-1", 4_096, "auto", True)
    assert body["stream_options"] == {"include_usage": True}


async def test_the_local_manifest_asks_for_whole_answers_and_sends_its_sampling() -> None:
    async with serving(whole(completion({"content": "x"}))) as server:
        await complete(server, "local-1")
    assert "stream" not in server.bodies[0] and (server.bodies[0]["temperature"], server.bodies[0]["seed"]) == (0.0, 7)


@pytest.mark.parametrize("as_events", [False, True])
async def test_parallel_calls_with_arguments_as_text_and_as_an_object(as_events: bool) -> None:
    first, second = call("quote", '{"token":"0x1"}', id="a"), call("pool", {"key": "é"}, id="b")
    if as_events:
        pieces = [
            chunk({"tool_calls": [{"index": 0, **call("quote", '{"tok', id="a")}]}),
            chunk({"tool_calls": [{"index": 1, **call("pool", {"key": "é"}, id="b")}]}),
            chunk({"tool_calls": [{"index": 0, "function": {"arguments": 'en":"0x1"}'}}]}),
            chunk({}, "tool_calls"),
        ]
        answer = stream(*pieces, LAST, DONE)
    else:
        answer = whole(completion({"content": None, "tool_calls": [first, second]}, "tool_calls"))
    async with serving(answer) as server:
        reply = await complete(server)
    assert reply.tool_calls == (ToolCall("a", "quote", '{"token":"0x1"}'), ToolCall("b", "pool", '{"key": "é"}'))
    assert (reply.stop, reply.text) == ("tools", "")


@pytest.mark.parametrize(
    "pieces",
    [
        [[{"index": 0, **call("quote", "{}", id="a")}], [{"index": 0, **call("pool", "{", id="b")}], [{"index": 0, "function": {"arguments": "}"}}]],
        [[call("quote", "{}", id="a"), call("pool", "{}", id="b")]],
        [[call("quote", "{}", id="a")], [call("pool", "{", id="b")], [{"function": {"arguments": "}"}}]],
        [[{"index": 3, **call("quote", "{}", id="a")}], [{"index": 7, **call("pool", "{}", id="b")}]],
    ],
    ids=["every index 0", "no index, one chunk", "no index, in pieces", "indexes with gaps"],
)
async def test_calls_are_told_apart_although_hosts_number_them_oddly(pieces: list) -> None:
    async with serving(stream(*(chunk({"tool_calls": calls}) for calls in pieces), chunk({}, "tool_calls"), DONE)) as server:
        reply = await complete(server)
    assert reply.tool_calls == (ToolCall("a", "quote", "{}"), ToolCall("b", "pool", "{}"))


async def test_the_conversation_goes_back_in_the_provider_s_own_words() -> None:
    said = (
        Message("assistant", "", (ToolCall("a", "quote", '{"token":"0x1"}'),), native={"message": {"reasoning_content": "hm"}, "calls": [{}]}),
        Message("tool", '{"price":"1"}', tool_call_id="a"),
    )
    async with serving(whole(completion({"content": "x"}))) as server:
        await complete(server, messages=(Message("user", "q"), *said))
    assert server.bodies[0]["messages"][1:] == [
        {"role": "assistant", "content": "", "reasoning_content": "hm", "tool_calls": [{"id": "a", "type": "function", "function": {"name": "quote", "arguments": '{"token":"0x1"}'}}]},
        {"role": "tool", "tool_call_id": "a", "content": '{"price":"1"}'},
    ]


@pytest.mark.parametrize("as_events", [False, True])
async def test_signatures_and_shown_thoughts_go_back_with_the_calls_they_came_with(as_events: bool) -> None:
    signed = {"index": 0, **call("quote", "{}", id="a", extra_content={"google": {"thought_signature": "c2ln"}})}
    said = {"content": None, "reasoning_content": "hm", "tool_calls": [signed, {"index": 1, **call("book", "{}", id="b")}]}
    first = stream(chunk(said), chunk({}, "tool_calls"), DONE) if as_events else whole(completion(said, "tool_calls"))
    async with serving(first, whole(completion({"content": "x"}))) as server:
        reply = await complete(server)
        again = Message("assistant", reply.text, reply.tool_calls, native=reply.native)
        await complete(server, messages=(Message("user", "q"), again))
    sent = server.bodies[1]["messages"][1]
    assert sent["reasoning_content"] == "hm"
    assert [one.get("extra_content") for one in sent["tool_calls"]] == [{"google": {"thought_signature": "c2ln"}}, None]


async def test_hidden_reasoning_that_ate_the_output_limit_is_seen() -> None:
    usage = {"prompt_tokens": 9, "completion_tokens": 500, "total_tokens": 509, "completion_tokens_details": {"reasoning_tokens": 500}}
    async with serving(whole(completion({"content": "", "reasoning_content": "hm"}, "length", usage=usage))) as server:
        reply = await complete(server)
    assert (reply.stop, reply.text, reply.usage.output_tokens, reply.usage.reasoning_tokens) == ("length", "", 500, 500)


@pytest.mark.parametrize("word", ["length", "max_tokens", "MAX_TOKENS", "max_output_tokens", "model_length"])
async def test_an_answer_that_any_host_cut_off_is_known_as_cut_off(word: str) -> None:
    async with serving(whole(completion({"content": "{}"}, word))) as server:
        assert (await complete(server)).stop == "length"


async def test_hidden_reasoning_that_is_shown_but_not_counted_is_shared_out_and_flagged() -> None:
    usage = {"prompt_tokens": 9, "completion_tokens": 100, "total_tokens": 109}
    async with serving(whole(completion({"content": "x" * 10, "reasoning": "y" * 90}, usage=usage))) as server:
        reply = await complete(server)
    assert (reply.usage.reasoning_tokens, reply.usage.flags, reply.text) == (90, ("reasoning_estimated",), "x" * 10)


@pytest.mark.parametrize(
    ("message", "text"),
    [({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}, "ab"), ({"content": None, "refusal": "no"}, "no"), ({}, ""), ({"content": 7}, "")],
)
async def test_content_of_any_shape_is_text_or_nothing(message: dict, text: str) -> None:
    async with serving(whole(completion(message))) as server:
        assert (await complete(server)).text == text


async def test_an_old_function_call_is_a_call_and_a_filter_is_another_stop() -> None:
    old = completion({"content": None, "function_call": {"name": "quote", "arguments": "{}"}}, "function_call")
    async with serving(whole(old), whole(completion({"content": "so"}, "content_filter"))) as server:
        first, second = await complete(server), await complete(server)
    assert (first.tool_calls, first.stop) == ((ToolCall("", "quote", "{}"),), "tools")
    assert (second.text, second.stop) == ("so", "other")


async def test_a_stream_without_done_is_whole_once_its_stop_came() -> None:
    async with serving(stream(chunk({"content": "x"}), chunk({}, "stop"), drop=True)) as server:
        reply = await complete(server)
    assert (reply.text, reply.usage) == ("x", None)


@pytest.mark.parametrize("said", [b"[]", b'"x"', b"{}", b"<html>busy</html>", b'{"choices": null}', b'{"choices": []}', b"[" * 100_000, b'{"a":' + b"9" * 5_000 + b"}"])
async def test_what_is_no_completion_is_a_fault_and_never_an_answer(said: bytes) -> None:
    async with serving(whole(said)) as server:
        with pytest.raises(ProviderFault):
            await complete(server)
    assert len(server.bodies) == 1


@pytest.mark.parametrize("stop", ["error", "abort"])
async def test_a_stop_that_is_the_host_s_failure_is_tried_again(stop: str) -> None:
    broken = completion({"content": '{"schema":"decision/1","orders":[]}'}, stop)
    async with serving(whole(broken), stream(chunk({"content": "a"}), chunk({}, stop)), whole(completion({"content": "x"}))) as server:
        assert (await complete(server)).text == "x"
    assert len(server.bodies) == 3


async def test_a_choice_that_is_not_the_first_is_not_read() -> None:
    two = completion({"content": "first"})
    two["choices"].append({"index": 1, "message": {"content": "second"}, "finish_reason": "stop"})
    async with serving(whole(two)) as server:
        assert (await complete(server)).text == "first"


# --- pieces and wholes ------------------------------------------------------------------------------------------------


def piece(arguments: str, name: str | None = None, **more: object) -> dict:
    return chunk({"tool_calls": [{"function": {"arguments": arguments} | ({"name": name} if name else {}), **more}]})


@pytest.mark.parametrize("numbered", [{"index": 0}, {}], ids=["with index", "without index"])
async def test_only_a_name_begins_a_call_whatever_ids_its_pieces_have(numbered: dict) -> None:
    parts = [piece("", "quote", id="a", **numbered), piece('{"a"', id="b", **numbered), piece(':"1"}', id="c", **numbered)]
    async with serving(stream(*parts, chunk({}, "tool_calls"), DONE)) as server:
        reply = await complete(server)
    assert reply.tool_calls == (ToolCall("a", "quote", '{"a":"1"}'),)


async def test_a_name_said_again_with_every_piece_is_one_call_and_two_names_are_two() -> None:
    again = [piece('{"a"', "quote", index=0, id="a"), piece(':"1"}', "quote", index=0, id="a"), piece("{}", "book", index=0, id="b"), piece("{}", "book", index=0, id="c")]
    async with serving(stream(*again, chunk({}, "tool_calls"), DONE)) as server:
        reply = await complete(server)
    assert [(call.name, call.arguments_text) for call in reply.tool_calls] == [("quote", '{"a":"1"}'), ("book", "{}"), ("book", "{}")]


@pytest.mark.parametrize("last", [
    {"index": 0, "message": {"content": "{}", "tool_calls": [call("book", "{}", id="a")]}, "finish_reason": "stop"},
    {"index": 0, "delta": {"content": "{}", "tool_calls": [call("book", "{}", id="a", index=0)]}, "finish_reason": "stop"},
], ids=["message", "delta"])  # fmt: skip
async def test_a_whole_at_the_end_of_pieces_doubles_nothing(last: dict) -> None:
    parts = [chunk({"content": "{"}), chunk({"content": "}"}), piece("{}", "book", index=0, id="a")]
    async with serving(stream(*parts, {"choices": [last]}, DONE)) as server:
        reply = await complete(server)
    assert (reply.text, reply.tool_calls) == ("{}", (ToolCall("a", "book", "{}"),))


async def test_a_stream_of_whole_messages_is_put_together() -> None:
    parts = [{"choices": [{"index": 0, "message": {"content": part}, "finish_reason": None}]} for part in ("he", "llo")]
    async with serving(stream(*parts, chunk({}, "stop"), DONE)) as server:
        assert (await complete(server)).text == "hello"


async def test_declared_reasoning_tags_are_taken_out_and_counted() -> None:
    quirks = Quirks(reasoning_tags=ReasoningTags(begin="<think>", end="</think>"), give_back=["annotations"])
    said = completion({"content": "<think>hm hm</think>{}", "annotations": [{"a": 1}]})
    async with serving(whole(said)) as server:
        reply = await complete(server, quirks=quirks)
    assert (reply.text, reply.reasoned, reply.native["message"]) == ("{}", "hm hm", {"annotations": [{"a": 1}]})


async def test_what_an_author_asks_for_is_in_the_request() -> None:
    asking = Asking(
        tool_choice="required", parallel_tool_calls=False, stop=["END"], response_format="json_object", system_role="developer",
        prompt_caching=True, extra_body={"service_tier": "flex"}, extra_headers={"X-Title": "referee"},
    )  # fmt: skip
    async with serving(whole(completion({"content": "x"}))) as server:
        await complete(server, asking=asking)
    body, head = server.bodies[0], server.headers[0]
    assert (body["tool_choice"], body["parallel_tool_calls"], body["stop"], body["response_format"]) == ("required", False, ["END"], {"type": "json_object"})
    assert (body["service_tier"], head["x-title"], body["messages"][0]["role"]) == ("flex", "referee", "developer")
    assert body["messages"][0]["content"][0]["cache_control"] == {"type": "ephemeral"}


async def test_a_host_s_fingerprint_stands_behind_the_model_s_name() -> None:
    async with serving(whole(completion({"content": "x"}, system_fingerprint="fp_1"))) as server:
        assert (await complete(server)).model_reported == "m-1-0901 [fp_1]"
