"""Scripts say one thing per tick, and a script that does not is refused with its line."""

import json

import pytest

from harnesses.provider import Answer, LimitSpent, ProviderFault
from harnesses.question import Question
from harnesses.scripted import FunctionProvider, ScriptedProvider, read_script
from ledgers.clock import VirtualClock


def question(tick: int) -> Question:
    return Question("w1-s-1", tick, "", b"{}", b"{}", 1_000)


async def test_a_script_answers_each_tick_with_its_line() -> None:
    script = read_script(
        '{"tick": 0, "answer": "as it stands"}\n\n{"tick": 2, "decision": {"schema": "decision/1", "orders": []}}\r\n'
    )
    provider = ScriptedProvider(script, VirtualClock(), otherwise="hold")
    assert await provider.answer(question(0)) == Answer("as it stands")
    assert json.loads((await provider.answer(question(2))).text) == {"schema": "decision/1", "orders": []}
    assert await provider.answer(question(1)) == Answer("hold")


async def test_a_tick_without_a_line_is_a_fault_when_nothing_else_was_agreed() -> None:
    with pytest.raises(ProviderFault, match="no line for tick 1"):
        await ScriptedProvider({0: "x"}, VirtualClock()).answer(question(1))


async def test_a_script_can_fail_and_run_out_of_limits() -> None:
    provider = ScriptedProvider(read_script('{"tick":0,"fault":"down"}\n{"tick":1,"out_of":"output"}'), VirtualClock())
    with pytest.raises(ProviderFault, match="down"):
        await provider.answer(question(0))
    with pytest.raises(LimitSpent, match="output"):
        await provider.answer(question(1))


async def test_a_function_answers_from_the_question_alone() -> None:
    assert await FunctionProvider(lambda asked: str(asked.tick)).answer(question(7)) == Answer("7")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"tick": 0}', "exactly one of"),
        ('{"tick": 0, "answer": "a", "fault": "b"}', "exactly one of"),
        ('{"tick": -1, "answer": "a"}', "tick"),
        ('{"tick": "0", "answer": "a"}', "tick"),
        ('{"tick": 0, "answer": "a", "mood": "good"}', "mood"),
        ('{"tick": 0, "answer": "a", "delay_ms": -1}', "delay_ms"),
        ('{"tick": 0, "out_of": "luck"}', "out_of"),
        ('{"tick": 0, "answer": "a"', "JSON"),
        ("[]", "script line 1"),
        ('{"tick": 0, "answer": "a"}\n{"tick": 0, "answer": "b"}', "script line 2: tick 0"),
    ],
)
def test_a_script_that_does_not_hold_is_refused_with_its_line(text: str, said: str) -> None:
    with pytest.raises(ValueError, match="script line") as refused:
        read_script(text)
    assert said in str(refused.value)
