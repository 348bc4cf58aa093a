"""Graphs that are interrupted everywhere, and drivers that fail everywhere: how often states and tick are not of one step.

    python benchmarks/interrupts.py [--devices NAME …] [--times 1000] [--places 1000000]

Of each graph of tests/engine/interrupts/cases.py: a signal's exception at random moments of steps, resets and reads, `times` in all
on each device; an exception at every place (or at `places` of them) of the bytecode of a step, of a reset, a save, a load and
a read, where CPython lets handlers run; and each call of the driver failing in turn, for want of memory and otherwise. The
graphs' values are compared with NumPy's at the moment after the interrupt, and two steps later.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import gpuop as gp
from tests.engine.interrupts.cases import NAMES
from tests.engine.interrupts.trials import ACTIONS, Trials, trials


def randomly(trial: Trials, options: argparse.Namespace) -> None:
    trial.randomly(-(-options.times // len(NAMES)))


def everywhere(trial: Trials, options: argparse.Namespace) -> None:
    for action in ACTIONS:
        trial.everywhere(action, options.places)
    trial.everywhere("step", min(options.places, 200), first=True)


def failing(trial: Trials, options: argparse.Namespace) -> None:
    for action in ACTIONS:
        trial.failures(action)


KINDS: dict[str, Callable[[Trials, argparse.Namespace], None]] = {
    "random moments": randomly,
    "places in bytecode": everywhere,
    "failing calls": failing,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--devices", nargs="+", default=[device.name for device in gp.devices()])
    parser.add_argument("--times", type=int, default=1000)
    parser.add_argument("--places", type=int, default=10**6)
    options = parser.parse_args()
    warnings.simplefilter("ignore", ResourceWarning)  # of files that an interrupt leaves open
    torn: list[str] = []
    print("| device | interrupted by | interrupts | torn |")
    print("|---|---|---|---|")
    for device in options.devices:
        print(f"{device}: {gp.device(device).description}", file=sys.stderr)
        for kind, run in KINDS.items():
            if device == "reference" and kind == "failing calls":
                continue
            count, before = 0, len(torn)
            for name in NAMES:
                with trials(name, device) as trial:
                    run(trial, options)
                    count, torn = count + trial.result.interrupts, torn + trial.result.torn
            print(f"| {device} | {kind} | {count} | {len(torn) - before} |", flush=True)
    print("\n".join(torn[:20]))
    return bool(torn)


if __name__ == "__main__":
    sys.exit(main())
