"""Makes gpuop/ndimage.pyi, and those of fft, linalg, random and cog: their functions for type checkers and editors.

Of a field they give a field, of an array an array of its library: two overloads say so, with the arguments of the function itself.

python docs/make_library_stubs.py
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from gpuop.dsl.fields import annotations

KINDS = [name for name in vars(annotations) if name[0].isupper() and name not in ("Any", "Literal")]
ROOMS = ("ndimage", "fft", "linalg", "random")
PLAIN = r"(int|float|bool|str|None|Any|Field|tuple\[(Any|Field), \.\.\.\]|Callable\[\.\.\., Any\]|( \| ))+"
PER_AXIS = {  # whose `mode` may be one for each axis
    "gaussian_filter", "gaussian_gradient_magnitude", "gaussian_laplace", "generic_gradient_magnitude", "generic_laplace",
    "laplace", "maximum_filter", "minimum_filter", "prewitt", "sobel", "uniform_filter", "vectorized_filter",
}  # fmt: skip
SEVERAL = {  # which give several fields, or numbers
    "label", "find_objects", "value_indices", "extrema", "eigh", "lstsq", "qr", "slogdet", "svd", "labeled_comprehension", "split",
    "distance_transform_bf", "distance_transform_cdt", "distance_transform_edt", "center_of_mass", "histogram", "maximum", "mean",
    "maximum_position", "median", "minimum", "minimum_position", "standard_deviation", "sum", "sum_labels", "variance",
    "generate_binary_structure", "iterate_structure",
}  # fmt: skip
FIELDS = ("input", "x", "a", "A", "x1")  # first arguments that are fields or arrays
TYPES = {
    **dict.fromkeys(("b", "coordinates", "labels", "markers", "mask", "x2"), "FieldOrArray"),
    **dict.fromkeys(("footprint", "index", "matrix", "structure", "structure1", "structure2", "weights"), "ArrayLike"),
    **dict.fromkeys(("filter_size", "origin", "origin1", "origin2", "radius", "s", "size"), "Wholes"),
    **dict.fromkeys(("offset", "shift", "sigma", "zoom", "rcond", "tol"), "Numbers"),
    **dict.fromkeys(("high", "lam", "loc", "low", "p", "scale"), "FieldOrArray"),
    **dict.fromkeys(("angle", "border_value", "cval", "max", "min", "percentile"), "Number"),
    **dict.fromkeys(("bins", "rank", "n", "num", "seed", "iterations"), "Whole"),
    "axes": "Axes", "axis": "Axis", "dtype": "DType", "key": "Field", "method": "str",
    "mode": "Mode", "norm": "str", "operands": "FieldOrArray",
    "order": "Wholes", "output": "Output", "output_shape": "Wholes", "shape": "Wholes", "subscripts": "str", "UPLO": "str",
}  # fmt: skip


def annotation(room: str, function: str, parameter: inspect.Parameter) -> str:
    """The type of an argument: by its name, else what the function itself has."""
    name, own = parameter.name, str(parameter.annotation).strip("'")
    if own == "bool" or (name == "p" and room == "linalg") or (name == "mode" and room != "ndimage"):
        kind = own
    elif name == "mode" and function in PER_AXIS:
        kind = "Modes"
    else:
        kind = (TYPES.get(name) if room != "cog" else "") or (own if re.fullmatch(PLAIN, own) else "Any")
    takes_none = kind in ("Any", "Axes", "DType", "Output") or "None" in kind
    return f"{kind} | None" if parameter.default is None and not takes_none else kind


def default(value: Any) -> str:
    return repr(value) if value is None or isinstance(value, (bool, int, float, str)) else "..."


def parameters(room: str, function: str, signature: inspect.Signature, first: str) -> str:
    """The arguments, the first one of a type of its own where it says which kind of result there is."""
    shown, star = list[str](), False
    for number, parameter in enumerate(signature.parameters.values()):
        kind = first if number == 0 and first else annotation(room, function, parameter)
        if parameter.kind is parameter.KEYWORD_ONLY and not star:
            shown.append("*")
        star = star or parameter.kind in (parameter.KEYWORD_ONLY, parameter.VAR_POSITIONAL)
        stars = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
        value = f" = {default(parameter.default)}" if parameter.default is not parameter.empty else ""
        shown.append(f"{stars}{parameter.name}: {kind}{value}")
    return ", ".join(shown)


def gives_fields(name: str, signature: inspect.Signature) -> bool:
    """Return whether a function gives one field for one."""
    return next(iter(signature.parameters), "") in FIELDS and name not in SEVERAL


def function(room: str, name: str, value: Any) -> Iterator[str]:
    signature = inspect.signature(value)
    own = str(signature.return_annotation).strip("'")
    result = own if re.fullmatch(PLAIN, own) else "Any"
    if gives_fields(name, signature) and result == "Any":
        for first, made in (("Field", "Field"), ("ArrayLike", "Any")):
            yield f"@overload\ndef {name}({parameters(room, name, signature, first)}) -> {made}: ..."
    else:
        first = "FieldOrArray" if next(iter(signature.parameters)) in FIELDS else ""
        yield f"def {name}({parameters(room, name, signature, first)}) -> {result}: ..."


def stub(module: ModuleType) -> str:
    room = module.__name__.rpartition(".")[2]
    body = "\n".join(
        line for name in module.__all__ if name != "LinAlgError" for line in function(room, name, getattr(module, name))
    )
    words = set(re.findall(r"\w+", body))
    kinds = sorted(words & set(KINDS))
    typing = sorted(words & {"Any", "overload"})
    lines = [f'"""`gpuop.{room}`, for type checkers and editors: made by docs/make_library_stubs.py."""', ""]
    lines += ["from collections.abc import Callable"] * ("Callable" in words) + [
        f"from typing import {', '.join(typing)}",
        "",
    ]
    lines += ["from gpuop.lib.linalg.matrices import LinAlgError as LinAlgError"] * ("LinAlgError" in module.__all__)
    lines += [
        f"from gpuop.dsl.fields.annotations import {', '.join(kinds)}",
        "from gpuop.dsl.fields.field import Field",
        "",
    ]
    return "\n".join(lines) + f"\n{body}\n"


def cog_stub(module: ModuleType) -> str:
    """The stub of `gpuop.cog`: its own functions and borders, and those of NumPy and `gpuop.linalg` under its names."""
    lines = ['"""`gpuop.cog`, for type checkers and editors: made by docs/make_library_stubs.py."""', ""]
    lines += ["from typing import Any", "", "import numpy as np", "from gpuop import linalg", ""]
    renamed = (("np", module.OF_NUMPY), ("linalg", module.OF_LINALG))
    lines += [f"{name} = {source}.{own}" for source, names in renamed for name, own in names.items()]
    own = {name: getattr(module, name) for name in " ".join(module.FUNCTIONS.values()).split()}
    for name, value in sorted(own.items()):
        if isinstance(value, str):
            lines.append(f"{name}: str")
        else:
            signature = inspect.signature(value)
            lines.append(f"def {name}({parameters('cog', name, signature, '')}) -> Any: ...")
    return "\n".join(lines) + "\n"


def stubs() -> Iterator[tuple[Path, str]]:
    """The stub of each module of the library, and what it is to be."""
    cog = import_module("gpuop.cog")
    yield Path(str(cog.__file__)).with_suffix(".pyi"), cog_stub(cog)
    for room in ROOMS:
        module = import_module(f"gpuop.{room}")
        yield Path(str(module.__file__)).with_suffix(".pyi"), stub(module)


if __name__ == "__main__":
    for path, text in stubs():
        path.write_text(text, encoding="utf-8")
