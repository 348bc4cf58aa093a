"""One result for one argument, in vectors and out of them: what keeps the bits of fused kernels on PoCL.

Its functions within an error bound are others for vectors than for scalars (Intel's are the same), so scalar code calls those
of vectors too. Some look at all lanes to choose their way, so that a lane's bits depend on its neighbours: these are kept to
one way, in which they agree with the scalar function.
"""

from __future__ import annotations

from gpuop.ir.ops import OPS
from gpuop.ir.types import DType

NEAR = """
// a far lane, of those that differ from 100 on, would change the bits of near ones
float{n} {op}_lanes{n}(float{n} x)
{{
    const int{n} near = fabs(x) < 100.0f;
    float{n} y = {op}(select((float{n})(0.0f), x, near));
    if (all(near)) return y;
    float all_x[{n}], all_y[{n}];
    vstore{n}(x, 0, all_x);
    vstore{n}(y, 0, all_y);
    for (int k = 0; k < {n}; k++) {{
        if (!(fabs(all_x[k]) < 100.0f)) all_y[k] = {op}(all_x[k]);
    }}
    return vload{n}(0, all_y);
}}
"""
LENGTHS = (2, 4, 8, 16)
TRIGONOMETRIC = ("sin", "cos", "tan")
HELPERS = {f"{op}_lanes{n}": NEAR.format(op=op, n=n) for op in TRIGONOMETRIC for n in LENGTHS}


def name_in_vectors(op: str, n: int) -> str:
    """The function that vectors call."""
    return f"{op}_lanes{n}" if op in TRIGONOMETRIC else op


def is_vectors(op: str, dtype: DType) -> bool:
    """Whether scalar code calls the function of vectors; kernels that compute with doubles have no lanes."""
    return OPS[op].ulp > 0 and dtype.c == "float" and op not in TRIGONOMETRIC
