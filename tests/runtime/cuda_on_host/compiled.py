"""Generated CUDA C++ as a library of the host, by g++ and `cuda.hpp`."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gpuop.base.cache import blob_store
from gpuop.base.config import config
from gpuop.runtime.base.program_text import ProgramText

COMPILER = shutil.which("g++")
HEADER = Path(__file__).with_name("cuda.hpp")
# No sum is contracted into a multiply-add, as with --fmad=false. What C++ leaves undefined, or a GPU does not take, is a trap.
FOUND = "alignment,bounds,integer-divide-by-zero,shift,signed-integer-overflow"
OPTIONS = (
    "-std=c++17", "-O1", "-w", "-fPIC", "-shared", "-ffp-contract=off", "-fno-strict-aliasing", "-fnon-call-exceptions",
    f"-fsanitize={FOUND}", "-fsanitize-undefined-trap-on-error",
)  # fmt: skip
TOGETHER = ("__syncthreads", "_sync(")  # what threads do with others
OUTCOMES = {
    1: "accesses memory beyond an array, or where it is not aligned, or does what C++ leaves undefined",
    2: "has threads that wait at a barrier, or for a warp, where others do not come",
}
ASM = re.compile(r'asm(?P<kept> volatile)?\("(?P<what>[^"]*)" : (?P<out>[^;]*?)(?: : (?P<args>[^;]*))?\);')


def on_host(text: str) -> str:
    """Instructions as functions: `asm("min.u16x2 %0, %1, %2;" : "=r"(z) : "r"(x), "r"(y))` is `ptx_min_u16x2(z, x, y)`."""
    return ASM.sub(_function, text)


def _function(asm: re.Match[str]) -> str:
    if not asm["what"]:
        return ";"  # which keeps a compiler from what it would know
    operands = re.sub(r'"[=+]?[a-z]"', "", f"{asm['out']}, {asm['args']}")
    return f"ptx_{asm['what'].split()[0].replace('.', '_').replace('::', '_')}({operands});"


class HostFunction:
    """A kernel of a library."""

    def __init__(self, name: str, function: Any, together: bool) -> None:
        self.name, self.function, self.together = name, function, together

    def run(self, cells: Any, size: Sequence[int]) -> str:
        """Launch it with what a table of addresses points to; "", or what it does wrong."""
        return OUTCOMES.get(self.function(cells, (ctypes.c_uint * 6)(*size), self.together), "")


def compiled(program: ProgramText) -> list[HostFunction]:
    """The kernels of a text.

    Raises:
        RuntimeError: with the compiler's log.
    """
    entries = [
        f'extern "C" int run_{entry}(void **given, const unsigned *size, bool together)\n'
        f"{{\n    return launched<&{entry}>(&{entry}, given, size, together);\n}}\n"
        for entry in program.entries
    ]
    text = "\n".join([HEADER.read_text(encoding="utf-8"), on_host(program.text), *entries])
    library = ctypes.PyDLL(
        str(_library(text))
    )  # with the lock of Python: the places of threads are variables of the library
    together = any(word in program.text for word in TOGETHER)
    return [HostFunction(entry, getattr(library, f"run_{entry}"), together) for entry in program.entries]


def _library(text: str) -> Path:
    folder = Path(config.cache) / "cuda-on-host"
    path = folder / f"{blob_store.key(text, *OPTIONS)}.so"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        source, results = (path.with_suffix(f".{os.getpid()}.{end}") for end in ("cpp", "so"))
        source.write_text(text, encoding="utf-8")
        assert COMPILER is not None
        done = subprocess.run(
            [COMPILER, *OPTIONS, str(source), "-o", str(results)], capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise RuntimeError(done.stderr)
        results.replace(path)
    return path
