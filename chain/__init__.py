"""The live EVM network behind doors: reading, quoting and simulating; never sending."""
