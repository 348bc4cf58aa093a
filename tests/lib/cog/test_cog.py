"""docs/how-to/port-from-cog.md: each of its lines gives what NumPy and SciPy make of it, for all that its last column names."""

from __future__ import annotations

import importlib.util
import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.fft
import scipy.ndimage

import gpuop as gp
from gpuop import cog

from . import expected as e

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "port-from-cog.md"
ROW = re.compile(r"^\| `([^`]+)` \| `([^`]+)`(.*?) \| (.+?) \|$", re.M)
ROWS = {name: (line, of) for name, line, _, of in ROW.findall(PAGE.read_text(encoding="utf-8"))}
OF = re.compile(r"(\d)(?:–(\d))?-D (.+)")
COMPUTED = {  # by operators of gpuop.cog's own
    "crossCorrelate": "scalars",
    "crossCorrelate(vectors)": "vectors",
    "localMaxPosition": "scalars",
    "orientedNonMaximumSuppression": "scalars",
    "bilateralFilter": "matrices",
    "domainFilterRows": "vectors",
    "vectorElements": "vectors",
}
NAMES = (  # of Cog's API
    "+ - * / % unary_- > >= < <= === !=== ^ apply reciprocal pow max min abs acos asin atan2 cos cosh exp floor log "
    "signum sin sinh sq sqrt tan tanh fieldReduceSum fieldReduceMax fieldReduceMin fieldReduceMedian maxPosition "
    "winnerTakeAll normalizeL1 normalizeL2 reduceSum reduceMax reduceMin blockReduceSum blockReduceMax blockReduceMin "
    "trim expand shift shiftCyclic flip transpose reshape replicate stack select downsample upsample supersample subfield "
    "subfields warp copy vectorElement vectorElements matrixRow vectorField matrixField complexVectorField "
    "transposeMatrices transposeVectors dot crossDot reverseCrossDot transform determinant invertMatrices solve "
    "conditionNumber crossCorrelate convolve crossCorrelateSeparable convolveSeparable projectFrame "
    "projectFrameBlockReduceSum backProjectFrame crossCorrelateFilterAdjoint convolveFilterAdjoint medianFilter localMax "
    "localMin localMaxPosition localMinPosition nonMaximumSuppression orientedNonMaximumSuppression bilateralFilter "
    "domainTransformRows domainFilterRows domainFilterColumns forwardGradient backwardGradient centralGradient "
    "backwardDivergence complex polarComplex phase magnitude conjugate realPart imaginaryPart fft fftInverse fftRI "
    "fftInverseRI fftRows fftColumns fftInverseRows fftInverseColumns dct dctInverse dctTransposed dctInverseTransposed "
    "red green blue luminance colorField toVectorField toColorField toComplexField toScalarField random probe <== "
)

ELEMENTWISE: dict[str, Any] = {
    "+": lambda a: a.f + a.g,
    "-": lambda a: a.f - a.g,
    "*": lambda a: e.wide(a.s, a.f) * a.f,
    "/": lambda a: a.f / e.wide(a.s, a.f),
    "%": lambda a: np.fmod(a.f, a.g),
    "unary_-": lambda a: -a.f,
    ">": lambda a: (a.f > a.g) * 1.0,
    ">=": lambda a: (a.f >= 0.5) * 1.0,
    "<": lambda a: (a.f < a.g) * 1.0,
    "<=": lambda a: (a.f <= 0.5) * 1.0,
    "===": lambda a: np.zeros_like(a.f),
    "!===": lambda a: np.zeros_like(a.f),
    "reciprocal": lambda a: 1 / a.f,
    "pow": lambda a: a.f**3,
    "max": lambda a: np.maximum(a.f, a.g),
    "min": lambda a: np.minimum(a.f, 0.5),
    "^": lambda a: np.multiply.outer(a.f, a.row),
    "floor": lambda a: np.floor(3 * a.f),
    "signum": lambda a: np.sign(a.f - a.g),
    "sq": lambda a: a.f * a.f,
    "acos": lambda a: np.arccos(a.f),
    "asin": lambda a: np.arcsin(a.f),
    "atan2": lambda a: np.arctan2(a.f, a.g),
    **{
        name: lambda a, name=name: getattr(np, name)(a.f)
        for name in ["abs", "cos", "cosh", "exp", "log", "sin", "sinh", "sqrt", "tan", "tanh"]
    },
}
REDUCED: dict[str, Any] = {
    "fieldReduceSum": lambda a: a.f.sum(e.own(a)),
    "fieldReduceMax": lambda a: a.f.max(e.own(a)),
    "fieldReduceMin": lambda a: a.f.min(e.own(a)),
    "fieldReduceMedian": lambda a: np.median(a.f, e.own(a)),
    "maxPosition": lambda a: np.squeeze(np.unravel_index(a.f.argmax(), a.f.shape)),
    "winnerTakeAll": lambda a: (a.f == a.f.max(e.own(a))) * 1.0,
    "normalizeL1": lambda a: a.f / a.f.sum(),
    "normalizeL2": lambda a: a.f / (a.f**2).sum(),
    "reduceSum": lambda a: a.f.sum(e.tensor(a.f, a)),
    "reduceMax": lambda a: a.f.max(e.tensor(a.f, a)),
    "reduceMin": lambda a: a.f.min(e.tensor(a.f, a)),
    "blockReduceSum": lambda a: e.blocks(a.v, 3).sum(-1),
    "blockReduceMax": lambda a: e.blocks(a.v, 2).max(-1),
    "blockReduceMin": lambda a: a.v.min(-1),
}
POINTS: dict[str, Any] = {
    "apply(ranges)": lambda a: a.f[(slice(1, 3),) * a.n],
    "apply(index)": lambda a: a.f[2],
    "apply(0D field)": lambda a: a.f[1],
    "trim": lambda a: a.f[(slice(2),) * a.n],
    "expand": e.expanded,
    "shift": e.shifted,
    "shiftCyclic": lambda a: np.roll(a.f, e.given(a)["by"], e.own(a)),
    "flip": lambda a: np.flip(a.f, e.own(a)),
    "transpose": lambda a: np.swapaxes(a.f, 0, 1),
    "reshape": lambda a: np.concatenate(
        [p.ravel() for p in a.f.reshape(*a.f.shape[: a.n], -1).transpose(-1, *e.own(a))]
    ),
    "replicate": lambda a: np.broadcast_to(a.f, (2, 3, *a.f.shape)),
    "stack": lambda a: np.stack([a.f, a.g]),
    "select": lambda a: a.g,
    "downsample": lambda a: a.f[(slice(1, None, 2),) * a.n],
    "upsample": lambda a: e.upsampled(a, 3, 1),
    "supersample": lambda a: np.kron(a.f, np.ones((2,) * a.n + (1,) * (a.f.ndim - a.n))),
    "subfield": lambda a: e.sampled(a, e.indices(a, "subfield"), "grid-wrap"),
    "subfields": e.windows,
    "warp": lambda a: e.sampled(a, e.indices(a, "warp"), "grid-constant"),
    "copy": lambda a: a.f,
}
TENSORS: dict[str, Any] = {
    "vectorElement": lambda a: a.f[..., 1],
    "vectorElements": lambda a: np.stack([a.f[..., 2], a.f[..., 0], a.f[..., 0] * np.nan, a.f[..., 1]], -1),
    "matrixRow": lambda a: a.f[..., 1, :],
    "vectorField": lambda a: np.stack([a.f, a.g, a.f], -1),
    "matrixField": lambda a: np.stack([a.f, a.g, a.f], -2),
    "matrixField(scalars)": lambda a: np.stack([np.stack([a.f, a.g], -1), np.stack([a.g, a.f], -1)], -2),
    "complexVectorField": lambda a: np.stack([a.f, a.g], -1),
    "transposeMatrices": lambda a: np.swapaxes(a.f, -1, -2),
    "transposeVectors": lambda a: a.f[..., None, :],
    "dot": lambda a: (a.f * a.g).sum(e.tensor(a.f, a)),
    "crossDot": lambda a: (a.f * a.one).sum((-1, -2)),
    "reverseCrossDot": lambda a: (a.f * a.s[..., None, None]).sum(e.own(a)),
    "transform": lambda a: a.f @ a.g,
    "transform(vectors)": lambda a: (a.f @ a.pairs[..., None])[..., 0],
    "determinant": lambda a: np.linalg.det(a.f),
    "invertMatrices": lambda a: np.linalg.inv(a.f),
    "solve": lambda a: np.linalg.solve(a.f, a.pairs[..., None])[..., 0],
    "conditionNumber": lambda a: np.linalg.cond(a.f),
}
FILTERS: dict[str, Any] = {
    "crossCorrelate": lambda a: e.correlated(a.f, a.w, "clamp"),
    "convolve": lambda a: e.convolved(a.f, a.w, "wrap"),
    "convolve(complex)": lambda a: (1 + 1j) * e.convolved(a.f, a.w, "zero"),
    "convolve(valid)": lambda a: e.by_element(a.f, a, lambda x: e.valid(x, a.w)),
    "convolve(full)": lambda a: e.by_element(a.f, a, lambda x: e.scipy.signal.convolve(x, a.w, "full", "direct")),
    "convolve(DownsampleOutputConvolution)": lambda a: e.convolved(a.f, a.w, "zero")[(slice(None, None, 2),) * a.n],
    "convolve(UpsampleInputConvolution)": lambda a: e.convolved(e.upsampled(a, 2, 0), a.w, "zero"),
    "crossCorrelate(vectors)": lambda a: np.stack(
        [e.correlated(a.f[..., k] if a.f.ndim > a.n else a.f, a.planes[..., k], "zero") for k in range(3)], -1
    ),
    "crossCorrelate(bank)": lambda a: np.stack([e.correlated(a.f, w, "clamp") for w in a.bank.reshape(-1, 3, 3)], -1),
    "crossCorrelateSeparable": lambda a: e.correlated(a.f, np.multiply.outer(a.row, a.row), "clamp"),
    "convolveSeparable": lambda a: e.convolved(a.f, np.multiply.outer(a.row, a.row), "zero"),
}
FRAMES: dict[str, Any] = {
    "projectFrame": lambda a: e.planes(e.correlated, a.v, a.frame, [(n, 6 * k + n) for k, n in e.frames(2, 6)]),
    "projectFrameBlockReduceSum": lambda a: e.blocks(
        e.planes(e.correlated, a.v, a.frame, [(n, 6 * k + n) for k, n in e.frames(2, 6)]), 6
    ).sum(-1),
    "projectFrame(batchSize)": lambda a: e.planes(
        e.correlated, a.v, a.planes, [(3 * b + n, n) for b, n in e.frames(2, 3)]
    ),
    "backProjectFrame": lambda a: e.planes(e.convolved, a.f, a.frame, [(n, 4 * n + k) for k, n in e.frames(4, 3)]),
    "crossCorrelateFilterAdjoint": lambda a: e.planes(e.correlated, a.v, a.planes, [(n, k) for k, n in e.frames(3, 6)]),
    "convolveFilterAdjoint": lambda a: e.planes(e.valid, a.f, a.planes, [(n, k) for k, n in e.frames(3, 3)]),
}
NEIGHBOURS: dict[str, Any] = {
    "medianFilter": lambda a: e.by_element(a.f, a, lambda x: scipy.ndimage.median_filter(x, 3, mode="nearest")),
    "localMax": lambda a: e.by_element(
        a.f, a, lambda x: scipy.ndimage.maximum_filter(x, footprint=e.given(a)["near"] != 0, mode="nearest")
    ),
    "localMin": lambda a: e.by_element(
        a.f, a, lambda x: scipy.ndimage.minimum_filter(x, footprint=e.given(a)["near"] != 0, mode="nearest")
    ),
    "localMaxPosition": lambda a: e.extreme(a, a.f),
    "localMinPosition": lambda a: e.extreme(a, -a.f),
    "nonMaximumSuppression": lambda a: e.by_element(
        a.f, a, lambda x: x * (x == scipy.ndimage.maximum_filter(x, 3, mode="constant", cval=-np.inf))
    ),
    "orientedNonMaximumSuppression": e.oriented,
    "bilateralFilter": e.bilateral,
    "domainTransformRows": lambda a: e.lengths(a, a.f),
    "domainFilterRows": lambda a: e.by_element(a.f, a, lambda x: e.between_edges(x, e.lengths(a, x), a.n - 1, 3.1)),
    "domainFilterColumns": lambda a: e.between_edges(a.f, e.lengths(a, a.s.T).T, 0, 2.5),
    "forwardGradient": lambda a: e.slopes(a, 0),
    "backwardGradient": lambda a: e.slopes(a, 1),
    "centralGradient": lambda a: np.stack(
        [scipy.ndimage.correlate1d(a.f, [-0.5, 0, 0.5], axis, mode="nearest") for axis in e.own(a)], -1
    ),
    "backwardDivergence": e.divergence,
}
SPECTRA: dict[str, Any] = {
    "complex": lambda a: a.f + 1j * a.g,
    "polarComplex": lambda a: a.f * np.exp(1j * a.g),
    "phase": lambda a: np.angle(a.f),
    "magnitude": lambda a: abs(a.f),
    "conjugate": lambda a: a.f.conj(),
    "realPart": lambda a: a.f.real,
    "imaginaryPart": lambda a: a.f.imag,
    "fft": lambda a: np.fft.fftn(a.f, axes=e.own(a)),
    "fftInverse": lambda a: np.fft.ifftn(a.f, axes=e.own(a)),
    "fftRI": lambda a: e.pair(np.fft.fftn(a.f + 1j * a.g, axes=e.own(a))),
    "fftInverseRI": lambda a: e.pair(np.fft.ifftn(a.f + 1j * a.g, axes=e.own(a))),
    "fftRows": lambda a: np.fft.fft(a.f, axis=1),
    "fftColumns": lambda a: np.fft.fft(a.f, axis=0),
    "fftInverseRows": lambda a: np.fft.ifft(a.f, axis=1),
    "fftInverseColumns": lambda a: np.fft.ifft(a.f, axis=0),
    "dct": lambda a: scipy.fft.dctn(a.f, norm="ortho"),
    "dctInverse": lambda a: scipy.fft.idctn(a.f, norm="ortho"),
    "dctTransposed": lambda a: scipy.fft.dctn(a.f, norm="ortho").T,
    "dctInverseTransposed": lambda a: scipy.fft.idctn(a.f.T, norm="ortho"),
}
COLOURS: dict[str, Any] = {
    "red": lambda a: a.f[..., 0],
    "green": lambda a: a.f[..., 1],
    "blue": lambda a: a.f[..., 2],
    "luminance": lambda a: a.f @ np.array([0.3811, 0.5783, 0.0402]) / 255,
    "colorField": lambda a: e.alpha(a.f if a.f.ndim > a.n else np.stack([a.f] * 3, -1)),
    "toVectorField": lambda a: a.f / 255,
    "toColorField": lambda a: e.alpha(a.f),
    "toComplexField": lambda a: a.f + 0j,
    "toScalarField": lambda a: a.f,
}
GROUPS = {"algebra": ELEMENTWISE, "reductions": REDUCED, "points": POINTS, "tensors": TENSORS, "filters": FILTERS,
          "frames": FRAMES, "neighbours": NEIGHBOURS, "spectra": SPECTRA, "colours": COLOURS}  # fmt: skip
EXPECTED = {name: function for group in GROUPS.values() for name, function in group.items()}
GRAPHS = ("probe", "<==")


def field(name: str, value: Any, kind: str, rank: int) -> gp.Field:
    """The field of a name of the page, of the array with its values."""
    if name in ("at", "which", "radius", "corner", "which_of_each"):
        return gp.Parameter(value)
    if kind == "colours" and name == "f":
        return gp.ColorField(value)
    of = np.ndim(value) - {"row": 1, "one": 2, "bank": 2}.get(name, rank)
    return gp.Field(value, of, "complex64" if np.iscomplexobj(value) else None)


def cases(name: str) -> list[tuple[int, str]]:
    """All ranks and all kinds of tensors of a row, not each with each: which go together differs from row to row."""
    first, last, listed = OF.fullmatch(ROWS[name][1]).groups()  # type: ignore[union-attr]
    ranks, kinds = range(int(first), int(last or first) + 1), listed.split(", ")
    turn = list(ROWS).index(name)
    count = max(len(ranks), len(kinds))
    return [(ranks[(k + turn) % len(ranks)], kinds[k % len(kinds)]) for k in range(count)]


def evaluated(name: str, rank: int, kind: str) -> tuple[Any, Any]:
    """The fields that a row's line makes, and the expected arrays."""
    a = e.arrays(rank, kind)
    used = set(re.findall(r"\w+", ROWS[name][0]))
    names = {n: field(n, v, kind, rank) for n, v in vars(a).items() if n in used and n != "n"}
    return eval(ROWS[name][0], {**e.given(a), "cog": cog, "gp": gp, "np": np, **names}), EXPECTED[name](a)


def check(rows: list[tuple[str, int, str]]) -> None:
    """All in one evaluation, as plans are what takes time."""
    outcome, outputs, messages = list[gp.Field](), list[Any](), list[str]()
    for name, rank, kind in rows:
        results, expected = evaluated(name, rank, kind)
        pairs = zip(results, expected, strict=True) if isinstance(results, tuple) else [(results, expected)]
        for result, want in pairs:
            outcome, outputs, messages = (
                [*outcome, result],
                [*outputs, np.asarray(want)],
                [*messages, f"{name} of {rank}-D {kind}"],
            )
    for result, want, which in zip(gp.evaluate(*outcome), outputs, messages, strict=True):
        assert result.shape == want.shape, which
        np.testing.assert_allclose(result.numpy(), want, rtol=2e-5, atol=2e-5, err_msg=which)


def test_every_operator_is_there_once() -> None:
    rows = ROW.findall(PAGE.read_text(encoding="utf-8"))
    assert [name for name, count in Counter(name for name, *_ in rows).items() if count > 1] == []
    lines = PAGE.read_text(encoding="utf-8").partition("## Signatures")[0]
    assert len(rows) == len(re.findall(r"^\| `", lines, re.M)), "a row has another form"
    assert {name.split("(")[0] for name in ROWS} == set(NAMES.split())
    assert set(ROWS) == {*EXPECTED, *GRAPHS, "random"}


def test_every_function_is_on_the_page() -> None:
    lines = " ".join(re.findall(r"`[^`]*`", PAGE.read_text(encoding="utf-8")))
    names = {name for name, value in vars(cog).items() if callable(value) and not name.startswith("_")}
    assert names == {name for name in names if f"cog.{name}(" in lines}


@pytest.mark.parametrize("group", GROUPS)
def test_lines(group: str) -> None:
    with gp.use_device("reference"):
        check([(name, rank, kind) for name in GROUPS[group] for rank, kind in cases(name)])


def test_own_operators() -> None:
    """On a driver too."""
    with gp.use_device(gp.devices()[0].name):
        check([(name, 2, kind) for name, kind in COMPUTED.items()])


def test_integers() -> None:
    """Cog has none: what has no meaning in integers is computed in floats, and extremes are those of the integers."""
    x, a = np.random.default_rng(2).integers(0, 256, (5, 7)).astype("uint8"), e.arrays(2, "scalars")
    f, near, above = gp.ScalarField(x), e.given(a)["near"], np.concatenate([x[:1], x[:-1]])
    with gp.use_device("reference"):
        lengths = cog.domainTransformRows(f, 1.0, 1e9)  # 1, 2, 3, …
        for result, want in (
            (cog.reciprocal(f + 1), 1 / (x + 1.0)),
            (cog.forwardGradient(f)[:-1, :-1], np.stack([np.diff(x * 1.0, axis=0)[:, :-1], np.diff(x * 1.0)[:-1]], -1)),
            (cog.warp(f, gp.Parameter(np.array([0.5, 0.0], "f"))), (x + above * 1.0) / 2),
            (cog.localMinPosition(f, near), e.extreme(a, -x.astype("i"))),
            (cog.domainFilterRows(f, lengths, 1.5), scipy.ndimage.uniform_filter1d(x * 1.0, 3, axis=1)),
            (
                cog.bilateralFilter(f, np.ones((1, 3)), 1e9),
                scipy.ndimage.uniform_filter1d(x * 1.0, 3, axis=1, mode="nearest"),
            ),
        ):
            np.testing.assert_allclose(result.numpy()[:, 1:6], want[:, 1:6], 1e-5)


def test_weights_may_be_arrays() -> None:
    """They get the field's dtype, of integers float32; further axes are the tensor's."""
    x = np.random.default_rng(3).random((6, 8))
    weights, line = np.arange(9.0).reshape(3, 3), [1, 2, 4]
    convolved = scipy.ndimage.convolve(x, weights, mode="nearest")
    separable = scipy.ndimage.correlate(x, np.outer(line, line) * 1.0, mode="nearest")
    with gp.use_device("reference"):
        for dtype in ("float64", "float32", "uint8"):
            f = gp.ScalarField((x * 255).astype(dtype) if dtype == "uint8" else x.astype(dtype))
            result = cog.convolve(f, weights, cog.BorderClamp)
            whole = scipy.ndimage.convolve(f.numpy().astype("d"), weights, mode="nearest")
            assert result.dtype == ("float32" if dtype == "uint8" else dtype)
            np.testing.assert_allclose(result.numpy(), whole, 1e-5)
        f, both = gp.ScalarField(x), np.stack([weights, weights[::-1]], axis=-1)
        np.testing.assert_allclose(cog.crossCorrelate(f, weights[::-1, ::-1], cog.BorderClamp).numpy(), convolved, 1e-5)
        np.testing.assert_allclose(
            cog.crossCorrelateSeparable(f, np.array(line), line, cog.BorderClamp).numpy(), separable, 1e-5
        )
        assert cog.convolveSeparable(f, line, line, cog.BorderZero).type == f.type
        pair = cog.convolve(f, both, cog.BorderClamp)
        np.testing.assert_allclose(pair.numpy()[..., 0], convolved, 1e-5)
        waves = cog.convolve(f, weights * 1j, cog.BorderClamp)
        np.testing.assert_allclose(waves.numpy(), 1j * convolved, 1e-5)


def test_the_pages_signatures_are_those_of_the_functions() -> None:
    path = PAGE.parents[1] / "make_cog.py"
    spec = importlib.util.spec_from_file_location("make_cog", path)
    assert spec is not None and spec.loader is not None
    maker = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(maker)
    assert maker.page() == PAGE.read_text(encoding="utf-8"), "run docs/make_cog.py"
    assert "| `crossCorrelate(field, filter, border, upsample=1, downsample=1)` |" in maker.page()


def test_random_numbers() -> None:
    f, key = gp.VectorField(np.zeros((40, 50, 3), "f")), gp.random.key(7)
    line = ROWS["random"][0]
    with gp.use_device("reference"):
        values = eval(line, {"np": np, "gp": gp, "f": f, "key": key}).numpy()
        other = eval(line, {"np": np, "gp": gp, "f": f, "key": gp.random.fold_in(key, 1)}).numpy()
    counts = np.bincount((values * 256).astype(int).ravel(), minlength=256)
    assert np.array_equal(values * 256, np.rint(values * 256)) and len(counts) == 256
    assert abs(counts - values.size / 256).max() < 6 * np.sqrt(values.size / 256)
    assert not np.array_equal(values, other)


def test_lines_of_graphs() -> None:
    with gp.ComputeGraph(device="reference") as graph:
        f = gp.ScalarField(np.arange(4, dtype="f"))
        for name in GRAPHS:
            exec(ROWS[name][0], {"graph": graph, "f": f})
    graph.step(3)
    assert np.array_equal(graph.read("name"), np.arange(4) + 3)
    graph.release()
