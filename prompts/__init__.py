"""The prompts, loaded verbatim and named by hash, never edited once used. They will live here, one folder a bench."""
