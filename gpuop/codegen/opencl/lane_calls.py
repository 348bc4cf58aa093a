"""Function calls whose results do not depend on vectorization: they keep the bits of fused kernels on PoCL.

The PoCL functions within an error bound differ between vectors and scalars (those of Intel agree), so scalar code calls the vector
functions too. Some of them branch on all lanes, so a lane's bits depend on its neighbours; these take one fixed branch, on which
they agree with the scalar function. Some are our own: the PoCL pow takes three times as long, its exp twice, its rounding to
halves four times, and as long to compile.
"""

from __future__ import annotations

from collections.abc import Sequence

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
# The coefficients are the best for (e^r - 1 - r) / r^2 of |r| up to log 2.
EXP = """
// e to the power x within 2 ulp, as e^r 2^h 2^h; the last bits of t are h + 127
float{n} exp_lanes{n}(float{n} x)
{{
    const float{n} least = -104.0f, most = 89.0f, above = select(x, least, x < least);
    const float{n} inside = select(above, most, above > most);
    const float{n} t = fma(inside, 0.7213475f, 12583039.0f), h = t - 12583039.0f;
    const float{n} r = fma(h, 3.8093048e-9f, fma(h, -1.3862944f, inside));
    const float{n} p = fma(r, fma(r, fma(r, 0.00019611396f, 0.0014104469f), 0.008336104f), 0.04166127f);
    const float{n} q = fma(r, fma(r, p, 0.16666614f), 0.50000036f);
    const float{n} root = as_float{n}(as_int{n}(t) << 23);
    return (fma(r * r, q, r) + 1.0f) * root * root;
}}
"""
# The logarithm's series is that of 2 atanh((m - 1) / (m + 1)), its first term and the sum in two floats each, as in
# Dekker, A floating-point technique for extending the available precision (1971). The coefficients are interpolations at
# Chebyshev nodes, of the rest of the series for m from sqrt(1/2) to sqrt(2), and of 2^f for f from -1/2 to 1/2.
POW = """
// x to the power y, as 2^(y log2 |x|) within 2 ulp; log2 |x| in two floats, high + low, of |x| = 2^e m
float{n} pow_lanes{n}(float{n} x, float{n} y)
{{
    const float{n} a = fabs(x), zero = 0.0f;
    const int{n} tiny = a < 0x1p-126f;
    const int{n} bits = as_int{n}(select(a, a * 0x1p24f, tiny)), e = (bits - 0x3f3504f3) >> 23;
    const float{n} m = as_float{n}(bits - (e << 23)), d = m + 1.0f;

    // (m - 1) / (m + 1) = r + r_low, and log2 m = p + p_low + q
    const float{n} r = (m - 1.0f) / d, s = r * r;
    const float{n} r_low = (fma(-r, d, m - 1.0f) - r * (m - (d - 1.0f))) / d;
    const float{n} q = r * s * fma(s, fma(s, fma(s, 0.33658746f, 0.41190127f), 0.5770798f), 0.9617967f);
    const float{n} p = r * 2.88539f;
    const float{n} p_low = fma(r, 2.88539f, -p) + (r * 3.851926e-8f + r_low * fma(s, 2.88539f, 2.88539f));
    const float{n} log_m = p + q, log_m_low = (p - log_m) + q + p_low;
    const float{n} whole = convert_float{n}(e) - select(zero, zero + 24.0f, tiny);
    const float{n} sum = whole + log_m, low = (whole - sum) + log_m + log_m_low;
    const float{n} high = select(select(sum, zero - INFINITY, a == 0.0f), zero + INFINITY, a == INFINITY);

    // z + z_low = y log2 |x|, where 2^z is neither 0 nor infinite
    const float{n} z = y * high, z_low = fma(y, high, -z) + y * low;
    const int{n} inside = fabs(z) < 200.0f;
    const float{n} near = rint(select(copysign(zero + 200.0f, z), z, inside));
    const float{n} f = select(zero, z - near + z_low, inside);
    const float{n} g = fma(f, fma(f, fma(f, 0.00015461445f, 0.0013400428f), 0.009618057f), 0.05550327f);
    const int{n} k = convert_int{n}(near), part = k >> 1;
    const float{n} size = fma(f, fma(f, fma(f, g, 0.24022651f), 0.6931472f), 1.0f)
        * as_float{n}((part + 127) << 23) * as_float{n}((k - part + 127) << 23);

    const int{n} integer = rint(y) == y, odd = integer & (rint(0.5f * y) != 0.5f * y);
    const float{n} one = select(size, zero + 1.0f, (y == 0.0f) | (a == 1.0f));
    const float{n} result = select(one, copysign(one, x), odd);
    const float{n} real = select(result, zero + NAN, (x < 0.0f) & (a < INFINITY) & !integer);
    return select(real, x + y, ((x != x) | (y != y)) & (x != 1.0f) & (y != 0.0f));
}}
"""
NEAREST_HALF = """
// the nearest half, as a float: of 11 bits, or, below 2^-14, of a multiple of 2^-24
float{n} nearest_half{n}(float{n} x)
{{
    const float{n} a = fabs(x), small = copysign((a + 0.75f) - 0.75f, x);
    const uint{n} bits = as_uint{n}(x), rounded = bits + 0xfffu + (bits >> 13 & 1u);
    const float{n} near = select(as_float{n}(rounded & 0xffffe000u), small, a < 0x1p-14f);
    return select(x * INFINITY, near, a < 65520.0f);
}}
"""
LENGTHS = (2, 4, 8, 16)
TRIGONOMETRIC, OWN = ("sin", "cos", "tan"), ("exp", "pow")
HELPERS = {
    **{f"{op}_lanes{n}": NEAR.format(op=op, n=n) for op in TRIGONOMETRIC for n in LENGTHS},
    **{f"exp_lanes{n}": EXP.format(n=n) for n in ("", *LENGTHS)},
    **{f"pow_lanes{n}": POW.format(n=n) for n in ("", *LENGTHS)},
    **{f"nearest_half{n}": NEAREST_HALF.format(n=n) for n in ("", *LENGTHS)},
}


def name_in_vectors(op: str, n: int) -> str:
    """The function that vectors call."""
    return f"{op}_lanes{n}" if op in (*TRIGONOMETRIC, *OWN) else op


def called_alone(op: str, n: int, args: Sequence[tuple[DType, str]]) -> str:
    """Replacement of a scalar function in scalar code; "" if the scalar function gives the same bits.

    Args:
        n: the length of the vectors whose bits are wanted; kernels that compute with doubles have none.
        args: types and texts.
    """
    if OPS[op].ulp == 0 or args[0][0].c != "float" or op in TRIGONOMETRIC:
        return ""
    if op in OWN:
        return f"{op}_lanes({', '.join(text for _, text in args)})"
    return f"{op}({', '.join(f'({dtype.c}{n})({text})' for dtype, text in args)}).s0"
