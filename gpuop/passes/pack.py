"""SWAR stencils of bytes on GPUs: four columns lie in a word, and are computed at once.

Where ranges prove that all values fit 8 or 16 bits, the kernel becomes one of words on a grid of a quarter of the columns.
Schedules then see fields of words, and access 16 bytes at a time.

    columns          0 1 2 3 | 4 5 6 7        two words of bytes, w0 and w1
    one further        1 2 3   4              bytes 1 to 4 of w0 and w1, by one byte permutation
    in 16 bits       0 . 2 .  and  1 . 3 .    a word of even lanes and one of odd lanes, for sums above 255

An intermediate is a word of bytes, or two words of 16 bits.
"""

from __future__ import annotations

from gpuop.ir.kernel import Kernel
from gpuop.ir.layout import Layout
from gpuop.ir.nodes import FieldParam
from gpuop.passes.schedules.common.register_windows import refused_reads
from gpuop.passes.schedules.methods import choice
from gpuop.passes.swar.packed_lanes import LANES
from gpuop.passes.swar.word_kernel import WordKernel

NARROW = 16  # least columns
GAIN = 0.75  # greatest ratio of the statements for words to those for single bytes


def pack(kernel: Kernel) -> Kernel:
    """The SWAR kernel, if it is a kernel of bytes and a schedule suits it; else the kernel itself."""
    if refuse(kernel):
        return kernel
    packed = WordKernel(kernel).kernel()
    if packed is None or len(packed.body) > GAIN * LANES * len(kernel.body) or choice(packed) is None:
        return kernel
    return packed


def refuse(kernel: Kernel) -> str:
    """Return the reason why four columns cannot be computed at once; empty where they can."""
    target, domain = kernel.target, kernel.domain
    if target is None or target.widening != "unrolled":
        return "its target has no SWAR"
    if domain.elements > 1 or len(domain.shape) < 2 or kernel.group is not None or kernel.whole:
        return "its threads are not the points of planes"
    if domain.extent("column") % LANES or domain.extent("column") < NARROW:
        return "its rows are not whole words"
    fields = (*kernel.inputs, *kernel.written)
    if any(f.type.dtype != "uint8" or f.type.field_shape != domain.shape or f.by_value for f in fields):
        return "not all of its fields are bytes on its grid"
    if not all(are_words(field, layout, field in kernel.written) for field, layout in kernel.layouts):
        return "an array of the user is not aligned to words"
    if any(output.fill is not None for output in kernel.outputs):
        return "it writes parts of fields"
    return refused_reads(kernel)


def are_words(field: FieldParam, layout: Layout, written: bool) -> bool:
    """Return whether four columns of an array are words: one for each plane, or one for each of its interleaved elements."""
    alternate = (layout.point[-1], layout.element) == (field.type.planes, 1) and not written
    whole = (*layout.point[:-1], *([] if alternate else [layout.element]))
    is_whole = layout.behind is not None and layout.row is None and not any(n % LANES for n in (*whole, layout.behind))
    return is_whole and (alternate or layout.in_rows())
