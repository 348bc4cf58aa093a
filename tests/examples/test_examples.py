"""The examples run and compute what NumPy, SciPy and scikit-image do."""

from __future__ import annotations

import importlib
import importlib.util
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import imageio.v3 as iio
import numpy as np
import pytest
from scipy import ndimage
from skimage import color, data, exposure, feature, filters, transform

import gpuop as gp
import gpuop.dsl
from gpuop.base.config import config
from tests.borders import MODES
from tests.nightly import left_to_nightly
from tests.scaleout.thread_ranks import on_ranks

ROOT = Path(__file__).parents[2]
EXAMPLES = [
    "background_subtraction",
    "cielab",
    "demo",
    "equalize",
    "game_of_life",
    "harris",
    "stream",
    "unsharp",
    "upside_down",
]
OF_ARRAYS = [
    "cluster",
    "convolution",
    "deconvolution",
    "denoising",
    "flow_ranks",
    "group_sums",
    "heat_ranks",
    "image_batch",
    "label_volume",
    "libraries",
    "mul2",
    "parameter_table",
    "pattern_fit",
    "registration",
    "seismic",
    "transposes",
    "tuned_transpose",
    "volume",
    "xpose_filts",
]  # no pictures
SHORT = {
    "background_subtraction": ["--steps", "6"],
    "game_of_life": ["--generations", "40"],
    "harris": ["--corners", "9"],
    "stream": ["--frames", "6"],
}
DEVICES = list(dict.fromkeys([gp.devices()[0].name, "reference"]))
Array = np.ndarray[Any, Any]


@pytest.fixture(autouse=True)
def _examples_importable(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As for a script that lies among them; the names are free again afterwards."""
    monkeypatch.syspath_prepend(ROOT / "examples")
    monkeypatch.setattr("common.step_times", lambda *graphs, **_: [1e-3] * len(graphs))  # measuring takes time
    yield
    for name in ("common", *EXAMPLES, *OF_ARRAYS):
        sys.modules.pop(name, None)


@pytest.fixture(params=DEVICES)
def name(request: pytest.FixtureRequest) -> str:
    """The default device, and the reference."""
    return str(request.param)


@pytest.fixture(scope="module")
def small() -> Array:
    """A photograph of 72×96."""
    resized = transform.resize(data.astronaut()[:384], (72, 96), anti_aliasing=True)
    return np.rint(resized * 255).astype(np.uint8)


def example(name: str) -> Any:
    return importlib.import_module(name)


# --- scripts ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("script", EXAMPLES)
def test_script(script: str, name: str, small: Array, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, target = tmp_path / "small.png", tmp_path / "new folder" / "result.png"
    iio.imwrite(source, small)
    arguments = [str(source), "--device", name, "--output", str(target), *SHORT.get(script, [])]
    assert example(script).main(arguments) == 0
    printed = capsys.readouterr().out
    assert printed.startswith(f"device: {name}, ")
    assert re.search(r"^\d kernels? for \d+ operators?$", printed, re.M)
    assert re.search(r"first result", printed)
    assert printed.endswith(f"picture: {target}\n")
    written = iio.imread(target)
    assert written.dtype == np.uint8
    assert written.std() > 20
    assert written.shape[1] > 150, "several panels side by side"


@pytest.mark.parametrize("channels", [96, 100, 5])
def test_filters_in_blocks(name: str, channels: int, capsys: pytest.CaptureFixture[str]) -> None:
    """CUCL's worked example, and with channels that fill no whole block."""
    xpose = example("xpose_filts")
    filters = np.random.default_rng(channels).standard_normal((channels, 3, 11, 11)).astype(np.float32)
    count = -(-channels // 96)
    expected = np.zeros((count, 3, 11, 11, 8, 12), np.float32)
    for channel, values in enumerate(filters):
        expected[channel // 96, ..., channel % 8, channel // 8 % 12] = values
    for operator in (xpose.xpose_filts, xpose.xpose_filts_of_cucl):
        assert np.array_equal(xpose.reblock(filters, name, operator).read("blocked"), expected.ravel())
    assert xpose.main(["--device", name, "--channels", str(channels)]) == 0
    assert capsys.readouterr().out.endswith(f"{channels}×3×11×11 in blocks of {count}×3×11×11×8×12: right\n")


@pytest.mark.parametrize("stride", [1, 3])
def test_images_in_batches(stride: int, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Four dimensions by name; whole numbers have exact sums, so SciPy's are equal."""
    convolution = example("convolution")
    rng = np.random.default_rng(stride)
    images, filters = (rng.integers(-5, 5, shape).astype(np.float32) for shape in ((2, 3, 14, 11), (4, 3, 3, 2)))
    bias = np.arange(4, dtype=np.float32)
    with gp.use_device(name):
        maxima, means = convolution.layer(images, filters, bias, stride=stride)
    sums = np.zeros((2, 4, *np.ceil(np.array([12, 10]) / stride).astype(int)), np.float32)
    for img, oc in np.ndindex(2, 4):
        whole = sum(ndimage.correlate(images[img, c], filters[oc, c], origin=(0, -1)) for c in range(3))
        sums[img, oc] = whole[1:-1, :-1][::stride, ::stride] + bias[oc]
    rows, columns = sums.shape[2] // 2, sums.shape[3] // 2
    windows = np.maximum(sums, 0)[:, :, : rows * 2, : columns * 2].reshape(2, 4, rows, 2, columns, 2)
    assert np.array_equal(maxima, windows.max(axis=(3, 5)))
    np.testing.assert_allclose(means, sums.mean(axis=(0, 2, 3)), rtol=1e-5, atol=1e-5)
    assert convolution.main(["--device", name, "--size", "12"]) == 0
    assert capsys.readouterr().out.endswith(": right\n")


@pytest.mark.parametrize(("size", "group"), [(1000, 256), (1, 64), (700, 87)])
def test_sums_of_groups(name: str, size: int, group: int, capsys: pytest.CaptureFixture[str]) -> None:
    """katsdpsigproc's worked example, in groups of any size."""
    sums = example("group_sums")
    values = np.random.default_rng(size).integers(-1000, 1000, size).astype(np.int32)
    graph = sums.summed(values, group, name)
    assert np.array_equal(graph.read("sums"), [values[k : k + group].sum() for k in range(0, size, group)])
    assert np.array_equal(graph.read("total"), [values.sum()])
    assert sums.main(["--device", name, "--size", str(size), "--group", str(group)]) == 0
    assert capsys.readouterr().out.endswith(f"{-(-size // group)} groups of {group}: right\n")


def test_heat_on_ranks(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Two threads are the ranks; a step is SciPy's."""
    ranks = example("heat_ranks")
    size = ["--size", "12", "--steps", "5", "--every", "2", "--device", name]
    assert on_ranks(2, lambda comm: ranks.main(size, comm), name) == [0, 0]
    printed = capsys.readouterr().out
    assert "grid 12×12×12 in 2×1×1 parts" in printed and "5 steps: the same bits" in printed
    assert "every 2 steps, axis 0: 2 before, 2 after" in printed and "33.3% of the points" in printed
    start = np.random.default_rng(2).random((6, 5, 7), np.float32)
    with gp.use_device(name):
        graph = ranks.heat(start)
        graph.step()
        expected = start + np.float32(0.1) * ndimage.laplace(start, mode="nearest")
        np.testing.assert_allclose(graph.read("u"), expected, rtol=1e-5, atol=1e-6)


def test_flow_on_ranks(capsys: pytest.CaptureFixture[str]) -> None:
    """The result gathered of three ranks is that of NumPy with rolls, whose walls and inlet nothing passes."""
    flow = example("flow_ranks")
    size = ["--rows", "12", "--columns", "20", "--steps", "4", "--every", "3", "--device", "reference"]
    assert on_ranks(3, lambda comm: flow.main(size, comm), "reference") == [0, 0, 0]
    printed = capsys.readouterr().out
    assert "grid 12×20 in 1×3 parts" in printed and "4 steps: the same bits" in printed
    assert "every 3 steps, axis 1: 3 before, 3 after" in printed and "60.0% of the points" in printed
    row, column = np.ogrid[:12, :20]
    solid = (row - 5.5) ** 2 + (column - 4) ** 2 < (12 / 9) ** 2
    solid[[0, -1]] = True
    moves = [(0, 0), (0, 1), (1, 0), (0, -1), (-1, 0), (1, 1), (1, -1), (-1, -1), (-1, 1)]
    e, w = np.array(moves, float).T, np.array([16, 4, 4, 4, 4, 1, 1, 1, 1]) / 36

    def rest(density: Any, down: Any, along: Any) -> Array:
        eu = np.stack([a * down + b * along for a, b in moves])
        return w[:, None, None] * density * (1 + 3 * eu + 4.5 * eu**2 - 1.5 * (down**2 + along**2))

    inlet = rest(1, np.zeros((12, 20)), np.full((12, 20), 0.1))
    f = inlet
    for _ in range(4):
        padded, walls = np.pad(f, ((0, 0), (1, 1), (1, 1)), "edge"), np.pad(solid, 1, "edge")
        came = np.empty_like(f)
        for k, (a, b) in enumerate(moves):
            there = np.s_[1 - a : 13 - a, 1 - b : 21 - b]
            came[k] = np.where(walls[there], f[moves.index((-a, -b))], padded[k][there])
        density = came.sum(0)
        down, along = np.tensordot(e, came, 1) / density
        f = came + 1.7 * (rest(density, down, along) - came)
        f[:, :, 0] = inlet[:, :, 0]
    graph = flow.channel(12, 20, DEVICES[0])
    graph.step(4)
    np.testing.assert_allclose(graph.read("along"), np.tensordot(e[1], f, 1), rtol=1e-4, atol=1e-6)
    assert f"{abs(graph.read('along')).max() / 0.1:.2f} times" in printed


def test_a_volume_in_parts(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """On disk, streamed and by Dask's threads; what is steep is SciPy's."""
    pytest.importorskip("dask")
    volume = example("volume")
    monkeypatch.setattr(volume, "WINDOWS", 0.75)
    monkeypatch.setattr(volume, "LAYERS", 20)
    assert volume.main(["--memory", "0.006", "--times", "1", "--device", "reference"]) == 0
    printed, message = capsys.readouterr()
    assert "30×10×10 points of uint16, 0.006 MB: 1 times 0.006 MB" in printed and "the same bits\n" in printed
    assert "3×1×1 blocks, computed of windows of 20×10×10 points" in printed and "stage 0: operator `sum`" in printed
    assert "3 chunks of 10×10×10 of a grid 30×10×10, halo 5+5, 5+5, 5+5, 100.0% of points recomputed" in message
    cells = np.random.default_rng(0).integers(0, 2**16, (9, 8, 7), np.uint16)
    smooth = ndimage.gaussian_filter(cells / 65535, 1)
    slope = np.sqrt(sum(ndimage.sobel(smooth, axis) ** 2 for axis in range(3)))
    with gp.use_device("reference"):
        result, count = volume.surfaces(cells, steep=1.5)
    certain = np.abs(slope - 1.5) > 1e-4
    assert np.array_equal(result[certain], slope[certain] > 1.5) and count == result.sum() and 50 < count < 450


def test_cells_of_a_volume(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    cells = example("label_volume")
    arguments = ["--layers", "70", "--size", "30", "--slab", "23", "--connectivity", "2"]
    assert cells.main([*arguments, "--device", name]) == 0
    assert re.search(r"^9 cells in .*\n70×30×30 points: SciPy’s numbers\n\Z", capsys.readouterr().out, re.MULTILINE)


@pytest.mark.in_turn
@pytest.mark.parametrize("third", range(3))
def test_labels_of_slabs_are_those_of_the_whole(tmp_path: Path, third: int) -> None:
    """Whatever is connected, and wherever it is cut."""
    cells, rng, out = example("label_volume"), np.random.default_rng(8), tmp_path / "cells.npy"
    corners = np.zeros((3, 3, 3), bool)
    corners[1, 1, 1] = corners[0, 0, 2] = corners[2, 2, 0] = corners[1, 0, 0] = corners[1, 2, 2] = True
    structures = [None, *(ndimage.generate_binary_structure(3, n) for n in (1, 2, 3)), corners]
    volumes = [((13, 7, 5), 4, 0.2), ((6, 1, 19), 1, 0.4), ((8, 11, 2), 4, 0.15)]
    cases = [(rng.random(shape) < some, slab, each) for shape, slab, some in volumes for each in structures]
    cases += [
        (mask, 2, None) for mask in (np.zeros((5, 4, 6)), np.ones((5, 4, 6)), np.eye(9), rng.random((17, 6)) < 0.5)
    ]
    with gp.use_device("reference"):
        for mask, slab, structure in cases[third::3]:
            expected, count = ndimage.label(mask, structure)
            assert cells.label(mask, out, slab, structure) == count
            assert np.array_equal(np.load(out), expected)
    assert [*tmp_path.iterdir()] == [out]


def test_a_batch_of_images(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("dask")
    batch = example("image_batch")
    assert batch.main(["--images", "20", "--size", "24", "--device", "reference"]) == 0
    printed, message = capsys.readouterr()
    assert "20 images in 1 blocks" in printed and printed.endswith("20 images: the same spots\n")
    assert "20 images, each in 1 chunk of 24×24" in message
    image, light = np.random.default_rng(0).random((2, 30, 20), np.float32)
    even = ndimage.gaussian_filter(image / (light + 1), 1)
    with gp.use_device("reference"):
        spots = batch.spots(image * 4, light + 1)
    assert np.array_equal(spots, (even == ndimage.maximum_filter(even, 5)) & (even > 0.25)) and 5 < spots.sum() < 30


def test_transposes(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """katsdpsigproc's worked example and KernelAbstractions' two, of a size that no block divides."""
    transposes = example("transposes")
    values = np.random.default_rng(3).integers(-99, 100, (75, 110)).astype(np.float32)
    for kind, graph in transposes.graphs(values, name).items():
        assert graph.kernel_count == (2 if kind == "coalesced" else 1), kind
        if name == "reference" or "by hand" in kind:  # drivers take long to compile all of them
            assert np.array_equal(graph.read("turned"), (values.T * 2 + 1) / 2), kind
    assert transposes.main(["--device", "reference", "--rows", "9", "--columns", "5"]) == 0
    assert capsys.readouterr().out.count(": right\n") == len(transposes.KINDS)


def test_parameter_table(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Circle's worked example: eight architectures, four tunings; the grid is that of the target."""
    table, n = example("parameter_table"), 1003
    tunings = {}
    for architecture in table.ARCHITECTURES:
        threads, group = table.launch("float32", n, f"cuda:{architecture}")
        values = {128: {92: 11, 67: 15}, 256: {144: 7, 67: 15}}[group][threads]
        assert threads == -(-n // values)
        tunings[architecture] = group, values
    assert list(tunings.values()) == [(128, 11)] * 2 + [(128, 15)] + [(256, 7)] * 2 + [(256, 15)] * 3
    assert table.launch("float64", n, "cuda:sm_61") == (-(-n // 5), 128)
    assert table.main(["--device", name, "--values", str(n)]) == 0
    assert capsys.readouterr().out.endswith("equals NumPy\n")


def test_tuned_transpose(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """katsdpsigproc's worked example: every variant gives NumPy's values, and a second run measures nothing."""
    transpose, picture = example("tuned_transpose"), np.random.default_rng(0).random((37, 53)).astype(np.float32)
    variants = [(block, values) for block in (8, 16, 32) for values in (1, 2, 4) if block // values >= 4]
    with gp.use_device("reference"):
        for block, values in variants:
            result = transpose.transposed(gp.ScalarField(picture), block=block, values=values)
            assert np.array_equal(result.numpy(), picture.T)
    monkeypatch.setattr(config, "tune_store", tmp_path / "tuned.sqlite")
    monkeypatch.setattr(config, "tune_seconds", 0.01)
    for messages in (f"gpuop: measuring transposed on {name}: {len(variants)} variants\n", ""):
        assert transpose.main(["--device", name, "--rows", "37", "--columns", "53"]) == 0
        read = capsys.readouterr()
        assert read.out.endswith("equals NumPy\n") and read.err == messages


def test_doubling_in_place(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """KernelAbstractions' first kernel."""
    mul2 = example("mul2")
    graph = mul2.doubling(np.arange(30, dtype="f").reshape(5, 6), name)
    graph.step(4)
    assert np.array_equal(graph.read("a"), np.arange(0, 480, 16).reshape(5, 6))
    assert mul2.main(["--device", name, "--rows", "7"]) == 0
    printed = capsys.readouterr().out
    assert "in place, when the next step begins: a.next" in printed and printed.endswith("doubled: right\n")


def test_libraries(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    libraries = example("libraries")
    image = np.random.default_rng(1).random((30, 48), np.float32)
    graph = libraries.analyse(image, 2.0, name)
    blurred = np.fft.ifft2(ndimage.fourier_gaussian(np.fft.fft2(image.astype(np.float64)), 2.0)).real
    assert np.abs(graph.read("blurred") - blurred).max() < 1e-6
    assert np.abs(graph.read("covariance") - np.cov(blurred)).max() < 1e-6
    assert libraries.main(["--device", name, "--size", "40"]) == 0
    assert capsys.readouterr().out.endswith("40×40 by libraries on the device: right\n")


def test_grading_is_one_kernel(name: str, small: Array) -> None:
    demo = example("demo")
    fused, unfused = (demo.grade(small, gp.Parameter(1.05), name, optimize) for optimize in (True, False))
    assert (fused.kernel_count, unfused.kernel_count) == (1, 6)
    assert np.array_equal(fused.read("graded"), unfused.read("graded"))
    red, green, blue = np.moveaxis((small / 255) ** 1.15, -1, 0)
    mixed = np.stack([np.dot(np.stack([red, green, blue], -1), row) for row in demo.WARM], -1).clip(0, 1)
    toned = mixed + 0.5 * (mixed * mixed * (3 - 2 * mixed) - mixed)
    shade = np.fromfunction(lambda r, c: demo.vignette(r, c, 72, 96), (72, 96))[..., None]
    expected = np.clip(toned * shade * 1.05, 0, 1) * 255
    graded = fused.read("graded")
    assert np.all(graded[..., 3] == 255)
    assert np.abs(graded[..., :3] - expected).max() <= 0.51


def test_equalisation_is_scikit_images(name: str) -> None:
    equalize = example("equalize")
    levels = data.moon()
    graph = equalize.equalize(levels, name)
    assert np.array_equal(graph.read("counts"), np.bincount(levels.ravel(), minlength=256))
    expected = np.cumsum(np.bincount(levels.ravel(), minlength=256))[levels] / levels.size
    np.testing.assert_allclose(graph.read("equalized"), expected, rtol=1e-6)
    theirs = exposure.equalize_hist(levels, 256)
    assert np.abs(graph.read("equalized") - theirs).max() < 0.02, "scikit-image interpolates between levels"


def test_examples_run_on_the_device_in_use(capsys: pytest.CaptureFixture[str]) -> None:
    """As `gpuop run --device` chooses it."""
    with gp.use_device("reference"):
        assert example("common").device(None) == "reference"
    assert example("common").device(None) == gp.device().name


def test_without_opencl_one_line_says_so(
    small: Array, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gp, "devices", lambda: [d for d in _found if d.name == "reference"])
    monkeypatch.delenv("GPUOP_DEVICE", raising=False)
    iio.imwrite(tmp_path / "small.png", small)
    with gp.use_device("reference"):
        assert example("demo").main([str(tmp_path / "small.png"), "--output", str(tmp_path / "demo.png")]) == 0
    first = capsys.readouterr().out.split("\n")[0]
    assert (
        first
        == "No OpenCL was found: this runs on the reference device, a NumPy interpreter (`gpuop devices` says why)."
    )


_found = gp.devices()


def test_animation(small: Array, tmp_path: Path) -> None:
    iio.imwrite(tmp_path / "small.png", small)
    film = tmp_path / "motion.gif"
    out = ["--output", str(tmp_path / "motion.png"), "--gif", str(film), "--steps", "9"]
    assert example("background_subtraction").main([str(tmp_path / "small.png"), *out]) == 0
    assert len(iio.imread(film)) == 3


def test_videos_and_folders(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    frames = np.random.default_rng(3).integers(0, 255, (5, 24, 32, 3), np.uint8)
    iio.imwrite(tmp_path / "film.gif", frames)
    for k, frame in enumerate(frames):
        iio.imwrite(tmp_path / f"{k}.png", frame)
    (tmp_path / "notes.txt").touch()
    (tmp_path / "film.gif").rename(tmp_path.with_suffix(".gif"))
    for value, out in (("--folder", tmp_path), ("--video", tmp_path.with_suffix(".gif"))):
        target = tmp_path / "out" / f"{out.name}.png"
        assert example("stream").main([value, str(out), "--device", name, "--output", str(target)]) == 0
        assert re.search(r"^4 frames in .* frames/s", capsys.readouterr().out, re.M)
        assert iio.imread(target.with_suffix(".gif")).shape == (2, 24, 96, 3)
    iio.imwrite(tmp_path / "9.png", frames[0, :20])
    with pytest.raises(SystemExit, match=r"error: a sensor: an array of shape \(20, 32, 3\) came"):
        example("stream").main(["--folder", str(tmp_path), "--device", name])


# --- what is learned ------------------------------------------------------------------------------------------------------


@pytest.fixture
def little_ground(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The inversion of a small piece of ground, from two shots."""
    seismic = example("seismic")
    for constant, value in {"ROWS": 36, "COLUMNS": 26, "STEPS": 150, "SURFACE": 4, "EDGE": 4, "SHOTS": 2}.items():
        monkeypatch.setattr(seismic, constant, value)
    monkeypatch.setattr(seismic, "CHECKPOINTS", 4)
    return seismic


def records_by_numpy(seismic: Any, speed: Array, shots: list[int]) -> Array:
    """Waves of the same scheme in float64."""
    rate, fade, wavelet = (speed * 1.5e-4) ** 2, np.float64(seismic.sponge()), np.float64(seismic.ricker())
    records = np.zeros((len(shots), len(wavelet), speed.shape[1]))
    for record, shot in zip(records, shots, strict=True):
        p = before = np.zeros(speed.shape)
        for tick, pressure in enumerate(wavelet):
            record[tick] = p[seismic.SURFACE]
            source = np.zeros(speed.shape)
            source[seismic.SURFACE, shot] = pressure
            around = ndimage.laplace(p, mode="constant")
            p, before = fade * (2 * p - fade * before + rate * around + source), p
    return records


def test_waves_of_shots_and_their_gradient(little_ground: Any, name: str) -> None:
    """Records are NumPy's, and so is the slope of the misfit along a direction, by central differences in float64."""
    truth, rng = little_ground.ground(), np.random.default_rng(4)
    truth[10:] += 400
    speed, direction = truth + np.float32(20 * rng.random(truth.shape)), rng.standard_normal(truth.shape)
    shots = [5, 17]
    expected = records_by_numpy(little_ground, np.float64(truth), shots)
    with gp.use_device(name):
        observed = little_ground.records(truth, np.int32(shots))
        loss, slope = gp.value_and_grad(little_ground.misfit)(speed, np.int32(shots), np.float32(expected))
    np.testing.assert_allclose(observed, expected, rtol=0, atol=2e-5 * abs(expected).max())

    def misfit(step: float) -> float:
        return float(((records_by_numpy(little_ground, speed + step * direction, shots) - expected) ** 2).sum())

    np.testing.assert_allclose(loss, misfit(0), rtol=1e-3)
    np.testing.assert_allclose((slope * direction).sum(), (misfit(1e-2) - misfit(-1e-2)) / 2e-2, rtol=1e-2)


def test_inversion_of_waves(little_ground: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "new folder" / "seismic.png"
    assert little_ground.main(["--iterations", "3", "--output", str(target), "--device", DEVICES[0]]) == 0
    printed = capsys.readouterr().out
    assert re.search(r"^\d gradients in .* s: misfit \S+ to \S+$", printed, re.M)
    assert re.search(r"^speeds are wrong by \d+ m/s at the start, by \d+ m/s in the end$", printed, re.M)
    assert iio.imread(target).std() > 20


def differences_by_scipy(knots: Array, moving: Array, fixed: Array) -> tuple[Array, float]:
    """The image at displacements that knots interpolate, and its squared differences."""
    places = np.indices(moving.shape).astype(float)
    scaled = [x * (k - 1) / (n - 1) for x, k, n in zip(places, knots.shape, moving.shape, strict=False)]
    moves = np.stack([ndimage.map_coordinates(knots[..., k], scaled, order=1) for k in range(moving.ndim)])
    result = ndimage.map_coordinates(moving, list(places + moves), order=1, mode="nearest")
    return result, float(((result - fixed) ** 2).sum())


@pytest.mark.parametrize("shape", [(12, 15), (7, 9, 8)])
def test_warps_and_their_gradient(shape: tuple[int, ...], name: str) -> None:
    """Images at displacements between knots are SciPy's, and so are the slopes by the knots, by central differences."""
    registration, rng = example("registration"), np.random.default_rng(5)
    moving, fixed = (rng.random(shape, np.float32) for _ in range(2))
    knots = (0.6 * rng.standard_normal((*(4,) * len(shape), len(shape)))).astype(np.float32)
    nowhere, direction = np.zeros((*shape, len(shape)), np.float32), rng.standard_normal(knots.shape)
    expected, squares = differences_by_scipy(np.float64(knots), np.float64(moving), fixed)
    with gp.use_device(name):
        result = registration.warped(moving, registration.refined(knots, nowhere))
        loss, slope = gp.value_and_grad(registration.difference)(knots, nowhere, moving, fixed)
    np.testing.assert_allclose(result, expected, atol=2e-5)
    np.testing.assert_allclose(loss, squares, rtol=1e-4)
    sides = [differences_by_scipy(knots + h * direction, np.float64(moving), fixed)[1] for h in (1e-6, -1e-6)]
    np.testing.assert_allclose((slope * direction).sum(), (sides[0] - sides[1]) / 2e-6, rtol=1e-3)


@pytest.mark.parametrize("what", ["picture", "volume"])
def test_registration(what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    if what == "volume":
        left_to_nightly("a picture takes the same functions")
    registration, target = example("registration"), tmp_path / "registration.png"
    for constant, value in {"SIZE": 96, "LAYERS": 24, "KNOTS": (9,), "FURTHEST": 3.0}.items():
        monkeypatch.setattr(registration, constant, value)
    arguments = ["--volume"] if what == "volume" else []
    assert registration.main([*arguments, "--iterations", "25", "--output", str(target), "--device", DEVICES[0]]) == 0
    printed = re.search(
        r"move (\S+) on average, and the displacements are wrong by (\S+)$", capsys.readouterr().out, re.M
    )
    assert printed and float(printed[2]) < 0.75 * float(printed[1])
    assert iio.imread(target).std() > 20


def denoised_by_numpy(noisy: Array, kind: str, first: float, rate: float) -> Array:
    """Eight steps in float64."""
    u = noisy
    for _ in range(8):
        padded = np.pad(u, 1, "edge")
        around = [
            padded[1 + r : 1 + r + len(u), 1 + c : 1 + c + u.shape[1]] for r, c in ((-1, 0), (1, 0), (0, -1), (0, 1))
        ]
        slopes = [v - u for v in around]
        if kind == "perona_malik":
            u = u + rate * sum(d * np.exp(-((d / first) ** 2)) for d in slopes)
        else:
            u = u + rate * (0.25 * sum(d / np.sqrt(d**2 + first**2) for d in slopes) + noisy - u)
    return u


@pytest.mark.parametrize("kind", ["perona_malik", "variation"])
def test_denoising_and_its_gradient(kind: str, name: str) -> None:
    """Values are NumPy's, and so are slopes by both parameters, by central differences."""
    noisy = np.random.default_rng(7).random((9, 11))
    pipeline, at = getattr(example("denoising"), kind), np.array([0.4, 0.06])

    def loss(first: Any, rate: Any) -> Any:
        return (pipeline(np.float32(noisy), first, rate) ** 2).sum()

    with gp.use_device(name):
        result = pipeline(np.float32(noisy), *np.float32(at))
        slopes = gp.grad(gp.pipeline(loss), argnums=(0, 1))(*(np.array(x, np.float32) for x in at))
    np.testing.assert_allclose(result, denoised_by_numpy(noisy, kind, *at), atol=1e-5)
    for slope, step in zip(slopes, 1e-5 * np.eye(2), strict=True):
        sides = [(denoised_by_numpy(noisy, kind, *(at + s * step)) ** 2).sum() for s in (1, -1)]
        np.testing.assert_allclose(slope, (sides[0] - sides[1]) / 2e-5, rtol=1e-3)


def test_trained_denoising(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """It learns where PyTorch is, and says so where it is not."""
    denoising, target = example("denoising"), tmp_path / "denoising.png"
    monkeypatch.setattr(denoising, "CROP", 48)
    arguments = ["--epochs", "3", "--output", str(target), "--device", DEVICES[0]]
    if importlib.util.find_spec("torch") is None:
        with pytest.raises(SystemExit, match=r"error: PyTorch is missing: https://pytorch\.org/get-started says how"):
            denoising.main(arguments)
        return
    assert denoising.main(arguments) == 0
    printed = re.search(r"best Gaussian (\S+), learned (\S+),", capsys.readouterr().out)
    assert printed and float(printed[2]) < float(printed[1])
    assert iio.imread(target).std() > 20


# --- what they say when they cannot ------------------------------------------------------------------------------------


@pytest.mark.parametrize("script", EXAMPLES)
def test_unreadable_picture(script: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("folder.png").mkdir()
    Path("text.png").write_text("this is no picture")
    Path("empty.png").touch()
    iio.imwrite("whole.png", np.zeros((64, 64, 3), np.uint8))
    Path("cut.png").write_bytes(Path("whole.png").read_bytes()[:60])
    reasons = {"missing.png": "no such file", "folder.png": "it is not a file"}
    for path in ("missing.png", "folder.png", "text.png", "empty.png", "cut.png"):
        with pytest.raises(SystemExit) as ended:
            example(script).main([path, "--device", "reference"])
        reason = reasons.get(path, "its format is unknown, or the file is damaged")
        assert ended.value.code == f"error: cannot read the picture {path}: {reason}"


def test_unreadable_picture_ends_without_traceback() -> None:
    command = [sys.executable, str(ROOT / "examples" / "cielab.py"), "missing.png"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert ended.stderr == "error: cannot read the picture missing.png: no such file\n"


@pytest.mark.parametrize(
    ("script", "arguments", "message"),
    [
        ("demo", ["--device", "abacus"], "there is no device 'abacus'; found: "),
        ("demo", ["--device", "reference", "--output", "file/out.png"], "cannot write file/out.png: "),
        ("unsharp", ["--sigma", "0"], "--sigma is 0.0; it must be above 0, and at most 50"),
        ("harris", ["--corners", "0"], "--sigma must be above 0 and at most 50, --corners at least 1"),
        ("game_of_life", ["--generations", "0"], "--generations must be at least 1, --soup at least 0"),
        ("background_subtraction", ["--steps", "0"], "--steps must be at least 1"),
        ("background_subtraction", [], "the picture is 16×12 pixels; this example needs 32×32 at least"),
        ("stream", ["--frames", "1"], "--frames must be at least 2"),
        ("stream", [], "the picture is 16×12 pixels; this example needs 64×64"),
        ("stream", ["--video", "missing.mp4"], "cannot read the video missing.mp4: no such file"),
        ("stream", ["--folder", "file"], "cannot read the folder file: it is no folder"),
        ("stream", ["--folder", "empty"], "there are no pictures in empty"),
    ],
)
def test_refusals(
    script: str, arguments: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("file").touch()
    Path("empty").mkdir()
    iio.imwrite("small.png", np.zeros((12, 16, 3), np.uint8))
    with pytest.raises(SystemExit) as ended:
        example(script).main(["small.png", *arguments])
    assert str(ended.value.code).startswith(f"error: {message}")


def test_every_kind_of_picture_is_read(tmp_path: Path) -> None:
    common = example("common")
    grey = np.arange(12, dtype=np.uint8).reshape(3, 4)
    rgb = np.stack([grey, grey + 50, grey + 100], -1)
    kinds = {
        "grey.png": (grey, np.stack([grey] * 3, -1)),
        "rgb.png": (rgb, rgb),
        "rgba.png": (np.dstack([rgb, grey]), rgb),
        "deep.png": (grey.astype(np.uint16) * 257, np.stack([grey] * 3, -1)),
        "bits.png": (grey > 5, np.stack([(grey > 5) * np.uint8(255)] * 3, -1)),
        "film.gif": (np.stack([rgb, 255 - rgb]), rgb),
        "photo.tif": (rgb, rgb),
    }
    for file, (pixels, expected) in kinds.items():
        iio.imwrite(tmp_path / file, pixels)
        args = common.parser("doc", "astronaut", "out.png").parse_args([str(tmp_path / file)])
        assert np.array_equal(common.load(args), expected), file


# --- against NumPy, SciPy and scikit-image -----------------------------------------------------------------------------


def guide_lab(image: Array) -> Array:
    """The guide's formula in float64."""
    c = image / 255.0
    scaled = 100 * np.where(c > 0.04045, ((c + 0.055) / 1.055) ** 2.4, c / 12.92)
    matrix = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    t = scaled @ matrix.T / [95.047, 100, 108.883]
    t = np.where(t > 0.008856, np.cbrt(t), 7.787 * t + 16 / 116)
    x, y, z = np.moveaxis(t, -1, 0)
    return np.stack([116 * y - 16, 500 * (x - y), 200 * (y - z)], -1)


def test_cielab(name: str) -> None:
    image = data.astronaut()
    graph = example("cielab").convert(image, name)
    lab = graph.read("Lab")
    assert graph.kernel_count == 1
    assert np.abs(lab - guide_lab(image)).max() < 1e-3
    assert np.abs(lab - color.rgb2lab(image)).max() < 0.1


def test_upside_down(name: str, small: Array) -> None:
    flipped = example("upside_down").turn(small, name).read("flipped")
    assert np.array_equal(flipped[..., :3], small[::-1])
    with pytest.raises(ValueError, match="requires a 2D field"):
        example("upside_down").upsideDown(gp.ScalarField(np.zeros(5, np.float32)))


@pytest.mark.parametrize("border", MODES)
def test_gaussian_borders(border: str, name: str, small: Array) -> None:
    image = np.float32(small) / 255
    blurred = example("unsharp").sharpen(image, 2, 1, border, name).read("blurred")
    expected = ndimage.gaussian_filter(image.astype(np.float64), (2, 2, 0), mode=MODES[border][1])
    assert np.abs(blurred - expected).max() < 1e-6


def test_unsharp(name: str, small: Array) -> None:
    image = np.float32(small) / 255
    graph = example("unsharp").sharpen(image, 3, 1.5, device=name)
    channels = np.moveaxis(image.astype(np.float64), -1, 0)
    expected = np.stack([filters.unsharp_mask(channel, 3, 1.5) for channel in channels], -1)
    with gp.use_device(name) as backend:
        assert graph.kernel_count == (
            1 if backend.target.device == "gpu" else 2
        )  # CPUs compute the lines once and keep them
    assert np.abs(graph.read("sharp") - expected).max() < 1e-5


def test_harris(name: str) -> None:
    harris = example("harris")
    image = example("common").grey(data.camera()[100:300, 150:350, None].repeat(3, 2))
    graph = harris.harris(image, 1.5, 5, "zero", name)
    expected = feature.corner_harris(image.astype(np.float64), k=0.05, sigma=1.5)
    response = graph.read("response")
    assert np.abs(response - expected).max() < 1e-5 * np.abs(expected).max()
    corners = {tuple(c) for c in harris.strongest(graph.read("maxima"), 40).tolist()}
    peaks = feature.corner_peaks(
        expected, min_distance=5, threshold_abs=0, threshold_rel=0, exclude_border=False, num_peaks=40, p_norm=np.inf
    )
    assert corners == {tuple(p) for p in peaks.tolist()}


def test_strongest_of_few() -> None:
    maxima = np.zeros((4, 5))
    assert len(example("harris").strongest(maxima, 3)) == 0
    maxima[1, 2], maxima[3, 4] = 5, 7
    assert example("harris").strongest(maxima, 3).tolist() == [[3, 4], [1, 2]]


def test_game_of_life(name: str) -> None:
    cells = (np.random.default_rng(5).random((33, 47)) < 0.4).astype(np.uint8)
    trace = cells.astype(np.float32)
    graph = example("game_of_life").game(cells, name)
    graph.step(20)
    for _ in range(20):
        around = [np.roll(cells, (r, c), (0, 1)) for r in (-1, 0, 1) for c in (-1, 0, 1) if (r, c) != (0, 0)]
        neighbours = np.sum(around, axis=0)
        trace = np.maximum(np.float32(0.97) * trace, cells)
        cells = ((neighbours == 3) | ((neighbours == 2) & (cells == 1))).astype(np.uint8)
    assert np.array_equal(graph.read("cells"), cells)
    assert np.array_equal(graph.read("trace"), trace)


def test_background_subtraction(name: str, small: Array) -> None:
    motion = example("background_subtraction")
    photo, cat = np.float32(small) / 255, motion.cat(18)
    graph = motion.subtraction(photo, cat, name)
    background = np.zeros((64, 88, 3))
    for tick in range(12):
        frame = graph.read("frame")
        assert graph.tick == tick
        assert np.abs(graph.read("background") - background).max() < 1e-5
        distance = np.linalg.norm(frame - background, axis=-1)
        assert np.abs(graph.read("motion") - np.clip(2 * distance - 0.25, 0, 1)).max() < 1e-5
        background = 0.95 * background + 0.05 * frame
        row, column = (4 + round(1.4 * f) for f in (np.sin(2.1 * tick), np.cos(1.7 * tick)))
        crop = photo[row : row + 64, column : column + 88]
        disc = np.any(frame != crop, axis=-1)
        assert 150 < disc.sum() < 230, "only the visitor is not in the photograph"
        graph.step()


def test_unreadable_video(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: str) -> None:
        raise OSError("no plugin")

    monkeypatch.chdir(tmp_path)
    Path("film.mp4").touch()
    monkeypatch.setattr(iio, "imiter", refuse)
    message = r"error: cannot read the video film\.mp4: its format is unknown \(`pip install av` brings more\)"
    with pytest.raises(SystemExit, match=message):
        example("stream").main(["--video", "film.mp4"])


def test_stream(name: str) -> None:
    stream = example("stream")
    texture = ndimage.gaussian_filter(np.random.default_rng(4).random((60, 80, 3)), (2, 2, 0), mode="wrap")
    texture = np.rint(255 * (texture - texture.min()) / np.ptp(texture)).astype(np.uint8)
    film = [np.roll(texture, (k, -k), (0, 1)) for k in range(4)]
    strips: list[Array] = []
    graph = stream.watching(gp.FieldType((60, 80), 3, "uint8"), film, strips.append, name)
    assert graph.step(9) is False and graph.tick == 3
    motion = graph.read("motion")[8:-8, 8:-8]
    assert np.abs(np.median(motion, axis=(0, 1)) - [-1, 1]).max() < 0.1, "columns and rows a frame"
    background = np.zeros((60, 80, 3))
    for frame in film[:3]:
        background = 0.95 * background + 0.05 * frame / 255
    assert np.abs(graph.read("background") - background).max() < 1e-5
    distance = np.linalg.norm(film[3] / 255 - background, axis=-1)
    change = np.clip(2 * distance - 0.25, 0, 1)
    assert np.abs(graph.read("change") - change).max() < 1e-5
    graph.release()
    assert len(strips) == 4
    assert np.array_equal(strips[3][:, :80], film[3])
    assert np.abs(strips[3][:, 80:160] - 255 * change[..., None]).max() < 1


# --- the gallery ----------------------------------------------------------------------------------------------------


def test_readme_and_gallery_show_every_example() -> None:
    gallery = (ROOT / "docs" / "make_gallery.py").read_text()
    for script in EXAMPLES:
        assert f"import {script}\n" in gallery
    assert sorted(p.stem for p in (ROOT / "examples").glob("*.py")) == sorted(["common", *EXAMPLES, *OF_ARRAYS])
    assert (ROOT / "docs" / "gallery.png").stat().st_size < 600_000
