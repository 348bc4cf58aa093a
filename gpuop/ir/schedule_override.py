"""Schedule override: a schedule that a user chose."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Pin:
    """A method of `passes/schedules/`, by name, and parameters that stand for its own best guess; "plain" is none of them."""

    method: str
    parameters: tuple[tuple[str, int], ...] = ()

    def __str__(self) -> str:
        return " ".join((self.method, *(f"{name}={value}" for name, value in self.parameters)))
