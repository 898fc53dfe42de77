"""Harnesses: how a stack is asked, under which limits, and how a turn ends.

    question.py   what is asked
    provider.py   who answers: the Protocol, and the errors a provider may raise
    turn.py       `play`: ask under the turn's limits, end in exactly one Outcome
    outcome.py    the outcomes, the steps, the tool uses, the turn
    trail.py      steps and tool uses as they happen, also of turns that are cut off
    stack.py      the identity of what is under test
    manifest.py   versioned limits and tools, hashed byte for byte (manifests/*.toml, MANIFESTS.md)
                  asking.py, quirks.py  its options
    scripted.py   providers without a model: a script, a function

A model's turn:

    model.py      ask, carry out tool calls, ask again, until it answers or a limit is spent
    message.py    the conversation, in no provider's dialect · usage.py  everybody's token counts as one record
    tools.py      what a tool is · calls.py  what counts as a call of one · using.py  calls carried out and recorded
    endpoint.py   one call to a model: openai_chat.py, openai_responses.py, anthropic.py, http_agent.py (catalog.py)
    http.py       deadline, retries, Retry-After, slots · pace.py  a host's minute
    address.py    secrets · blot.py  taken out of what comes back
    reading.py    answers as they come (sse.py) · refusals.py  what a host's error says, and whose doing it is
    shallow.py    how deep JSON may nest, told in one way at every door
    mcp_door.py   outside agents come in and play (mcp.py: the protocol)

How a program of anybody plays: DOORS.md.
"""
