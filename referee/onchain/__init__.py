"""The on-chain referee: a live paper-trading window on an EVM chain, refereed by simulation (paper 001)."""
