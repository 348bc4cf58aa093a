"""The store of measured choices, an SQLite file: any number of processes read and write it, and each write is atomic.

The file is one, without a log beside it, so that it can be copied; it may lie in a read-only folder.
"""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import astuple
from pathlib import Path
from urllib.parse import quote

from gpuop.base.cache.atomic_files import private_folder
from gpuop.base.errors import GpuopError
from gpuop.base.lru import BoundedCache
from gpuop.base.records import dataclass
from gpuop.ir.target import Target
from gpuop.runtime.base.backend import Backend

VERSION = 1
PATIENCE = 30.0  # seconds to wait for other writers
VARIANT, SCHEDULE = "variant", "schedule"
KEY = ("what", "kernel", "backend", "architecture", "kind", "device", "driver")
REST = ("name", "types", "choice", "seconds", "tried", "measured")
MAKE = f"""CREATE TABLE IF NOT EXISTS tuned (
    what TEXT, kernel TEXT, backend TEXT, architecture INTEGER, kind TEXT, device TEXT, driver TEXT,
    name TEXT, types TEXT, choice TEXT, seconds REAL, tried TEXT, measured REAL, PRIMARY KEY ({", ".join(KEY)}))"""
PUT = f"""INSERT INTO tuned VALUES ({", ".join("?" * len(KEY + REST))}) ON CONFLICT DO UPDATE SET
    {", ".join(f"{name} = excluded.{name}" for name in REST)} WHERE excluded.measured >= measured"""


@dataclass(frozen=True)
class DeviceSignature:
    """A device, or the devices of a target.

    Attributes:
        kind: "gpu", "cpu" or "reference".
        device, driver: empty for a target.
    """

    backend: str
    architecture: int
    kind: str
    device: str = ""
    driver: str = ""

    def distance(self, other: DeviceSignature) -> tuple[int, int] | None:
        """Return the distance of a device with choices: (0, 0) for this one; None if its choices do not apply to this one."""
        if self.kind != other.kind:
            return None
        same = (self.backend == other.backend, self.device == other.device, self.driver == other.driver)
        rank = 0 if all(same) else 1 if all(same[:2]) else 2 if same[1] else 3 if same[0] else 4
        return rank, abs(self.architecture - other.architecture)

    def __str__(self) -> str:
        name = f"{self.backend}:sm_{self.architecture}" if self.architecture else self.backend
        return f"{name} {self.device}".rstrip()


def signature_of(backend: Backend) -> DeviceSignature:
    ahead = target_signature(backend.target)
    return DeviceSignature(ahead.backend, ahead.architecture, ahead.kind, backend.model, backend.identity)


def target_signature(target: Target) -> DeviceSignature:
    """Return the signature of the devices of a target."""
    kind = "reference" if target.backend == "reference" else target.device
    return DeviceSignature(target.backend, target.architecture, kind)


@dataclass(frozen=True)
class TunedChoice:
    """A choice that was measured to be the fastest.

    Attributes:
        what: VARIANT, for an operator's parameters, or SCHEDULE, for a kernel's.
        kernel: a digest of the recorded kernel.
        name, types: the operator's name, for people; the types of its inputs.
        choice: its text.
        seconds: its time.
        tried: all choices with their times, or the reasons against them, a line for each.
        measured: the time of the measurement, in seconds since 1970.
    """

    what: str
    kernel: str
    place: DeviceSignature
    name: str
    types: str
    choice: str
    seconds: float
    tried: str
    measured: float

    @property
    def row(self) -> tuple[object, ...]:
        rest = (self.name, self.types, self.choice, self.seconds, self.tried, self.measured)
        return (self.what, self.kernel, *astuple(self.place), *rest)


Signature = tuple[int, ...]
_read: BoundedCache[Path, tuple[Signature, dict[tuple[str, str], list[TunedChoice]]]] = BoundedCache(8)
writes = [0]  # number of writes of this process, by which older plans are known to be outdated


class TuneStore:
    """A file of entries; without a file there are none.

    Raises:
        GpuopError: from each method, if the file is not such a store, or cannot be used.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def entries(self) -> list[TunedChoice]:
        """All entries, in the order of their names."""
        all_entries = (entry for entries in self._by_kernel().values() for entry in entries)
        return sorted(all_entries, key=lambda e: (e.name, e.types, e.what, str(e.place), e.measured))

    def of(self, what: str, kernel: str, place: DeviceSignature) -> list[tuple[tuple[int, int], TunedChoice]]:
        """Return the entries of a kernel for a device, from the nearest device to the farthest, with the distances."""
        entries = self._by_kernel().get((what, kernel), ())
        near = ((place.distance(entry.place), entry) for entry in entries)
        distances = [(distance, entry) for distance, entry in near if distance is not None]
        return sorted(distances, key=lambda each: (each[0], -each[1].measured))

    def has(self, what: str) -> bool:
        return any(kind == what for kind, _ in self._by_kernel())

    def put(self, entries: Iterable[TunedChoice]) -> int:
        """Store entries, in one transaction; later measurements stay. Return the number of new ones."""
        rows = [entry.row for entry in entries]
        with self._open(writing=True) as database:
            before = database.total_changes
            database.executemany(PUT, rows)
            changed = database.total_changes - before
        writes[0] += 1
        return changed

    # --- the file -----------------------------------------------------------------------------------------------

    def _by_kernel(self) -> dict[tuple[str, str], list[TunedChoice]]:
        try:
            facts = self.path.stat()
        except (FileNotFoundError, NotADirectoryError):
            return {}
        except OSError as failed:
            raise GpuopError(f"the store of tuned choices {self.path}: {failed.strerror}") from None
        signature = (facts.st_ino, facts.st_size, facts.st_mtime_ns)
        cached = _read.get(self.path)
        if cached is None or cached[0] != signature:
            result: dict[tuple[str, str], list[TunedChoice]] = {}
            for entry in self._load():
                result.setdefault((entry.what, entry.kernel), []).append(entry)
            _read[self.path] = cached = signature, result
        return cached[1]

    def _load(self) -> list[TunedChoice]:
        with self._open(writing=False) as database:
            if not database.execute("SELECT 1 FROM sqlite_master WHERE name = 'tuned'").fetchall():
                return []
            rows = database.execute(f"SELECT {', '.join(KEY + REST)} FROM tuned").fetchall()
        return [entry for entry in map(_entry, rows) if entry is not None]

    @contextmanager
    def _open(self, writing: bool) -> Iterator[sqlite3.Connection]:
        try:
            if writing:
                private_folder(self.path.parent)
            where = f"file:{quote(str(self.path))}?mode={'rwc' if writing else 'rw'}"
            database = sqlite3.connect(where, PATIENCE, isolation_level=None, uri=True)
            try:
                with _transaction(database, writing):
                    yield database
            finally:
                database.close()
        except (sqlite3.Error, OSError) as failed:
            raise GpuopError(f"the store of tuned choices {self.path}: {failed}") from None


@contextmanager
def _transaction(database: sqlite3.Connection, writing: bool) -> Iterator[None]:
    """A transaction: if the process is killed, SQLite reverts it when the file is next opened."""
    database.execute("BEGIN IMMEDIATE" if writing else "BEGIN")
    try:
        (version,) = database.execute("PRAGMA user_version").fetchone()
        if version not in (0, VERSION):
            raise sqlite3.DatabaseError(f"it is of version {version}, and this gpuop knows {VERSION}")
        if writing:
            database.execute(MAKE)
            database.execute(f"PRAGMA user_version = {VERSION}")
        yield
        database.execute("COMMIT")
    except BaseException:
        database.rollback()
        raise


def _entry(row: tuple[object, ...]) -> TunedChoice | None:
    """Return the entry of a row; None for a row that is never stored so."""
    what, kernel, backend, architecture, kind, device, driver, name, types, choice, seconds, tried, measured = row
    texts = (what, kernel, backend, kind, device, driver, name, types, choice, tried)
    if not all(isinstance(text, str) for text in texts) or not isinstance(architecture, int):
        return None
    if not isinstance(seconds, float) or not isinstance(measured, float) or not math.isfinite(seconds + measured):
        return None
    place = DeviceSignature(str(backend), architecture, str(kind), str(device), str(driver))
    facts = (str(name), str(types), str(choice), seconds, str(tried), measured)
    return TunedChoice(str(what), str(kernel), place, *facts)
