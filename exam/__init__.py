"""Entrance exam: fixed turns that a stack with a model must pass before it may trade (ONC-13)."""
