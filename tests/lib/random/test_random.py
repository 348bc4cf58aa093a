"""gpuop.random: words by Philox in Python's integers, distributions by SciPy's tests, and the same bits on every device."""

from __future__ import annotations

import hashlib
import itertools
from typing import Any

import numpy as np
import pytest
import scipy.special
import scipy.stats

import gpuop as gp
import gpuop.dsl as k
from gpuop import random
from gpuop.lib.random.reproducible_math import normal_of_pair
from tests.conformance.test_random import philox
from tests.conftest import is_driver

SEED = 0x0123456789ABCDEF
KEY = (SEED & 2**32 - 1, SEED >> 32)
# Of what `test_the_same_bits` makes, as all devices have made it: keys are seeds of results that people keep.
DIGEST = "705c23ca24cee408"


def words(shape: tuple[int, ...], turn: int = 0) -> Any:
    """The four words of each counter of a grid: of four columns, in a row."""
    rows, columns = (1, 1, *shape)[-2:]
    blocks = [[philox(KEY, (c, r, 0, turn)) for c in range(-(-columns // 4))] for r in range(rows)]
    return np.array(blocks).reshape(rows, -1)[:, :columns].reshape(shape)


def box_muller(one: Any, other: Any) -> Any:
    """The two normal numbers of two words, in float64."""
    first, rest = (one | 1) / 2**32, (2.0**32 - (one | 1)) / 2**32
    radius = np.sqrt(-2 * np.where(first < 0.5, np.log(first), np.log1p(-rest)))
    angle = 2 * np.pi * (other + 0.5) / 2**32
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], -1)


def test_the_same_bits(device: str) -> None:
    one, two = random.split(random.key(SEED))
    means = gp.ScalarField(np.linspace(0, 40, 77, dtype="f"))
    results = random.normal(one, 77), random.normal(two, 77, "float64"), random.poisson(random.fold_in(one, 7), means)
    values = b"".join(f.numpy().tobytes() for f in gp.evaluate(*results))
    assert hashlib.sha256(values).hexdigest()[:16] == DIGEST


@pytest.mark.parametrize("shape", [(), (7,), (5, 10), (0, 3)])
def test_words(shape: tuple[int, ...]) -> None:
    key = random.key(SEED)
    expected = words(shape) if 0 not in shape else np.empty(shape, "uint32")
    with gp.use_device("reference"):
        np.testing.assert_array_equal(random.bits(key, shape).numpy(), expected)
        np.testing.assert_array_equal(random.bits(key, shape, "uint8").numpy(), expected >> 24)
        np.testing.assert_array_equal(random.uniform(key, shape).numpy(), (expected >> 8) * np.float32(2.0**-24))


@pytest.mark.parametrize("shape", [(), (7,), (5, 10)])
def test_normal_numbers(shape: tuple[int, ...]) -> None:
    """Two words give two neighbours; of the last one of an odd row the other does not exist."""
    key, (*rows, columns) = random.key(SEED), shape or (1,)
    pairs = words((*rows, columns + columns % 2))
    expected = box_muller(pairs[..., ::2], pairs[..., 1::2]).reshape((*rows, -1))[..., :columns].reshape(shape)
    with gp.use_device("reference"):
        np.testing.assert_allclose(random.normal(key, shape).numpy(), expected, rtol=5e-7)
        np.testing.assert_allclose(random.normal(key, shape, "float16").numpy(), expected, rtol=1e-3)
        elements = random.normal(key, gp.FieldType(shape, 4)).numpy()
    four = [philox(KEY, (c, r, 0, 0)) for r, c in np.ndindex((*rows, columns)[-2:] if rows else (1, columns))]
    four = np.array(four, "uint32").reshape(*shape, 4)
    expected = box_muller(four[..., ::2], four[..., 1::2]).reshape(*shape, 4)
    np.testing.assert_allclose(elements, expected, rtol=5e-7)


def test_normal_numbers_of_any_words(device: str) -> None:
    """Both ends of both words, and powers of two: numbers are near, and never 0."""
    ends = [n % 2**32 for n in range(-3, 4)] + [2**31 + n for n in range(-2, 3)] + [2**16 + n for n in range(-2, 3)]
    ends += [2**n + m for n in range(8, 31, 5) for m in (-1, 1)] + [2**30 - 1, 2**30, 3 * 2**30 - 1, 3 * 2**30]
    one, other = np.array(list(itertools.product(ends, ends)), np.uint32).T

    @gp.operator(outputs=lambda a, b: (a.type.replace(dtype="float32"),) * 2)
    def normal(a, b):
        for n, out in enumerate((k._out0, k._out1)):
            k._writeTensor(out, normal_of_pair(k._readTensor(a), k._readTensor(b), n))

    results = np.stack([f.numpy() for f in normal(gp.Field(one), gp.Field(other))], 1)
    assert results.all()
    assert 6.6 < np.abs(results).max() < 6.7
    np.testing.assert_allclose(results, box_muller(one, other), rtol=5e-7, atol=1e-14)  # float64 knows π to 1e-16


@pytest.mark.parametrize("shape", [(1024, 4096), (2**22,), (1023, 4098)], ids=str)
def test_many_normal_numbers(device: str, shape: tuple[int, ...]) -> None:
    """Threads of GPUs have eight neighbours of large fields, of two counters, or fewer where rows are no multiple."""
    if not is_driver(device):
        pytest.skip("it takes the interpreter long")
    key = random.fold_in(random.key(SEED), gp.Parameter(np.int32(5)))
    pairs = random.bits(key, shape).numpy()
    expected = box_muller(pairs[..., ::2], pairs[..., 1::2]).reshape(shape)
    np.testing.assert_allclose(random.normal(key, shape).numpy(), expected, rtol=5e-7, atol=1e-14)


def test_words_of_tensors_and_of_64_bits() -> None:
    key = random.key(SEED)
    with gp.use_device("reference"):
        small = random.bits(key, gp.FieldType((2, 3), 2, "uint32")).numpy()
        big = random.bits(key, gp.FieldType((2, 3), (2, 3), "uint32")).numpy().reshape(2, 3, 6)
        double, normal = random.uniform(key, 5, "float64").numpy(), random.normal(key, 5, "float64").numpy()
    assert small[1, 2].tolist() == philox(KEY, (2, 1, 0, 0))[:2].tolist()
    assert big[1, 2].tolist() == [*philox(KEY, (2, 1, 0, 0)), *philox(KEY, (2, 1, 1, 0))[:2]]
    pairs = np.array([philox(KEY, (n, 0, 0, 0)) for n in range(3)], "uint64").reshape(-1, 2)[:5]
    whole = pairs[:, 1] << 32 | pairs[:, 0]
    np.testing.assert_array_equal(double, (whole >> 11) * 2.0**-53)
    inverse = scipy.special.ndtri(0.5 + (whole.astype("int64") + 0.5) / 2**64)
    np.testing.assert_allclose(normal, inverse, rtol=1e-14)


def test_keys() -> None:
    key = random.key(SEED)
    assert np.asarray(key).tolist() == [*KEY]
    expected = [philox(KEY, (*data, 0, last))[:2].tolist() for data, last in (((1, 0), 2**32 - 1), ((5, 2), 2**32 - 2))]
    folded = 2 * 2**32 + 5
    assert [np.asarray(k).tolist() for k in (random.split(key)[1], random.fold_in(key, folded))] == expected
    with gp.use_device("reference"):
        counted = random.fold_in(random.key(gp.Parameter(np.uint64(SEED))), gp.Parameter(np.int64(folded)))
        assert counted.numpy().tolist() == expected[1]
        minus = random.fold_in(key, gp.Parameter(np.int32(-1))).numpy()
        assert minus.tolist() == np.asarray(random.fold_in(key, -1)).tolist()


def chi_square(counts: Any, shares: Any) -> float:
    """The likelihood of such counts; counts with few expected are one count together."""
    often, total = shares * counts.sum() > 5, counts.sum()
    result, expected = counts[often], shares[often] * total
    if result.sum() < total:
        result, expected = np.append(result, total - result.sum()), np.append(expected, total - expected.sum())
    return float(scipy.stats.chisquare(result, expected * (result.sum() / expected.sum())).pvalue)


def test_distributions() -> None:
    a, b, c, d, e = random.split(random.key(1), 5)
    with gp.use_device("reference"):
        means = gp.ScalarField(np.repeat(np.array([0.7, 9.5, 10.5, 200], "f"), 8000).reshape(4, -1))
        floats = [
            (random.uniform(a, (100, 301), low=-2, high=3), "uniform", (-2, 5)),
            (random.normal(b, (100, 301), loc=1.0, scale=2.0), "norm", (1, 2)),
            (random.normal(b, gp.FieldType(10001, 3), "float64"), "norm", ()),
            (random.exponential(c, 20003, "float64", 3.0), "expon", (0, 3)),
        ]
        integers = random.integers(d, -3, 9, (300, 301), "int8")
        counts = random.poisson(e, means)
        chosen = random.choice(e, 4, 40000, p=[0.5, 0.125, 0, 0.375])
        gp.evaluate(*(f for f, *_ in floats), integers, counts, chosen)
        for field, name, parameters in floats:
            assert scipy.stats.kstest(field.numpy().ravel(), name, parameters).pvalue > 1e-3, name
        assert chi_square(np.bincount(integers.numpy().ravel() + 3), np.full(12, 1 / 12)) > 1e-3
        for row, mean in zip(counts.numpy(), (np.float32(0.7), 9.5, 10.5, 200), strict=True):
            result = np.bincount(row, minlength=300)
            assert chi_square(result, scipy.stats.poisson.pmf(np.arange(len(result)), mean)) > 1e-3
        assert chi_square(np.bincount(chosen.numpy()), np.array([0.5, 0.125, 0, 0.375])) > 1e-3


def test_an_exponential_zero_has_no_sign(device: str) -> None:
    """One of 2**25 shares is so near to 1 that float32 holds no logarithm but 0: here is one."""
    at = 9403160
    assert random.bits(random.key(3), 2**24)[at].numpy() >= 2**32 - 128
    result = random.exponential(random.key(3), 2**24)[at : at + 1].numpy()
    assert result == 0 and not np.signbit(result).any()


def test_neighbours_have_nothing_in_common() -> None:
    with gp.use_device("reference"):
        z = random.normal(random.key(3), (256, 256)).numpy().astype("d")
        other = random.normal(random.key(4), (256, 256)).numpy()
    for second in (np.roll(z, 1, 1), np.roll(z, 4, 1), np.roll(z, 1, 0), other):
        assert abs(np.mean(z * second)) < 4 / 256


def test_orders() -> None:
    key, table = random.key(9), np.arange(24.0).reshape(4, 6)
    with gp.use_device("reference"):
        order = random.permutation(key, 6).numpy()
        assert sorted(order) == list(range(6))
        shuffled = random.permutation(key, table, 1)
        assert isinstance(shuffled, np.ndarray)
        np.testing.assert_array_equal(shuffled, table[:, order])
        assert sorted(random.choice(key, [5, 7, 9], 3, replace=False)) == [5, 7, 9]
        rows = random.choice(key, gp.ScalarField(table), (2, 3)).numpy()
        assert rows.shape == (2, 3, 6)
        assert {tuple(row) for row in rows.reshape(-1, 6)} <= {tuple(row) for row in table}


def test_numbers_fuse_and_other_keys_compile_nothing() -> None:
    with gp.ComputeGraph() as graph:
        count = gp.ScalarField(np.int32(0))
        count.next = count + 1
        key = random.fold_in(random.key(SEED), count)
        graph.probe(gp.ScalarField(np.ones(8, "f")) + random.uniform(key, 8), "noisy")
        graph.probe(key, "key")
    for n in range(3):
        graph.reset() if n == 0 else graph.step()
        own = philox(KEY, (n, 0, 0, 2**32 - 2))[:2]
        assert graph.read("key").tolist() == own.tolist()
        bits = np.array([philox(own, (b, 0, 0, 0)) for b in range(2)]).ravel()
        np.testing.assert_array_equal(graph.read("noisy"), (bits >> 8).astype("f") * np.float32(2.0**-24) + 1)
    texts = {random.normal(random.key(seed), 9).node.call.kernel for seed in range(3)}
    assert len(texts) == 1


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: random.uniform(3), r"the first argument is a key, made by `gp.random.key\(seed\)`, not an int"),
        (
            lambda: random.uniform(np.zeros(2, "u4")),
            r"a key is what `gp.random.key\(seed\)` gives, not an array of its numbers",
        ),
        (lambda: gp.operator(lambda f: random.normal(random.key(0), ()))(gp.ScalarField([1.0])), "in a body `_random"),
        (lambda: random.key(1.5), "key takes an integer here, or a 0D Field of integers"),
        (lambda: random.key(1).set(3), "a key does not change"),
        (lambda: random.normal(random.key(1), 3, "int32"), "random.normal gives floats, not int32"),
        (lambda: random.integers(random.key(1), 5, 5), "low >= high"),
        (lambda: random.integers(random.key(1), 0, 300, 3, "uint8"), "uint8 does not hold all integers from 0 to 299"),
        (lambda: random.poisson(random.key(1), -1.0), "lam is a mean from 0 to 1e"),
        (lambda: random.choice(random.key(1), 3, 4, replace=False), "of 3 no 4 are chosen"),
        (lambda: gp.random.rand(3), r"gpuop.random has no `rand`; write `gp.random.uniform\(key, shape\)`"),
        (lambda: gp.random.laplace, "gpuop.random has no `laplace`; it has bernoulli, bits, choice"),
    ],
)
def test_wrong_arguments(wrong: Any, message: str) -> None:
    with pytest.raises(gp.SemanticError, match=message):
        wrong()
