"""Makes gpuop/dsl/__init__.pyi and gpuop/__init__.pyi: names for type checkers and editors, which do not run what makes them.

python docs/make_stub.py
"""

from __future__ import annotations

import inspect
import math
import re
import runpy
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FunctionType
from typing import Any

import gpuop as gp
from gpuop.dsl import vocabulary as dsl
from gpuop.dsl.builtins import atomics, functions
from gpuop.dsl.recorder.value import Value

STUB = Path(dsl.__file__).with_name("__init__.pyi")
PACKAGE_STUB = Path(str(gp.__file__)).with_suffix(".pyi")
HEAD = '''"""The vocabulary of kernel bodies, for type checkers and editors: made by docs/make_stub.py."""

from __future__ import annotations

'''
PAIRS = ("_lgamma_r", "_remquo")  # functions that give two values
LETTERS = "xyz"
PAGE = runpy.run_path(str(Path(__file__).with_name("make_language.py")))  # what it says of names that have no docstring


def bound(entry: functions.Entry) -> str:
    """The message of an editor for an error of a function."""
    shown = ["not bounded" if math.isinf(ulp) else f"{ulp:g} ULP" for ulp in (entry.ulp, entry.double)]
    return f" Error of float: {shown[0]}, of double: {shown[1]}." if entry.ulp or entry.double else ""


def builtin(entry: functions.Entry) -> str:
    """A function of the table: its arguments are counted, and have no names."""
    parameters = ", ".join(f"{letter}: Operand" for letter in LETTERS[: entry.arity]) + ", /"
    if entry.name[1:] in (*functions.SEVERAL, *functions.OF_LISTS):
        parameters = "*values: Operand"
    result = "tuple[Value, Value]" if entry.name in PAIRS else "Value"
    doc = (dsl.NAMES[entry.name].__doc__ or "") + bound(entry)
    return f"def {entry.name}({parameters}) -> {result}:\n    {doc!r}\n"


def atomic(name: str) -> str:
    """An atomic function, with as many operands as it takes."""
    arity = atomics.FUNCTIONS[name.removeprefix("_atomic_")][1]
    operands = "".join(f", {operand}: Operand" for operand in ("compare", "x")[2 - arity :])
    return f"def {name}(pointer: Pointer{operands}, /) -> Value:\n    {inspect.getdoc(dsl.NAMES[name])!r}\n"


def generated(name: str, value: Callable[..., Any]) -> str:
    """A function of a family, which has its signature from its maker."""
    signature = re.sub(r"'(\w+)'", r"\1", str(inspect.signature(value)))
    return f"def {name}{signature}:\n    {inspect.getdoc(value)!r}\n"


def variable(name: str, value: object) -> str:
    """A thread constant, an output or the target, with its sentence: a position is a value wherever it is used."""
    told = next((what for names, what in PAGE["CONSTANTS"].items() if name in names.split()), None)
    shown = told[0].upper() + told[1:] + "." if told else inspect.getdoc(value)
    return f"{name}: {'Value' if isinstance(value, Value) else type(value).__name__}\n{shown!r}\n"


def declarations() -> Iterator[tuple[str, str]]:
    """Every name with its line of import, or its declaration."""
    entries = {entry.name: entry for entry in functions.table()}
    for name in dsl.__all__:
        value = dsl.NAMES[name]
        if name in dsl.OF_THE_GUIDE:
            yield name, f"from {value.__module__} import {value.__name__} as {name}\n"
            continue
        if name in entries:
            yield name, builtin(entries[name])
        elif _is_defined(value, name):
            yield name, f"from {value.__module__} import {name} as {name}\n"
        elif name.startswith("_atomic_"):
            yield name, atomic(name)
        elif isinstance(value, FunctionType):
            yield name, generated(name, value)
        else:
            yield name, variable(name, value)


def stub() -> str:
    lines = dict(declarations())
    imports = [line for line in lines.values() if line.startswith("from ")]
    own = [line for line in lines.values() if not line.startswith("from ")]
    used = set(re.findall(r"\b[A-Z]\w+", " ".join(re.sub(r"\n *['\"].*", "", line) for line in own)))
    for module in [*sys.modules.values()]:
        for name in sorted(used):
            if module.__name__.startswith("gpuop.dsl") and name in vars(module) and _defined(module, name):
                imports.append(f"from {module.__name__} import {name} as {name}\n")
                used.discard(name)
    imports += ["from typing import Any\n"] if "Any" in used else []
    names = "".join(f'    "{name}",\n' for name in dsl.__all__)
    return HEAD + "".join(sorted(imports)) + f"\n__all__ = [\n{names}]\n\n" + "".join(own)


def package_stub() -> str:
    """Names and modules of gpuop, which it loads when they are first used."""
    imports = [f"from gpuop import {name} as {name}\n" for name in gp.MODULES]
    for name, place in gp.NAMES.items():
        module, _, own = place.rpartition(".")
        imports.append(f"from {module} import {own} as {name}\n")
    names = "".join(f'    "{name}",\n' for name in gp.__all__)
    facts = "__version__: str\nMODULES: tuple[str, ...]\nNAMES: dict[str, str]\n"
    return f'"""{inspect.getdoc(gp)}"""\n\n' + "".join(sorted(imports)) + f"\n{facts}__all__ = [\n{names}]\n"


def _is_defined(value: Any, name: str) -> bool:
    """Return whether a statement of a module of words defines it."""
    if not isinstance(value, FunctionType | type) or value.__module__ == dsl.__package__:
        return False
    return getattr(sys.modules[value.__module__], name, None) is value


def _defined(module: Any, name: str) -> bool:
    return getattr(vars(module)[name], "__module__", module.__name__) == module.__name__ or name == "Operand"


if __name__ == "__main__":
    STUB.write_text(stub())
    PACKAGE_STUB.write_text(package_stub())
