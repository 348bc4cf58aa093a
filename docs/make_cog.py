"""Makes the last section of docs/how-to/port-from-cog.md: how each function of `gpuop.cog` is called, of signatures and docstrings.

python docs/make_cog.py
"""

from __future__ import annotations

import inspect
from pathlib import Path

from gpuop import cog

PAGE = Path(__file__).parent / "how-to" / "port-from-cog.md"
TITLE = "## Signatures"
HEAD = f"""{TITLE}

Of the functions that `gpuop.cog` has of its own, made by `make_cog.py` of their docstrings, which say more; all others are NumPy's
and `gp.linalg`'s under Cog's names. The weights of correlations and convolutions may be arrays, but for frames.

| `cog.` | gives |
|---|---|
"""


def section() -> str:
    own = {
        n: f
        for n, f in vars(cog).items()
        if n in cog.__all__ and inspect.isroutine(f) and f.__module__.startswith(("gpuop.cog", "gpuop.lib.cog"))
    }
    rows = (f"| `{name}{_arguments(f)}` | {_sentence(f)} |" for name, f in sorted(own.items()))
    return HEAD + "\n".join(rows) + "\n"


def _arguments(function: object) -> str:
    """The signature, without annotations."""
    given = inspect.signature(function)  # type: ignore[arg-type]
    kept = [p.replace(annotation=p.empty) for p in given.parameters.values()]
    return str(given.replace(parameters=kept, return_annotation=given.empty))


def _sentence(function: object) -> str:
    first = (inspect.getdoc(function) or "").split("\n\n")[0]
    return " ".join(first.split()).replace("|", "\\|")


def page() -> str:
    """The page, with the section made again."""
    return PAGE.read_text(encoding="utf-8").partition(TITLE)[0].rstrip() + "\n\n" + section()


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
