"""A picture of how much longer others take than gpuop, or less: a line for each pipeline, on a logarithmic scale."""

from __future__ import annotations

import math
from html import escape
from typing import Any

from .report import COPIES, kind_of

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7a5195", "#8c564b", "#999999", "#444444")
LEFT, WIDE, LINE, TOP = 270, 640, 20, 64
LEAST, MOST = 0.25, 64.0


def picture(results: dict[str, Any], titles: dict[str, str]) -> str:
    """As SVG."""
    rows = {name: ratios_of(r) for name, r in results["pipelines"].items() if "gpuop" in r["contestants"]}
    names = sorted({n for ratios in rows.values() for n in ratios}, key=lambda n: (kind_of(n), n))
    marks = {name: COLOURS[n % len(COLOURS)] for n, name in enumerate(names)}
    height = TOP + LINE * len(rows) + 20 * math.ceil(len(names) / 4) + 50
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + WIDE + 30}" height="{height}"',
        'font-family="sans-serif" font-size="12">',
        '<rect width="100%" height="100%" fill="white"/>',
        f'<text x="10" y="20" font-size="15">Time of others over that of gpuop: {escape(results["device"])}</text>',
        *scale(len(rows)),
    ]
    for n, (name, ratios) in enumerate(rows.items()):
        y = TOP + LINE * n + 10
        parts.append(f'<text x="{LEFT - 10}" y="{y + 4}" text-anchor="end">{escape(titles.get(name, name))}</text>')
        parts += [mark(who, place(ratio), y, marks[who]) for who, ratio in ratios.items()]
    for n, name in enumerate(names):
        x, y = 30 + 230 * (n % 4), TOP + LINE * len(rows) + 40 + 20 * (n // 4)
        parts += [mark(name, x, y, marks[name]), f'<text x="{x + 12}" y="{y + 4}">{escape(name)}</text>']
    return "\n".join([*parts, "</svg>", ""])


def ratios_of(result: dict[str, Any]) -> dict[str, float]:
    own = result["contestants"]["gpuop"]["ms"]
    others = ((n, c["ms"] / own) for n, c in result["contestants"].items() if n != "gpuop" and n not in COPIES)
    return {name: ratio for name, ratio in others if not name.startswith("gpuop") or name == "gpuop unfused"}


def place(ratio: float) -> float:
    """The place of a ratio; ratios beyond the scale lie at its end."""
    inside = min(max(ratio, LEAST), MOST)
    return LEFT + WIDE * math.log(inside / LEAST) / math.log(MOST / LEAST)


def scale(rows: int) -> list[str]:
    parts, tick = [], LEAST
    while tick <= MOST:
        x, own = place(tick), tick == 1
        parts.append(
            f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{TOP + LINE * rows}" stroke="{"black" if own else "#dddddd"}"/>'
        )
        parts.append(
            f'<text x="{x:.1f}" y="{TOP - 8}" text-anchor="middle">{tick:g}{"  (gpuop)" if own else ""}</text>'
        )
        tick *= 2
    return parts


def mark(name: str, x: float, y: float, colour: str) -> str:
    """A diamond for kernels by hand, a cross for gpuop without fusion, a dot for peers."""
    title = f"<title>{escape(name)}</title>"
    if kind_of(name) == "hand":
        return f'<path d="M{x:.1f} {y - 6}l6 6l-6 6l-6 -6z" fill="{colour}">{title}</path>'
    if kind_of(name) == "gpuop":
        return f'<path d="M{x - 4:.1f} {y - 4}l8 8m0 -8l-8 8" stroke="{colour}" stroke-width="2">{title}</path>'
    return f'<circle cx="{x:.1f}" cy="{y}" r="4.5" fill="{colour}">{title}</circle>'
