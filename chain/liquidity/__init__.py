"""Concentrated liquidity: what a position holds, and what it earns from the swaps that really happened."""
