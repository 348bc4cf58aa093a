"""The shape of the package: imports point one way, heavy packages wait, files and functions stay short, names are documented."""

from __future__ import annotations

import ast
import gc
import inspect
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import networkx as nx
import pytest

import gpuop as gp
import gpuop.dsl
from gpuop.base.cache.disk_memo import MAKERS
from gpuop.dsl.vocabulary import OF_THE_GUIDE

PACKAGE = Path(gp.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))
ONE_SYSTEM = {
    "fcntl",
    "grp",
    "msvcrt",
    "posix",
    "pty",
    "pwd",
    "resource",
    "syslog",
    "termios",
    "tty",
    "winreg",
}  # modules
KINDS = ("create", "elementwise", "layout", "reduce", "scan", "select", "sort")  # of functions, which use one another
BELOW = {  # what each room may import; the files beside the rooms are the public faces of libraries
    "base": set[str](),
    "ir": {"base"},
    "passes": {"base", "ir"},
    "codegen": {"base", "ir", "passes"},
    "fusion": {"base", "ir", "passes"},
    "dsl": {"base", "ir", "passes"},
    "ops": {"base", "ir", "passes", "dsl"},
    "gradients": {"base", "ir", "passes", "fusion", "dsl", "ops", "engine"},
    "runtime": {"base", "ir", "passes", "codegen", "fusion"},
    "engine": {"base", "ir", "passes", "codegen", "fusion", "dsl", "ops", "runtime"},
    "transforms": {"base", "ir", "dsl", "fusion", "ops", "gradients", "engine"},
    "frameworks": {"base", "ir", "dsl", "ops", "runtime", "engine", "gradients", "transforms"},
    "lib": {"base", "ir", "passes", "fusion", "dsl", "ops", "runtime", "engine"},
    "scaleout": {"base", "ir", "passes", "fusion", "dsl", "ops", "runtime", "engine"},
    "testing": {"base", "ir", "dsl", "gradients", "runtime"},
    "array_namespace": {"base", "lib"},
    "cog": {"base", "lib", "linalg"},
    "fft": {"base", "lib"},
    "linalg": {"base", "lib"},
    "ndimage": {"base", "lib"},
    "random": {"base", "lib"},
    "dask": {"base", "scaleout"},
    "mpi": {"base", "scaleout"},
    "torch": {"base", "frameworks"},
    "jax": {"base", "frameworks"},
    "providers": {"array_namespace", "dsl", "engine", "ir"},
    "__main__": {"base", "engine"},
    "__init__": {
        "base",
        "ir",
        "passes",
        "dsl",
        "ops",
        "gradients",
        "runtime",
        "engine",
        "transforms",
        "scaleout",
        "providers",
    }
    | {"array_namespace", "cog", "fft", "linalg", "ndimage", "random"},
}
ROOMS = {  # the same, for folders in a room: those of the room that they may import
    "base/cache": {"base"},
    "codegen/c": set[str](),
    "codegen/cuda": {"codegen/c"},
    "codegen/opencl": {"codegen/c"},
    "dsl/recorder": set[str](),
    "dsl/builtins": {"dsl/recorder"},
    "dsl/fields": {"dsl/recorder"},
    "dsl/guards": {"dsl/recorder", "dsl/builtins", "dsl/fields"},
    "dsl/operators": {"dsl/recorder", "dsl/builtins", "dsl/fields", "dsl/guards"},
    "engine/show": set[str](),
    "engine/jit": {"engine"},
    "engine/graphs": {"engine", "engine/jit", "engine/show"},
    "engine/bundles": {"engine", "engine/graphs"},
    "engine/cli": {"engine", "engine/bundles", "engine/jit"},
    "gradients/kernels": set[str](),
    "fusion/report": {"fusion"},
    "fusion/windows": {"fusion"},
    "ir/analysis": {"ir"},
    "ir/expansions": {"ir"},
    "lib/array_api": {"lib/linalg"},
    "lib/cog": {"lib/fft", "lib/ndimage/filters", "lib/ndimage/interpolation"},
    "lib/fft": {"lib/fft/kernels", "lib/ndimage"},
    "lib/fft/kernels": set[str](),
    "lib/linalg": set[str](),
    "lib/ndimage": set[str](),
    "lib/ndimage/filters": {"lib/fft/kernels", "lib/ndimage"},
    "lib/ndimage/morphology": {"lib/ndimage", "lib/ndimage/filters", "lib/ndimage/measure"},
    "lib/ndimage/measure": {"lib/ndimage", "lib/ndimage/morphology"},
    "lib/ndimage/distance": {"lib/ndimage", "lib/ndimage/measure", "lib/ndimage/morphology"},
    "lib/ndimage/interpolation": {"lib/ndimage", "lib/ndimage/filters"},
    "lib/random": set[str](),
    "passes/collectives": set[str](),
    "passes/regions": {"passes"},
    "passes/swar": {"passes"},
    "passes/schedules": {"passes/schedules/common", "passes/schedules/cpu", "passes/schedules/gpu"},
    "passes/schedules/common": {"passes"},
    "passes/schedules/cpu": {"passes", "passes/schedules/common"},
    "passes/schedules/gpu": {"passes", "passes/schedules/common", "passes/swar"},
    "runtime/base": set[str](),
    "runtime/files": {"runtime/base"},
    "runtime/reference": {"runtime/base"},
    "runtime/opencl": {"runtime/base"},
    "runtime/cuda": {"runtime/base"},
    "runtime/profile": {"runtime", "runtime/base"},
    "runtime/tuning": {"runtime/base", "runtime/profile"},
    "scaleout/dask": {"scaleout"},
    "scaleout/mpi": {"scaleout"},
    "scaleout/stream": {"scaleout"},
    **{f"ops/{kind}": {"ops"} | {f"ops/{k}" for k in KINDS} for kind in KINDS},
}
WAIT = {  # packages that only these files may import, and only inside functions
    "networkx": {
        "fusion/groups.py",
        "fusion/program.py",
        "fusion/recompute.py",
        "fusion/report/networks.py",
        "fusion/report/plan_report.py",
        "fusion/unfuse.py",
        "fusion/register_split.py",
    },
    "PIL": {"engine/show/raster.py"},
    "pyopencl": {
        "runtime/opencl/device.py",
        "runtime/opencl/discovery.py",
        "runtime/opencl/programs.py",
    },
    "pycuda": {"runtime/cuda/device.py", "runtime/cuda/memory.py"},
    "cuda": {"runtime/cuda/driver.py", "runtime/cuda/memory.py"},
}
LATE = {"__main__.py", "providers.py", "testing/plugin.py"}  # whose functions import what they need of gpuop
MOST_LINES = 500
CLAUSE = re.compile(r'^ *"""(What|Which|Where|How|Whether|That|Why|Who) .*', re.MULTILINE)
PARTICIPLES = {"found", "given", "told", "made", "held", "kept", "taken", "got"}


@cache
def trees() -> dict[Path, ast.Module]:
    """Not parsed by workers that other tests run in."""
    return {path: ast.parse(path.read_text(encoding="utf-8")) for path in FILES}


@cache
def nodes() -> dict[Path, list[ast.AST]]:
    """All nodes of each file."""
    result = {path: list(ast.walk(tree)) for path, tree in trees().items()}
    gc.freeze()  # collections of garbage do not walk a million of them
    return result


def name_of(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def part(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def room(path: Path) -> str:
    return path.relative_to(PACKAGE).parent.as_posix()


def imports(path: Path) -> Iterator[tuple[ast.stmt, str]]:
    """Every imported module, relative ones being an error elsewhere (ruff); `from gpuop import x` may name one too."""
    for node in nodes()[path]:
        if isinstance(node, ast.Import):
            yield from ((node, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node, node.module or ""
            yield from ((node, f"{node.module}.{alias.name}") for alias in node.names)


@cache
def module(name: str) -> Path | None:
    """The file of a module of gpuop's."""
    base = PACKAGE.parent.joinpath(*name.split("."))
    return next((path for path in (base.with_suffix(".py"), base / "__init__.py") if path in trees()), None)


@cache
def imported() -> list[tuple[Path, ast.stmt, str]]:
    return [(path, node, name) for path in FILES for node, name in imports(path)]


def test_imports_point_one_way():
    for path, _, name in imported():
        target = module(name)
        if target is not None and part(target) != part(path) and name != "gpuop":
            assert part(target) in BELOW[part(path)], f"{name_of(path)} imports {name}"


def test_what_is_kept_is_made_by_files_that_are_known():
    """Whose texts and choices are kept on disk may import nothing that is not in the digest of `base/cache/disk_memo.py`."""
    assert {"codegen", "passes"} <= set(MAKERS)
    assert set().union(*(BELOW[folder] for folder in MAKERS)) <= set(MAKERS)


def test_every_part_is_listed():
    assert {part(path) for path in FILES} == set(BELOW)


def test_rooms_import_one_way():
    for path, _, name in imported():
        own, target = room(path), module(name)
        if own not in ROOMS or target is None or target.name == "__init__.py" or part(target) != part(path):
            continue
        assert room(target) == own or room(target) in ROOMS[own], f"{name_of(path)} imports {name}"


def test_every_room_is_listed():
    assert {room(path) for path in FILES if "/" in room(path)} == set(ROOMS)


def test_a_name_is_one_class():
    classes = Counter(n.name for tree in trees().values() for n in tree.body if isinstance(n, ast.ClassDef))
    # a kernel's threads and the grid of MPI's ranks; a program of CUDA and a module of PyTorch: both are called so
    assert sorted(name for name, n in classes.items() if n > 1) == ["Domain", "Module"]


def kinds(base: str) -> dict[str, str]:
    """The classes that name a class as their base, and their files."""
    return {n.name: name_of(path) for path, n in classes() if base in map(ast.unparse, n.bases)}


@cache
def classes() -> list[tuple[Path, ast.ClassDef]]:
    return [(path, n) for path, each in nodes().items() for n in each if isinstance(n, ast.ClassDef)]


def test_kinds_of_what_is_launched():
    """A kind more is asked for where plans are compiled, read and told of: these files match on it."""
    assert kinds("Launchable") == {
        "Kernel": "ir/kernel.py",
        "HostFunction": "ir/kernel.py",
        "DeviceFunction": "ir/kernel.py",
        "Iteration": "fusion/iteration.py",
        "Reversal": "fusion/iteration.py",
        "Prebuilt": "runtime/execute.py",
        "Variants": "ir/variants.py",
    }
    assert not any(kinds(kind) for kind in kinds("Launchable"))


def test_kinds_of_sources():
    """Each answers what `LeafSource` asks; nobody tells them apart otherwise than by the one that is looked for."""
    assert kinds("LeafSource") == {
        "NoValues": "ir/values.py",
        "HostArray": "dsl/fields/sources.py",
        "Adjustable": "dsl/fields/sources.py",
        "Deferred": "dsl/fields/sources.py",
        "Evaluated": "runtime/base/device_sources.py",
        "Shared": "runtime/base/device_sources.py",
        "Frames": "engine/graphs/sensors.py",
        "FollowedNumbers": "engine/parameter_numbers.py",
    }
    assert not any(kinds(kind) for kind in kinds("LeafSource"))


def test_no_cycles():
    graph = nx.DiGraph()
    for file, each in nodes().items():
        typing = [n for n in each if isinstance(n, ast.If) and "TYPE_CHECKING" in ast.unparse(n.test)]
        skipped = {node for block in typing for node in ast.walk(block)}
        targets = {module(name) for node, name in imports(file) if node not in skipped} - {None, file}
        graph.add_edges_from((name_of(file), name_of(t)) for t in targets if t is not None and t.name != "__init__.py")
    assert list(nx.simple_cycles(graph)) == []


def test_heavy_packages_wait():
    functions = (f for each in nodes().values() for f in each if isinstance(f, ast.FunctionDef))
    inside = {n for f in functions for n in ast.walk(f)}
    for path, node, name in imported():
        package = name.split(".")[0]
        if package in WAIT:
            assert name_of(path) in WAIT[package] and node in inside, f"{name_of(path)}:{node.lineno} imports {package}"
        late = package == "gpuop" and name_of(path) not in LATE
        assert not late or node not in inside, f"{name_of(path)}:{node.lineno} imports {name} in a function"


def test_data_classes_are_defined_by_one_file():
    """Those of the standard library took half of the time to import gpuop."""
    for path, each in nodes().items():
        for node in each:
            if isinstance(node, ast.ImportFrom) and node.module == "dataclasses" and name_of(path) != "base/records.py":
                where = f"{name_of(path)}:{node.lineno}"
                standard = any(alias.name == "dataclass" for alias in node.names)
                assert not standard, f"{where}: write `from gpuop.base.records import dataclass`"


def test_modules_of_one_system_have_one_file():
    users = {name_of(path) for path, _, name in imported() if name in ONE_SYSTEM}
    assert users == {"base/system.py"}


def test_length():
    for path, each in nodes().items():
        lines = len(path.read_text(encoding="utf-8").splitlines())
        assert lines <= MOST_LINES, f"{name_of(path)} has {lines} lines"
        for node in each:
            if isinstance(node, ast.FunctionDef):
                assert (node.end_lineno or 0) - node.lineno < 40, f"{node.name} has more than 40 lines"


def test_import_is_light():
    code = f"import sys, gpuop; print([name for name in {list(WAIT)} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=PACKAGE.parent)
    assert done.stdout == "[]\n", done.stderr


def test_public_names_are_documented():
    for name in gp.__all__:
        assert inspect.getdoc(getattr(gp, name)), f"gpuop.{name} has no docstring"
    for name in gpuop.dsl.__all__:
        value = getattr(gpuop.dsl, name)  # thread constants and outputs are no functions
        assert name.startswith("_") or name in OF_THE_GUIDE
        assert inspect.getdoc(value) or not callable(value), f"{name} has no docstring"


def test_docstrings_begin_with_a_noun():
    """No clause is a title: "The number of turns", not "How many turns"."""
    folders = [PACKAGE.parent / name for name in ("benchmarks", "examples", "gpuop", "tests")]
    files = [path for folder in folders for path in folder.rglob("*.py")]
    heads = {f"{path}: {head[0]}" for path in files for head in CLAUSE.finditer(path.read_text(encoding="utf-8"))}
    assert not heads, "\n".join(sorted(heads))


def test_names_are_nouns():
    """Variables, arguments and attributes are named after what they hold: `result`, not `found`."""
    for path, each in nodes().items():
        for node in each:
            if isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Store):
                name = node.id if isinstance(node, ast.Name) else node.attr
            else:
                name = node.arg if isinstance(node, ast.arg) else ""
            if name in PARTICIPLES:
                place = f"{name_of(path)}:{getattr(node, 'lineno', 0)}"
                pytest.fail(f"{place}: `{name}` is a participle; a name is a noun")
