"""The kernels of a plan, launched in order with other memory at each run."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gpuop.base.records import dataclass

Values = Mapping[int, Any]  # buffers, and scalars of by-value parameters, by the numbers of values


@dataclass(frozen=True, slots=True)
class ListedLaunch:
    """A launch of a list.

    Attributes:
        program: the compiled kernel.
        numbers: the values that are its arguments, in order.
        pick: returns these arguments.
    """

    program: Any
    numbers: tuple[int, ...]
    pick: Callable[[Values], Sequence[Any]]


class LaunchList(ABC):
    """Launches in order.

    Attributes:
        any_stream: whether `run` takes a stream of the driver; others launch in the queue.
    """

    any_stream = False

    @abstractmethod
    def run(self, values: Values, memory: Values, stream: int = 0) -> dict[int, Any]:
        """Launch, in the queue or in a stream of the driver, by its number; return all values.

        Args:
            values, memory: the leaves, and the memory of all other values.
        """


class OneByOne(LaunchList):
    """Launches by a function of the queue.

    Args:
        once: launches a program with arguments.
    """

    def __init__(self, launches: Sequence[ListedLaunch], once: Callable[[Any, Sequence[Any]], None]) -> None:
        self.launches, self.once = launches, once

    def run(self, values: Values, memory: Values, stream: int = 0) -> dict[int, Any]:
        values = {**values, **memory}
        for each in self.launches:
            self.once(each.program, each.pick(values))
        return values
