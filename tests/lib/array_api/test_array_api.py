"""gpuop.array_namespace beside NumPy, whose namespace is of the same standard."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gpuop as gp
import gpuop.array_namespace as names
from gpuop.lib.array_api.functions import OF_ONE, OF_TWO

from .standard import counts_of, left_out

X = np.random.default_rng(2).integers(-3, 4, (3, 4, 5)).astype("f")
SPECIAL = np.array([0.0, -0.0, 1, -1, 0.5, -2.5, 3, 7, np.inf, -np.inf, np.nan], "f")
N = np.array([[3, 1, 1], [0, 2, 3]], "i4")
Z = (X[0] + 1j * X[1]).astype("c8")
REAL = {"bitwise_invert", "ceil", "floor", "logical_not", "signbit", "trunc"}
WHOLE = {"bitwise_invert", "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_left_shift", "bitwise_right_shift"}
TRUTH = {"logical_and", "logical_not", "logical_or", "logical_xor"}
Call = Callable[[Any, Callable[[Any], Any]], Any]  # of a namespace, and of what makes its arrays of NumPy's
CALLS: dict[str, Call] = {
    "asarray": lambda xp, a: [xp.asarray([[1, 2], [3, 4]]), xp.asarray(True), xp.asarray(N, dtype=xp.int8)],
    "from_dlpack": lambda xp, a: [xp.from_dlpack(X), xp.asarray([a(X), a(X + 1)])],
    "arange": lambda xp, a: [xp.arange(5), xp.arange(2, 9, 3), xp.arange(5, dtype=xp.float32), xp.arange(9, 2, -2)],
    "linspace": lambda xp, a: [xp.linspace(0, 1, 5, dtype=xp.float32), xp.linspace(0, 8, 4, endpoint=False, dtype=xp.float32)],
    "linspace of complex": lambda xp, a: xp.linspace(1j, 2, 5, dtype=xp.complex64),
    "full": lambda xp, a: [xp.full((2, 3), 7), xp.full(4, True), xp.full((), 2, dtype=xp.int8)],
    "zeros": lambda xp, a: [xp.zeros((2, 3), dtype=xp.float32), xp.ones(3, dtype=xp.int8), xp.empty((0, 2), dtype=xp.bool)],
    "like": lambda xp, a: [f(a(N)) for f in (xp.zeros_like, xp.ones_like)] + [xp.full_like(a(X), 3), xp.empty_like(a(X[:0]))],
    "eye": lambda xp, a: [xp.eye(3, dtype=xp.float32), xp.eye(3, 4, k=1, dtype=xp.int32), xp.eye(2, 4, k=-1, dtype=xp.bool)],
    "triangles": lambda xp, a: [xp.tril(a(X), k=1), xp.triu(a(X))],
    "meshgrid": lambda xp, a: [*xp.meshgrid(a(N[0]), a(X[0, 0])), *xp.meshgrid(a(N[0]), a(N[1]), indexing="ij")],
    "astype": lambda xp, a: [xp.astype(a(X), xp.int32), xp.astype(a(N), xp.bool), xp.astype(a(N), xp.complex64)],
    "clip": lambda xp, a: [xp.clip(a(X), -1, 2), xp.clip(a(X), max=a(X[0])), xp.clip(a(N), min=1)],
    "round": lambda xp, a: [xp.round(a(X / 2)), xp.round(a(N))],
    "where": lambda xp, a: [xp.where(a(X > 0), a(X), 2.0), xp.where(a(X > 0), a(N[0, 0]), a(N[1, 0]))],
    "broadcast": lambda xp, a: [*xp.broadcast_arrays(a(X), a(X[0])), xp.broadcast_to(a(N), (2, 2, 3))],
    "concat": lambda xp, a: [xp.concat([a(X), a(X)], axis=-1), xp.concat([a(X), a(X[0])], axis=None), xp.concat([a(N), a(N)])],
    "stack": lambda xp, a: [xp.stack([a(X), a(X)], axis=n) + a(X[..., :1, None] if n == -1 else X) for n in (0, -1)],
    "expand_dims": lambda xp, a: [xp.expand_dims(a(X), axis=0), xp.expand_dims(a(X), axis=-1), xp.squeeze(a(X[:1]), 0)],
    "flip": lambda xp, a: [xp.flip(a(X)), xp.flip(a(X), axis=(0, -1)), xp.roll(a(X), 3), xp.roll(a(X), (1, 2), axis=(0, 2))],
    "axes": lambda xp, a: [xp.moveaxis(a(X), 0, -1), xp.permute_dims(a(X), (2, 0, 1)), xp.matrix_transpose(a(X))],
    "repeat": lambda xp, a: [xp.repeat(a(N), 2), xp.repeat(a(N), a(np.array([0, 2, 1])), axis=1), xp.tile(a(N), (2, 1))],
    "reshape": lambda xp, a: [xp.reshape(a(X), (12, -1)), *xp.unstack(a(X), axis=1)],
    "take": lambda xp, a: [xp.take(a(X), a(np.array([1, -1])), axis=1), xp.take(a(N[0]), a(np.array([2, 0])))],
    "take_along_axis": lambda xp, a: xp.take_along_axis(a(X), xp.argsort(a(X), axis=1), axis=1),
    "products": lambda xp, a: [xp.tensordot(a(N), a(N), axes=((0,), (0,))), xp.vecdot(a(X), a(X)), xp.vecdot(a(Z), a(Z), axis=-2)],
    "matmul": lambda xp, a: [xp.matmul(a(X), a(X[0].T)), xp.matmul(a(X), a(X[0, 0])), xp.matmul(a(N[0]), a(N[1])), a(X).mT],
    "sums": lambda xp, a: [xp.sum(a(N)), xp.sum(a(X), axis=(0, 2), keepdims=True), xp.prod(a(N), axis=1)],
    "totals": lambda xp, a: xp.sum(a(N), dtype=xp.int8),
    "extremes": lambda xp, a: [xp.max(a(X), axis=1), xp.min(a(N)), xp.argmax(a(X)), xp.argmin(a(X), axis=1, keepdims=True)],
    "truth": lambda xp, a: [xp.all(a(X), axis=0), xp.any(a(X), axis=(0, 1)), xp.count_nonzero(a(X), axis=1)],
    "moments": lambda xp, a: [xp.mean(a(X), axis=1), xp.var(a(X), correction=1, axis=0), xp.std(a(X), axis=2, keepdims=True)],
    "cumulative": lambda xp, a: [xp.cumulative_sum(a(N), axis=1, include_initial=True), xp.cumulative_prod(a(N[0]))],
    "diff": lambda xp, a: [xp.diff(a(X), n=2), xp.diff(a(N), axis=0, prepend=a(N[:1]))],
    "sort": lambda xp, a: [xp.sort(a(X), axis=0), xp.argsort(a(N[0])), xp.searchsorted(a(np.sort(X[0, 0])), a(X), side="right")],
    "nonzero": lambda xp, a: [*xp.nonzero(a(X)), *xp.unique_all(a(N)), *xp.unique_counts(a(N)), *xp.unique_inverse(a(N))],
    "unique_values": lambda xp, a: xp.sort(xp.unique_values(a(N))),
    "dtypes": lambda xp, a: [
        xp.can_cast(xp.int8, xp.int16), xp.can_cast(a(X), xp.int32), xp.isdtype(xp.int8, ("bool", "integral")),
        xp.isdtype(xp.float32, "complex floating"), xp.isdtype(xp.int8, xp.int8), xp.finfo(a(X).dtype).eps,
        xp.iinfo(xp.uint64).max, xp.iinfo(xp.int8).min, xp.finfo(xp.float64).smallest_normal, xp.finfo(xp.complex64).bits,
        np.dtype(xp.result_type(a(X), xp.int8)).num, np.dtype(xp.result_type(xp.int16, xp.uint16, 1)).num,
    ],
    "constants": lambda xp, a: [xp.pi, xp.e, xp.inf, xp.nan, a(X)[xp.newaxis]],
}  # fmt: skip


def same(result: Any, want: Any, within: float = 1e-6, zeros: bool = True) -> None:
    if isinstance(want, list):
        assert len(result) == len(want)
        for actual, each in zip(result, want, strict=True):
            same(actual, each, within, zeros)
        return
    if isinstance(result, gp.Field):
        assert (result.dtype, result.shape) == (want.dtype, want.shape)
        result = result.numpy()
        if result.dtype.kind == "f" and zeros:
            assert np.array_equal(np.signbit(result[result == 0]), np.signbit(want[result == 0]))
    np.testing.assert_allclose(result, want, rtol=within, atol=within)


@pytest.mark.parametrize("name", CALLS)
def test_as_numpy(name):
    with gp.use_device("reference"):
        same(CALLS[name](names, names.asarray), CALLS[name](np, np.asarray))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_elementwise():
    """With the values of special cases, and those whose sign of zero counts."""
    first, second = np.repeat(SPECIAL, SPECIAL.size), np.tile(SPECIAL, SPECIAL.size)
    with gp.use_device("reference"):
        for name, arguments in {
            **{name: [SPECIAL] for name in OF_ONE},
            **{name: [first, second] for name in OF_TWO},
        }.items():
            if name in WHOLE | TRUTH:
                arguments = [
                    np.abs(np.nan_to_num(a, posinf=0, neginf=0)).astype("?" if name in TRUTH else "i4")
                    for a in arguments
                ]
            if name in ("floor_divide", "remainder"):  # what they give of infinities is not the standard's to say
                finite = np.isfinite(first) & np.isfinite(second) & (second != 0)
                arguments = [a[finite] for a in arguments]
            same(
                getattr(names, name)(*map(names.asarray, arguments)),
                getattr(np, name)(*arguments),
                2e-6,
                "imum" not in name,
            )
        for name in OF_ONE.keys() - REAL:
            same(getattr(names, name)(names.asarray(Z + 9)), getattr(np, name)(Z + 9), 2e-6)


def test_fields_of_integers_are_indices():
    def ways(xp, x, i, j):
        two = xp.asarray(2, dtype=xp.uint8)
        return [x[i], x[i, j], x[i, 1], x[-1, j], x[i, j, 4], x[i[0, 1]], x[i[0, 1], j[0], 0], x[i, j, two]]

    x, i, j = np.arange(60.0).reshape(3, 4, 5), np.array([[0, -1, 2], [1, 1, 0]]), np.array([3, 0, -2], "i1")
    with gp.use_device("reference"):
        same(ways(names, *map(names.asarray, (x, i, j))), ways(np, x, i, j))
        vectors = gp.VectorField(x)
        assert np.array_equal(vectors[names.asarray(i), 2].numpy(), x[i, 2])
        assert np.array_equal(vectors[names.asarray([-9, 9])].numpy(), x[[0, 2]])


def test_values_of_the_standard_that_are_not_numpys():
    with gp.use_device("reference"):
        for imaginary in (np.inf, np.nan):
            assert complex(names.expm1(names.asarray(complex(-np.inf, imaginary)))).real == -1


def test_diagonals_far_away():
    with gp.use_device("reference"):
        for far in (-(2**40), -4, 4, 2**31):
            same(names.eye(3, 4, k=far), np.eye(3, 4, k=far, dtype="f4"))
            same(
                [names.tril(names.asarray(X), k=far), names.triu(names.asarray(X), k=far)],
                [np.tril(X, far), np.triu(X, far)],
            )


def test_exchange_of_memory():
    with gp.use_device("reference"):
        field = names.asarray(X)
        assert np.array_equal(np.from_dlpack(field, copy=True, device="cpu"), X)
        with pytest.raises(BufferError, match=r"the values are on \(1, 0\), not on \(2, 0\)"):
            field.__dlpack__(dl_device=(2, 0))


def test_descending_orders_are_stable():
    with gp.use_device("reference"):
        result, order = (f(names.asarray(X), axis=1, descending=True).numpy() for f in (names.sort, names.argsort))
    assert np.array_equal(result, -np.sort(-X, axis=1)) and np.array_equal(order, np.argsort(-X, axis=1, stable=True))


def test_fields_know_their_namespace():
    field = gp.ScalarField(X)
    assert field.__array_namespace__() is gp.array_namespace is field.__array_namespace__(api_version="2024.12")
    with pytest.raises(ValueError, match=r"of 2022.12, 2023.12, 2024.12, not of '1999'"):
        field.__array_namespace__(api_version="1999")
    with gp.use_device("reference"):
        assert field.to_device(field.device) is field
        with pytest.raises(gp.ArgumentError, match="fields are evaluated on the device in use, not on 'moon'"):
            field.to_device("moon")
        with pytest.raises(gp.ArgumentError, match="not on 'moon'"):
            names.zeros(3, device="moon")
    with pytest.raises(AttributeError, match="has no `nothing`"):
        _ = names.nothing


def test_the_namespace_tells_of_itself():
    info = names.__array_namespace_info__()
    with gp.use_device("reference"):
        assert info.default_device() == "reference" and info.devices() == ["reference"]
    assert info.default_dtypes() == {
        "real floating": np.float32, "complex floating": np.complex64, "integral": np.int64, "indexing": np.int64,
    }  # fmt: skip
    assert list(info.dtypes(kind="real floating")) == ["float32", "float64"]
    assert set(info.dtypes()) == set(np.__array_namespace_info__().dtypes())
    assert info.capabilities() == {"boolean indexing": False, "data-dependent shapes": True, "max dimensions": 64}


def test_errors_are_those_of_other_libraries():
    x = names.asarray(X)
    for error, call in (
        (IndexError, lambda: names.expand_dims(x, axis=9)),
        (IndexError, lambda: x[9]),
        (ValueError, lambda: names.squeeze(x, 0)),
        (ValueError, lambda: names.reshape(x, (7,))),
        (ValueError, lambda: x + x[:2]),
        (ValueError, lambda: names.broadcast_to(x, (5, 5))),
        (ValueError, lambda: names.concat([x, x[:, :2]], axis=2)),
        (ValueError, lambda: names.stack([x, x[:2]])),
        (ValueError, lambda: names.asarray([1, 2], copy=False)),
    ):
        with pytest.raises(error) as caught:
            call()
        assert isinstance(caught.value, gp.SemanticError)


def test_signatures():
    """Of names that NumPy has too: its arguments, but for `out`, by the same names and kinds where the standard has them."""
    for name in names.__all__:
        ours, theirs = getattr(names, name), getattr(np, name, None)
        assert hasattr(np, name), name
        if inspect.isfunction(ours) and not isinstance(theirs, np.ufunc):
            optional = {p.name for p in inspect.signature(ours).parameters.values() if p.kind is p.KEYWORD_ONLY}
            parameters = set(inspect.signature(theirs).parameters) | {
                "dtype",
                "device",
                "copy",
                "correction",
                "descending",
                "stable",
            }
            assert optional <= parameters, name


def test_the_runner_of_the_standards_tests():
    last = "FAILED array_api_tests/test_names.py::test_x\n=== 1 failed, 20 passed, 3 skipped in 12.5s ==="
    assert counts_of(last) == {"passed": 20, "failed": 1, "skipped": 3}
    missing = left_out(
        [
            "test_array_object.py::test_setitem",
            "test_array_object.py::test_getitem",
            "a::test_binary[floor_divide(isfinite(x1_i)]",
        ]
    )
    assert missing == {"test_array_object.py::test_setitem": "fields do not change; `gp.updated` makes new ones"}
