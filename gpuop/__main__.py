"""The command line: `gpuop devices`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from gpuop.runtime import icd
from gpuop.runtime.devices import examined


def list_devices() -> int:
    """Print what was found, what was skipped and why. The first device that works is the default."""
    chosen = False
    for device in examined():
        names = " = ".join((device.name, *device.aliases))
        if device.problem is not None:
            print(f"  {names:28} {device.description}\n    skipped: {device.problem}")
            continue
        print(f"{' ' if chosen else '*'} {names:28} {device.description}")
        chosen = True
    drivers = icd.find()
    if drivers:
        print("OpenCL drivers:")
    for driver in drivers:
        error = icd.load_error(driver)
        print(f"  {driver.library} ({driver.origin})" + (f"\n    cannot be loaded: {error}" if error else ""))
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="gpuop", description="Operators on tensor fields, fused.")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("devices", help="what was found, what was skipped and why; * marks the default")
    parser.parse_args(arguments)
    return list_devices()


if __name__ == "__main__":
    sys.exit(main())
