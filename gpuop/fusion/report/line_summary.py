"""The kernels of a plan by the lines of the user program: the summary of reports of many kernels."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from gpuop.base.errors import Loc
from gpuop.fusion.cost import amount
from gpuop.fusion.launch import PlannedLaunch

Facts = dict[str, Any]
FEW = 12  # kernels that a reader sees without a summary
MOST_LINES = 12  # lines of a summary


def by_line(launches: Iterable[PlannedLaunch], kernels: Sequence[Facts], moved: Sequence[int]) -> list[Facts]:
    """The launches of each line, in order of the first one; a launch belongs to the line of its last operator.

    Returns:
        A list of {file, line, text (its source), kernels (numbers of launches), bytes (that these move), ms (the sum of their
        predicted times, null without one)}; file and text are empty, and line is 0, where the line is not known.
    """
    rows: dict[Loc | None, Facts] = {}
    for launch, kernel, nbytes in zip(launches, kernels, moved, strict=True):
        loc = launch.ops[-1].loc
        named = {"file": loc.path, "line": loc.line, "text": loc.text} if loc else {"file": "", "line": 0, "text": ""}
        row = rows.setdefault(loc, {**named, "kernels": [], "bytes": 0, "ms": 0.0})
        row["kernels"].append(kernel["number"])
        row["bytes"] += nbytes
        times = kernel["predictions"]
        row["ms"] = row["ms"] + times[0]["ms"] if times and row["ms"] is not None else None
    return list(rows.values())


def summary(rows: Sequence[Facts]) -> list[str]:
    """The lines of a plan of many kernels as text, the slowest ones first; empty for few kernels, and for a single line."""
    if sum(len(row["kernels"]) for row in rows) <= FEW or len(rows) == 1:
        return []
    ordered = sorted(rows, key=lambda row: (-(row["ms"] or 0), -row["bytes"]))
    others = len(ordered) - MOST_LINES
    return [
        "by line, each kernel at the line of its last operator:",
        *map(_row, ordered[:MOST_LINES]),
        *([f"  and {others} more line{'s' * (others > 1)}"] if others > 0 else []),
    ]


def _row(row: Facts) -> str:
    count = len(row["kernels"])
    numbers = [f"{count} kernel{'s' * (count > 1)}", amount(row["bytes"])]
    numbers += [] if row["ms"] is None else [f"{row['ms']:.3g} ms predicted"]
    place = f"{row['text']} ({row['file']}:{row['line']})" if row["file"] else "no line of the program"
    return f"  {', '.join(numbers)}: {place.lstrip()}"
