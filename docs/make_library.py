"""Makes docs/reference/library-table.md: a row for each function, from catalogue, plans and measurements of benchmarks/library.

python docs/make_library.py
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.library.catalogue import ROWS  # noqa: E402 - of the checkout, which is no package
from benchmarks.library.row import Row  # noqa: E402

PAGE = ROOT / "docs" / "reference" / "library-table.md"
RESULTS = ROOT / "benchmarks" / "results"
MODULES = {
    "ndimage": ("gpuop.ndimage", "SciPy"),
    "linalg": ("gpuop.linalg", "NumPy"),
    "fft": ("gpuop.fft", "SciPy"),
    "random": ("gpuop.random", "NumPy"),
    "numpy": ("NumPy's functions on fields", "NumPy"),
}
GROUPS = {
    "bool": ("bool",),
    "integers": tuple(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)),
    "floats": ("float16", "float32", "float64"),
    "complex64": ("complex64",),
}
NO_TIME = 0.02  # milliseconds
NO_PASS = 1.01  # of the bytes that a function moves
NEARLY = 0.9  # of a reference's time
OTHERS = ("scikit-image", "OpenCV", "CuPy", "cuCIM", "PyTorch")
HEAD = """# The library's functions, one by one

{count} functions: what they take, the kernels that they are, how far their results are from the reference's, and how long they
take. The page is made by `docs/make_library.py` of the catalogue in `benchmarks/library`, of plans
(`python -m benchmarks.library.plans`) and of measurements (`python -m benchmarks.library`). [ndimage](ndimage.md),
[linalg](linalg.md), [fft](fft.md) and [random](random.md) describe the differences from SciPy and NumPy;
[numpy.md](numpy.md) lists the arguments of NumPy functions.

**The call** is what is measured. With SciPy's or NumPy's modules in the place of gpuop's, and CuPy's, it is theirs. `image`,
`other`, `signed` and `holes` are float32, `whole`, `more`, `numbers` and `labels` int32, `mask` and `blobs` bool, `waves`,
`spectrum` and `line_spectra` complex64, of the size below; "of a half" is the share of it along each axis. `row` has as many
numbers as an image; `matrices` are 4×4, `vectors` of 3.

**Dtypes** are those that a field may have as the call's first argument: "real" is all but complex64. **Modes** are SciPy's.
**Kernels** are those of a graph of the call at 2048², for a CPU and for CUDA, as `explain` counts them; "+1" is one more where an
operator of the user's stands before it (`f * 2`) and one behind it (`+ 1`), each of which would be a kernel by itself; "(+1)" is
one of few values, which is no pass over an image. What is evaluated when it is called, as its result depends on values, has no
count. **How** names the methods by which threads share what several of them need, or the kernels where there are several.
**Error** is the greatest difference from the reference, over its greatest magnitude; of integers and truth values the share that
differ.

**Times** are medians in milliseconds with the width of the middle half: gpuop and the others in turns in one process. Functions of
`ndimage`, `linalg` and `fft` get NumPy's arrays, or CuPy's, and give such; the others are steps of a graph, of fields in the
device's memory. SciPy's transforms use all cores. The factor is the reference's time over gpuop's; there is none where the
reference's result is a view of what it gets, or numbers that are known without computing.

{machines}
{summary}
"""


def page() -> str:
    plans = _read("library-plans.json")
    devices = [found for name in ("library-opencl0.json", "library-cuda0.json") if (found := _read(name))]
    machines = "\n".join(
        f"{device['device']}: {device['description']}, {device['size']}²{'; ' + device['note'] if device['note'] else ''}.\n"
        for device in devices
    )
    summary = "\n".join([_no_pass(plans), *(_faster(device) for device in devices)])
    lines = [HEAD.format(count=len(ROWS), machines=machines, summary=summary)]
    for module, (title, reference) in MODULES.items():
        rows = [row for row in ROWS.values() if row.module == module]
        lines += [f"\n## {title}\n", _what(rows, plans, devices), _times(rows, devices, reference)]
    return "\n".join(lines)


def _read(name: str) -> Any:
    path = RESULTS / name
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def _no_pass(plans: Any) -> str:
    counted = [known for known in plans.values() if "cpu" in known]
    none, few = (
        {t: sum(test(known[t]) for known in counted) for t in ("cpu", "cuda")} for test in (_no_kernel, _no_traffic)
    )
    return (
        f"**No extra pass.** Of {len(counted)} functions that fields are planned with, the user's operators before and behind move "
        f"no memory, or a hundredth more, for {few['cpu']} on a CPU and for {few['cuda']} on CUDA; for {none['cpu']} and "
        f"{none['cuda']} of these without a kernel more, for the others with one of the few values that a reduction gives.\n"
    )


def _no_kernel(counts: Any) -> bool:
    return not _more(counts)


def _no_traffic(counts: Any) -> bool:
    return _no_kernel(counts) or counts["moved"] <= NO_PASS


def _faster(device: Any) -> str:
    """The functions that are slower than the reference, and their factors."""
    factors = {key: factor for key, known in device["functions"].items() if (factor := _factor(known))}
    slower = sorted((factor, key) for key, factor in factors.items() if factor < NEARLY)
    listed = ", ".join(f"`{key}` ({factor:.2f})" for factor, key in slower)
    return (
        f"**On {device['device']}** {sum(factor >= 1 for factor in factors.values())} of {len(factors)} are faster than "
        f"{_first(device)}{f'; these take more than a tenth longer: {listed}' if slower else ''}.{_beside_others(device)}\n"
    )


def _beside_others(device: Any) -> str:
    """At how many functions gpuop is as fast as each of the libraries that have only some."""
    first = "CuPy" if device["device"].startswith("cuda") else ""
    counts = []
    for other in OTHERS:
        pairs = [
            (ms["gpuop"][0], ms[other][0]) for known in device["functions"].values() if other in (ms := known["ms"])
        ]
        if pairs and other != first:
            counts.append(f"{other}'s at {sum(ours <= theirs for ours, theirs in pairs)} of {len(pairs)}")
    return f" It is as fast as {', '.join(counts)} functions that both have." if counts else ""


def _first(device: Any) -> str:
    return "CuPy's" if device["device"].startswith("cuda") else "SciPy's and NumPy's"


def _factor(known: Any) -> float | None:
    """None where the reference computes nothing: its result is a view, or made in no time."""
    ms = known["ms"]
    reference = next((name for name in ("SciPy", "NumPy", "CuPy") if name in ms), None)
    computed = reference and not known.get("view") and ms[reference][0] > NO_TIME
    return ms[reference][0] / ms["gpuop"][0] if computed else None


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|", *(f"| {' | '.join(row)} |" for row in rows)]
    return "\n".join(lines) + "\n"


def _what(rows: list[Row], plans: Any, devices: Any) -> str:
    """The arguments of the functions, and their parts."""
    with_modes = any(plans[row.key]["modes"] for row in rows)
    head = ["call", "dtypes", *(["modes"] if with_modes else []), "CPU kernels", "CUDA", "how", "error"]

    def cells(row: Row) -> list[str]:
        known = plans[row.key]
        kept = [_modes(known["modes"])] if with_modes else []
        return [
            _call(row),
            _dtypes(known["dtypes"]),
            *kept,
            _count(known, "cpu"),
            _count(known, "cuda"),
            _how(known),
            _error(row, devices),
        ]

    return _table(head, map(cells, rows))


def _call(row: Row) -> str:
    share = {1: "", 2: " of a half", 4: " of a quarter", 8: " of an eighth", 16: " of a sixteenth"}[row.part]
    return f"`{row.call.replace('|', chr(92) + '|')}`{share}"


def _dtypes(dtypes: list[str]) -> str:
    """The dtypes by their kinds."""
    whole = [kind for kind, members in GROUPS.items() if set(members) <= set(dtypes)]
    if len(whole) == len(GROUPS):
        return "all"
    if whole == ["bool", "integers", "floats"]:
        return "real"
    single = [dtype for dtype in dtypes if not any(dtype in GROUPS[kind] for kind in whole)]
    return ", ".join([*whole, *single]) or "–"


def _modes(modes: list[str]) -> str:
    return "–" if not modes else "all" if len(modes) == 8 else ", ".join(modes)


def _count(known: Any, target: str) -> str:
    if target not in known:
        return "–"
    counts = known[target]
    more = f"+{_more(counts)}" if _more(counts) else ""
    return f"{counts['alone']} {f'({more})' if more and _no_traffic(counts) else more}".strip()


def _more(counts: Any) -> int:
    """The number of kernels that operators of the user add; one if there would be none without them."""
    return max(counts["between"] - max(counts["alone"], 1), 0)


def _how(known: Any) -> str:
    told = {name: _kernels(known[name]["kernels"]) for name in ("cpu", "cuda") if name in known}
    if not any(told.values()):
        return "–"
    return (
        told["cpu"]
        if told["cpu"] == told["cuda"]
        else f"{told['cpu'] or 'a thread a point'}; CUDA: {told['cuda'] or 'a thread a point'}"
    )


def _kernels(kernels: list[list[str]]) -> str:
    """The method of one kernel, or the names of several with their methods."""
    if len(kernels) <= 1:
        return "".join(method for _, method in kernels)
    return " → ".join(f"{name.strip('_')}{f' ({method})' if method else ''}" for name, method in kernels)


def _error(row: Row, devices: Any) -> str:
    for device in devices:
        error = device["functions"].get(row.key, {}).get("error")
        if error is not None:
            return "equal" if error == 0 else f"{error:.0e}"
    return "–"


def _times(rows: list[Row], devices: Any, reference: str) -> str:
    """The times of the functions on each device."""
    if not devices:
        return ""
    columns = [(device, names) for device in devices if (names := _libraries(rows, device, reference))]
    head = ["function"]
    for device, names in columns:
        head += [f"{device['device']}: gpuop", *names, "factor"]

    def cells(row: Row) -> list[str]:
        found = [f"`{row.name}`" + (f", {row.method}" if row.method else "")]
        for device, names in columns:
            known = device["functions"].get(row.key, {"ms": {}})
            ms, factor = known["ms"], _factor(known)
            found += [_ms(ms, "gpuop", True), *(_ms(ms, name) for name in names), f"{factor:.2g}" if factor else "–"]
        return found

    return _table(head, map(cells, rows))


def _libraries(rows: list[Row], device: Any, reference: str) -> list[str]:
    """The libraries that have a time for any of the functions."""
    measured = {name for row in rows for name in device["functions"].get(row.key, {}).get("ms", ())}
    return [name for name in (reference, *OTHERS) if name in measured]


def _ms(ms: Any, name: str, spread: bool = False) -> str:
    if name not in ms:
        return "–"
    median, width = ms[name]
    return f"{_short(median)}{f' ± {_short(width)}' if spread else ''}"


def _short(number: float) -> str:
    return f"{number:.0f}" if number >= 100 else f"{number:.2g}" if number < 10 else f"{number:.1f}"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
