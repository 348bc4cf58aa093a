"""CUDA's conversions of floats to integers: truncated, saturated at the integers' bounds, 0 of a NaN."""

from __future__ import annotations

SATURATE = """
// truncates; saturates at the bounds, whose targets are given; NaN gives 0
template <class To, class From>
__device__ inline To saturate(From x, From low, From high, To lowest, To highest)
{
    return x != x ? (To)0 : x <= low ? lowest : x >= high ? highest : (To)x;
}

// an instruction does all of that
template <>
__device__ inline int saturate(float x, float, float, int, int)
{
    return __float2int_rz(x);
}

// of a double that is NaN it gives the least integer
template <>
__device__ inline int saturate(double x, double, double, int, int)
{
    return x != x ? 0 : __double2int_rz(x);
}
"""
