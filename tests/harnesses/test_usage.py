"""Usage: every flavour's counts become one record, and disagreement is flagged (design §10)."""

import pytest

from harnesses.message import Usage
from harnesses.usage import (
    anthropic_usage,
    chat_usage,
    estimated_usage,
    held_to_bytes,
    responses_usage,
    usage_in,
    with_reasoning,
)

WRONG = ("inconsistent",)


@pytest.mark.parametrize(
    ("said", "usage"),
    [
        ({"prompt_tokens": 100, "completion_tokens": 30, "total_tokens": 130}, Usage(100, 0, 0, 30)),
        ({"prompt_tokens": 100, "completion_tokens": 30}, Usage(100, 0, 0, 30)),
        (
            {
                "prompt_tokens": 100,
                "completion_tokens": 30,
                "total_tokens": 130,
                "prompt_tokens_details": {"cached_tokens": 60, "cache_write_tokens": 10},
                "completion_tokens_details": {"reasoning_tokens": 25},
            },
            Usage(100, 60, 10, 30, 25),
        ),
        # reasoning on top of the output, as some hosts count: the total tells
        (
            {
                "prompt_tokens": 100,
                "completion_tokens": 30,
                "total_tokens": 180,
                "completion_tokens_details": {"reasoning_tokens": 50},
            },
            Usage(100, 0, 0, 80, 50),
        ),
        (
            {"prompt_tokens": 100, "completion_tokens": 30, "completion_tokens_details": {"reasoning_tokens": 50}},
            Usage(100, 0, 0, 80, 50),
        ),
        # a total that no rule explains: the larger is kept
        ({"prompt_tokens": 100, "completion_tokens": 30, "total_tokens": 170}, Usage(100, 0, 0, 70, 0, WRONG)),
        ({"prompt_tokens": 100, "completion_tokens": 30, "total_tokens": 90}, Usage(100, 0, 0, 30, 0, WRONG)),
        (
            {
                "prompt_tokens": 100,
                "completion_tokens": 30,
                "total_tokens": 130,
                "completion_tokens_details": {"reasoning_tokens": 50},
            },
            Usage(100, 0, 0, 80, 50, WRONG),
        ),
        (
            {
                "prompt_tokens": 10,
                "completion_tokens": 3,
                "total_tokens": 13,
                "prompt_tokens_details": {"cached_tokens": 60},
            },
            Usage(60, 60, 0, 3, 0, WRONG),
        ),
        # odd shapes
        (
            {
                "prompt_tokens": 100.0,
                "completion_tokens": 30,
                "prompt_tokens_details": None,
                "completion_tokens_details": [],
            },
            Usage(100, 0, 0, 30),
        ),
        (
            {"prompt_tokens": 100, "completion_tokens": 30, "completion_tokens_details": {"reasoning_tokens": "many"}},
            Usage(100, 0, 0, 30),
        ),
        ({"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}, Usage()),
    ],
)
def test_chat_completions(said: dict, usage: Usage) -> None:
    assert chat_usage(said) == usage


@pytest.mark.parametrize(
    "said",
    [
        None,
        [],
        "7",
        {},
        {"prompt_tokens": 1},
        {"prompt_tokens": -1, "completion_tokens": 1},
        {"prompt_tokens": True, "completion_tokens": 1},
        {"prompt_tokens": "1", "completion_tokens": 1},
        {"prompt_tokens": 10**12, "completion_tokens": 1},
        {"prompt_tokens": 1.5, "completion_tokens": 1},
    ],
    ids=repr,
)
def test_counts_that_cannot_be_believed_are_none_and_never_zero(said: object) -> None:
    assert chat_usage(said) is None and responses_usage(said) is None and anthropic_usage(said) is None


def test_responses() -> None:
    said = {
        "input_tokens": 100,
        "output_tokens": 30,
        "total_tokens": 130,
        "input_tokens_details": {"cached_tokens": 60},
        "output_tokens_details": {"reasoning_tokens": 25},
    }
    assert responses_usage(said) == Usage(100, 60, 0, 30, 25)


@pytest.mark.parametrize(
    ("said", "usage"),
    [
        (
            {"input_tokens": 5, "output_tokens": 30, "cache_read_input_tokens": 60, "cache_creation_input_tokens": 10},
            Usage(75, 60, 10, 30),
        ),
        (
            {
                "input_tokens": 5,
                "output_tokens": 30,
                "cache_read_input_tokens": None,
                "cache_creation": {"ephemeral_5m_input_tokens": 4, "ephemeral_1h_input_tokens": 6},
            },
            Usage(15, 0, 10, 30),
        ),
        (
            {"input_tokens": 5, "output_tokens": 30, "output_tokens_details": {"thinking_tokens": 20}},
            Usage(5, 0, 0, 30, 20),
        ),
        (
            {"input_tokens": 5, "output_tokens": 30, "output_tokens_details": {"thinking_tokens": 40}},
            Usage(5, 0, 0, 40, 40, WRONG),
        ),
    ],
)
def test_anthropic_counts_cached_input_beside_the_rest(said: dict, usage: Usage) -> None:
    assert anthropic_usage(said) == usage


def test_usages_add_up_and_keep_every_flag() -> None:
    total = Usage(75, 60, 10, 30, 5, WRONG) + Usage(1, 0, 0, 2, 0, ("estimated",))
    assert total == Usage(76, 60, 10, 32, 5, ("estimated", "inconsistent"))
    assert (total.plain_input_tokens, total.consistent, total.estimated) == (6, False, True)


def test_where_nothing_is_counted_bytes_are_and_it_is_said() -> None:
    assert estimated_usage(b"x" * 9, "y" * 5, "z" * 4) == Usage(3, 0, 0, 3, 1, ("estimated",))


def test_reasoning_that_was_counted_is_not_estimated() -> None:
    assert with_reasoning(Usage(1, 0, 0, 9, 4), "zzz", "a") == Usage(1, 0, 0, 9, 4)


# --- hosts that speak chat completions under names and in places of their own -----------------------------------------

HOSTS = {
    "OpenAI": (
        {
            "usage": {
                "prompt_tokens": 900,
                "completion_tokens": 30,
                "total_tokens": 930,
                "prompt_tokens_details": {"cached_tokens": 800},
                "completion_tokens_details": {"reasoning_tokens": 10},
            }
        },
        Usage(900, 800, 0, 30, 10),
    ),
    "DeepSeek": (
        {
            "usage": {
                "prompt_tokens": 900,
                "completion_tokens": 30,
                "total_tokens": 930,
                "prompt_cache_hit_tokens": 800,
                "prompt_cache_miss_tokens": 100,
            }
        },
        Usage(900, 800, 0, 30),
    ),
    "Moonshot": (
        {
            "choices": [
                {
                    "index": 0,
                    "delta": {},
                    "finish_reason": "stop",
                    "usage": {"prompt_tokens": 900, "completion_tokens": 30, "total_tokens": 930, "cached_tokens": 800},
                }
            ]
        },
        Usage(900, 800, 0, 30),
    ),
    "Groq": (
        {
            "choices": [],
            "x_groq": {
                "usage": {
                    "prompt_tokens": 900,
                    "completion_tokens": 30,
                    "total_tokens": 930,
                    "prompt_tokens_details": {"cached_tokens": 800},
                }
            },
        },
        Usage(900, 800, 0, 30),
    ),
    "xAI": (
        {
            "usage": {
                "prompt_tokens": 900,
                "completion_tokens": 30,
                "total_tokens": 1030,
                "prompt_tokens_details": {"cached_tokens": 800, "text_tokens": 900},
                "completion_tokens_details": {"reasoning_tokens": 100},
            }
        },
        Usage(900, 800, 0, 130, 100),
    ),
    "OpenRouter": (
        {
            "usage": {
                "prompt_tokens": 900,
                "completion_tokens": 30,
                "total_tokens": 930,
                "cost": 0.1,
                "prompt_tokens_details": {"cached_tokens": 700, "cache_write_tokens": 100},
                "completion_tokens_details": {"reasoning_tokens": 10},
            }
        },
        Usage(900, 700, 100, 30, 10),
    ),
    "Anthropic behind a router": (
        {
            "usage": {
                "prompt_tokens": 900,
                "completion_tokens": 30,
                "total_tokens": 930,
                "cache_read_input_tokens": 700,
                "cache_creation_input_tokens": 100,
            }
        },
        Usage(900, 700, 100, 30),
    ),
    "Gemini": (
        {
            "usageMetadata": {
                "promptTokenCount": 900,
                "cachedContentTokenCount": 800,
                "candidatesTokenCount": 30,
                "thoughtsTokenCount": 100,
                "totalTokenCount": 1030,
            }
        },
        Usage(900, 800, 0, 130, 100),
    ),
    "Mistral": (
        {"usage": {"prompt_tokens": 900, "completion_tokens": 30, "total_tokens": 930, "num_cached_tokens": 800}},
        Usage(900, 800, 0, 30),
    ),
    "Together": (
        {"usage": {"prompt_tokens": 900, "completion_tokens": 30, "total_tokens": 930, "cached_tokens": 800}},
        Usage(900, 800, 0, 30),
    ),
    "Perplexity": (
        {"usage": {"prompt_tokens": 900, "completion_tokens": 30, "total_tokens": 930, "reasoning_tokens": 10}},
        Usage(900, 0, 0, 30, 10),
    ),
    "Cohere": (
        {
            "meta": {
                "tokens": {"input_tokens": 900, "output_tokens": 30},
                "billed_units": {"input_tokens": 100, "output_tokens": 30},
            }
        },
        Usage(900, 0, 0, 30),
    ),
    "Bedrock": (
        {"usage": {"inputTokens": 900, "outputTokens": 30, "totalTokens": 930, "cacheReadInputTokens": 800}},
        Usage(900, 800, 0, 30),
    ),
    "Qwen": (
        {
            "usage": {
                "prompt_tokens": 900,
                "completion_tokens": 30,
                "total_tokens": 930,
                "prompt_tokens_details": {"cached_tokens": 700, "cache_creation_input_tokens": 100},
            }
        },
        Usage(900, 700, 100, 30),
    ),
    "vLLM": (
        {"usage": {"prompt_tokens": 900, "completion_tokens": 30, "total_tokens": 930, "prompt_tokens_details": None}},
        Usage(900, 0, 0, 30),
    ),
    "llama.cpp": ({"timings": {"cache_n": 800, "prompt_n": 100, "predicted_n": 30}}, Usage(900, 800, 0, 30)),
    "Ollama": ({"prompt_eval_count": 900, "eval_count": 30, "done": True}, Usage(900, 0, 0, 30)),
}


@pytest.mark.parametrize("host", HOSTS)
def test_every_host_s_counts_are_found_under_its_own_names_and_in_its_own_place(host: str) -> None:
    said, usage = HOSTS[host]
    assert usage_in(said) == usage


def test_a_chunk_without_counts_has_none() -> None:
    assert usage_in({"choices": [{"index": 0, "delta": {"content": "x"}}], "usage": None}) is None


@pytest.mark.parametrize(
    ("reported", "counted", "flags"), [(1, 100, WRONG), (99, 100, WRONG), (100, 100, ()), (500, 500, ())]
)
def test_fewer_output_tokens_than_the_bytes_can_be_made_of_are_not_believed(
    reported: int, counted: int, flags: tuple
) -> None:
    assert held_to_bytes(Usage(5, 0, 0, reported), 800) == Usage(5, 0, 0, counted, 0, flags)
