"""Costs and gains of events, queues and page-locked memory: host time of a submission, copies to the host, copies beside kernels.

    python benchmarks/queues.py [--device NAME] [--mib 64]

Medians (10 % … 90 %) of many rounds, in turns in one process. A frame of the second table is computed, then copied to the host:
waited for, or fetched in another queue while the next frames are computed.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
from collections.abc import Callable

import numpy as np
from turns import in_turns

import gpuop as gp
from gpuop.dsl import _for, _readTensor, _var
from gpuop.runtime.base.backend import Backend

ROUNDS, SMALL, FRAMES, TURNS = 15, 64, 8, 40


@gp.operator
def plus(field):  # type: ignore[no-untyped-def]
    return _readTensor(field) + 1


@gp.operator
def worked(field):  # type: ignore[no-untyped-def]
    """Operations that take about the time of a copy to the host."""
    x = _var(_readTensor(field))
    with _for(TURNS):
        x @= x * 0.5 + 1
    return x


def shown(values: list[float], unit: float) -> str:
    low, high = (statistics.quantiles(values, n=10)[k] * unit for k in (0, -1))
    return f"{statistics.median(values) * unit:.3g} ({low:.3g} … {high:.3g})"


def host_times(device: Backend) -> None:
    field = gp.evaluate(gp.ScalarField(np.zeros(SMALL, np.float32)))

    async def awaited() -> None:
        await gp.submit(plus(field))

    out = gp.pinned(SMALL)
    actions: dict[str, Callable[[], object]] = {
        "evaluate, synchronize": lambda: (gp.evaluate(plus(field)), device.synchronize()),
        "submit, wait": lambda: gp.submit(plus(field)).wait(),
        "numpy": lambda: plus(field).numpy(),
        "submit, result": lambda: gp.submit(plus(field)).result(),
        "fetch, result": lambda: plus(field).fetch(out=out).result(),
        "asyncio.run of await": lambda: asyncio.run(awaited()),
    }
    print("| until it is done | µs |\n|---|---|")
    for name, taken in in_turns(actions, ROUNDS, 20).items():
        print(f"| {name} | {shown(taken, 1e6)} |")


def copies(mib: int) -> None:
    array = np.zeros(mib << 18, np.float32)
    field = gp.evaluate(gp.ScalarField(array))
    pinned = gp.pinned(array.shape)
    actions: dict[str, Callable[[], object]] = {
        "numpy": field.numpy,
        "fetch to an ordinary array": lambda: field.fetch(out=array).wait(),
        "fetch to gp.pinned": lambda: field.fetch(out=pinned).wait(),
    }
    print(f"\n| copy of {mib} MiB | ms | GB/s |\n|---|---|---|")
    for name, taken in in_turns(actions, ROUNDS).items():
        print(f"| {name} | {shown(taken, 1e3)} | {array.nbytes / statistics.median(taken) / 1e9:.3g} |")


def frames(mib: int) -> None:
    field = gp.evaluate(gp.ScalarField(np.zeros(mib << 18, np.float32)))
    outs = [gp.pinned(field.field_shape) for _ in range(2)]

    def in_order() -> None:
        for k in range(FRAMES):
            worked(field * gp.Parameter(float(k))).fetch(out=outs[k % 2]).wait()

    def beside() -> None:
        done: list[gp.Event] = []
        for k in range(FRAMES):
            frame = gp.evaluate(worked(field * gp.Parameter(float(k))))
            if k > 1:
                done[k - 2].wait()  # its array is used again
            with gp.queue("copies"):
                done.append(frame.fetch(out=outs[k % 2]))
        done[-1].wait()

    found = in_turns({"each waited for": in_order, "fetched in another queue": beside}, ROUNDS)
    print(f"\n| {FRAMES} frames of {mib} MiB | ms |\n|---|---|")
    for name, taken in found.items():
        print(f"| {name} | {shown(taken, 1e3)} |")
    first, second = map(statistics.median, found.values())
    print(f"ratio {second / first:.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--device", default=gp.devices()[0].name)
    parser.add_argument("--mib", type=int, default=64)
    args = parser.parse_args()
    with gp.use_device(args.device) as device:
        print(f"device: {device.name}, {device.description}\n")
        host_times(device)
        copies(args.mib)
        frames(args.mib)


if __name__ == "__main__":
    main()
