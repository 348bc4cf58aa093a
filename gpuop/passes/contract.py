"""Contraction to fused multiply-adds: a product that feeds only one sum or difference is not rounded before it.

The recorded operations decide where this happens, not a compiler: `fma` is one instruction on CPUs and GPUs, and has the same
bits on all of them.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TypeGuard

from gpuop.ir.build import Builder, collector
from gpuop.ir.kernel import Kernel
from gpuop.ir.nodes import Apply, Assign, Block, Const, Expr, Let, Ref, Stmt, Var
from gpuop.ir.types import DOUBLE, FLOAT
from gpuop.ir.visit import changed, expressions, map_blocks


def contract(kernel: Kernel) -> Kernel:
    """The kernel with products of float and double contracted with their sums; not all devices have a half instruction."""
    uses = Counter(e.var for e in expressions(kernel.body) if isinstance(e, Ref))
    return replace(kernel, body=_contracted(kernel.body, uses))


def _contracted(block: Block, uses: Counter[Var]) -> Block:
    out: list[Stmt] = []
    products: dict[Var, Apply] = {}  # those that may still move to a later statement of the block
    fused: set[Var] = set()
    for stmt in block:
        stmt = map_blocks(stmt, lambda inner: _contracted(inner, uses))
        if isinstance(stmt, (Let, Assign)) and isinstance(stmt.value, Apply) and stmt.value.op in ("add", "sub"):
            product = _product(stmt.value, products)
            if product is not None:
                value = _multiply_add(collector(out, stmt.loc), stmt.value, product, products.pop(product))
                stmt = replace(stmt, value=value)
                fused.add(product)
        if changes := changed((stmt,)):
            products = {
                v: p for v, p in products.items() if not any(isinstance(a, Ref) and a.var in changes for a in p.args)
            }
        if isinstance(stmt, Let) and _may_join(stmt.value) and uses[stmt.var] == 1 and not stmt.var.mutable:
            products[stmt.var] = stmt.value
        out.append(stmt)
    return tuple(stmt for stmt in out if not (isinstance(stmt, Let) and stmt.var in fused))


def _may_join(value: Expr) -> TypeGuard[Apply]:
    """Whether a value is a product of float or double that rounds: one with 1 or -1 does not."""
    if not (isinstance(value, Apply) and value.op == "mul" and value.type.dtype in (FLOAT, DOUBLE)):
        return False
    return not any(isinstance(arg, Const) and abs(arg.value) == 1 for arg in value.args)


def _product(total: Apply, products: dict[Var, Apply]) -> Var | None:
    """The product that is contracted with a sum: the second one of two, as in `total + weight * value`."""
    return next((arg.var for arg in reversed(total.args) if isinstance(arg, Ref) and arg.var in products), None)


def _multiply_add(build: Builder, total: Apply, var: Var, product: Apply) -> Expr:
    (a, b), (first, second) = product.args, total.args
    if second != Ref(var):  # a · b + c, or a · b - c
        c = second if total.op == "add" else build.apply("neg", second)
    else:  # c + a · b, or c - a · b
        c = first
        a = a if total.op == "add" else build.apply("neg", a)
    return Apply("fma", (a, b, c), total.type)
