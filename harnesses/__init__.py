"""Harnesses: how a stack is asked, under which limits, and how a turn ends.

    question.py   what is asked
    provider.py   who answers: the Protocol, and the errors a provider may raise
    turn.py       `play`: ask under the turn's limits, end in exactly one Outcome
    outcome.py    the outcomes, the steps, the turn
    stack.py      the identity of what is under test
    manifest.py   versioned limits and tools, hashed byte for byte (manifests/*.toml)
    scripted.py   providers without a model: a script, a function
"""
