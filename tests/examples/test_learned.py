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

import gpuop as gp

EXAMPLES = Path(__file__).parents[2] / "examples"
DEVICES = list(dict.fromkeys([gp.devices()[0].name, "reference"]))
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
    assert script.main([*arguments, "--device", DEVICES[0], "--output", str(target)]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith(f"device: {DEVICES[0]}, ") and printed.endswith(f"picture: {target}\n")
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


@pytest.mark.parametrize("name", DEVICES)
def test_patterns_and_their_slopes(pattern_fit: Any, name: str) -> None:
    """Those of NumPy, by central differences."""
    u, v = pattern_fit.seeds(20)
    wide = np.float64(u), np.float64(v)
    target = pattern_by_numpy(pattern_fit.TRUTH, *wide, 9)
    with gp.use_device(name):
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
