"""CUDA architectures: the code of a bundle that a GPU runs, and warnings about GPUs without code of their own."""

from __future__ import annotations

from collections.abc import Collection, Iterator

GPUS = (70, 72, 75, 80, 86, 87, 88, 89, 90, 100, 103, 110, 120, 121)  # all architectures


def code_for(architecture: int, available: Collection[int]) -> tuple[int, str] | None:
    """The code that a GPU runs: the newest that it supports; a "cubin" of its major architecture, else "ptx".

    Args:
        architecture: as 86.
        available: the architectures with code.
    """
    older = [n for n in available if n <= architecture]
    if not older:
        return None
    newest = max(older)
    return newest, "cubin" if newest // 10 == architecture // 10 else "ptx"


def holes(available: Collection[int]) -> Iterator[str]:
    """Yield a sentence for each group of GPUs without code of their own, with the code that they run instead."""
    instead: dict[int | None, list[int]] = {}
    for architecture in GPUS if available else ():
        choice = code_for(architecture, available)
        if choice is None and any(n // 10 == architecture // 10 for n in available):
            instead.setdefault(None, []).append(architecture)
        elif choice is not None and choice[1] == "ptx" and architecture < max(available):
            instead.setdefault(choice[0], []).append(architecture)
    for code, without in instead.items():
        who, add = ", ".join(f"sm_{n}" for n in without), f"--targets sm_{without[0]},…"
        if code is None:
            yield f"{who} cannot run it: code for sm_{min(available)} is for newer GPUs; add {add}"
        else:
            yield f"{who} run PTX of sm_{code}, which their driver compiles at the first call; add {add}"
