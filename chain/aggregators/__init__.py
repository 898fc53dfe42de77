"""Rival routers: asked for an exact size side by side, never believed; the transaction they answer with is simulated."""
