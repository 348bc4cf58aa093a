"""What a compiler gets at once: the text of a kernel, or those of a plan that no cache has, as compilers are slow to begin."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from gpuop.codegen.c.dialect import Source


@dataclass(frozen=True)
class ProgramText:
    """A text that is compiled.

    Attributes:
        sources: its kernels.
        entries: what they are called in it, which differs from what each calls itself where two have one name.
    """

    text: str
    sources: tuple[Source, ...]
    entries: tuple[str, ...]

    @staticmethod
    def of(source: Source) -> ProgramText:
        return ProgramText(source.text, (source,), (source.entry,))

    @staticmethod
    def joined(sources: Sequence[Source]) -> ProgramText:
        """A text with these kernels, which have parts that are shared."""
        if len(sources) == 1:
            return ProgramText.of(sources[0])
        entries: dict[str, str] = {}  # by texts
        texts = list(dict.fromkeys(part for source in sources for part in source.shared))
        for source in sources:
            if source.text not in entries:
                entry = source.entry if source.entry not in entries.values() else f"{source.entry}_{len(entries)}"
                entries[source.text] = entry
                texts.append(source.own.replace(f" {source.entry}(\n", f" {entry}(\n", 1))
        return ProgramText("\n".join(texts), tuple(sources), tuple(entries[source.text] for source in sources))

    @property
    def names(self) -> str:
        """The kernels', as users know them."""
        return "`, `".join(source.name for source in self.sources)


class ProgramCache(Protocol):
    """What is compiled already, or was, in this process or another one."""

    def name(self, text: str) -> str:
        """Under which it has what a text is compiled to."""

    def texts(self, sources: Sequence[Source]) -> Iterator[ProgramText]:
        """Texts that have these kernels: what the cache knows, and as few as there may be of what is new."""

    def note(self, program: ProgramText) -> None:
        """Know from now on which program has a kernel."""
