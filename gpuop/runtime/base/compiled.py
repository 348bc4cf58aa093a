"""Devices that compile generated text: their programs, launches, and reports of assertions."""

from __future__ import annotations

import math
import threading
from abc import abstractmethod
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, cast

from gpuop.base.config import config
from gpuop.base.errors import CompileError
from gpuop.base.finalizers import WeakValues
from gpuop.base.garbage import uncollected
from gpuop.base.records import dataclass
from gpuop.codegen.c.dialect import Source
from gpuop.codegen.generate import generate
from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import Assert
from gpuop.ir.types import FieldType
from gpuop.passes.assertions import assertions, failure, report_asserts
from gpuop.runtime.base.backend import Argument, Backend, Buffer, Launch
from gpuop.runtime.base.background import in_driver, is_job
from gpuop.runtime.base.device_limits import GroupLimits
from gpuop.runtime.base.launch_list import LaunchList, ListedLaunch, OneByOne
from gpuop.runtime.base.program_text import DiskPrograms, ProgramText
from gpuop.runtime.base.trace import note_source

_building = threading.Lock()  # serializes compilation: a program that another thread compiles is not compiled twice


@dataclass(frozen=True, eq=False)
class CompiledProgram:
    """Generated text, and the driver's code for it.

    Attributes:
        kernel: the kernel of the text; None for text from a bundle.
        code: the driver's code; None if the grid has no points.
    """

    source: Source
    kernel: Kernel | None
    code: Any


class CompilingBackend(Backend):
    """A device that runs generated text. Each text is compiled once, as long as a plan refers to the program.

    Attributes:
        suffix: the file name suffix of its text.
        groups: the limits of work-groups and of their memory.
        features: the features of `Source.needs` that it supports.
        builds_at_once: whether the compiler runs in several threads at once: then no call waits for one behind the calls.
    """

    builds_at_once: ClassVar[bool] = False
    suffix: ClassVar[str]
    groups: GroupLimits
    features: frozenset[str]
    program_cache: DiskPrograms
    programs: WeakValues[str, CompiledProgram]  # by identity of the text and its launch
    codes: WeakValues[str, Any]  # the driver's code, by text

    @abstractmethod
    def build(self, program: ProgramText, binary: bytes | None) -> list[Any]:
        """Return the driver's code of each kernel, from the text or a bundle's binary. CompileError if the driver refuses it."""

    @abstractmethod
    def bind_program(self, program: CompiledProgram, arguments: Sequence[Argument]) -> Launch:
        """Return a launch with these arguments; without code, it fills the outputs."""

    @abstractmethod
    def launch_program(self, program: CompiledProgram, arguments: Sequence[Argument]) -> None:
        """Launch code once with these arguments, with the least preparation."""

    def list_programs(self, launches: Sequence[ListedLaunch]) -> LaunchList:
        """Return launches of code that often run with other memory."""
        return OneByOne(launches, self.launch_program)

    def compile(self, kernel: Kernel) -> CompiledProgram:
        return self.compile_all([kernel])[0]

    def compile_all(self, kernels: Sequence[Kernel]) -> list[CompiledProgram]:
        with uncollected():
            texts = [self._generated(kernel) for kernel in kernels]
        with nullcontext() if self.builds_at_once and is_job() else _building:
            programs = {key: self.programs.get(key) for key, _ in texts}
            new = {key: program for key, program in texts if programs[key] is None}
            codes = self._codes([program.source for program in new.values() if math.prod(program.source.threads)])
            for key, program in new.items():
                code = codes.get(program.source.identity)
                programs[key] = self.programs[key] = replace(program, code=code)
        return [cast(CompiledProgram, programs[key]) for key, _ in texts]

    def _generated(self, kernel: Kernel) -> tuple[str, CompiledProgram]:
        """Return the cache key (text and assertions), and the program to compile."""
        asserts = self._asserts(kernel)
        source = self._text(kernel, asserts)
        note_source(source, self.suffix)
        key = "\n".join([source.identity, *(f"{s.loc} {s.message}" for s in asserts)])
        return key, CompiledProgram(source, kernel, None)

    def check(self, kernel: Kernel) -> None:
        self._text(kernel, self._asserts(kernel))

    def _text(self, kernel: Kernel, asserts: tuple[Assert, ...]) -> Source:
        source = generate(report_asserts(kernel) if asserts else kernel, self.target)
        self.groups.check_kernel(kernel)
        self.groups.check_types(kernel.name, source.needs - self.features)
        return source

    def _codes(self, sources: Sequence[Source]) -> dict[str, Any]:
        """Return the driver's code by source identity; sources that differ in their extents alone share it."""
        open_ = {source.text: self.codes.get(source.text) for source in sources if source.extents}
        closed = [source for source in sources if not source.extents]
        missing = {source.text: source for source in sources if source.extents and open_[source.text] is None}
        codes: dict[str, Any] = {}
        for program in self.program_cache.texts([*closed, *missing.values()]):
            built = in_driver(partial(self._built, program))
            codes |= {source.identity: code for source, code in zip(program.sources, built, strict=True)}
        for text, source in missing.items():
            open_[text] = self.codes[text] = codes[source.identity]
        return codes | {source.identity: open_[source.text] for source in sources if source.extents}

    def _built(self, program: ProgramText) -> list[Any]:
        if len(program.sources) == 1:
            return self.build(program, None)
        try:
            codes = self.build(program, None)
        except CompileError:  # compile each alone: the message must have the user's lines
            return [self.build(ProgramText.of(source), None)[0] for source in program.sources]
        self.program_cache.note(program)
        return codes

    def load(self, source: Source, binary: bytes | None) -> CompiledProgram:
        self.groups.check_types(source.entry, source.needs - self.features)
        self.groups.check_group(source.entry, source.group[::-1])
        note_source(source, self.suffix)
        with _building:
            program = self.programs.get(source.identity)
            if program is None:
                code = self._loaded(source, binary) if math.prod(source.threads) else None
                program = self.programs[source.identity] = CompiledProgram(source, None, code)
        return program

    def _loaded(self, source: Source, binary: bytes | None) -> Any:
        code = self.codes.get(source.text) if source.extents else None
        if code is None:
            (code,) = self.build(ProgramText.of(source), binary)
        if source.extents:
            self.codes[source.text] = code
        return code

    def bind(self, program: CompiledProgram, arguments: Sequence[Argument]) -> Launch:
        kernel = program.kernel
        asserts = self._asserts(kernel)
        if kernel is None or not asserts:
            return self.bind_program(program, arguments)
        kind = FieldType(len(asserts), (), "uint32")
        report = self.empty(kind)
        launch = self.bind_program(program, [*arguments, report])
        return Launch((*launch.parts, partial(self._raise_failed, kernel, kind, report)), launch.adjust)

    def once(self, program: CompiledProgram, arguments: Sequence[Argument]) -> None:
        if self.checked or config.debug or program.code is None:
            super().once(program, arguments)
        else:
            self.launch_program(program, arguments)

    def launch_list(self, launches: Sequence[ListedLaunch]) -> LaunchList:
        if self.checked or config.debug or any(each.program.code is None for each in launches):
            return super().launch_list(launches)
        return self.list_programs(launches)

    def _asserts(self, kernel: Kernel | None) -> tuple[Assert, ...]:
        """Return the assertions that a kernel reports; none if no thread runs."""
        if not self.checked or kernel is None or not kernel.domain.shape.points:
            return ()
        return assertions(kernel)

    def _raise_failed(self, kernel: Kernel, kind: FieldType, report: Buffer) -> None:
        """Wait for a launch, and raise the error of a failed assertion."""
        error = failure(kernel, self.download(kind, report).reshape(-1).tolist())
        if error is not None:
            raise error
