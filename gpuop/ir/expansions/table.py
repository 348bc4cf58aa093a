"""Functions composed of table rows and expanded while recording: no device, dialect or pass knows them.

`registry` defines an entry. Each table of the guide has a file, and so have the Python operators. This module has all of them.
"""

from gpuop.ir.expansions import common, complex, geometric, integer, math, operators, random, relational
from gpuop.ir.expansions.registry import EXPANSIONS, Function, expand

__all__ = [
    "EXPANSIONS", "Function", "common", "complex", "expand", "geometric", "integer", "math", "operators", "random", "relational",
]  # fmt: skip
