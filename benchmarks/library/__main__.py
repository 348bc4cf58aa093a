"""Every function of the library beside SciPy, NumPy, scikit-image and OpenCV on a CPU, beside CuPy, cuCIM and PyTorch on a GPU.

    python -m benchmarks.library [--device NAME] [--size 2048] [--seconds 0.15] [--only WORDS …] [--note TEXT] [--prepare N]

ndimage, linalg and fft get the other library's arrays; NumPy's functions and random numbers are steps of a prepared graph of
fields in the device's memory. All are run in turns, in one process, and waited for: medians in milliseconds, and the width of the
middle half. It writes benchmarks/results/library-DEVICE.json, of which docs/make_library.py makes the page.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import time
import warnings
from contextlib import redirect_stdout
from pathlib import Path

import gpuop as gp
from gpuop.runtime.devices import current

from .catalogue import ROWS
from .given import Arrays
from .libraries import all_cores, on_cpus, on_cuda
from .measuring import Measuring
from .row import Row

RESULTS = Path(__file__).parent.parent / "results"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", help="default: the library's")
    parser.add_argument("--size", type=int, default=2048)
    parser.add_argument("--seconds", type=float, default=0.15, help="that a function's rounds take")
    parser.add_argument(
        "--only", nargs="+", default=[""], help="parts of functions' names; what the file has of others stays"
    )
    parser.add_argument("--note", default="", help="what the page says of the machine")
    parser.add_argument("--prepare", type=int, default=0, help="processes that first compile what is compiled")
    given = parser.parse_args()
    rows = [row for key, row in ROWS.items() if any(word in key for word in given.only)]
    sizes: dict[int, Arrays] = {}
    if given.prepare > 1:
        _prepare(rows, given, sizes)
    found: dict[str, object] = {}
    with gp.use_device(given.device or current().name), all_cores():
        measuring = _measuring(current().name, given.size, sizes, given.seconds)
        try:
            _run(rows, measuring, found)
        finally:  # what was found before Ctrl-C is kept
            _write(found, measuring, given.note)


def _measuring(device: str, size: int, sizes: dict[int, Arrays], seconds: float) -> Measuring:
    if not device.startswith("cuda"):
        return Measuring(list(on_cpus()), size, sizes, lambda: None, seconds)
    import cupy

    return Measuring(list(on_cuda()), size, sizes, cupy.cuda.runtime.deviceSynchronize, seconds)


def _prepare(rows: list[Row], given: argparse.Namespace, sizes: dict[int, Arrays]) -> None:
    """Have kernels compiled, gpuop's and others', which their caches keep on disk: by processes that share the arrays."""
    for row in rows:
        arrays = sizes.setdefault(given.size // row.part, Arrays(given.size // row.part))
        for code in (row.call, row.reference, row.torch, row.skimage, row.cv2):
            for name in row.names(code):
                getattr(arrays, name, None)

    def prepare(share: list[Row]) -> None:
        with gp.use_device(given.device or current().name), open(os.devnull, "w") as nothing, redirect_stdout(nothing):
            _run(share, _measuring(current().name, given.size, sizes, 0), {})

    forked = multiprocessing.get_context("fork")  # before this process has used a device
    running = [forked.Process(target=prepare, args=(rows[n :: given.prepare],)) for n in range(given.prepare)]
    for process in running:
        process.start()
    for process in running:
        process.join()


def _run(rows: list[Row], measuring: Measuring, found: dict[str, object]) -> None:
    for row in rows:
        began = time.perf_counter()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                known = measuring.found(row)
        except Exception as error:  # noqa: BLE001 - a row that does not run must not end the run of others
            print(f"{row.key}: {type(error).__name__}: {error}", flush=True)
            continue
        finally:
            measuring.free()
        found[row.key] = known
        times = ", ".join(f"{name} {ms:.3g} ± {width:.2g}" for name, (ms, width) in known["ms"].items())
        print(f"{row.key}: {times}; error {known.get('error', '–')}; {time.perf_counter() - began:.1f} s", flush=True)


def _write(found: dict[str, object], measuring: Measuring, note: str) -> None:
    device = current()
    path = RESULTS / f"library-{device.name.replace(':', '')}.json"
    written = json.loads(path.read_text()) if path.exists() else {"size": None}
    before = written["functions"] if written["size"] == measuring.size else {}
    kept = {key: found.get(key) or before[key] for key in ROWS if key in found or key in before}
    head = {"device": device.name, "description": device.description, "size": measuring.size, "note": note}
    lines = [
        *(f"{json.dumps(name)}: {json.dumps(value, ensure_ascii=False)}" for name, value in head.items()),
        '"functions": {',
    ]
    functions = ",\n".join(f"{json.dumps(key)}: {json.dumps(known, ensure_ascii=False)}" for key, known in kept.items())
    path.write_text("{\n" + ",\n".join(lines) + f"\n{functions}\n}}\n}}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
