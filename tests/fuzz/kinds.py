"""The types of random programs: their names, C's conversion order written down anew, and numbers worth trying."""

from __future__ import annotations

import re
from functools import cache

INTEGERS = ("char", "uchar", "short", "ushort", "int", "uint", "long", "ulong")
FLOATS = ("half", "float", "double")
RANKED = ("bool", *INTEGERS, *FLOATS)  # of two types the later one is the common type
NUMPY = dict(
    zip(
        RANKED,
        (
            "bool",
            "int8",
            "uint8",
            "int16",
            "uint16",
            "int32",
            "uint32",
            "int64",
            "uint64",
            "float16",
            "float32",
            "float64",
        ),
        strict=True,
    )
)
BITS = dict(zip(RANKED, (8, 8, 8, 16, 16, 32, 32, 64, 64, 16, 32, 64), strict=True))
SIGNED_OF = {16: "short", 32: "int", 64: "long"}  # what tests of vectors give
STORED = {
    "unorm8": ("float", 1),
    "complex64": ("float", 2),
    "complex128": ("double", 2),
}  # what other fields read as: type and lanes of an element


@cache
def split(kind: str) -> tuple[str, int]:
    """ "float3" as ("float", 3)."""
    name, lanes = re.fullmatch(r"([a-z]+)(\d?)", kind).groups()
    return name, int(lanes or 1)


def join(dtype: str, lanes: int) -> str:
    return dtype if lanes == 1 else f"{dtype}{lanes}"


def common(*dtypes: str) -> str:
    return max(dtypes, key=RANKED.index)


def below(dtype: str) -> list[str]:
    """The types that turn into this one beside it."""
    return [d for d in RANKED if common(d, dtype) == dtype]


def signed(dtype: str) -> bool:
    return dtype in INTEGERS and not dtype.startswith("u")


def numbers(dtype: str) -> list:
    """Numbers that the type has, the simplest first."""
    if dtype == "bool":
        return [False, True]
    if dtype in FLOATS:
        most = {"half": 65504.0, "float": 3.4028234663852886e38, "double": 1.7976931348623157e308}[dtype]
        least = {"half": 6e-8, "float": 1e-45, "double": 5e-324}[dtype]
        few = [
            0.0,
            1.0,
            -1.0,
            0.5,
            2.0,
            -2.5,
            3.0,
            1e-3,
            255.9,
            -0.0,
            1000.5,
            float("inf"),
            float("-inf"),
            float("nan"),
        ]
        return [*few, most, -most, least, 65519.0 if dtype == "half" else 3e9]
    bits = BITS[dtype]
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed(dtype) else (0, 2**bits - 1)
    return [0, 1, 2, 3, 5, 7, 100, high, high - 1, low, *((-1, -2, -7) if signed(dtype) else (bits, high // 2 + 1))]


def plain_numbers(dtype: str) -> list:
    """Python numbers that stand beside a value of the type."""
    if dtype == "bool":
        return [0, 1, 2, True]
    return [n for n in numbers(dtype) if dtype != "half" or (n == n and abs(n) <= 65504)]
