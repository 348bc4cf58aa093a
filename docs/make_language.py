"""Makes docs/reference/language.md: every name of kernel bodies, what it does, and the test that shows it.

python docs/make_language.py
"""

from __future__ import annotations

import ast
import inspect
import math
import re
from functools import cache
from pathlib import Path

import numpy as np

from gpuop import dsl
from gpuop.dsl.builtins import functions
from gpuop.ir.borders import WORDS
from gpuop.ir.types import DTYPES

ROOT = Path(__file__).parent.parent
TESTS = ROOT / "tests"
GROUPS = {  # of functions: title, and the tests that go through all of them
    "integer": ("Integer functions", "test_integers.py"),
    "math": ("Math functions", "test_functions.py"),
    "common": ("Common functions", "test_functions.py"),
    "geometric": ("Geometric functions", "test_geometry.py"),
    "relational": ("Relational functions", "test_relational.py"),
    "complex": ("Functions of complex numbers", "test_complex.py"),
    "random": ("Random numbers", "test_random.py"),
}
SECTIONS = {
    "Reading and writing": "_readTensor _readTensorElement _sampleTensor _writeTensor _writeTensorElement",
    "Blocks": "_if _elseif _else _for _window _while _forEachTensorElement _break _continue _return",
    "Targets": "_target _codegenIf _codegenElseif _codegenElse",
    "Conditions": "_and _or _not _where _switch",
    "Sums and orders": "_sum _sort",
    "Limits": "_lowest _highest",
    "Variables of any type": "_var _tensorVar _tensorArray _tensorElementVar _tensorElementArray _vector _convert _constantArray",
    "Types and sizes": "GPUExpression GPUVariable GPUArrayVariable isBigTensor",
    "Indices": "_index _ravel _unravel _dim",
    "Work-groups": "_localThreads _globalThreads _local _tile _volatile _syncThreadsLocal _syncThreadsGlobal",
    "Collective operations": "_reduceGroup _scanGroup _anyGroup _allGroup _countGroup _ballotGroup _broadcastGroup _selectGroup "
    "_shuffleGroup _shuffleGroupUp _shuffleGroupDown _shuffleGroupXor",
    "Atomic functions": "_pointerTo _atomic_add _atomic_sub _atomic_inc _atomic_dec _atomic_xchg _atomic_cmpxchg _atomic_compxchg "
    "_atomic_min _atomic_max _atomic_and _atomic_or _atomic_xor",
    "Finding mistakes": "_print _assert",
}
TABLE_DRIVEN = "test_atomics.py"  # goes through all atomic functions by name
CONSTANTS = {
    "_layer _row _column": "this thread's point; 0 along an axis that the thread grid does not have",
    "_layers _rows _columns": "the extents of the thread grid, or 1",
    "_localLayer _localRow _localColumn": "the thread's place in its work-group",
    "_localLayers _localRows _localColumns": "the extents of a work-group; they may be dimensions of arrays",
    "_groupLayer _groupRow _groupColumn": "the place of the work-group among the work-groups",
    "_groupLayers _groupRows _groupColumns": "how many work-groups there are; they may be dimensions of arrays",
    "_tensorElement": "the element of the innermost `_forEachTensorElement`, else of the thread, else 0",
    "_tensorElements": "the number of elements of that tensor",
    " ".join(f"_out{k}" for k in range(10)): "the outputs",
}
FAMILIES = (
    ("variable, zero or `init`", "_{}Var", "test_types.py"),
    ("array, zeroed (but not in `_local`), 1 to 3 dimensions", "_{}Array", "test_types.py"),
    ("vector, from scalars and vectors side by side", "_{}", "test_values.py"),
    ("conversion: integers truncate and saturate, NaN gives 0", "_convert_{}", "test_conversions.py"),
    ("reinterpretation of the same bits", "_as_{}", "test_conversions.py"),
)
OPERATORS = (
    (
        "`+ - * / % // **`, `-x`, `abs(x)`",
        (
            "of C's types: `/` and `%` of integers truncate, `//` floors: `-7 / 2` is -3, `-7 % 2` is -1, `-7 // 2` is -4; "
            "integers of 8 and 16 bits stay such and wrap around, which checked execution reports"
        ),
        "test_arithmetic.py",
    ),
    ("`0 + x`, `x - 0`, `0 * x`", "of an integer 0: x, and 0, without an operation", "test_zeros.py"),
    ("`< <= > >= == !=`", "bool, or a vector of bools", "test_arithmetic.py"),
    ("`& \\| ^ ~ << >>`", "of integers and bools; a shift counts modulo the width", "test_arithmetic.py"),
    (
        "`v @= e`, `v += e` …, `v.x = e`, `a[i, j] = e`",
        "assignment (Cog's `:=`), which converts as writing does",
        "test_values.py",
    ),
    ("`v.x` … `v.wzyx`, `v[0]`, `x, y = v`", "components and every swizzle of 1 to 4 letters", "test_values.py"),
)


@cache
def uses() -> dict[str, str]:
    """The first test that uses a name, itself or through a function beside it: `file::test`, conformance tests first."""
    found: dict[str, str] = {}
    for file in [*sorted((TESTS / "conformance").glob("test_*.py")), *sorted(TESTS.rglob("test_*.py"))]:
        functions = {f.name: f for f in ast.parse(file.read_text()).body if isinstance(f, ast.FunctionDef)}
        names = {key: {n.id for n in ast.walk(f) if isinstance(n, ast.Name)} for key, f in functions.items()}
        for test in (key for key in functions if key.startswith("test_")):
            for name in names[test].union(*(names[helper] for helper in names[test] & set(functions))):
                found.setdefault(name, f"{file.relative_to(TESTS)}::{test}")
    return found


def link(place: str) -> str:
    file, _, test = place.partition("::")
    return f"[{test or Path(file).stem}](../../tests/{file if '/' in file else 'conformance/' + file})"


def summary(function: object) -> str:
    text = " ".join((inspect.getdoc(function) or "").split("\n\n")[0].split())
    return text.replace("|", "\\|")


def bound(entry: functions.Entry) -> str:
    shown = [("open" if math.isinf(u) else f"{u:g}" if u else "exact") for u in (entry.ulp, entry.double)]
    return shown[0] if shown[0] == shown[1] else " / ".join(shown)


def arity(entry: functions.Entry) -> str:
    several = (
        " or more" if entry.name[1:] in functions.SEVERAL else ", or 2" if entry.name[1:] in functions.OF_LISTS else ""
    )
    return f"{entry.arity}{several}"


def borders() -> list[str]:
    lines = ["", "## Borders", *table("`border=`", "what is read outside", "around the points a b c d", "test")]
    rows = ((word, row.doc, picture(word), link("test_borders.py")) for word, row in WORDS.items())
    each = (
        'A tuple has a border for each dimension: `border=("clamp", "wrap")`. Extremes that pass over what is outside read '
        "`border=-math.inf` for a maximum, and `border=math.inf` for a minimum, which are the ends of integers too."
    )
    number = (
        "A number is one of the field's dtype: whole of integers, 0 to 1 of unorm8, and of floats and unorm8 the nearest that they "
        "hold, as written values are (0.5 of unorm8 is 128/255); any other is refused. So are `default=` and `fill_value=`."
    )
    wide = "Coordinates are int: wider ones are brought into int's range first, and then into the field."
    return [*lines, *(f'| `"{word}"` | {" | ".join(rest)} |' for word, *rest in rows), "", each, "", number, "", wide]


def picture(word: str) -> str:
    """A picture of the reads of a field of four points, and three steps around it."""
    row, letters = WORDS[word], "abcd"
    at = np.arange(-3, len(letters) + 3)
    shown = [letters[k] for k in row.numpy(at, len(letters))]
    for n in np.flatnonzero((at < 0) | (at >= len(letters))):
        shown[n] = "0" if row.filled else "?" if word == "unchecked" else shown[n]
    return f"`{' '.join(shown[:3])} | {' '.join(shown[3:-3])} | {' '.join(shown[-3:])}`".replace("|", "\\|")


def table(*heads: str) -> list[str]:
    return ["", f"| {' | '.join(heads)} |", f"|{' --- |' * len(heads)}"]


def page() -> str:
    lines = [(Path(__file__).parent / "reference" / "language.head.md").read_text().rstrip()]
    for title, names in SECTIONS.items():
        lines += ["", f"## {title}", *table("name", "", "test")]
        lines += [
            f"| `{n}` | {summary(getattr(dsl, n))} | {link(uses().get(n, TABLE_DRIVEN))} |" for n in names.split()
        ]
        lines += borders() if title == "Reading and writing" else []
    lines += ["", "## Thread constants and outputs", *table("names", "", "test")]
    for names, what in CONSTANTS.items():
        tests = dict.fromkeys(link(uses()[n]) for n in names.split() if n in uses())
        lines.append(f"| {', '.join(f'`{n}`' for n in names.split())} | {what} | {', '.join(list(tests)[:3])} |")
    lines += ["", "## Operators", *table("", "", "tests")]
    lines += [f"| {signs} | {what} | {link(test)} |" for signs, what, test in OPERATORS]
    for group, (title, test) in GROUPS.items():
        lines += ["", f"## {title}", *table("name", "arguments", "", "bound, ULP", "tests")]
        for e in functions.table():
            if e.group == group:
                lines.append(
                    f"| `{e.name}` | {arity(e)} | {e.doc.replace('|', chr(92) + '|')} | {bound(e)} | {link(test)} |"
                )
    lines += ["", "## Types", "", "bool has no vectors, conversions or reinterpretations; convert to it with `!= 0`."]
    for what, pattern, test in FAMILIES:
        names = [pattern.format(d + n) for d in DTYPES for n in ("", "2", "3", "4")]
        shown = ", ".join(f"`{n}`" for n in names if n in dsl.__all__)
        lines += ["", f"**{what[0].upper()}{what[1:]}** ({link(test)}): {shown}"]
    return re.sub(r"[ ]+\n", "\n", "\n".join(lines)) + "\n"


if __name__ == "__main__":
    (ROOT / "docs" / "reference" / "language.md").write_text(page())
