"""Compilation units: the text of one kernel, or of all new kernels of a plan, because compilers are slow to start."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from gpuop.codegen.c.dialect import Source


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


class ProgramCache(Protocol):
    """The programs that are compiled already, in this process or on disk."""

    def name(self, text: str) -> str:
        """Return the cache name of a text's program."""

    def texts(self, sources: Sequence[Source]) -> Iterator[ProgramText]:
        """Return texts that have these kernels: cached programs, and as few new ones as possible."""

    def note(self, program: ProgramText) -> None:
        """Remember which program has a kernel."""
