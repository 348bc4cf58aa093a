"""What the source of a kernel body shows that running it does not: a `return` inside a recorded block."""

from __future__ import annotations

import ast
import linecache
from functools import lru_cache
from types import CodeType

from gpuop.dsl.recorder.frames import once_per_code
from gpuop.errors import Loc, SemanticError

MOST_FILES = 64  # files whose syntax is remembered
BLOCKS = {
    "_if", "_elseif", "_else", "_codegenIf", "_codegenElseif", "_codegenElse", "_for", "_while", "_forEachTensorElement",
}  # fmt: skip


@once_per_code
def check_returns(code: CodeType) -> None:
    """Refuse a `return` inside a block: Python would leave the recording there, whatever the condition.

    Raises:
        SemanticError: at the line of the `return`.
    """
    for function in ast.walk(_tree(code.co_filename)):
        if (
            isinstance(function, ast.FunctionDef)
            and function.name == code.co_name
            and _first_line(function) == code.co_firstlineno
        ):
            for stmt in function.body:
                _check(stmt, code.co_filename, "")


def _check(node: ast.AST, file: str, block: str) -> None:
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
        return
    if isinstance(node, ast.Return) and block:
        raise SemanticError(
            f"`return` inside a `with {block}(…)` block ends the recording whatever the condition is; "
            "assign a variable inside (`v @= …`) and return it at the end",
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


def _first_line(function: ast.FunctionDef) -> int:
    return min([function.lineno, *(decorator.lineno for decorator in function.decorator_list)])


@lru_cache(maxsize=MOST_FILES)
def _tree(file: str) -> ast.Module:
    """The file's syntax; empty where the source is not available."""
    try:
        return ast.parse("".join(linecache.getlines(file)))
    except SyntaxError:
        return ast.Module([], [])
