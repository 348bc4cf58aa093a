"""Tables and pictures of what was measured.

    python -m benchmarks.pipelines.report                     every pipelines-*.json of benchmarks/results
    python -m benchmarks.pipelines.report A.json B.json       these; of one device's the later ones replace the earlier

Each device gets a page and a picture, pipelines-DEVICE.md and .svg, beside the first file.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

COPIES = ("copy", "copy of the input")
RESULTS = Path(__file__).parent.parent / "results"
FEW = 5  # rounds, of which a row has at least so many to be compared
Result = dict[str, Any]


def kind_of(name: str) -> str:
    """The kind of a contestant: "copy", "gpuop", "hand" or "peer"."""
    if name in COPIES:
        return "copy"
    return "gpuop" if name.startswith("gpuop") else "hand" if name.startswith("by hand") else "peer"


def best(result: Result, kind: str, exact: bool = False) -> tuple[str, float] | None:
    """The fastest of a kind, and its milliseconds; `exact`: of those without contraction."""
    found = {
        name: known["ms"]
        for name, known in result["contestants"].items()
        if kind_of(name) == kind and not (exact and "FMA" in name)
    }
    return min(found.items(), key=lambda entry: entry[1]) if found else None


def over(a: float | None, b: float | None) -> float | None:
    return a / b if a is not None and b else None


def shown(value: float | None, digits: int = 2) -> str:
    return "–" if value is None else f"{value:.{digits}f}"


def few(known: Result) -> str:
    """Of what was measured in few rounds, in how many."""
    rounds = known.get("rounds", 0)
    return "" if rounds >= FEW else "one run" if rounds == 1 else f"{rounds} runs" if rounds else "rounds unknown"


def verdict(result: Result, kind: str, limit: float = 1.0) -> str | None:
    """The place of gpuop beside the fastest of a kind: "won", "tie" or "lost", or the reason that there is none.

    It has won within `limit` times the other's time; a difference from that within half the spread of either is a tie.
    """
    own, other = result["contestants"].get("gpuop"), best(result, kind, exact=True)
    if own is None or other is None:
        return None
    theirs = result["contestants"][other[0]]
    if few(own) or few(theirs):
        return few(min(own, theirs, key=lambda known: known.get("rounds", 0)))
    if abs(own["ms"] - limit * theirs["ms"]) <= max(own["spread"], theirs["spread"]) / 2:
        return "tie"
    return "won" if own["ms"] < limit * theirs["ms"] else "lost"


def peer_shown(result: Result, peer: tuple[str, float] | None) -> str:
    """The best peer's time, spread and name, and whether it allocates its results at each run."""
    if peer is None:
        return "–"
    known = result["contestants"][peer[0]]
    notes = [*filter(None, [few(known)]), *(["allocates"] if known.get("allocates") else [])]
    return f"{peer[1]:.2f} ± {known['spread']:.2f} {peer[0]}" + (f" ({', '.join(notes)})" if notes else "")


# --- while it is measured -------------------------------------------------------------------------------------------


def table(title: str, result: Result) -> str:
    """A pipeline's contestants, the fastest first, as text."""
    found = result["contestants"]
    copy = found.get("copy", {}).get("ms")
    shape, mib = "×".join(map(str, result["shape"])), result.get("bytes", 0) / 2**20
    lines = [f"\n{title}  {shape}  {mib:.0f} MiB  NumPy: {result.get('numpy', '–')}"]
    if found:
        lines.append(
            f"  {'':28s}{'ms':>9s} {'±':>8s} {'copies':>7s} {'first s':>8s} {'lines':>6s} {'kernels':>8s}  bits"
        )
    for name, known in sorted(found.items(), key=lambda entry: entry[1]["ms"]):
        first, count, kernels = known.get("first"), known.get("lines"), known.get("kernels")
        lines.append(
            f"  {name:28s}{known['ms']:9.3f} {known['spread']:8.3f} {shown(over(known['ms'], copy)):>7s} "
            f"{'' if first is None else f'{first:.2f}':>8s} {count or '':>6} {kernels or '':>8}"
            f"{'  same' if known.get('bits') else ''}".rstrip()
        )
    if result.get("cold"):
        lines.append("  cold: " + ", ".join(f"{k} {v:.3g}" for k, v in result["cold"].items()))
    lines += [f"  left out: {name}: {why}" for name, why in result["left_out"].items()]
    return "\n".join(lines)


# --- pages ------------------------------------------------------------------------------------------------------------

HEADS = (
    "pipeline", "grid", "MiB", "gpuop ms", "±", "rounds", "plain", "unfused", "contracted", "kernels", "over a copy",
    "of the input", "by hand", "over by hand", "with FMA", "best peer", "over it", "gpuop has", "lines", "peer's", "first s",
    "longest compile s",
)  # fmt: skip


def row(title: str, result: Result) -> list[str]:
    found = result["contestants"]

    def ms(name: str) -> float | None:
        return found.get(name, {}).get("ms")

    own, cold = ms("gpuop"), result.get("cold", {})
    hand, any_hand, peer = best(result, "hand", exact=True), best(result, "hand"), best(result, "peer")
    contracted = ms("gpuop contract") or own
    return [
        title,
        "×".join(map(str, result["shape"])),
        f"{result.get('bytes', 0) / 2**20:.0f}",
        f"**{shown(own)}**",
        shown(found.get("gpuop", {}).get("spread")),
        few(found.get("gpuop", {})) or str(found["gpuop"]["rounds"]),
        *(shown(ms(f"gpuop {other}")) for other in ("plain", "unfused", "contract")),
        str(found.get("gpuop", {}).get("kernels") or "–"),
        shown(over(own, ms("copy"))),
        shown(over(own, ms("copy of the input"))),
        shown(hand and hand[1]),
        shown(over(own, hand and hand[1])),
        shown(over(contracted, any_hand and any_hand[1])),
        peer_shown(result, peer),
        shown(over(own, peer and peer[1])),
        verdict(result, "peer") or "–",
        str(found.get("gpuop", {}).get("lines") or "–"),
        str((peer and found[peer[0]].get("lines")) or "–"),
        shown(cold.get("first")),
        shown(cold.get("longest")),
    ]


def page(results: Result, titles: dict[str, str]) -> str:
    """The page of a device, in Markdown."""
    pipelines = results["pipelines"]
    lines = [f"# Pipelines on {results.get('description', 'a device')} ({results['device']})", ""]
    lines += [EXPLAINED, "", *markdown([HEADS, *(row(titles.get(n, n), r) for n, r in pipelines.items())])]
    lines += ["", *summary_of(pipelines), "", f"![each contestant over gpuop]({name_of(results)}.svg)", ""]
    lines += ["## Everyone", "", EVERYONE, ""]
    names = dict.fromkeys(n for r in pipelines.values() for n in r["contestants"])
    body = [[titles.get(name, name), *(cell(r["contestants"].get(n)) for n in names)] for name, r in pipelines.items()]
    lines += markdown([("pipeline", *names), *body])
    missing = [
        f"- {titles.get(n, n)}: {who}: {why}" for n, r in pipelines.items() for who, why in r["left_out"].items()
    ]
    wrong = [
        f"- {titles.get(n, n)}: gpuop beside NumPy: {r['numpy']}"
        for n, r in pipelines.items()
        if r.get("numpy", "equal") != "equal"
    ]
    return "\n".join([*lines, "", *wrong, *missing, ""])


EXPLAINED = """\
Medians of rounds in turns in one process, ± the middle half. What has fewer than five rounds says how many, and has neither won
nor lost; a difference within half the spread of either is a tie. Who `allocates` makes new arrays for results at each run; the
others, gpuop among them, write into those of the last run. `plain`: GPUOP_SCHEDULE=plain; `unfused`: optimize=False without
schedules; `contracted`: precision="contract". A copy moves the bytes that must move, inputs and outputs; `of the input`: a
copy reads and writes as many bytes as the inputs have. `with FMA`: the contracted pipeline over the fastest kernel by hand.
`first s`: from operators to the first result with empty caches, `longest compile s` one kernel's share of it. Photos as they lie:
gpuop is called with interleaved arrays of NumPy, as peers are; `in planes` is the same on memory of the device, in planes."""


EVERYONE = """\
Milliseconds, in brackets the rounds where these are fewer than five; those that could not take part, and why, are below."""


def cell(known: Result | None) -> str:
    """A time in the table of everyone."""
    return "–" if known is None else shown(known["ms"]) + (f" ({known.get('rounds', '?')})" if few(known) else "")


def summary_of(pipelines: dict[str, Result]) -> list[str]:
    """The number of pipelines that are as fast as others, of those that were measured often enough."""
    lines = []
    for kind, limit, what in (
        ("peer", 1.0, "faster than the best peer"),
        ("hand", 1.15, "within 1.15 of the kernel by hand"),
    ):
        verdicts = {name: said for name, r in pipelines.items() if (said := verdict(r, kind, limit))}
        counted = {name: said for name, said in verdicts.items() if said in ("won", "tie", "lost")}
        names = {said: [n for n, each in counted.items() if each == said] for said in ("won", "tie", "lost")}
        ratios = {n: over(pipelines[n]["contestants"]["gpuop"]["ms"], _ms(pipelines[n], kind)) for n in counted}
        line = f"{len(names['won'])} of {len(counted)} pipelines are {what}"
        for said, them in (("tie", "within the spread"), ("lost", "slower")):
            if names[said]:
                line += f"; {them}: " + ", ".join(f"{n} {shown(ratios[n])}" for n in names[said])
        rest = [name for name in verdicts if name not in counted]
        lines.append(line + "." + (f" Not counted, with fewer than {FEW} rounds: {', '.join(rest)}." if rest else ""))
    return [lines[0], "", lines[1]]


def _ms(result: Result, kind: str) -> float | None:
    other = best(result, kind, exact=True)
    return other and other[1]


def markdown(rows: list[Any]) -> list[str]:
    head, *body = ["| " + " | ".join(r) + " |" for r in rows]
    return [head, "|" + " --- |" * len(rows[0]), *body]


def name_of(results: Result) -> str:
    return f"pipelines-{results['device'].replace(':', '')}"


def main() -> None:
    from .catalogue import CATALOGUE
    from .picture import picture

    files = [Path(a) for a in sys.argv[1:]] or sorted(RESULTS.glob("pipelines-*.json"))
    devices: dict[str, Result] = {}
    for file in files:
        results = json.loads(file.read_text(encoding="utf-8"))
        known = devices.setdefault(results["device"], {"pipelines": {}})
        known |= {**results, "pipelines": known["pipelines"] | results["pipelines"]}
    titles = {name: pipeline.title for name, pipeline in CATALOGUE.items()}
    for results in devices.values():
        results["pipelines"] = {n: results["pipelines"][n] for n in CATALOGUE if n in results["pipelines"]}
        path = files[0].parent / name_of(results)
        path.with_suffix(".md").write_text(page(results, titles), encoding="utf-8")
        path.with_suffix(".svg").write_text(picture(results, titles), encoding="utf-8")
        print(f"written: {path}.md and .svg")


if __name__ == "__main__":
    main()
