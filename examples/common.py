"""Common parts of the examples: arguments, pictures in and out, times. The use of gpuop is in the examples themselves."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import imageio.v3 as iio
import numpy as np
from PIL import Image, ImageDraw, ImageFont

import gpuop as gp

PICTURES = (".bmp", ".gif", ".jpeg", ".jpg", ".png", ".tif", ".tiff", ".webp")


def parser(doc: str | None, picture: str, output: str) -> argparse.ArgumentParser:
    """Arguments that every example takes; `picture` is the default, one of scikit-image's."""
    made = argparse.ArgumentParser(description=(doc or "").split("\n")[0])
    made.add_argument("picture", nargs="?", help=f"a picture file (default: skimage.data.{picture}())")
    made.add_argument("--output", default=output, help="the PNG to write (default: %(default)s)")
    made.set_defaults(default_picture=picture)
    with_device(made)
    return made


def with_device(parser: argparse.ArgumentParser) -> None:
    """The option that says where an example runs."""
    parser.add_argument("--device", help="opencl:0, reference, … as `gpuop devices` lists them (default: the best)")


def error(message: str) -> SystemExit:
    """To be raised: ends the program with one sentence on stderr and exit status 1."""
    return SystemExit(f"error: {message}")


def load(args: argparse.Namespace) -> np.ndarray:
    """The picture as uint8 of shape (rows, columns, 3): a file's, or the default."""
    path = args.picture
    if path is None:
        from skimage import data

        return as_rgb(getattr(data, args.default_picture)())
    return picture(path)


def picture(path: str) -> np.ndarray:
    """A picture file as uint8 of shape (rows, columns, 3)."""
    if not os.path.isfile(path):
        raise error(f"cannot read the picture {path}: {'it is not a file' if os.path.exists(path) else 'no such file'}")
    try:
        return as_rgb(iio.imread(Path(path).read_bytes(), plugin="pillow", index=0, rotate=True))
    except Exception as wrong:  # whatever the reader of a format raises
        raise error(f"cannot read the picture {path}: its format is unknown, or the file is damaged") from wrong


def as_rgb(pixels: np.ndarray) -> np.ndarray:
    """Grey, RGB or RGBA of any depth as uint8 RGB."""
    if pixels.ndim == 2:
        pixels = pixels[..., None]
    if pixels.ndim != 3 or 0 in pixels.shape:
        raise ValueError(f"not a picture: {pixels.shape}")
    rgb = pixels[..., :3] if pixels.shape[2] >= 3 else np.repeat(pixels[..., :1], 3, axis=2)
    if rgb.dtype == np.uint16:
        return (rgb // 257).astype(np.uint8)
    return rgb if rgb.dtype == np.uint8 else to_bytes(rgb)


def to_bytes(values: np.ndarray) -> np.ndarray:
    """0…1 as 0…255."""
    return np.rint(np.clip(values, 0, 1) * 255).astype(np.uint8)


def grey(rgb: np.ndarray) -> np.ndarray:
    """The luminance of uint8 RGB, float32 in 0…1."""
    return (rgb @ np.array([0.2125, 0.7154, 0.0721]) / 255).astype(np.float32)


# --- pictures that move -----------------------------------------------------------------------------------------------


def frames_of_video(path: str) -> Iterator[np.ndarray]:
    """The frames of a video or an animation as uint8 RGB, read one at a time; what imageio's plugins read."""
    if not os.path.isfile(path):
        raise error(f"cannot read the video {path}: {'it is not a file' if os.path.exists(path) else 'no such file'}")
    try:
        yield from map(as_rgb, iio.imiter(path))
    except Exception as wrong:  # whatever the reader of a format raises
        raise error(
            f"cannot read the video {path}: its format is unknown (`pip install av` brings more), or the file is damaged"
        ) from wrong


def frames_of_folder(path: str) -> Iterator[np.ndarray]:
    """The pictures of a folder as uint8 RGB, in the order of their names; other files are left out."""
    if not os.path.isdir(path):
        raise error(f"cannot read the folder {path}: {'it is no folder' if os.path.exists(path) else 'no such folder'}")
    for file in sorted(Path(path).iterdir()):
        if file.suffix.lower() in PICTURES:
            yield picture(str(file))


# --- pictures out -----------------------------------------------------------------------------------------------------


def sheet(panels: dict[str, np.ndarray], columns: int = 4) -> np.ndarray:
    """Pictures of one size in rows, each with its caption above; captions may be cut on small pictures."""
    rows, width = next(iter(panels.values())).shape[:2]
    columns = min(columns, len(panels))
    text, gap = max(14, width // 24), 8
    cell = (width + gap, rows + gap + round(1.6 * text))
    lines = -(-len(panels) // columns)
    canvas = Image.new("RGB", (columns * cell[0] + gap, lines * cell[1] + gap), "white")
    draw = ImageDraw.Draw(canvas)
    for n, (caption, panel) in enumerate(panels.items()):
        x, y = gap + n % columns * cell[0], gap + n // columns * cell[1]
        draw.text((x, y), caption, "black", ImageFont.load_default(text))
        canvas.paste(Image.fromarray(as_rgb(panel)), (x, y + cell[1] - rows - gap))
    return np.asarray(canvas)


def save(path: str, pixels: np.ndarray, extension: str = ".png", **how: Any) -> None:
    """Write a picture, and say where."""
    try:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        iio.imwrite(path, pixels, extension=extension, **how)
    except (OSError, ValueError, KeyError) as wrong:
        raise error(f"cannot write {path}: {getattr(wrong, 'strerror', None) or wrong}") from wrong
    print(f"picture: {path}")


# --- the device, and what it did --------------------------------------------------------------------------------------


def device(name: str | None) -> str:
    """The name of the device asked for, or of the one in use; says which it is."""
    try:
        chosen = gp.device(name)
    except gp.DeviceError as none:
        raise error(str(none)) from none
    if [d.name for d in gp.devices()] == ["reference"] and not name:
        print("No OpenCL was found: this runs on the reference device, a NumPy interpreter (`gpuop devices` says why).")
    else:
        print(f"device: {chosen.name}, {chosen.description}")
    return chosen.name


def explain(graph: gp.ComputeGraph) -> None:
    """Print the graph's plan."""
    for line in graph.explain().split("\n"):
        indent = " " * (len(line) - len(line.lstrip()) + 4)
        print(textwrap.fill(line, 110, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False))


def step_times(*graphs: gp.ComputeGraph, at_least: float = 0.3) -> list[float]:
    """Seconds of the device for all kernels of a graph, those too that steps need not repeat: the best of many, in turns."""
    best, end = [float("inf")] * len(graphs), time.perf_counter() + at_least
    while time.perf_counter() < end or float("inf") in best:
        for n, graph in enumerate(graphs):
            best[n] = min(best[n], sum(row.median_ms for row in graph.profile(5).rows) / 1e3)
    return best


def speed(seconds: float, points: int, what: str = "megapixels") -> str:
    """A time and a rate for people."""
    scale, unit = (1, "s") if seconds >= 1 else (1e3, "ms")
    return f"{seconds * scale:.3g} {unit}, {points / seconds / 1e6:.3g} {what}/s"


def report(graph: gp.ComputeGraph, first: float, points: int, what: str = "megapixels") -> None:
    """Print what was fused, and how long the first result and the kernels take."""
    explain(graph)
    print(f"first result after {first:.2f} s (recording, planning, compiling, running)")
    print(f"its kernels take {speed(step_times(graph)[0], points, what)}")


def progress(steps: int, what: str) -> Iterator[int]:
    """Count steps; on a terminal a line shows how far they are."""
    shown = time.perf_counter()
    for n in range(1, steps + 1):
        yield n
        if sys.stderr.isatty() and (time.perf_counter() - shown > 0.1 or n == steps):
            shown = time.perf_counter()
            print(f"\r{what} {n} of {steps}", end="\n" if n == steps else "", file=sys.stderr, flush=True)


# --- ranks of MPI -----------------------------------------------------------------------------------------------------


def with_ranks(parser: argparse.ArgumentParser) -> None:
    """Options of examples that run on ranks."""
    parser.add_argument("--every", type=int, help="steps between exchanges (default: what is fastest)")
    with_device(parser)


def ranks() -> Any:
    """The communicator of all ranks."""
    try:
        from mpi4py import MPI
    except ImportError:
        raise error("mpi4py is missing: `pip install mpi4py`, and an MPI such as `pip install mpich`") from None
    return MPI.COMM_WORLD


def device_of(rank: int, asked: str | None) -> str:
    """The device of a rank: what is asked for, or one of the GPUs in turn."""
    gpus = [device.name for device in gp.devices() if device.name.startswith("cuda")]
    return device(asked if asked or not gpus else gpus[rank % len(gpus)])


def same_on_ranks(domain: Any, graph: gp.ComputeGraph, probe: str, steps: int) -> bool:
    """Return whether ranks give the bits that the graph gives by itself; rank 0 prints the plan, and the time of a step of both."""
    ours, found = _seconds(domain.step, lambda: domain.gather(probe), steps)
    if found is None:
        return True
    alone, whole = _seconds(graph.step, lambda: graph.read(probe), steps)
    same = np.array_equal(found, whole)
    print(domain.explain())
    print(f"{ours * 1e3:.3g} ms a step on all ranks, {alone * 1e3:.3g} ms on one device by itself")
    print(f"{steps} steps: {'the same bits' if same else 'other bits'}")
    return same


def _seconds(step: Any, read: Any, steps: int) -> tuple[float, Any]:
    """The time of a step, of some after one that compiles; and the values read in the end."""
    step(1)
    read()
    start = time.perf_counter()
    step(steps - 1)
    found = read()
    return (time.perf_counter() - start) / (steps - 1), found


# --- clusters ---------------------------------------------------------------------------------------------------------


def on_cluster(parser: argparse.ArgumentParser) -> None:
    """Arguments of examples that run on Dask."""
    parser.add_argument("--address", help="of a scheduler of Dask's (default: threads of this process)")
    with_device(parser)


def cluster(args: argparse.Namespace) -> contextlib.AbstractContextManager[Any]:
    """Let Dask compute on the cluster that the arguments name, or on threads."""
    try:
        import dask

        if args.address is None:
            return dask.config.set(scheduler="threads")
        from distributed import Client
    except ImportError as missing:
        raise error(f"{missing.name} is missing: `pip install '.[dask]'` in gpuop's checkout") from None
    return Client(args.address)
