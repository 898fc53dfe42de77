"""Recovery: whose key signed a digest, on secp256k1.

Source: SEC 1, section 4.1.6.
"""

from __future__ import annotations

P = 2**256 - 2**32 - 977
N = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141
G = (0x79BE667EF9DCBBAC55A06295CE870B07029BFCDB2DCE28D959F2815B16F81798, 0x483ADA7726A3C4655DA4FBFC0E1108A8FD17B448A68554199C47D08FFB10D4B8)
Point = tuple[int, int, int]
"""Jacobian coordinates; z is 0 for the point at infinity."""


def recover(digest: bytes, parity: int, r: int, s: int) -> bytes | None:
    """The 64 bytes of the public key, or None where there is none."""
    if not (0 < r < N and 0 < s < N):
        return None
    square = (pow(r, 3, P) + 7) % P
    y = pow(square, (P + 1) // 4, P)
    if y * y % P != square:
        return None
    y = y if y % 2 == parity else P - y
    inverse = pow(r, -1, N)
    found = _sum_of((*G, 1), -int.from_bytes(digest) * inverse % N, (r, y, 1), s * inverse % N)
    if not found[2]:
        return None
    z = pow(found[2], -1, P)
    return (found[0] * z * z % P).to_bytes(32) + (found[1] * z * z * z % P).to_bytes(32)


def _sum_of(left: Point, times: int, right: Point, others: int) -> Point:
    """Two multiples together, doubling once for both."""
    both, found = _add(left, right), (0, 1, 0)
    for bit in reversed(range(256)):
        found = _double(found)
        chosen = (times >> bit & 1) + 2 * (others >> bit & 1)
        if chosen:
            found = _add(found, (left, right, both)[chosen - 1])
    return found


def _double(point: Point) -> Point:
    x, y, z = point
    if not z or not y:
        return 0, 1, 0
    yy = y * y % P
    a = 4 * x * yy % P
    m = 3 * x * x % P
    x3 = (m * m - 2 * a) % P
    return x3, (m * (a - x3) - 8 * yy * yy) % P, 2 * y * z % P


def _add(left: Point, right: Point) -> Point:
    if not left[2] or not right[2]:
        return right if not left[2] else left
    (x1, y1, z1), (x2, y2, z2) = left, right
    s1, s2 = z1 * z1 % P, z2 * z2 % P
    u1, u2, v1, v2 = x1 * s2 % P, x2 * s1 % P, y1 * s2 * z2 % P, y2 * s1 * z1 % P
    if u1 == u2:
        return _double(left) if v1 == v2 else (0, 1, 0)
    h, w = u2 - u1, v2 - v1
    hh = h * h % P
    hhh, a = h * hh % P, u1 * hh % P
    x3 = (w * w - hhh - 2 * a) % P
    return x3, (w * (a - x3) - v1 * hhh) % P, h * z1 * z2 % P
