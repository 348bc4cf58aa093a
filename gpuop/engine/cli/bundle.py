"""`gpuop compile`: bundles of the results of a function."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from gpuop.codegen.generate import target_named
from gpuop.engine.bundles.architectures import holes
from gpuop.engine.bundles.bundle import save_bundle, save_open_bundle
from gpuop.engine.cli.targets import recorded


def compile_bundle(where: str, types: Sequence[str], targets: str, output: str) -> None:
    """Write a bundle of the results of a function, for several targets."""
    named = [target_named(t.strip()) for t in targets.split(",")]
    name, count, record = recorded(where, types)
    sizes = ""
    if count:
        least, most = save_open_bundle(output, name, count, record, named)
        sizes = f" for extents from {least} to {most}"
    else:
        save_bundle(output, name, *record(()), named)
    cubins = {target.architecture for target in named if target.architecture}
    cuda = f" (CUDA from sm_{min(cubins)} on)" if cubins else ""
    print(f"{output}: {name}{sizes} for {', '.join(map(str, named))}{cuda}, {Path(output).stat().st_size} bytes")
    for hole in holes(cubins):
        print(f"gpuop: warning: {hole}", file=sys.stderr)
