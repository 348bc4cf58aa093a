"""A device that runs each kernel as it is recorded and as every pass leaves it: all of them give the same bits."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpuop.ir.kernel import Kernel
from gpuop.ir.target import Target
from gpuop.ir.text import show
from gpuop.ir.verify import Form
from gpuop.passes.pipeline import pass_by_pass
from gpuop.runtime.base.backend import Argument, Launch
from gpuop.runtime.reference.array_memory import ArrayMemory
from gpuop.runtime.reference.device import Reference
from gpuop.runtime.reference.interpreter import Threads
from gpuop.runtime.reference.positions import chunks


@dataclass(frozen=True)
class Version:
    """A kernel at some place of the pipeline.

    Attributes:
        after: the pass that made it, "recording" where none has.
        guarded: whether the threads that rounding up to whole groups adds do nothing, so that they may run.
    """

    after: str
    kernel: Kernel
    form: Form
    guarded: bool

    def run(self, arrays: Sequence[Any]) -> list[Any]:
        """The outputs, which are the last arrays."""
        kernel, outputs = self.kernel, arrays[len(self.kernel.inputs) :]
        for output, array in zip(kernel.outputs, outputs, strict=True):
            if output.fill is not None:
                array[...] = output.fill
        fields = dict(zip((*kernel.inputs, *kernel.written), arrays, strict=True))
        for where in chunks(kernel, self.guarded or kernel.whole):
            memory = ArrayMemory(where, fields, kernel, self.form is not Form.RECORDED)
            with np.errstate(all="ignore"):
                Threads(kernel, where, memory).block(kernel.body, None)
        return outputs


class PassByPass(Reference):
    """Compares what a kernel computes before and after each pass.

    Attributes:
        changed: by pass, how many kernels it has changed.
    """

    whole = True  # so that states change in place

    def __init__(self, target: Target) -> None:
        super().__init__()
        self.target = target
        self.changed: Counter[str] = Counter()

    def compile(self, kernel: Kernel) -> list[Version]:
        results, text, guarded = [Version("recording", kernel, Form.RECORDED, False)], show(kernel), False
        for left in pass_by_pass(kernel, self.target):
            guarded = guarded or left.name == "guard_domain"
            if text != (text := show(left.kernel)):
                self.changed[left.name] += 1
                results.append(Version(left.name, left.kernel, left.form, guarded))
        return results

    def bind(self, program: list[Version], arguments: Sequence[Argument]) -> Launch:
        recorded, *others = program
        kernel = recorded.kernel
        arrays: list[Any] = [
            np.array(value, param.type.memory_dtype)[:, None] if param.by_value else value
            for param, value in zip((*kernel.inputs, *kernel.written), arguments, strict=True)
        ]

        def launch() -> None:
            before = copy.deepcopy(arrays)  # an input and an output of one memory have one copy
            want, last = recorded.run(arrays), recorded
            for version in others:
                actual = version.run(copy.deepcopy(before))
                for output, a, b in zip(kernel.outputs, actual, want, strict=True):
                    assert same(a, b), differing(last, version, output.param.hint, a, b)
                last = version

        def adjust(position: int, scalars: Argument) -> None:
            arrays[position][...] = np.array(scalars)[:, None]

        return Launch((launch,), adjust)


def same(a: Any, b: Any) -> bool:
    """Equal bits; but of NaNs there are many, and no pass keeps one from another."""
    other = (a.view(f"V{a.itemsize}") != b.view(f"V{b.itemsize}")).reshape(a.shape)
    return not (other & ~(np.isnan(a) & np.isnan(b))).any()


def differing(before: Version, after: Version, output: str, actual: Any, want: Any) -> str:
    return (
        f"{after.after} changed {output}:\n{actual}\nis not\n{want}\n"
        f"--- before\n{show(before.kernel)}\n--- after\n{show(after.kernel)}"
    )
