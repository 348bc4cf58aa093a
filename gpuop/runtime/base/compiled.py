"""Devices that compile generated text: the programs of a device, its launches made once, and what checked ones report."""

from __future__ import annotations

import math
import threading
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar
from weakref import WeakValueDictionary

from gpuop.codegen.c.dialect import Source
from gpuop.codegen.generate import generate
from gpuop.config import config
from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import Assert
from gpuop.ir.types import FieldType
from gpuop.passes.asserts import assertions, failure, report_asserts
from gpuop.runtime.base.backend import Argument, Backend, Buffer, Launch
from gpuop.runtime.base.device_limits import GroupLimits
from gpuop.runtime.base.trace import note_source

_building = threading.Lock()  # nobody builds what another is building


@dataclass(frozen=True, eq=False)
class CompiledProgram:
    """Generated text, and what the driver made of it.

    Attributes:
        kernel: what the text was generated from; None for a bundle's.
        code: the driver's; None where the grid has no points.
    """

    source: Source
    kernel: Kernel | None
    code: Any


class CompilingBackend(Backend):
    """A device that runs generated text, each text compiled once as long as a plan keeps it.

    Attributes:
        suffix: of files with its text.
        groups: the largest work-groups, and memory of a work-group.
        features: those of `Source.needs` that it has.
    """

    suffix: ClassVar[str]
    groups: GroupLimits
    features: frozenset[str]
    programs: WeakValueDictionary[str, CompiledProgram]  # by their text

    @abstractmethod
    def build(self, source: Source, binary: bytes | None) -> Any:
        """The driver's code of a text, or of a bundle's binary of it. CompileError where the driver refuses the text."""

    @abstractmethod
    def bind_program(self, program: CompiledProgram, arguments: Sequence[Argument]) -> Launch:
        """A launch with these arguments; where there is no code, of what fills the outputs."""

    @abstractmethod
    def launch_program(self, program: CompiledProgram, arguments: Sequence[Argument]) -> None:
        """Launch code once with these arguments, preparing no more than that takes."""

    def compile(self, kernel: Kernel) -> CompiledProgram:
        asserts = self._asserts(kernel)
        return self._program(self._text(kernel, asserts), None, kernel, asserts)

    def check(self, kernel: Kernel) -> None:
        self._text(kernel, self._asserts(kernel))

    def _text(self, kernel: Kernel, asserts: tuple[Assert, ...]) -> Source:
        source = generate(report_asserts(kernel) if asserts else kernel, self.target)
        self.groups.check_kernel(kernel)
        self.groups.check_types(kernel.name, source.needs - self.features)
        return source

    def load(self, source: Source, binary: bytes | None) -> CompiledProgram:
        self.groups.check_types(source.entry, source.needs - self.features)
        self.groups.check_group(source.entry, source.group[::-1])
        return self._program(source, binary, None, ())

    def _program(
        self, source: Source, binary: bytes | None, kernel: Kernel | None, asserts: tuple[Assert, ...]
    ) -> CompiledProgram:
        note_source(source, self.suffix)
        key = "\n".join([source.identity, *(f"{s.loc} {s.message}" for s in asserts)])
        with _building:
            program = self.programs.get(key)
            if program is None:
                code = self.build(source, binary) if math.prod(source.threads) else None
                program = self.programs[key] = CompiledProgram(source, kernel, code)
        return program

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

    def _asserts(self, kernel: Kernel | None) -> tuple[Assert, ...]:
        """The assertions that a kernel reports; none where no thread runs."""
        if not self.checked or kernel is None or not kernel.domain.shape.points:
            return ()
        return assertions(kernel)

    def _raise_failed(self, kernel: Kernel, kind: FieldType, report: Buffer) -> None:
        """Wait for a launch, and raise the error of an assertion that failed."""
        error = failure(kernel, self.download(kind, report).reshape(-1).tolist())
        if error is not None:
            raise error
