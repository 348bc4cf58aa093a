"""`gpuop source` and `gpuop passes`: the text of kernels, and their IR after each pass."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gpuop.base.errors import SemanticError
from gpuop.engine.cli.targets import applied
from gpuop.engine.dump import kernels_for, plan_for_text, source
from gpuop.ir.kernel import Kernel
from gpuop.ir.target import Target
from gpuop.ir.text import show
from gpuop.passes.pipeline import PIPELINE, pass_by_pass
from gpuop.runtime.devices import current


def print_source(where: str, types: Sequence[str], target: str | None, form: str) -> None:
    """Print the generated text of a function's kernels, or the output of compilers for it."""
    _, _, results = applied(where, types)
    print(source(results if isinstance(results, tuple) else (results,), target, form), end="")


def print_passes(where: str, types: Sequence[str], target: str | None, after: str | None) -> None:
    """Print the IR of a function's kernels after each pass, or after all passes of one name."""
    names = dict.fromkeys(step.__name__ for step, _ in PIPELINE)
    if after is not None and after not in names:
        raise SemanticError(f"there is no pass {after!r}; one of {', '.join(names)}")
    _, _, results = applied(where, types)
    fields = results if isinstance(results, tuple) else (results,)
    chosen, kernels = kernels_for(plan_for_text(fields, target), target, current())
    for n, kernel in enumerate(kernels):
        print("\n" * (n > 0) + "\n".join(_passes(kernel, chosen, after)))


def _passes(kernel: Kernel, target: Target, after: str | None) -> Iterator[str]:
    before = show(kernel)
    if after is None:
        yield f"--- recorded\n{before}"
    for left in pass_by_pass(kernel, target):
        if after is None:
            text = show(left.kernel)
            yield f"{left.title}: nothing changed" if text == before else left.text()
            before = text
        elif left.name == after:
            yield left.text()
