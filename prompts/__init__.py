"""Prompts: texts shown to stacks, kept verbatim, hashed, never formatted and never edited once used."""
