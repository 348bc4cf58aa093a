"""Random pipelines in random windows: what is put together of these has the bits of one call on the whole."""

from __future__ import annotations

import re
import traceback
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from gpuop.base.errors import SemanticError
from tests.fuzz.windowed import Array, WindowedProgram

from .program import used

WINDOWS = "windows"  # the kind
PLACE = re.compile(r" \([^()]*\.py:\d+\)")  # which a refusal has


def in_windows(seed: int, device: str) -> dict[str, Any]:
    """The outcome of a program on a device: the number of compared windows, and the refusal or the difference."""
    try:
        windows, reason = _compared(WindowedProgram(seed), device)
        what = "values" if windows and reason else "refusal" if reason and not PLACE.search(reason) else ""
    except Exception as error:  # noqa: BLE001 - whatever it is, it is the finding
        windows, what, reason = 0, type(error).__name__, "".join(traceback.format_exception(error)[-4:])
    report: dict[str, Any] = {"checks": windows}
    if what:
        return report | {"what": what, "script": windowed_script(seed, device, reason)}
    return report | {"refused": reason} if reason else report


def _compared(program: WindowedProgram, device: str) -> tuple[int, str]:
    """The number of windows, 0 for a refused program, and the refusal or the fault."""
    with used(device):
        try:
            needed = program.footprint
        except SemanticError as error:
            return 0, str(error)
        if len(needed.whole) == len(program.grid):
            return 0, "; ".join(needed.whole.values())
        windows = list(program.windows())
        whole = program.pipeline(program.array, program.weights)
        other = _differing(program.in_windows(windows, needed), whole)
    return len(windows), f"{other} of {whole.size} points differ from the whole" if other else ""


def _differing(result: Array, whole: Array) -> int:
    """Points whose bits are others; a NaN is like another."""
    other = (result.view(np.uint32) != whole.view(np.uint32)) & ~(np.isnan(result) & np.isnan(whole))
    return int(np.count_nonzero(other))


def windowed_script(seed: int, device: str, details: str) -> str:
    """A script of its own that shows it again."""
    notes = [f"# {WINDOWS} {seed} on {device}:", *(f"# {line[:240]}" for line in details.splitlines())]
    lines = ["from tests.differential.windows import in_windows", f"print(in_windows({seed}, {device!r}))", ""]
    return "\n".join(notes + lines)


def refusals(results: Sequence[dict[str, Any]]) -> list[str]:
    """The number of refused programs, by reason."""
    reasons = Counter(
        re.sub(r"\d+", "N", PLACE.sub("", report["refused"])) for report in results if "refused" in report
    )
    return [f"{count:6} refused: {reason}" for reason, count in reasons.most_common()]
