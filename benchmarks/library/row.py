"""The row of a function in the catalogue: calls, written as expressions, and their evaluation."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Row:
    """A function of the library, and what other libraries have for it.

    Attributes:
        module: ndimage, linalg, fft, random or numpy.
        name: of the function in its module.
        call: an expression of `np`, `ndimage`, `linalg`, `fft`, `random` and the arrays of `given.py`. With other libraries'
            modules under these names it is the same call of SciPy's, NumPy's and CuPy's.
        reference: SciPy's or NumPy's call where it is another one.
        compared: what of a result `r` is compared with the reference's; "" compares nothing.
        skimage, cv2, torch: calls of scikit-image (and of cuCIM, which has its names), OpenCV and PyTorch.
        part: arrays are of the benchmark's size divided by this, along each axis.
        method: of several rows of a function the `method=` of the call.
        eager: whether it is evaluated when it is called, or computes nothing.
    """

    module: str
    name: str
    call: str
    reference: str = ""
    compared: str = "r"
    skimage: str = ""
    cv2: str = ""
    torch: str = ""
    part: int = 1
    method: str = ""
    eager: bool = False

    @property
    def key(self) -> str:
        return f"{self.module}.{self.name}" + (f" {self.method}" if self.method else "")

    def names(self, code: str = "") -> tuple[str, ...]:
        """The names of an expression, in their order: modules and arrays."""
        return _compiled(code or self.call).co_names


@functools.cache
def _compiled(code: str) -> Any:
    return compile(code, code, "eval")


def action(code: str, scope: Mapping[str, Any]) -> Callable[[], Any]:
    """The function that evaluates an expression, as fast as a function that is written out."""
    return eval(f"lambda: {code}", dict(scope))  # type: ignore[no-any-return]


def leaves(result: Any) -> list[Any]:
    """The arrays, fields and numbers of a result, whatever they are in."""
    if isinstance(result, Mapping):
        result = list(result.values())
    if isinstance(result, (tuple, list)):
        return [leaf for each in result for leaf in leaves(each)]
    return [] if result is None else [result]
