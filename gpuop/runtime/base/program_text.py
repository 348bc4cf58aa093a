"""Compilation units: the text of one kernel, or of several new kernels of a plan, because compilers are slow to start; and
the index of those on disk."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from gpuop.base.cache import blob_store
from gpuop.base.records import dataclass
from gpuop.codegen.c.dialect import Source

MOST = (
    8  # kernels in a program: a driver that loads one of them loads all, which takes less than to load another program
)


@dataclass(frozen=True)
class ProgramText:
    """The text of a compilation unit.

    Attributes:
        sources: its kernels.
        entries: the kernels' names in it; another name than the kernel's own where two kernels have the same.
    """

    text: str
    sources: tuple[Source, ...]
    entries: tuple[str, ...]

    @staticmethod
    def of(source: Source) -> ProgramText:
        return ProgramText(source.text, (source,), (source.entry,))

    @staticmethod
    def joined(sources: Sequence[Source]) -> ProgramText:
        """Return one text with these kernels; their common parts appear once."""
        if len(sources) == 1:
            return ProgramText.of(sources[0])
        entries: dict[str, str] = {}  # by text
        texts = list(dict.fromkeys(part for source in sources for part in source.shared))
        for source in sources:
            if source.text not in entries:
                entry = source.entry if source.entry not in entries.values() else f"{source.entry}_{len(entries)}"
                entries[source.text] = entry
                texts.append(source.own.replace(f" {source.entry}(\n", f" {entry}(\n", 1))
        return ProgramText("\n".join(texts), tuple(sources), tuple(entries[source.text] for source in sources))

    @property
    def names(self) -> str:
        """The kernels' names in messages."""
        return "`, `".join(source.name for source in self.sources)


def _programs(sources: Sequence[Source]) -> list[list[Source]]:
    """Kernels in as few programs as there may be; tables of two kernels may have one name."""
    programs: list[list[Source]] = []
    for source in sources:
        others = (each for each in programs if len(each) < MOST and not (source.tables and any(s.tables for s in each)))
        place = next(others, None)
        if place is None:
            programs.append([source])
        else:
            place.append(source)
    return programs


@dataclass(frozen=True)
class DiskPrograms:
    """The programs of a device that are compiled already, in this process or on disk.

    Attributes:
        name: returns the cache name of a text's program.
    """

    name: Callable[[str], str]

    def texts(self, sources: Sequence[Source]) -> Iterator[ProgramText]:
        """Give texts that have these kernels: cached programs, and as few new ones as possible."""
        new: list[Source] = []
        shared: dict[str, list[tuple[Source, str]]] = {}
        for source in sources:
            alone = blob_store.load(self.name(source.text)) is not None
            name = None if alone else blob_store.load(self._member(source))
            if name is not None:
                whole, entry = name.decode().split()
                shared.setdefault(whole, []).append((source, entry))
            elif alone or not source.shared:
                yield ProgramText.of(source)
            else:
                new.append(source)
        for whole, members in shared.items():
            text = blob_store.load(blob_store.key("text", whole))
            if text is None:
                new += [source for source, _ in members]
            else:
                yield ProgramText(text.decode(), *zip(*members, strict=True))
        yield from map(ProgramText.joined, _programs(new))

    def note(self, program: ProgramText) -> None:
        """Remember which program has a kernel."""
        whole = self.name(program.text)
        if blob_store.load(blob_store.key("text", whole)) is None:
            blob_store.store(blob_store.key("text", whole), program.text.encode())
            for source, entry in zip(program.sources, program.entries, strict=True):
                blob_store.store(self._member(source), f"{whole} {entry}".encode())

    def _member(self, source: Source) -> str:
        return blob_store.key("member", self.name(source.text))
