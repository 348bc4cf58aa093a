"""Source locations and the exceptions of gpuop. Every message says what is wrong, where, and what to do instead."""

from __future__ import annotations

import linecache
import os
import sys
from dataclasses import dataclass
from types import FrameType

PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep
OPERATORS = os.path.join(PACKAGE, "ops") + os.sep  # the library's own kernels, written as a user would


@dataclass(frozen=True, slots=True)
class Loc:
    """A line of the user's program."""

    file: str
    line: int

    @property
    def text(self) -> str:
        """The source text of the line, stripped; empty where the source is not available."""
        return linecache.getline(self.file, self.line).strip()

    @property
    def path(self) -> str:
        """The file, relative to the working directory when it lies below it."""
        relative = os.path.relpath(self.file) if os.path.isabs(self.file) else self.file
        return self.file if relative.startswith("..") else relative

    def __str__(self) -> str:
        return f"{self.path}:{self.line}"


def user_frame() -> FrameType | None:
    """The nearest frame outside this package: the line that the user wrote."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(PACKAGE):
        frame = frame.f_back
    return frame


def kernel_frame() -> FrameType | None:
    """The nearest frame that writes a kernel: the user's, or one of the library's operators."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and not writes_kernels(frame):
        frame = frame.f_back
    return frame


def writes_kernels(frame: FrameType) -> bool:
    file = frame.f_code.co_filename
    return not file.startswith(PACKAGE) or file.startswith(OPERATORS)


def here() -> Loc | None:
    """The user's current line."""
    frame = user_frame()
    return Loc(frame.f_code.co_filename, frame.f_lineno) if frame is not None else None


def located(message: str, loc: Loc | None) -> str:
    """The message with the user's file, line and source text below it."""
    return f"{message}\n  at {loc}\n    {loc.text}" if loc is not None else message


class GpuopError(Exception):
    """Base of all errors that gpuop raises on purpose."""


class SemanticError(GpuopError):
    """The program is wrong. `loc` is the user's line, which also ends the message."""

    def __init__(self, message: str, loc: Loc | None = None) -> None:
        self.loc = loc or here()
        self.message = message
        super().__init__(located(message, self.loc))


class CompileError(GpuopError):
    """A driver refused generated code. `source` is that code with line numbers."""

    def __init__(self, message: str, source: str = "") -> None:
        self.source = source
        super().__init__(message)


class DeviceError(GpuopError):
    """No device, a type that the device lacks, memory exhausted, or a device lost."""
