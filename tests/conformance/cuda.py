"""Compilation of the kernels of a test file as CUDA: all kernels in one text, at the file's end."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from gpuop.codegen.generate import generate, target_named
from gpuop.ir.kernel import Kernel
from tests.codegen.nvrtc import compile_cuda
from tests.conftest import Lowered

LARGE = 50_000  # characters of a kernel that fills the constant memory


@pytest.fixture(scope="module", autouse=True)
def compiled_as_cuda() -> Iterator[None]:
    texts: dict[str, None] = {}
    compile_lowered = Lowered.compile

    def compile_both(self: Lowered, kernel: Kernel) -> Any:
        texts[generate(kernel, target_named("cuda")).text] = None
        return compile_lowered(self, kernel)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Lowered, "compile", compile_both)
        yield
    large = [text for text in texts if len(text) > LARGE]
    spaces = [f"namespace k{n} {{\n{text}}}" for n, text in enumerate(texts) if text not in large]  # names may be equal
    for source in ("\n".join(spaces).replace('extern "C" ', ""), *large):
        _compile(source)


def _compile(source: str) -> None:
    try:
        compile_cuda(source, "sm_90")
    except RuntimeError as refused:
        lines = source.splitlines()
        errors = re.findall(r"\((\d+)\): (error.*)", str(refused))
        pytest.fail(
            "\n".join(f"{message}\n    {lines[int(line) - 1].strip()}" for line, message in errors), pytrace=False
        )
