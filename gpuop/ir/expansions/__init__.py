"""Functions made of table rows, expanded when they are recorded: no device, dialect or pass knows them.

`registry` says what an entry is; there is a file for each table of the guide, and one for Python's operators.
"""

from gpuop.ir.expansions import common, complex, geometric, integer, math, operators, random, relational
from gpuop.ir.expansions.registry import EXPANSIONS, Function

__all__ = [
    "EXPANSIONS", "Function", "common", "complex", "geometric", "integer", "math", "operators", "random", "relational",
]  # fmt: skip
