"""NumPy's functions of fields that are made of others: choices, tests, products, derivatives, shapes, sets, ufuncs' methods."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gpuop as gp
from gpuop.fusion.plan import plan
from gpuop.fusion.program import program

rng = np.random.default_rng(21)
X = rng.normal(0, 30, (5, 6)).astype("f")
X[0, :3], X[1, :4] = (np.nan, np.inf, -np.inf), (0.5, 1.5, 2.5, -0.5)
V = rng.normal(0, 3, (5, 6, 7)).astype("f")
Z = (V[0] + 1j * V[1]).astype("c8")
WHOLE = np.arange(-120, 120, dtype="i4").reshape(12, 20)
INDEX = rng.integers(-3, 8, (5, 6))
PLACES, VALUES = np.array([0, 1, 2.5, 4, 7]), np.array([3, 2, 0, -1, 5.0])
POINTS = np.array([[-1, 0, 0.5, 1, 3, 7, 8, np.nan, np.inf, -np.inf, 6.99]], "f")
UNEVEN = np.cumsum(rng.random(6) + 0.2)
PHASES = np.angle(np.exp(1j * np.cumsum(rng.normal(0, 2, (3, 50)), 1))).astype("f")
WEIGHTS = rng.random(V.shape).astype("f")
Call = Callable[[Callable[[Any], Any]], Any]  # of what makes a field of an array, or leaves it as it is
EXACT: dict[str, Call] = {
    "select": lambda a: np.select([a(X) > 1, a(X) < -1], [a(X), a(X) * 2], 7),
    "select of numbers": lambda a: np.select([a(X) > 1, a(X) < -1], [np.float32(1), np.float32(2.5)], np.float32(7)),
    "choose": lambda a: np.choose(a(INDEX), [a(X), a(X) * 2, np.float32(3), a(X[0])], mode="clip"),
    "choose by turns": lambda a: np.choose(a(INDEX), [a(WHOLE[:5, :6]), 7], mode="wrap"),
    "piecewise": lambda a: np.piecewise(a(X), [a(X) < 0, a(X) >= 2], [lambda v: -v, lambda v, n=2: v * n, 5]),
    "round": lambda a: [np.round(a(X), n) for n in (0, 1, 2, -1)],
    "around": lambda a: [np.around(a(WHOLE.astype(d)), n) for d in ("i4", "u1", "i8") for n in (1, -1, -2, -3)],
    "fix": lambda a: np.fix(a(X)),
    "nan_to_num": lambda a: [np.nan_to_num(a(X)), np.nan_to_num(a(X), nan=3, posinf=5, neginf=-7.5)],
    "isclose": lambda a: [np.isclose(a(X), a(X + np.float32(1e-4)), equal_nan=e) for e in (False, True)],
    "isclose of numbers": lambda a: [np.isclose(a(X), np.float32(0.5)), np.isclose(1, a(WHOLE)), np.isclose(a(X > 0), a(X > 9))],
    "isclose of complex": lambda a: np.isclose(a(Z), a(Z + np.float32(1e-6))),
    "allclose": lambda a: [np.allclose(a(V), V), np.allclose(a(V), V[:1])],
    "array_equal": lambda a: [np.array_equal(a(X), X, e) for e in (False, True)] + [np.array_equal(a(X), X[0])],
    "array_equiv": lambda a: [np.array_equiv(a(X * 0 == 0), a(X[0] < 9)), np.array_equiv(a(X), a(X[:, :4]))],
    "signs": lambda a: [np.isposinf(a(X)), np.isneginf(a(X)), np.iscomplex(a(Z)), np.isreal(a(X))],
    "isin": lambda a: [np.isin(a(INDEX), [1, 3]), np.isin(a(X), X[1:, ::2], invert=True), np.isin(a(X), [])],
    "nonzero": lambda a: [*np.nonzero(a(INDEX > 2)), np.flatnonzero(a(X > 0)), np.argwhere(a(V > 5)), *np.nonzero(a(X > 1e9))],
    "unique_values": lambda a: np.sort(np.unique_values(a(INDEX))),
    "unique_counts": lambda a: list(np.unique_counts(a(INDEX))),
    "unique_inverse": lambda a: list(np.unique_inverse(a(INDEX))),
    "unique_all": lambda a: list(np.unique_all(a(INDEX))),
    "gradient": lambda a: [*np.gradient(a(V)), np.gradient(a(V), 0.5, axis=1), *np.gradient(a(V[:2, :2, 0]))],
    "ediff1d": lambda a: np.ediff1d(a(V), to_begin=np.float32([1, 2]), to_end=np.float32(7)),
    "ptp": lambda a: [np.ptp(a(V)), np.ptp(a(V), 1, keepdims=True)],
    "cumulative_sum": lambda a: [np.cumulative_sum(a(INDEX), axis=1, include_initial=True), np.cumulative_sum(a(INDEX[0]))],
    "cumulative_prod": lambda a: np.cumulative_prod(a(INDEX), axis=0, dtype="i4"),
    "shapes": lambda a: [np.shape(a(V)), np.ndim(a(V)), np.size(a(V)), np.size(a(V), 1), a(V).shape, a(V).ndim, a(V).size],
    "transposed": lambda a: [a(V).mT, np.matrix_transpose(a(X)), *(np.rollaxis(a(V), n, s) for n, s in ((2, 0), (0, 2), (1, -1)))],
    "atleast": lambda a: [f(a(v)) for f in (np.atleast_1d, np.atleast_2d, np.atleast_3d) for v in (V, V[0], V[0, 0], V[0, 0, 0])],
    "broadcast_arrays": lambda a: list(np.broadcast_arrays(a(V), a(V[:1, :, :1]), a(V[0, 0]))),
    "splits": lambda a: [*np.hsplit(a(V), 2), *np.vsplit(a(V), [2]), *np.dsplit(a(V), 7), *np.unstack(a(V), axis=1)],
    "joined": lambda a: [np.column_stack([a(X[0]), a(X[1])]), np.append(a(V), a(X)), np.append(a(X), a(X[:1]), 0)],
    "delete": lambda a: [np.delete(a(V), [1, 3], 1), np.delete(a(V), np.s_[::2], 2), np.delete(a(X), 4)],
    "triangles": lambda a: [f(a(v), n) for f in (np.tril, np.triu) for v in (V, Z, X[0]) for n in (0, 1, -2)],
    "copies": lambda a: [np.copy(a(X)), np.result_type(a(X), np.float64) == np.result_type(X, np.float64)],
    "empty_like": lambda a: np.empty_like(a(X), "i4") * 0,
    "divmod": lambda a: [*np.divmod(a(INDEX), 3), *np.modf(a(X))],
    "reduce": lambda a: [f.reduce(a(X[1:]), axis=n) for f in (np.maximum, np.minimum, np.fmax, np.logical_and) for n in (0, 1)],
    "add.reduce": lambda a: [np.add.reduce(a(INDEX)), np.multiply.reduce(a(INDEX), axis=1, keepdims=True)],
    "accumulate": lambda a: [f.accumulate(a(v), axis=1) for f in (np.maximum, np.minimum) for v in (X, INDEX)],
    "add.accumulate": lambda a: np.add.accumulate(a(INDEX)),
    "outer": lambda a: [np.outer(a(X[1]), a(X[2])), np.subtract.outer(a(X), a(X[1])), np.less.outer(a(X[1]), a(X[2]))],
    "dot of integers": lambda a: [np.dot(a(WHOLE.astype(d)), a(WHOLE[1].astype(d))) for d in ("i1", "u2", "?")],
}  # fmt: skip
NEAR: dict[str, tuple[float, Call]] = {
    "sinc": (1e-5, lambda a: np.sinc(a(X[1:]))),
    "gradient at ends": (1e-5, lambda a: [g for o in (1, 2) for g in np.gradient(a(V), 2, UNEVEN, axis=(0, 1), edge_order=o)]),
    "gradient of others": (1e-5, lambda a: [*np.gradient(a(Z), edge_order=2), *np.gradient(a(V.astype("f8")), 0.3)]),
    "unwrap": (2e-3, lambda a: [np.unwrap(a(PHASES)), np.unwrap(a(PHASES), axis=0), np.unwrap(a(PHASES * 10), period=20.0)]),
    "trapezoid": (1e-4, lambda a: [np.trapezoid(a(V)), np.trapezoid(a(V), UNEVEN, axis=1), np.trapezoid(a(V), dx=0.3, axis=0)]),
    "average": (1e-5, lambda a: [np.average(a(V), weights=WEIGHTS), np.average(a(V), (0, 2), WEIGHTS, keepdims=True)]),
    "average of rows": (1e-5, lambda a: [*np.average(a(V), 1, weights=WEIGHTS[0, :, 0], returned=True), np.average(a(V), 0)]),
    "interp": (1e-6, lambda a: [np.interp(a(POINTS), PLACES, VALUES, *ends) for ends in ((), (-9, 9))]),
    "interp of one": (1e-6, lambda a: [np.interp(a(POINTS), [2], [3]), np.interp(a(POINTS[:, :7]), PLACES, VALUES, period=5)]),
    "interp among": (1e-6, lambda a: np.interp(POINTS, a(PLACES.astype("f")), a(VALUES.astype("f")))),
    "tensordot": (1e-4, lambda a: [np.tensordot(a(V), a(V), n) for n in (([1, 2], [1, 2]), 0)] + [np.tensordot(a(V), a(X.T), 0)]),
    "dot": (1e-4, lambda a: [np.dot(a(V[0, 0]), a(V[1, 0])), np.dot(a(V), a(V[0, 0])), np.inner(a(V), a(V)), np.dot(a(V), 2)]),
    "vdot": (1e-4, lambda a: [np.vdot(a(Z), a(Z * 1j)), np.vdot(a(V), a(V)), np.inner(a(Z), a(Z))]),
}  # fmt: skip


def close(result: Any, want: Any, within: float = 0.0) -> None:
    """Values, shapes and dtypes, with float32 where NumPy turns integers or knows no other floats."""
    if isinstance(want, list):
        assert len(result) == len(want)
        for actual, each in zip(result, want, strict=True):
            close(actual, each, within)
        return
    actual, want = result.numpy() if isinstance(result, gp.Field) else np.asarray(result), np.asarray(want)
    assert actual.shape == want.shape
    assert actual.dtype == want.dtype or (actual.dtype, want.dtype) == (np.float32, np.float64)
    scale = np.abs(want[np.isfinite(want)]).max(initial=1) if within else 0
    np.testing.assert_allclose(actual, want, rtol=within, atol=within * scale)


@pytest.mark.filterwarnings("ignore:a ScalarField of", "ignore::RuntimeWarning", "ignore::DeprecationWarning")
@pytest.mark.parametrize("name", [*EXACT, *NEAR])
def test_as_numpy(name):
    within, call = NEAR[name] if name in NEAR else (0.0, EXACT[name])
    with gp.use_device("reference"):
        close(call(gp.ScalarField), call(np.asarray), within)


@pytest.mark.parametrize("dtype", ["f4", "i1", "u2", "?", "c8", "c16", "f2"])
def test_convolutions_of_rows(dtype):
    with gp.use_device("reference"):
        for n, m in ((7, 3), (7, 4), (3, 7), (4, 7), (1, 1)):
            a, b = (rng.random(n) * 20).astype(dtype), (rng.random(m) * 20).astype(dtype)
            if dtype[0] == "c":
                a, b = a + 1j * a[::-1], b - 2j * b
            for mode in ("full", "same", "valid"):
                for name in ("convolve", "correlate"):
                    function = getattr(np, name)
                    result = function(gp.ScalarField(a), gp.ScalarField(b), mode)
                    close(
                        result, function(a, b, mode), {"f2": 5e-3, "f4": 1e-5, "c8": 1e-5, "c16": 1e-14}.get(dtype, 0)
                    )


def test_tensors_are_axes_behind_the_grids():
    vectors, matrices = gp.VectorField(V), gp.MatrixField(V)
    assert vectors.shape == V.shape and vectors.ndim == 3 and vectors.size == V.size and matrices.mT.shape == (5, 7, 6)
    with gp.use_device("reference"):
        assert vectors.device == "reference"
        close(list(np.gradient(vectors)), list(np.gradient(V)))
        close([np.tril(matrices, 1), np.triu(vectors, -1)], [np.tril(V, 1), np.triu(V, -1)])
        close(np.tensordot(vectors, vectors, ([1, 2], [1, 2])), np.tensordot(V, V, ([1, 2], [1, 2])), 1e-5)
        close(np.interp(vectors, PLACES, VALUES), np.interp(V, PLACES, VALUES), 1e-6)


def test_on_devices(device):
    """One evaluation of what has kernels of its own, whose bits are the reference's."""
    f, n = gp.ScalarField(X[1:]), gp.ScalarField(INDEX)
    results = [
        *np.gradient(f, edge_order=2),
        np.gradient(f, UNEVEN, axis=1),
        np.interp(f, PLACES, VALUES),
        np.convolve(gp.ScalarField(V[0, 0]), gp.ScalarField(V[1, 0])),
        np.tril(f),
        np.gcd(n, 6),
    ]
    gp.evaluate(*results)
    with gp.use_device("reference"):
        for field in results:
            assert np.array_equal(field.numpy(), _again(field), equal_nan=True)
    close(results[-1], np.gcd(INDEX, 6))


def _again(field):
    with gp.use_device("reference"):
        return (field * 1 if field.dtype != "bool" else field & True).numpy()


def test_derivatives_fuse():
    edges = np.hypot(*np.gradient(gp.ScalarField(V[0]) * 2))
    assert len(plan(program([edges.node])).launches) == 1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda f: np.gradient(f, edge_order=3), "gradient: `edge_order` is 1 or 2, not 3"),
        (lambda f: np.gradient(f, [1, 2], axis=0), "gradient: the places along axis 0 are an array of 5 numbers, or one distance"),
        (lambda f: np.gradient(f[:1], axis=0), "gradient: axis 0 of a 1×6 float32 field has fewer than 2 points"),
        (lambda f: np.choose(f.astype("int32"), [f, f]), "choose: indices in a Field are not known at the call"),
        (lambda f: np.select([f], [f]), "select: conditions are bool fields, as comparisons give them"),
        (lambda f: np.tensordot(f, f, 1), "tensordot: axes (1,) of a 5×6 float32 field and (0,) of a 5×6 float32 one"),
        (lambda f: np.convolve(f, f), "convolve takes rows that have values, not a 5×6 float32 field; `gp.ndimage.convolve`"),
        (lambda f: np.interp(f, [1, 2], [1]), "interp: `xp` and `fp` are rows of as many numbers, at least one"),
        (lambda f: np.average(f, weights=[1]), "average: weights have the shape of the field, or are a row, along one `axis`"),
        (lambda f: np.rollaxis(f, 3), "axis 3 is out of bounds for a 5×6 float32 field, which has 2 axes"),
        (lambda f: np.add.reduce(f, out=np.zeros(6)), "add.reduce: there is no `out`, a Field's values do not change"),
        (lambda f: np.matrix_transpose(f[0]), "matrix_transpose: a 6 float32 field has no two axes"),
        (lambda f: np.unwrap(f, 1, 0, bogus=1), "unwrap"),
    ],
)  # fmt: skip
def test_messages(call, message):
    with pytest.raises((gp.SemanticError, TypeError)) as caught:
        call(gp.ScalarField(X))
    assert message in str(caught.value)


def test_interpolation_beside_infinities():
    places = np.float32([0.5, 1, 1.5, 2, 0, -1, 3])
    with gp.use_device("reference"):
        for values in ([0, np.inf, 1], [np.inf, 0, 1], [0, 1, -np.inf], [np.inf, np.inf, 2]):
            result = np.interp(gp.ScalarField(places), [0, 1, 2], values).numpy()
            with np.errstate(all="ignore"):
                np.testing.assert_array_equal(result, np.interp(places, [0, 1, 2], values).astype("f"))


def test_what_numpy_has_as_views_costs_no_pass_before_an_operator() -> None:
    field, waves = gp.ScalarField(np.zeros((64, 96), "f")), gp.ComplexField(np.zeros((64, 96), "c8"))
    views = [
        *(call(field) for call in (np.transpose, np.flip, np.fliplr, np.flipud, np.rot90, np.ravel, np.atleast_3d)),
        *(call(waves) for call in (np.real, np.imag)),
        *(np.moveaxis(field, 0, 1), np.reshape(field, (32, -1)), np.expand_dims(field, 0), np.squeeze(field[:1])),
        *(np.broadcast_to(field, (2, 64, 96)), np.split(field, 2)[1], np.hsplit(field, 3)[2], field[::2, 3:]),
    ]
    for view in views:
        assert len(plan(program([(view * view + 1).node])).launches) == 1, view


def test_correlations_of_numbers_are_refused_as_by_numpy():
    for a, v in ((2.0, 3.0), ([2.0], 3.0), (2.0, [3.0])):
        with pytest.raises(ValueError, match="object of too small depth"):
            np.correlate(np.asarray(a), np.asarray(v))
        with pytest.raises(ValueError, match="correlate takes rows, not numbers"):
            np.correlate(gp.asarray(a), gp.asarray(v))
        np.testing.assert_array_equal(np.convolve(gp.asarray(a), gp.asarray(v)).numpy(), np.convolve(a, v))
