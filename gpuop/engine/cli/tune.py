"""`gpuop tune`: measures choices, and shows, merges and exports stores of measured choices."""

from __future__ import annotations

import ast
import json
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from gpuop.base.config import config
from gpuop.base.errors import GpuopError
from gpuop.engine.cli.targets import applied
from gpuop.engine.tune import told, tune
from gpuop.runtime.devices import use_device
from gpuop.runtime.tuning.store import VARIANT, TunedChoice, TuneStore


def run(where: str, types: Sequence[str], device: str | None, seconds: float | None) -> None:
    """Measure the variants and schedules of a function, and store the fastest."""
    with use_device(device) if device is not None else nullcontext():
        _, _, results = applied(where, types)
        fields = results if isinstance(results, tuple) else (results,)
        print(tune(*fields, seconds=seconds, progress=print))


def show(tried: bool) -> None:
    """Print the fastest choices as measured.

    Args:
        tried: print the times of the other choices too.
    """
    for entry in _existing(config.tune_store).entries():
        print(f"{entry.what} {told(entry)}")
        if tried:
            print(*(f"    {line}" for line in entry.tried.splitlines()), sep="\n")


def merge(files: Sequence[str]) -> None:
    """Merge the entries of other files; of entries that both have, the later one stays."""
    stores = [(file, _existing(Path(file)).entries()) for file in files]
    into = TuneStore(config.tune_store)
    for file, entries in stores:
        print(f"{file}: {into.put(entries)} of {len(entries)} entries are new in {into.path}")


def export(output: str | None) -> None:
    """Write JSON tables of records for `_target.choose`, by operator and types; for several devices of a target, the latest."""
    tables: dict[str, dict[str, dict[str, Any]]] = {}
    for entry in sorted(_existing(config.tune_store).entries(), key=lambda e: e.measured):
        if entry.what == VARIANT:
            tables.setdefault(entry.name, {}).setdefault(entry.types, {})[_key(entry)] = _record(entry.choice)
    text = json.dumps(tables, indent=2, sort_keys=True)
    if output is None:
        print(text)
    else:
        Path(output).write_text(f"{text}\n", encoding="utf-8")


def _key(entry: TunedChoice) -> str:
    """The key of an entry in a table."""
    place = entry.place
    return f"{place.backend}:sm_{place.architecture}" if place.architecture else place.backend


def _record(choice: str) -> dict[str, Any]:
    """The parameters of a choice; those that are no literals as source text."""
    call = ast.parse(f"dict({choice})", mode="eval").body
    assert isinstance(call, ast.Call)
    return {word.arg: _literal(word.value) for word in call.keywords if word.arg is not None}


def _literal(value: ast.expr) -> Any:
    try:
        return ast.literal_eval(value)
    except ValueError:
        return ast.unparse(value)


def _existing(path: Path) -> TuneStore:
    if not path.is_file():
        raise GpuopError(f"there is no store of tuned choices {path}")
    return TuneStore(path)
