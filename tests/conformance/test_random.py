"""`_random`: Philox 4×32-10 by keys and counters, against the vectors that its authors publish, and Python's integers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *

from .compare import same

rng = np.random.default_rng(7)
PUBLISHED = (  # counter, key, result: of Random123's kat_vectors
    ("00000000 00000000 00000000 00000000", "00000000 00000000", "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
    ("ffffffff ffffffff ffffffff ffffffff", "ffffffff ffffffff", "408f276d 41c83b0e a20bc7c6 6d5451fd"),
    ("243f6a88 85a308d3 13198a2e 03707344", "a4093822 299f31d0", "d16cfe09 94fdcceb 5001e420 24126ea1"),
)
LOW = 2**32 - 1


def words(text: str) -> Any:
    return np.array([int(word, 16) for word in text.split()], "uint32")


def philox(key: Any, counter: Any) -> Any:
    """The algorithm in Python's integers."""
    (k0, k1), c = map(int, key), [*map(int, counter)]
    for _ in range(10):
        one, two = c[0] * 0xD2511F53, c[2] * 0xCD9E8D57
        c = [(two >> 32) ^ c[1] ^ k0, two & LOW, (one >> 32) ^ c[3] ^ k1, one & LOW]
        k0, k1 = (k0 + 0x9E3779B9) & LOW, (k1 + 0xBB67AE85) & LOW
    return np.array(c, "uint32")


def test_published_vectors(device: str) -> None:
    counters, keys, results = (np.stack([words(row[k]) for row in PUBLISHED]) for k in range(3))
    result = gp.operator(lambda k, c: _random(_readTensor(k), _readTensor(c)))(*map(gp.VectorField, (keys, counters)))
    same(result, results)


def test_scalars_are_64_bits(device: str) -> None:
    """Of negative numbers too; shorter counters end in zeros."""
    info = np.iinfo("int64")
    array = np.array([0, 1, -1, info.min, info.max, *rng.integers(info.min, info.max, 4)], "int64")
    wide = [int(n) % 2**64 for n in array]

    def body(f):
        n = _readTensor(f)
        return _random(n, _convert_char(n)), _random(_uint2(n, 5), _uint3(1, 2, 3))

    halves = [(n & LOW, n >> 32) for n in wide]
    cases = [
        [
            philox(h, (*(int(np.clip(n, -128, 127)) >> by & LOW for by in (0, 32)), 0, 0))
            for h, n in zip(halves, array, strict=True)
        ],
        [philox((int(np.clip(n, 0, LOW)), 5), (1, 2, 3, 0)) for n in array],
    ]
    for actual, want in zip(gp.operator(body)(gp.ScalarField(array)), cases, strict=True):
        same(actual, np.stack(want))


def test_fuses_anywhere() -> None:
    """Noise that is added to a stencil of noise is one kernel, whose numbers do not depend on that."""

    @gp.operator(outputs=gp.FieldType((9, 11)))
    def noise(key):
        return _convert_float(_random(key, _index()).x >> 8) * 2.0**-24

    result = noise(3)
    actual = gp.operator(lambda f: _readTensor(f) + _readTensor(f, offset=(0, 1)))(result)
    with gp.ComputeGraph() as graph:
        graph.probe(noise(3) * 2, "twice")
    graph.reset()
    bits = np.array([philox((3, 0), (k, 0, 0, 0))[0] for k in range(99)], "uint32").reshape(9, 11)
    uniform = (bits >> 8).astype("float32") * np.float32(2.0**-24)
    same(actual, uniform + np.pad(uniform, ((0, 0), (0, 1)), mode="edge")[:, 1:])
    same(graph.read("twice"), uniform * 2)
    assert graph.kernel_count == 1


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: _random(_uint3(1, 2, 3), 1), "the key of _random has up to two components, not a uint3's"),
        (lambda: _random(1.5, 1), "_random wants integers, not float"),
        (lambda: _random(1), "_random takes 2 arguments, not 1"),
    ],
)
def test_wrong_uses(wrong: Any, message: str) -> None:
    with pytest.raises(gp.SemanticError, match=message):
        gp.operator(outputs=gp.FieldType(3, 4, "uint32"))(lambda: wrong())()
