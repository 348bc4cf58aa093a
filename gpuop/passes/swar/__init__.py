"""Stencils of bytes on GPUs: four values in a 32-bit word (SIMD within a register)."""
