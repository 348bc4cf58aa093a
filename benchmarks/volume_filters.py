"""Filters of volumes next to a copy of them, to a kernel for each operator, and to cupyx's on a GPU or SciPy's on a CPU.

    python benchmarks/volume_filters.py [--device NAME] [--shape 512 768 768] [--rounds 9] [--only gaussian]

float32 arrays of the device (NumPy's on a CPU), in turns, waited for: medians in milliseconds with the middle half's spread, in
copies of the volume (4 bytes read and 4 written for each point, the least that a filter moves), and the share of the peer's time.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import ndimage as scipys
from turns import in_turns, middle_half

import gpuop as gp
from gpuop import ndimage
from gpuop.runtime.devices import current

CASES: tuple[tuple[str, dict[str, Any]], ...] = (
    *(("gaussian_filter", {"sigma": sigma}) for sigma in (0.5, 1.0, 2.0, 4.0)),
    ("gaussian_gradient_magnitude", {"sigma": 1.0}),
    ("gaussian_laplace", {"sigma": 1.0}),
    ("laplace", {}),
    ("sobel", {"axis": 0}),
    ("uniform_filter", {"size": 3}),
    ("uniform_filter", {"size": 7}),
    ("maximum_filter", {"size": 5}),
    ("median_filter", {"size": 3}),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--device")
    parser.add_argument("--shape", type=int, nargs=3, default=(512, 768, 768))
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    name = gp.device(args.device).name
    with gp.use_device(name):
        print(f"{name}: {'×'.join(map(str, args.shape))} float32")
        print(
            "| filter | ms | copies | kernel for each operator | peer | share of its time |\n|---|---|---|---|---|---|"
        )
        measured(np.random.default_rng(0).random(args.shape, np.float32), args.rounds, args.only, name)


def measured(volume: Any, rounds: int, only: str, device: str) -> None:
    peer, wait = scipys, current().synchronize
    if device.startswith("cuda"):
        import cupy
        import cupyx.scipy.ndimage as peer  # type: ignore[no-redef]

        volume, wait = cupy.asarray(volume), cupy.cuda.runtime.deviceSynchronize
    other = volume.copy()
    for name, given in CASES:
        if only not in name:
            continue
        fused, apart = (gp.pipeline(filtered(name, given), optimize=fuse) for fuse in (True, False))
        actions: dict[str, Callable[[], object]] = {
            "copy": lambda: other.__setitem__(..., volume),
            "gpuop": lambda fused=fused: fused(volume),  # type: ignore[misc]
            "apart": lambda apart=apart: apart(volume),  # type: ignore[misc]
            "peer": lambda: getattr(peer, name)(volume, **given),  # noqa: B023 - called in this turn
        }
        taken = {key: middle_half(each) for key, each in in_turns(actions, rounds, wait=wait, warm=2).items()}
        (ms, spread), copy = taken["gpuop"], taken["copy"][0]
        told = f"{name} {' '.join(f'{k} {v:g}' for k, v in given.items())}".strip()
        apart_ms, peer_ms = taken["apart"][0], taken["peer"][0]
        print(
            f"| {told} | {ms:.2f} ± {spread:.2f} | {ms / copy:.2f} | {apart_ms:.2f} | {peer_ms:.2f} | {ms / peer_ms:.2f} |",
            flush=True,
        )


def filtered(name: str, given: dict[str, Any]) -> Callable[[Any], gp.Field]:
    return lambda x: getattr(ndimage, name)(gp.ScalarField(x), **given)


if __name__ == "__main__":
    main()
