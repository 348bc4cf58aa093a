"""`gpuop tune`: measures, and does what is to be done with files of what was measured."""

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
    """Measure what a function gives, and store what was the fastest."""
    with use_device(device) if device is not None else nullcontext():
        _, _, results = applied(where, types)
        fields = results if isinstance(results, tuple) else (results,)
        print(tune(*fields, seconds=seconds, progress=print))


def show(tried: bool) -> None:
    """Print what was measured to be the fastest.

    Args:
        tried: print what the others took too.
    """
    for entry in _existing(config.tune_store).entries():
        print(f"{entry.what} {told(entry)}")
        if tried:
            print(*(f"    {line}" for line in entry.tried.splitlines()), sep="\n")


def merge(files: Sequence[str]) -> None:
    """Take over what other files have; of what both have, what was measured later."""
    found = [(file, _existing(Path(file)).entries()) for file in files]
    into = TuneStore(config.tune_store)
    for file, entries in found:
        print(f"{file}: {into.put(entries)} of {len(entries)} entries are new in {into.path}")


def export(output: str | None) -> None:
    """Write, as JSON, tables of records for `_target.choose`, by operator and types: of several devices of a target, the latest."""
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
    """The entry of a table."""
    place = entry.place
    return f"{place.backend}:sm_{place.architecture}" if place.architecture else place.backend


def _record(choice: str) -> dict[str, Any]:
    """The parameters of a choice; those that are no literals as they are written."""
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
