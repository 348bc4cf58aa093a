"""Tables and pictures of what was measured: `python -m benchmarks.pipelines.report [FILE …]`."""

from __future__ import annotations

from typing import Any

COPIES = ("copy", "copy of the input")


def kind_of(name: str) -> str:
    """What a contestant is: "copy", "gpuop", "hand" or "peer"."""
    if name in COPIES:
        return "copy"
    return "gpuop" if name.startswith("gpuop") else "hand" if name.startswith("by hand") else "peer"


def best(result: dict[str, Any], kind: str) -> tuple[str, float] | None:
    """The fastest of a kind, and its milliseconds."""
    times = {n: c["ms"] for n, c in result["contestants"].items() if kind_of(n) == kind and "ms" in c}
    return min(times.items(), key=lambda entry: entry[1]) if times else None


def table(title: str, result: dict[str, Any]) -> str:
    """A pipeline's contestants, the fastest first, as text."""
    found = result["contestants"]
    copy = found.get("copy", {}).get("ms")
    shape, mib = "×".join(map(str, result["shape"])), result.get("bytes", 0) / 2**20
    lines = [f"\n{title}  {shape}  {mib:.0f} MiB  NumPy: {result.get('numpy', '–')}"]
    if found:
        lines.append(
            f"  {'':28s}{'ms':>9s} {'±':>8s} {'copies':>7s} {'first s':>8s} {'lines':>6s} {'kernels':>8s}  bits"
        )
    for name, c in sorted(found.items(), key=lambda entry: entry[1].get("ms", 0)):
        over = f"{c['ms'] / copy:7.2f}" if copy else ""
        first, count, kernels = c.get("first"), c.get("lines"), c.get("kernels")
        lines.append(
            f"  {name:28s}{c['ms']:9.3f} {c['spread']:8.3f} {over} {'' if first is None else f'{first:.2f}':>8s} "
            f"{count or '':>6} {kernels or '':>8}{'  same' if c.get('bits') else ''}".rstrip()
        )
    cold = result.get("cold")
    if cold:
        lines.append("  cold: " + ", ".join(f"{k} {v:.3g}" for k, v in cold.items()))
    lines += [f"  left out: {name}: {why}" for name, why in result["left_out"].items()]
    return "\n".join(lines)
