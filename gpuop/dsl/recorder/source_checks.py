"""Checks on the source of a kernel body for faults that running it does not show: a `return` inside a recorded block."""

from __future__ import annotations

import ast
import linecache
import threading
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from types import CodeType

from gpuop.base.errors import PACKAGE, Loc, SemanticError
from gpuop.dsl.recorder.frames import once_per_code

MOST_FILES = 64  # files whose syntax is remembered
PARSING = threading.Lock()  # Python 3.11 counts the depth of all threads' syntax trees together
BLOCKS = {
    "_if", "_elseif", "_else", "_codegenIf", "_codegenElseif", "_codegenElse", "_for", "_window", "_while", "_forEachTensorElement",
}  # fmt: skip

BLOCK_FIELDS = ("body", "orelse", "finalbody", "handlers", "cases")  # fields of syntax nodes that hold statements


@once_per_code
def check_returns(code: CodeType) -> None:
    """Refuse a `return` inside a block: Python would leave the recording there, whatever the condition.

    Files are parsed for users' functions with blocks alone, as a file takes many milliseconds.

    Raises:
        SemanticError: at the line of the `return`.
    """
    names = (*code.co_names, *code.co_freevars, *code.co_varnames)
    if BLOCKS.isdisjoint(names) or code.co_filename.startswith(PACKAGE):
        return
    for function in _functions(code.co_filename).get((code.co_name, code.co_firstlineno), ()):
        for stmt in function.body:
            _check(stmt, code.co_filename, "")


def _check(node: ast.AST, file: str, block: str) -> None:
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
        return
    if isinstance(node, ast.Return) and block:
        raise SemanticError(
            f"`return` inside a `with {block}(…)` block ends the recording whatever the condition is; "
            "assign a variable inside (`v @= …`) and return it at the end, or write outputs and call `_return()`",
            Loc(file, node.lineno),
        )
    if isinstance(node, ast.With):
        block = next(filter(None, map(_block_name, node.items)), block)
    for child in ast.iter_child_nodes(node):
        _check(child, file, block)


def _block_name(item: ast.withitem) -> str:
    called = item.context_expr.func if isinstance(item.context_expr, ast.Call) else None
    name = called.id if isinstance(called, ast.Name) else called.attr if isinstance(called, ast.Attribute) else ""
    return name if name in BLOCKS else ""


@lru_cache(maxsize=MOST_FILES)
def _functions(file: str) -> dict[tuple[str, int], list[ast.FunctionDef]]:
    """The functions of a file by name and first line; none where the source is not available."""
    result: dict[tuple[str, int], list[ast.FunctionDef]] = {}
    with suppress(SyntaxError), PARSING:
        for node in _statements(ast.parse("".join(linecache.getlines(file)))):
            if isinstance(node, ast.FunctionDef):
                first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
                result.setdefault((node.name, first), []).append(node)
    return result


def _statements(tree: ast.Module) -> Iterator[ast.AST]:
    """Statements of a file, and the nodes between them and their blocks. Expressions, most of a tree, are skipped."""
    pending: list[ast.AST] = [*tree.body]
    while pending:
        node = pending.pop()
        yield node
        for block in BLOCK_FIELDS:
            pending += getattr(node, block, ())
