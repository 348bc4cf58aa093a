"""What the borders of reads mean, apart from gpuop: in plain Python, and under NumPy's and SciPy's names."""

from __future__ import annotations

from collections.abc import Callable

from gpuop.ir.borders import WORDS

CHECKED = tuple(word for word in WORDS if word != "unchecked")  # those that may be read outside
PLACES: dict[str, Callable[[int, int], int | None]] = {  # the index that stands for i of n points; None: 0 does
    "clamp": lambda i, n: min(max(i, 0), n - 1),
    "zero": lambda i, n: i if 0 <= i < n else None,
    "wrap": lambda i, n: i % n,
    "reflect": lambda i, n: abs((i + n - 1) % max(2 * n - 2, 1) - n + 1),
    "symmetric": lambda i, n: [*range(n), *reversed(range(n))][i % (2 * n)],
}
MODES = {  # those that numpy.pad has, and what scipy.ndimage calls them
    "clamp": ("edge", "nearest"),
    "zero": ("constant", "grid-constant"),
    "wrap": ("wrap", "grid-wrap"),
    "reflect": ("reflect", "mirror"),
    "symmetric": ("symmetric", "reflect"),
}
