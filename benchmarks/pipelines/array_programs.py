"""The pipelines for libraries of whole arrays that compile what they are given: what differs between them is a `Library`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from .images import BINOMIAL, COLOURS, GRADING, LIFT, TANGENT
from .pyramids import ALPHA, INTENSITIES, LEVELS, SIGMA
from .stencils import KERNEL, NEARNESS, RANGE, SEARCH, SPATIAL, gaussian_weights

Window = Callable[..., Any]  # offsets along the axes to the array moved by them


class Library(Protocol):
    """The names of a library for its functions; `window` reads neighbours in the way that it fuses best."""

    xp: Any

    def window(self, a: Any, radius: int, mode: str, axes: int = 2) -> Window:
        """The array moved by up to `radius` along its first axes; `mode` is "edge", "reflect", "wrap" or "zero"."""

    def cast(self, a: Any, dtype: str) -> Any: ...

    def counts(self, levels: Any) -> Any:
        """The number of points of each of 256 levels."""

    def parity(self, a: Any, axis: int) -> Any:
        """A condition for broadcasting: the index along an axis of two is even."""

    def every_other(self, a: Any, axis: int) -> Any:
        """a[2 k + j] for j in -1, 0, 1, 2, in a tuple."""

    def doubled(self, a: Any, n: int, axis: int) -> tuple[Any, Any]:
        """The nearer and the farther element for each of n elements of twice as many."""

    def chosen(self, a: Any, element: Any) -> Any:
        """An element of the last axis at each point."""

    def contiguous(self, a: Any) -> Any:
        """With rows one after another in memory."""


class Programs:
    """The pipelines, as functions of arrays."""

    def __init__(self, library: Library) -> None:
        self.lib, self.xp = library, library.xp

    # --- stencils -----------------------------------------------------------------------------------------------

    def chain8(self, x: Any) -> Any:
        return self.xp.clip(self.xp.sqrt(abs(x * 1.25 - 0.5)) * 2 + x, None, 1.5) * 0.5

    def conv3x3(self, a: Any) -> Any:
        at = self.lib.window(a, 1, "edge")
        return sum(KERNEL[r + 1][c + 1] * at(r, c) for r in (-1, 0, 1) for c in (-1, 0, 1))

    def blurred(self, a: Any, weights: Sequence[float], mode: str, axes: tuple[int, ...] = (0, 1)) -> Any:
        for axis in axes:
            at = self.lib.window(a, len(weights) // 2, mode)
            moves = (k - len(weights) // 2 for k in range(len(weights)))
            a = sum(w * (at(0, k) if axis else at(k, 0)) for w, k in zip(weights, moves, strict=True))
        return a

    def gauss2(self, a: Any) -> Any:
        return self.blurred(a, gaussian_weights(2.0), "reflect")

    def gauss5(self, a: Any) -> Any:
        return self.blurred(a, gaussian_weights(5.0), "reflect")

    def gradients(self, a: Any) -> tuple[Any, Any]:
        at = self.lib.window(a, 1, "edge")
        gx = at(-1, 1) + 2 * at(0, 1) + at(1, 1) - at(-1, -1) - 2 * at(0, -1) - at(1, -1)
        return gx, at(1, -1) + 2 * at(1, 0) + at(1, 1) - at(-1, -1) - 2 * at(-1, 0) - at(-1, 1)

    def sobel(self, a: Any) -> Any:
        gx, gy = self.gradients(a)
        return self.xp.sqrt(gx * gx + gy * gy)

    def median3x3(self, a: Any) -> Any:
        at, low, high = self.lib.window(a, 1, "edge"), self.xp.minimum, self.xp.maximum

        def sorted3(a: Any, b: Any, c: Any) -> tuple[Any, Any, Any]:
            less, more = low(b, c), high(b, c)
            return low(a, less), high(less, low(a, more)), high(a, more)

        columns = [sorted3(at(-1, c), at(0, c), at(1, c)) for c in (-1, 0, 1)]
        lows, middles, highs = zip(*columns, strict=True)
        least = high(high(lows[0], lows[1]), lows[2])
        return sorted3(least, sorted3(*middles)[1], low(low(highs[0], highs[1]), highs[2]))[1]

    def sum3x3(self, a: Any) -> Any:
        at = self.lib.window(a, 1, "edge")
        return sum(at(r, c) for r in (-1, 0, 1) for c in (-1, 0, 1))

    def harris(self, a: Any) -> Any:
        gx, gy = (g * (1 / 12) for g in self.gradients(a))
        xx, yy, xy = self.sum3x3(gx * gx), self.sum3x3(gy * gy), self.sum3x3(gx * gy)
        return xx * yy - xy * xy - 0.04 * (xx + yy) * (xx + yy)

    def bilateral5x5(self, a: Any) -> Any:
        at = self.lib.window(a, 2, "edge")
        total = weights = 0
        for r in range(5):
            for c in range(5):
                difference = at(r - 2, c - 2) - a
                weight = self.xp.exp(-(difference * difference) * RANGE) * SPATIAL[r][c]
                total, weights = total + weight * at(r - 2, c - 2), weights + weight
        return total / weights

    def mean_variance(self, a: Any) -> tuple[Any, Any]:
        ones = (1.0,) * 15
        mean, squares = (self.blurred(x, ones, "edge") * (1 / 225) for x in (a, a * a))
        return mean, squares - mean * mean

    def nlm(self, a: Any) -> Any:
        at = self.lib.window(a, 3, "edge")
        total = weights = 0
        for r, c in SEARCH:
            difference = at(r, c) - a
            weight = self.xp.exp(-NEARNESS * self.sum3x3(difference * difference))
            total, weights = total + weight * at(r, c), weights + weight
        return total / weights

    # --- images -------------------------------------------------------------------------------------------------

    def unsharp(self, picture: Any) -> Any:
        return picture + 1.5 * (picture - self.blurred(picture, gaussian_weights(2.0), "reflect"))

    def canny(self, image: Any) -> Any:
        where, cast = self.xp.where, self.lib.cast
        gx, gy = self.gradients(self.blurred(image, gaussian_weights(1.0), "reflect"))
        own = self.xp.sqrt(gx * gx + gy * gy)
        at = self.lib.window(own, 1, "zero")

        def largest(r: int, c: int) -> Any:
            return (own > at(r, c)) & (own >= at(-r, -c))

        slanted = where(gx * gy > 0, largest(1, 1), largest(1, -1))
        steep = where(abs(gx) < abs(gy) * TANGENT, largest(1, 0), slanted)
        kept = where(abs(gy) < abs(gx) * TANGENT, largest(0, 1), steep)
        return cast(kept & (own > 0.15), "uint8") + cast(kept & (own > 0.3), "uint8")

    def luma_blur_threshold(self, picture: Any) -> Any:
        red, green, blue = (self.lib.cast(picture[..., k], "int32") for k in range(3))
        grey = (77 * red + 150 * green + 29 * blue) >> 8
        blurred = (self.blurred(grey, BINOMIAL, "edge", (1, 0)) + 128) >> 8
        return self.lib.cast(blurred > 128, "uint8") * 255

    def grade(self, picture: Any) -> Any:
        red, green, blue = (self.lib.cast(picture[..., k], "float32") for k in range(3))
        mixed = [a * red + b * green + c * blue + (LIFT + 0.5) for a, b, c in GRADING]
        return self.lib.cast(self.xp.clip(self.xp.stack(mixed, -1), 0, 255), "uint8")

    def unsharp_bytes(self, picture: Any) -> Any:
        sharp = self.unsharp(self.lib.cast(picture, "float32"))
        return self.lib.cast(self.xp.clip(sharp + 0.5, 0, 255), "uint8")

    def auto_exposure(self, image: Any) -> Any:
        xp, cast = self.xp, self.lib.cast
        counts = self.lib.counts(cast(self.sum3x3(image) * (1 / 9) * 255, "uint8"))
        above = xp.cumsum(xp.flip(counts, (0,)), 0)
        reached = (above < image.shape[0] * image.shape[1] // 10).sum()  # of the brightest levels
        return xp.clip(image * (0.9 * 255 / cast(xp.clip(255 - reached, 1, None), "float32")), None, 1)

    def camera(self, raw: Any) -> Any:
        xp, cast = self.xp, self.lib.cast
        raw = cast(raw, "float32")
        at = self.lib.window(raw, 2, "reflect")
        low = xp.minimum(xp.minimum(at(-2, 0), at(2, 0)), xp.minimum(at(0, -2), at(0, 2)))
        high = xp.maximum(xp.maximum(at(-2, 0), at(2, 0)), xp.maximum(at(0, -2), at(0, 2)))
        own = xp.minimum(xp.maximum(raw, low), high)
        at = self.lib.window(own, 1, "reflect")
        sides, ends = (at(0, -1) + at(0, 1)) * 0.5, (at(-1, 0) + at(1, 0)) * 0.5
        corners = (at(-1, -1) + at(-1, 1) + at(1, -1) + at(1, 1)) * 0.25
        row, column = self.lib.parity(raw, 0), self.lib.parity(raw, 1)
        red = xp.where(row, xp.where(column, sides, own), xp.where(column, corners, ends))
        green = xp.where(row == column, own, (sides + ends) * 0.5)
        blue = xp.where(row, xp.where(column, ends, corners), xp.where(column, own, sides))
        pixel = [v * (1 / 1023) for v in (red, green, blue)]
        return xp.stack([self.finished(sum(w * v for w, v in zip(ws, pixel, strict=True))) for ws in COLOURS], -1)

    def finished(self, x: Any) -> Any:
        x = self.xp.clip(x, 0, None)
        x = x * (6.2 * x + 0.5) / (x * (6.2 * x + 1.7) + 0.06)
        at = self.lib.window(x, 1, "reflect")
        x = x + 0.5 * (x - 0.25 * (at(-1, 0) + at(1, 0) + at(0, -1) + at(0, 1)))
        return self.lib.cast(self.xp.clip(x * 255 + 0.5, 0, 255), "uint8")

    # --- pyramids -----------------------------------------------------------------------------------------------

    def pyramid(self, a: Any) -> list[Any]:
        levels = [a]
        while len(levels) < LEVELS:
            for axis in (0, 1):
                w, x, y, z = self.lib.every_other(a, axis)
                a = (w + 3 * x + 3 * y + z) * 0.125
            levels.append(a)
        return levels

    def up(self, a: Any, like: Any) -> Any:
        for axis in (0, 1):
            near, far = self.lib.doubled(a, like.shape[axis], axis)
            a = 0.75 * near + 0.25 * far
        return a

    def details(self, levels: list[Any]) -> list[Any]:
        return [a - self.up(b, a) for a, b in zip(levels, levels[1:], strict=False)] + [levels[-1]]  # noqa: RUF007

    def collapsed(self, levels: list[Any]) -> Any:
        result = levels[-1]
        for level in levels[-2::-1]:
            result = level + self.up(result, level)
        return result

    def pyramid_blend(self, a: Any, b: Any, mask: Any) -> Any:
        parts = zip(self.details(self.pyramid(a)), self.details(self.pyramid(b)), self.pyramid(mask), strict=True)
        return self.collapsed([m * x + (1 - m) * y for x, y, m in parts])

    def local_laplacian(self, image: Any) -> Any:
        centres = [k / (INTENSITIES - 1) for k in range(INTENSITIES)]
        grown = [image + ALPHA * d * self.xp.exp(-(d * d) * (0.5 / SIGMA**2)) for d in (image - k for k in centres)]
        levels, chosen = self.pyramid(image), []
        for detail, coarse in zip(self.details(self.pyramid(self.xp.stack(grown, -1)))[:-1], levels, strict=False):
            level = self.xp.clip(coarse, 0, 1) * (INTENSITIES - 1)
            below = self.xp.clip(self.lib.cast(level, "int32"), 0, INTENSITIES - 2)
            part = level - self.lib.cast(below, "float32")
            chosen.append((1 - part) * self.lib.chosen(detail, below) + part * self.lib.chosen(detail, below + 1))
        return self.collapsed([*chosen, levels[-1]])

    # --- simulations and reductions -----------------------------------------------------------------------------

    def life(self, cells: Any) -> Any:
        at = self.lib.window(cells, 1, "wrap")
        neighbours = sum(at(r, c) for r in (-1, 0, 1) for c in (-1, 0, 1) if r or c)
        return self.lib.cast((neighbours == 3) | ((neighbours == 2) & (cells == 1)), "uint8")

    def life_trace(self, cells: Any, trace: Any) -> tuple[Any, Any]:
        return self.life(cells), self.xp.maximum(0.97 * trace, self.lib.cast(cells, "float32"))

    def gray_scott(self, u: Any, v: Any) -> tuple[Any, Any]:
        for _ in range(10):
            uvv, (lu, lv) = u * v * v, map(self.laplacian, (u, v))
            u, v = u + (0.16 * lu - uvv + 0.035 * (1 - u)), v + (0.08 * lv + uvv - 0.095 * v)
        return u, v

    def laplacian(self, a: Any) -> Any:
        at = self.lib.window(a, 1, "wrap")
        return at(-1, 0) + at(1, 0) + at(0, -1) + at(0, 1) - 4 * a

    def heat1(self, u: Any) -> Any:
        at = self.lib.window(u, 1, "edge", 3)
        sides = at(-1, 0, 0) + at(1, 0, 0) + at(0, -1, 0) + at(0, 1, 0) + at(0, 0, -1) + at(0, 0, 1)
        return u + 0.1 * (sides - 6 * u)

    def heat2(self, u: Any) -> Any:
        return self.heat1(self.heat1(u))

    def heat10(self, u: Any) -> Any:
        for _ in range(10):
            u = self.heat1(u)
        return u

    def sum(self, x: Any) -> Any:
        return self.chain8(x).sum()

    def row_sums(self, x: Any) -> Any:
        return self.chain8(x).sum(1)

    def column_sums(self, x: Any) -> Any:
        return self.chain8(x).sum(0)

    def transpose(self, x: Any) -> Any:
        return self.lib.contiguous(self.chain8(x).T)

    def histogram(self, levels: Any) -> Any:
        return self.lib.counts(levels)
