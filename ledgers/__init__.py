"""The kernel under every bench: time, money, record and count. It knows no bench."""
