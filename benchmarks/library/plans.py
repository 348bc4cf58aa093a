"""The facts of a function that need no run: dtypes, modes, and kernels for a CPU and for CUDA.

    python -m benchmarks.library.plans [--only WORDS …]

It writes benchmarks/results/library-plans.json, of which docs/make_library.py makes the page.
"""

from __future__ import annotations

import argparse
import inspect
import json
import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

import gpuop as gp
from gpuop.codegen.generate import target_named
from gpuop.engine.evaluate import plan_ahead
from gpuop.fusion.iteration import launches
from gpuop.fusion.report.plan_report import report

from .__main__ import RESULTS
from .catalogue import ROWS
from .given import Arrays, is_data, scope_of, tensor_order
from .libraries import GPUOP
from .row import Row, action, leaves

PAGE = RESULTS / "library-plans.json"
SIZE, SMALL = 2048, 32
TARGETS = {"cpu": "opencl:cpu", "cuda": "cuda"}
DTYPES = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64"
MODES = ("reflect", "grid-mirror", "constant", "grid-constant", "nearest", "mirror", "wrap", "grid-wrap")
KERNELS = 6  # that are named, at most
Around = Callable[[gp.Field], gp.Field]


@cache
def arrays(size: int) -> Arrays:
    return Arrays(size)


def known(row: Row) -> dict[str, Any]:
    """The entry of a function in the file.

    Returns:
        `dtypes` that fields may have, `modes` that it takes of SciPy's, and unless it is evaluated when it is called, by target
        `alone` and `between`: how many kernels it is by itself, and with an operator of the user's on both sides; `moved`: the
        bytes that these read and write, over those that the others do; `kernels`: pairs of their names and the methods that
        share values between threads, "" where each thread reads its own.
    """
    return {"dtypes": dtypes(row), "modes": modes(row), **({} if row.eager else kernels(row))}


def kernels(row: Row) -> dict[str, Any]:
    """The part of it that is of targets."""
    found = {}
    alone, between = _program(row, lambda field: field, lambda field: field), _program(row, _before, _behind)
    for name, target in TARGETS.items():
        plan, wide = (plan_ahead(program, target, None) for program in (alone, between))
        made, more = (report(each, None, target_named(target)) for each in (plan, wide))
        named = {(kernel["name"], (kernel["schedule"] or {}).get("method", "")): None for kernel in made["kernels"]}
        told = [list(each) for each in named][:KERNELS]
        moved = round(more["moved_bytes"] / made["moved_bytes"], 3) if made["moved_bytes"] else 1.0
        found[name] = {"alone": launches(plan), "between": launches(wide), "moved": moved, "kernels": told}
    return found


def read() -> dict[str, Any]:
    return json.loads(PAGE.read_text(encoding="utf-8")) if PAGE.exists() else {}


def _before(field: gp.Field) -> gp.Field:
    if field.dtype == "bool":
        return ~field
    return field * 2 if field.dtype in ("float32", "complex64") else field + 1


def _behind(field: gp.Field) -> gp.Field:
    return ~field if field.dtype == "bool" else field + 1


def _program(row: Row, before: Around, behind: Around) -> Any:
    """The program of a graph at each step: of frames, which change."""
    given = arrays(SIZE)

    def frame(name: str, array: Any) -> gp.Field:
        order = tensor_order(name)
        grid, tensor = (array.shape[: array.ndim - order], array.shape[array.ndim - order :])
        return before(gp.Sensor(gp.FieldType(grid, tensor, str(array.dtype)), lambda: array))

    with gp.ComputeGraph(device="reference") as graph:
        made = action(row.call, GPUOP | scope_of(row.names(), given, frame, lambda a: a))()
        for n, field in enumerate(leaves(made)):
            graph.probe(behind(field), f"result {n}")
    return graph._program()


def dtypes(row: Row) -> list[str]:
    """The dtypes that its first field may have, and with it all others that are float32 in the call."""
    names = [name for name in row.names() if is_data(name)]
    if not names:
        return []
    given = arrays(SMALL)
    varied = {n for n in names if getattr(given, n).dtype == np.float32} | {names[0]}

    def taken(dtype: str) -> bool:
        def field(name: str, array: Any) -> gp.Field:
            small = array % 100 if array.dtype.kind == "i" else array  # which all dtypes hold
            return gp.Field(small.astype(dtype) if name in varied else array, tensor_order(name))

        return _runs(row.call, row, field)

    return [dtype for dtype in DTYPES.split() if taken(dtype)]


def modes(row: Row) -> list[str]:
    """The modes that it takes, of those of SciPy's that have such an argument."""
    function = getattr(gp.ndimage, row.name, None) if row.module == "ndimage" else None
    if function is None or "mode" not in inspect.signature(function).parameters:
        return []
    bare = row.call.replace(", mode='nearest'", "")

    def field(name: str, array: Any) -> gp.Field:
        return gp.Field(array, tensor_order(name))

    return [mode for mode in MODES if _runs(f"{bare[:-1]}, mode={mode!r})", row, field)]


def _runs(code: str, row: Row, field: Callable[[str, Any], gp.Field]) -> bool:
    try:
        with gp.use_device("reference"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            action(code, GPUOP | scope_of(row.names(), arrays(SMALL), field, lambda a: a))()
    except gp.GpuopError:
        return False
    except Exception as error:  # noqa: BLE001 - no such error is to reach users, but it must not end the run
        print(f"{code}: {type(error).__name__}: {error}", flush=True)
        return False
    return True


def write(found: dict[str, Any]) -> None:
    lines = ",\n".join(f"{json.dumps(key)}: {json.dumps(each, ensure_ascii=False)}" for key, each in found.items())
    PAGE.write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--only", nargs="+", default=[""], help="parts of functions' names; what the file has of others stays"
    )
    only = parser.parse_args().only
    found = read()
    for key, row in ROWS.items():
        if key not in found or any(word in key for word in only):
            found[key] = known(row)
            print(key, found[key], flush=True)
            write({key: found[key] for key in ROWS if key in found})


if __name__ == "__main__":
    main()
