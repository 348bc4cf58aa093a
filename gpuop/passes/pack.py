"""Stencils of bytes on GPUs: four columns lie in a word, and are computed at once.

Where ranges show that what is computed of bytes fits 8 or 16 bits, the kernel becomes one of words on a grid of a quarter of the
columns: neighbours are shifted out of two words, and what stages keep is a word of bytes, or two of 16 bits. Schedules see fields
of words, and access 16 bytes at a time.
"""

from __future__ import annotations

from gpuop.ir.kernel import Kernel
from gpuop.ir.layout import Layout
from gpuop.ir.nodes import FieldParam
from gpuop.passes.schedules import choice
from gpuop.passes.schedules.common.register_windows import refused_reads
from gpuop.passes.swar.packed_lanes import LANES
from gpuop.passes.swar.word_kernel import WordKernel

NARROW = 16  # columns at least
GAIN = 0.75  # statements of words are at most such a part of those for each byte


def pack(kernel: Kernel) -> Kernel:
    """The kernel of words, where it is one of bytes that a schedule suits."""
    if refuse(kernel):
        return kernel
    packed = WordKernel(kernel).kernel()
    if packed is None or len(packed.body) > GAIN * LANES * len(kernel.body) or choice(packed) is None:
        return kernel
    return packed


def refuse(kernel: Kernel) -> str:
    """Why four columns are not computed at once; empty where they may be."""
    target, domain = kernel.target, kernel.domain
    if target is None or target.widening != "unrolled":
        return "its target computes no words"
    if domain.elements > 1 or len(domain.shape) < 2 or kernel.group is not None or kernel.whole:
        return "its threads are no points of planes"
    if domain.extent("column") % LANES or domain.extent("column") < NARROW:
        return "its rows are no words"
    fields = (*kernel.inputs, *kernel.written)
    if any(f.type.dtype != "uint8" or f.type.field_shape != domain.shape or f.by_value for f in fields):
        return "not all of its fields are bytes on its grid"
    if not all(are_words(field, layout, field in kernel.written) for field, layout in kernel.layouts):
        return "an array of the user's does not lie in words"
    if any(output.fill is not None for output in kernel.outputs):
        return "it writes parts of fields"
    return refused_reads(kernel)


def are_words(field: FieldParam, layout: Layout, written: bool) -> bool:
    """Whether four columns of an array are words: one of each plane, or as many as there are elements, which alternate."""
    alternate = (layout.point[-1], layout.element) == (field.type.planes, 1) and not written
    whole = (*layout.point[:-1], *([] if alternate else [layout.element]))
    known = layout.behind is not None and layout.row is None and not any(n % LANES for n in (*whole, layout.behind))
    return known and (alternate or layout.in_rows())
