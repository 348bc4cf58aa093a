"""`gp.vmap` of the library's functions, those of the catalogue of benchmarks, beside SciPy and NumPy in a loop over entries."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gpuop as gp
from benchmarks.library.catalogue import ROWS
from benchmarks.library.comparing import difference
from benchmarks.library.given import CONSTANTS, Arrays, is_data, tensor_order
from benchmarks.library.libraries import GPUOP, on_cpus
from benchmarks.library.row import Row

SIZE = 24
NEAR = 1e-4  # of the greatest magnitude; of integers and truth values the share that may differ
FREE = ("eigh", "eigvalsh", "svd", "qr")  # whose results are not unique
WITHOUT_REFERENCE = ("random", "rng")
given = Arrays(SIZE)


def names_of(row: Row) -> list[str]:
    return [name for name in row.names() if is_data(name)]


def is_tested(row: Row) -> bool:
    """Return whether it computes fields of fields, and something is compared with the reference."""
    names = {*row.names(), *row.names(row.reference or "0"), row.name}
    return (
        bool(names_of(row)) and not row.eager and row.compared != "" and names.isdisjoint((*FREE, *WITHOUT_REFERENCE))
    )


TESTED = {key: row for key, row in ROWS.items() if is_tested(row)}


def entries(name: str) -> list[np.ndarray]:
    whole = getattr(given, name)
    return [whole, np.ascontiguousarray(np.roll(whole, 3, 0)), np.ascontiguousarray(whole[::-1])]


def of_entry(result: Any, n: int) -> Any:
    """The arrays of an entry, in the containers of a result."""
    if isinstance(result, gp.Field):
        return result.numpy()[n]
    members = [of_entry(member, n) for member in result]
    return type(result)(*members) if hasattr(result, "_fields") else type(result)(members)


@pytest.mark.filterwarnings("ignore:invalid value")  # of SciPy, where an entry lacks a label
@pytest.mark.parametrize("key", TESTED)
def test_functions(device, key):
    row = TESTED[key]
    names = names_of(row)
    others = {n: getattr(given, n) for n in {*row.names(), *row.names(row.reference or "0")} if n in CONSTANTS}

    def mapped(*fields: gp.Field) -> Any:
        return eval(row.call, GPUOP | others | dict(zip(names, fields, strict=True)))

    results = gp.vmap(mapped)(*(gp.Field(np.stack(entries(name)), tensor_order(name)) for name in names))
    scope = next(on_cpus()).modules | others
    for n, arrays in enumerate(zip(*map(entries, names), strict=True)):
        expected = eval(row.reference or row.call, scope | dict(zip(names, arrays, strict=True)))
        ours, theirs = (eval(row.compared, {"np": np, "r": r}) for r in (of_entry(results, n), expected))
        assert difference(ours, theirs) <= NEAR, row.call
