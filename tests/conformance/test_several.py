"""Functions of several values or of a list: _min, _max, _fmin, _fmax, _and, _or and _sum."""

from __future__ import annotations

from functools import reduce

import numpy as np
import pytest

import gpuop as gp
from gpuop.dsl import *

from .compare import same

N = 60
rng = np.random.default_rng(5)
FLOATS = rng.choice(np.float32([-2.5, -0.0, 0.0, 1.0, 7.5, 1e30, np.nan]), (4, N))
NUMBERS = rng.choice(np.float32([-2.5, -0.0, 1.0, 7.5, 1e8, 3e-8]), (4, N))
BYTES, SHORTS = rng.integers(0, 256, N).astype("uint8"), rng.integers(-300, 300, N).astype("int16")


def of_each(*arrays):
    return tuple(map(gp.ScalarField, arrays))


@gp.operator
def extremes(fs):
    values = [_readTensor(f) for f in fs]
    a, b, c, d = values
    return _min(a, b, c, d), _max(values), _fmin(*values), _fmax(tuple(values)), _fmin([a]), _min(values[:1])


def test_extremes(device: str) -> None:
    """The first argument that no later one is better than; _fmin and _fmax pass over NaN."""
    least = reduce(lambda x, y: np.where(y < x, y, x), FLOATS)
    greatest = reduce(lambda x, y: np.where(x < y, y, x), FLOATS)
    actual = [r.numpy() for r in extremes(of_each(*FLOATS))]
    want = [least, greatest, reduce(np.fmin, FLOATS), reduce(np.fmax, FLOATS), FLOATS[0], FLOATS[0]]
    for g, w in zip(actual, want, strict=True):
        same(g + np.float32(0), w + np.float32(0))  # of zeros fmin may give either


@gp.operator
def mixed(x, y):
    a, b = _readTensor(x), _readTensor(y)
    return _max(0, a, 1), _max(a, b, 7), _min(_convert_char(-1), a, b), _min(a, 250, 9.5), _max(_float2(a, b), 3, 4.5)


def test_types_are_common_to_all(device: str) -> None:
    """A number takes the type of the others; all convert before any two are compared."""
    actual = [r.numpy() for r in mixed(*of_each(BYTES, SHORTS))]
    a, b = BYTES.astype("int16"), SHORTS
    want = [np.maximum(BYTES, 1).astype("uint8"), np.maximum(np.maximum(a, b), 7).astype("int16")]
    want += [np.minimum(np.minimum(a, b), -1).astype("int16"), np.minimum(np.float32(BYTES), np.float32(9.5))]
    want += [np.maximum(np.stack([a, b], -1).astype("f"), np.float32(4.5))]
    for g, w in zip(actual, want, strict=True):
        same(g, w)


@gp.operator
def logic(fs):
    x, y, z, w = ([_readTensor(f) > 0 for f in fs][k] for k in range(4))
    return _and(x, y, z), _or([x, y, z, w]), _and([x]), _or([_readTensor(fs[0])]), _and(x, True, 3)


def test_logic(device: str) -> None:
    truth = NUMBERS > 0
    want = [truth[:3].all(0), truth.any(0), truth[0], NUMBERS[0] != 0, truth[0]]
    for g, w in zip([r.numpy() for r in logic(of_each(*NUMBERS))], want, strict=True):
        same(g, w)


@gp.operator
def sums(fs, byte):
    a, b, c, d = values = [_readTensor(f) for f in fs]
    v = _float4(a, b, c, d)
    u = _readTensor(byte)
    return _sum(values), _sum(*v), _sum([d]), _sum(1, 2.5, a), _sum(u, u, 200), _sum(_float2(a, b), c)


def test_sums(device: str) -> None:
    """From left to right in the types of the operands: not pairwise, and bytes wrap."""
    a, b, c, d = NUMBERS
    left = ((a + b) + c) + d
    want = [left, left, d, np.float32(3.5) + a, BYTES + BYTES + np.uint8(200), np.stack([a + c, b + c], -1)]
    assert not np.array_equal(left, (a + b) + (c + d))
    for g, w in zip([r.numpy() for r in sums(of_each(*NUMBERS), gp.ScalarField(BYTES))], want, strict=True):
        same(g, w)


def test_targets_decide() -> None:
    @gp.operator
    def filled(f):
        total = _var(0)
        with _for(_max(2, _target.simd_width, 1)) as _:
            total += 1
        with _codegenIf(_or(_target.backend == "cuda", _target.backend == "reference", _target.device == "cpu")):
            total += _convert_int(_readTensor(f)) * 0
        with _for(_sum(1, _target.simd_width, 1)) as _:
            total += 1
        return total

    with gp.use_device("reference"):
        assert filled(gp.ScalarField(np.ones(3, "f"))).numpy().tolist() == [2 + 3] * 3


@pytest.mark.parametrize(
    "wrong", ["_max()", "_max([])", "_max(v)", "_fmin(v)", "_and(v)", "_or([])", "_sum(v)", "_sum()"]
)
def test_too_few(wrong) -> None:
    name = wrong.partition("(")[0]
    values = "one value" if "v" in wrong.partition("(")[2] else "nothing"
    operator = gp.operator(lambda f: eval(wrong, globals(), {"v": _readTensor(f)}))
    with pytest.raises(gp.SemanticError) as caught:
        operator(gp.VectorField(np.ones((3, 2), "f")))
    message = (
        f"{name} takes two values or more, or a list of values, not {values}; of a vector's components: `{name}(*v)`"
    )
    assert message in str(caught.value)
