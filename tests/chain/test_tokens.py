"""What a token says of itself is bounded and stripped, and a hostile token spoils nothing but its own facts."""

import unicodedata

import pytest

from chain.devnet.texts import HOSTILE_ANSWERS, HOSTILE_TEXTS, text_answer
from chain.tokens import DECIMALS_MAX, NAME_LENGTH_MAX, SYMBOL_LENGTH_MAX, TokenFacts, read_facts
from ledgers.errors import ChainFault
from tests.chain.lies import door_through, door_to, refusal

SOMEBODY = "0x" + "5a" * 20


@pytest.fixture
async def door(chain):
    opened = door_to(chain.url)
    yield opened
    await opened.close()


def code_returning(answer: bytes) -> str:
    """A contract that answers every call with these bytes: they follow its code, which copies and returns them."""
    head = bytes.fromhex(f"61{len(answer):04x}600e60003961{len(answer):04x}6000f3")
    return "0x" + (head + answer).hex()


async def facts_of(chain, door, code: str) -> TokenFacts:
    """Facts of a contract with this code, read together with an honest token's, which must not suffer."""
    chain.node.call("anvil_setCode", [SOMEBODY, code])
    honest = chain.deployment.token("LEAF").address
    found = await read_facts(door, [SOMEBODY, honest], chain.height)
    assert found[honest].symbol == "LEAF"
    return found[SOMEBODY]


async def test_honest_tokens_say_what_they_are(chain, door):
    tokens = {token.address: token for token in chain.deployment.tokens if token.kind == "honest"}
    found = await read_facts(door, tokens, chain.height)
    assert {address: (facts.symbol, facts.decimals) for address, facts in found.items()} == {
        address: (token.symbol, token.decimals) for address, token in tokens.items()
    }
    assert all(facts.total_supply_raw for facts in found.values())


async def test_the_whole_zoo_is_read_without_a_fault(chain, door):
    found = await read_facts(door, [token.address for token in chain.deployment.tokens], chain.height)
    assert found.keys() == {token.address for token in chain.deployment.tokens}
    for facts in found.values():
        assert len(facts.symbol) <= SYMBOL_LENGTH_MAX and len(facts.name) <= NAME_LENGTH_MAX
        assert facts.decimals is None or 0 <= facts.decimals <= DECIMALS_MAX


@pytest.mark.parametrize("kind", HOSTILE_TEXTS)
async def test_a_hostile_text_is_read_and_harmless(chain, door, kind):
    for text in HOSTILE_TEXTS[kind]:
        symbol = (await facts_of(chain, door, code_returning(text_answer(text)))).symbol
        assert len(symbol) <= SYMBOL_LENGTH_MAX
        assert not any(unicodedata.category(character)[0] == "C" for character in symbol)


@pytest.mark.parametrize("kind", HOSTILE_ANSWERS)
async def test_an_answer_that_is_no_string_is_read_as_far_as_it_goes(chain, door, kind):
    wanted = {"bytes32": ("Maker", "MKR"), "no_bytes": ("", ""), "one_byte": ("", ""), "offset_beyond": ("", ""), "length_beyond": ("Long…", "SH…")}
    for answer, symbol in zip(HOSTILE_ANSWERS[kind], wanted[kind], strict=True):
        assert (await facts_of(chain, door, code_returning(answer))).symbol == symbol


@pytest.mark.parametrize(
    ("code", "what"),
    [
        ("0x5b600056", "burns all its gas"),
        ("0x60206000fd", "reverts"),
        ("0xfe", "is invalid"),
        ("0x", "has no code"),
        ("0x600160005260206000fd", "reverts with a word"),
    ],
)
async def test_a_token_that_does_not_answer_has_no_facts(chain, door, code, what):
    assert await facts_of(chain, door, code) == TokenFacts(SOMEBODY, "", "", None, None)


async def test_a_token_that_returns_as_much_as_gas_buys_is_cut(chain, door):
    facts = await facts_of(chain, door, "0x6202000060 00f3".replace(" ", ""))
    assert (facts.symbol, facts.name, facts.decimals) == ("", "", 0)


@pytest.mark.parametrize(("decimals", "kept"), [(0, 0), (24, 24), (DECIMALS_MAX, DECIMALS_MAX), (DECIMALS_MAX + 1, None), (2**256 - 1, None)])
async def test_decimals_up_to_36_are_tradable(chain, door, decimals, kept):
    facts = await facts_of(chain, door, code_returning(decimals.to_bytes(32, "big")))
    assert facts.decimals == kept and facts.tradable == (kept is not None)


async def test_a_hundred_gas_burners_leave_the_honest_alone(chain, door):
    burners = [f"0x{0xBAD0000 + place:040x}" for place in range(100)]
    for burner in burners:
        chain.node.call("anvil_setCode", [burner, "0x5b600056"])
    honest = chain.deployment.token("MOSS").address
    found = await read_facts(door, [*burners, honest], chain.height)
    assert found[honest].decimals == 6 and not any(found[burner].tradable for burner in burners)


async def test_a_refused_call_is_asked_in_halves(chain):
    def few_at_a_time(method, params, row):
        return refusal(row, -32000, "out of gas") if method == "eth_call" and len(params[0]["data"]) > 1_500 else row

    between = door_through(chain.url, few_at_a_time)
    tokens = [token.address for token in chain.deployment.tokens if token.kind == "honest"]
    found = await read_facts(between, tokens, chain.height)
    await between.close()
    assert all(found[token].tradable for token in tokens)


async def test_a_token_that_alone_is_refused_has_no_facts(chain):
    between = door_through(chain.url, lambda method, params, row: refusal(row, -32000, "out of gas"))
    found = await read_facts(between, [SOMEBODY], chain.height)
    await between.close()
    assert found[SOMEBODY] == TokenFacts(SOMEBODY, "", "", None, None)


@pytest.mark.parametrize("result", ["0x", "0x" + "00" * 767, None, 1, "0x" + "f" * (2**22)])
async def test_an_answer_of_the_wrong_size_is_a_fault(chain, result):
    between = door_through(chain.url, lambda method, params, row: {**row, "result": result})
    with pytest.raises(ChainFault, match="bad_answer"):
        await read_facts(between, [SOMEBODY], chain.height)
    await between.close()
