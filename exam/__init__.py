"""The entrance exam: what a harness must pass before it may trade. Its checks and captured turns will live here."""
