"""The command line: `gpuop devices`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from gpuop.config import config
from gpuop.runtime import icd
from gpuop.runtime.devices import examined


def list_devices() -> int:
    """Print what was found, what was skipped and why; the default is what GPUOP_DEVICE names, or the first that works."""
    found = examined()
    working = [device for device in found if device.problem is None]
    wanted = [device for device in working if config.device in (device.name, *device.aliases)]
    default = (wanted if config.device else working)[:1]
    for device in found:
        print(
            f"{'*' if device in default else ' '} {' = '.join((device.name, *device.aliases)):28} {device.description}"
        )
        if device.problem is not None:
            print(f"    skipped: {device.problem}")
    if config.device and not wanted:
        print(f"GPUOP_DEVICE={config.device} names none of the devices that work")
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
