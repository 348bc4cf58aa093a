"""The index of programs on disk: a kernel has a program of its own, or one that it shares with kernels of a plan."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from gpuop.base.cache import blob_store
from gpuop.codegen.c.dialect import Source
from gpuop.runtime.base.program_text import ProgramText

MOST = 4  # kernels in a program: a driver that loads one of them loads all


class DiskPrograms:
    """The cached programs of a device.

    Args:
        name: the function for `name`.
    """

    def __init__(self, name: Callable[[str], str]) -> None:
        self._name = name

    def name(self, text: str) -> str:
        return self._name(text)

    def texts(self, sources: Sequence[Source]) -> Iterator[ProgramText]:
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
        for k in range(0, len(new), MOST):
            yield ProgramText.joined(new[k : k + MOST])

    def note(self, program: ProgramText) -> None:
        whole = self.name(program.text)
        if blob_store.load(blob_store.key("text", whole)) is None:
            blob_store.store(blob_store.key("text", whole), program.text.encode())
            for source, entry in zip(program.sources, program.entries, strict=True):
                blob_store.store(self._member(source), f"{whole} {entry}".encode())

    def _member(self, source: Source) -> str:
        return blob_store.key("member", self.name(source.text))
