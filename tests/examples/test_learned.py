"""The examples that learn: models and slopes are those of NumPy, and what is learned is the truth."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import imageio.v3 as iio
import numpy as np
import pytest
from scipy import ndimage

import gpuop as gp

EXAMPLES = Path(__file__).parents[2] / "examples"
DEVICE = gp.devices()[0].name
Array = np.ndarray[Any, Any]


def example(name: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A script that finds the others among the examples; the names are free again afterwards."""
    monkeypatch.syspath_prepend(EXAMPLES)
    yield importlib.import_module(name)
    for module in ("common", name):
        sys.modules.pop(module, None)


def shown(script: Any, arguments: list[str], folder: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """The text that a script prints on the default device; its picture is written."""
    target = folder / "new folder" / "result.png"
    assert script.main([*arguments, "--device", DEVICE, "--output", str(target)]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith(f"device: {DEVICE}, ") and printed.endswith(f"picture: {target}\n")
    written = iio.imread(target)
    assert written.dtype == np.uint8 and written.std() > 20
    return printed


# --- a pattern --------------------------------------------------------------------------------------------------------


@pytest.fixture
def pattern_fit(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    yield from example("pattern_fit", monkeypatch)


def pattern_by_numpy(rates: Array, u: Array, v: Array, steps: int) -> Array:
    """V after some steps in float64."""
    around = [(r, c) for r in (-1, 0, 1) for c in (-1, 0, 1) if (r, c) != (0, 0)]
    of_u, of_v, feed, kill = rates
    for _ in range(steps):
        spread = [sum(np.roll(x, at, (0, 1)) * (0.05 if all(at) else 0.2) for at in around) - x for x in (u, v)]
        eaten = u * v * v
        u, v = u + of_u * spread[0] - eaten + feed * (1 - u), v + of_v * spread[1] + eaten - (feed + kill) * v
    return v


def test_patterns_and_their_slopes(pattern_fit: Any) -> None:
    """Those of NumPy, by central differences."""
    u, v = pattern_fit.seeds(20)
    wide = np.float64(u), np.float64(v)
    target = pattern_by_numpy(pattern_fit.TRUTH, *wide, 9)
    with gp.use_device("reference"):
        np.testing.assert_allclose(pattern_fit.grown(np.float32(pattern_fit.TRUTH), u, v, 9), target, atol=1e-6)
        arguments = np.float32(pattern_fit.GUESS), u, v, np.float32(target), 9, 3
        loss, slope = gp.value_and_grad(pattern_fit.misfit)(*arguments)

    def misfit(rates: Array) -> float:
        return float(((pattern_by_numpy(rates, *wide, 9) - target) ** 2).mean())

    ahead = [1e-6 * unit for unit in np.eye(4)]
    slopes = [(misfit(pattern_fit.GUESS + h) - misfit(pattern_fit.GUESS - h)) / 2e-6 for h in ahead]
    np.testing.assert_allclose(loss, misfit(pattern_fit.GUESS), rtol=1e-4)
    np.testing.assert_allclose(slope, slopes, rtol=1e-3)


def test_fitted_pattern(pattern_fit: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--size", "32", "--steps", "40", "--noise", "1e-5", "--checkpoints", "8"]
    printed = shown(pattern_fit, arguments, tmp_path, capsys)
    assert re.search(r"^\d+ gradients of 12 iterations in .*\n\d+ gradients of 40 iterations in .* s$", printed, re.M)
    assert re.search(r"^kill: guessed 0.057, learned 0.0\d+, true 0.060$", printed, re.M)
    assert re.search(r"^all rates within [01]\.\d\d% of the truth$", printed, re.M)


def test_patterns_refuse_what_makes_no_sense(pattern_fit: Any) -> None:
    with pytest.raises(SystemExit, match="error: --size must be at least 16, --steps at least 10"):
        pattern_fit.main(["--size", "3"])


# --- a blur -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def deconvolution(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    yield from example("deconvolution", monkeypatch)


def softmax(logits: Array) -> Array:
    return np.exp(logits) / np.exp(logits).sum()


def energy_by_numpy(image: Array, psf: Array, seen: Array) -> float:
    """Of a picture that is to be sharp, in float64."""
    down, right = (np.diff(image, axis=axis, append=image.take([-1], axis)) for axis in (0, 1))
    blurred = ndimage.correlate(image, psf, mode="reflect")
    return float(((blurred - seen) ** 2).sum() + 0.1 * np.sqrt(down**2 + right**2 + 1e-4).sum())


def test_blurs_and_their_slopes(deconvolution: Any) -> None:
    """Those of SciPy along a direction, by central differences."""
    rng = np.random.default_rng(3)
    sharp, seen, direction = (rng.random((11, 14)) for _ in range(3))
    logits, turn = (rng.random((9, 9)) for _ in range(2))
    psf = softmax(logits)
    narrow = (np.float32(values) for values in (sharp, logits, psf, seen))
    with gp.use_device("reference"):
        image, weights, kernel, target = narrow
        blurred = deconvolution.blurred(gp.ScalarField(image), gp.ScalarField(kernel)).numpy()
        misfit, by_weights = gp.value_and_grad(deconvolution.misfit)(weights, image, target)
        energy, by_image = gp.value_and_grad(deconvolution.energy)(image, kernel, target, 0.1)
    np.testing.assert_allclose(blurred, ndimage.correlate(sharp, psf, mode="reflect"), rtol=1e-5)

    def misfit_at(step: float) -> float:
        return float(((ndimage.correlate(sharp, softmax(logits + step * turn), mode="reflect") - seen) ** 2).sum())

    def energy_at(step: float) -> float:
        return energy_by_numpy(sharp + step * direction, psf, seen)

    np.testing.assert_allclose([misfit, energy], [misfit_at(0), energy_at(0)], rtol=1e-5)
    slopes = [(f(1e-5) - f(-1e-5)) / 2e-5 for f in (misfit_at, energy_at)]
    np.testing.assert_allclose([(by_weights * turn).sum(), (by_image * direction).sum()], slopes, rtol=1e-3)


def test_deconvolution(
    deconvolution: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a small picture of squares."""
    squares = np.random.default_rng(7).integers(60, 200, (8, 6)).repeat(6, 0).repeat(8, 1)
    source = tmp_path / "squares.png"
    iio.imwrite(source, np.uint8(squares))
    monkeypatch.setattr(deconvolution, "ITERATIONS", 40)
    printed = shown(deconvolution, [str(source), "--noise", "0.001"], tmp_path, capsys)
    assert re.search(r"^misfit: \d+ gradients in .*\nenergy: \d+ gradients in .* s$", printed, re.M)
    assert re.search(r"^[0-4]\.\d% of the blur lies in the wrong place$", printed, re.M)
    assert re.search(r"^the picture is wrong by 0\.\d{4} as seen, by 0\.0\d{3} in the end$", printed, re.M)
