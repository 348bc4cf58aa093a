"""Which of a bundle's CUDA code runs on a GPU, and what GPUs lack of it."""

from __future__ import annotations

from collections.abc import Collection, Iterator

GPUS = (70, 72, 75, 80, 86, 87, 88, 89, 90, 100, 103, 110, 120, 121)  # the architectures that there are


def code_for(architecture: int, made: Collection[int]) -> tuple[int, str] | None:
    """The code that a GPU runs: the newest that is not newer than it, "cubin" where that is of its major architecture, else "ptx".

    Args:
        architecture: as 86.
        made: the architectures that there is code for.
    """
    older = [n for n in made if n <= architecture]
    if not older:
        return None
    newest = max(older)
    return newest, "cubin" if newest // 10 == architecture // 10 else "ptx"


def holes(made: Collection[int]) -> Iterator[str]:
    """A sentence for each group of GPUs, between or beside those that there is code for, which have none: what they run instead."""
    instead: dict[int | None, list[int]] = {}
    for architecture in GPUS if made else ():
        found = code_for(architecture, made)
        if found is None and any(n // 10 == architecture // 10 for n in made):
            instead.setdefault(None, []).append(architecture)
        elif found is not None and found[1] == "ptx" and architecture < max(made):
            instead.setdefault(found[0], []).append(architecture)
    for code, without in instead.items():
        who, add = ", ".join(f"sm_{n}" for n in without), f"--targets sm_{without[0]},…"
        if code is None:
            yield f"{who} cannot run it: code for sm_{min(made)} is for newer GPUs; add {add}"
        else:
            yield f"{who} run PTX of sm_{code}, which their driver compiles at the first call; add {add}"
