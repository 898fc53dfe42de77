"""Outside sources of market data: optional, believed by nobody, and free to fail."""
