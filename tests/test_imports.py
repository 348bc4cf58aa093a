"""`import gpuop` loads nearly nothing, and a program what it uses; names and tables are complete none the less."""

from __future__ import annotations

import ast
import inspect
import json
import subprocess
import sys
from collections.abc import Iterable
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import gpuop as gp
import gpuop.testing

ROOT = Path(gp.__file__).parent.parent
ALWAYS = {"gpuop"}
HEAVY = {"PIL", "cuda", "dask", "mpi4py", "networkx", "pycuda", "pyopencl", "scipy"}
HOMES = {  # the packages of the library's functions
    name: ".".join(function.__module__.split(".")[:3])
    for name, function in {
        "cog": gp.cog.bilateralFilter,
        "fft": gp.fft.fft,
        "linalg": gp.linalg.det,
        "ndimage": gp.ndimage.gaussian_filter,
        "random": gp.random.uniform,
        "stream": gp.stream,
    }.items()
}
LIBRARY = {*HOMES.values(), "gpuop.lib.array_api", "gpuop.scaleout", "gpuop.testing"}
FROM_GRAPHS_ON = LIBRARY | {"gpuop.engine.bundles", "gpuop.engine.graphs", "gpuop.engine.jit"}
FROM_FUSION_ON = FROM_GRAPHS_ON | {
    "gpuop.codegen",
    "gpuop.engine.evaluate",
    "gpuop.fusion",
    "gpuop.ops",
    "gpuop.passes.pipeline",
    "gpuop.passes.schedules",
    "gpuop.runtime",
    "gpuop.engine.show",
}
HALVED = """
import numpy as np, gpuop as gp
from gpuop.dsl import *

@gp.operator
def half(x):
    return _readTensor(x) / 2

halved = half(gp.ScalarField(np.ones((4, 4), "f")))
"""


def after(code: str) -> set[str]:
    """The modules that a process of its own has loaded when it has run this."""
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport sys, json; print(json.dumps(list(sys.modules)))"],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )
    return set(json.loads(done.stdout.splitlines()[-1]))


def of(modules: set[str], packages: Iterable[str]) -> set[str]:
    """Those of some packages that are loaded."""
    assert all(map(find_spec, packages))
    return {p for p in packages if any(name == p or name.startswith(f"{p}.") for name in modules)}


def of_gpuop(modules: set[str]) -> set[str]:
    return {name for name in modules if name.partition(".")[0] == "gpuop"}


def test_import_loads_next_to_nothing():
    loaded = after("import gpuop; dir(gpuop); gpuop.__version__; hasattr(gpuop, '__wrapped__')")
    assert of_gpuop(loaded) == ALWAYS
    assert not loaded & {"numpy", *HEAVY}


@pytest.mark.parametrize("before", ["gc.enable()", "gc.disable()"])
def test_import_collects_no_garbage(before):
    """It takes a sixth of the time and finds none; afterwards collection is as it was."""
    after(
        "import gc, numpy, gpuop; found = []; gc.callbacks.append(lambda phase, facts: found.append(phase))\n"
        f"{before}; enabled = gc.isenabled()\n"
        "for name in ('ndimage', 'pipeline'):\n"
        "    del found[:]; getattr(gpuop, name); assert len(found) < 8, found\n"
        "    assert gc.isenabled() == enabled"
    )


def test_garbage_and_frozen_objects_stay_so_when_gpuop_is_imported():
    after(
        "import gc, weakref, numpy, gpuop\n"
        "class Thing: pass\n"
        "thing = Thing(); thing.own = thing; gone = weakref.ref(thing); del thing\n"
        "gpuop.ndimage; gc.collect(); assert gone() is None and not gc.get_freeze_count()\n"
        "gc.freeze(); count = gc.get_freeze_count(); gpuop.linalg; assert gc.get_freeze_count() == count > 0"
    )


def test_recording_loads_no_library_and_no_device():
    loaded = after(HALVED)
    assert of(loaded, FROM_FUSION_ON) == set()
    assert not loaded & HEAVY


@pytest.mark.parametrize("name", ["reference", "reference:sm_90"])
def test_evaluation_on_the_reference_loads_no_driver_and_no_library(name):
    loaded = after(f"{HALVED}\nwith gp.use_device({name!r}): assert ((halved + 1) * 2).numpy().sum() == 48")
    assert of(loaded, FROM_GRAPHS_ON) == set()
    assert loaded & HEAVY <= {"networkx"}  # the graph that fusion works on


def test_networkx_is_imported_while_a_device_opens():
    loaded = after(
        "import threading; from gpuop.runtime.devices import open_device\n"
        "open_device('reference'); assert threading.active_count() == 1, threading.enumerate()"
    )
    assert loaded & HEAVY == {"networkx"}


@pytest.mark.parametrize(
    ("calls", "homes"),
    [
        ("np.exp(f); np.add(f, 1); f.sum(); f[1:]; np.roll(f, 1); f.T; abs(f); f.astype('int32')", set()),
        ("f @ f", {"linalg"}),
        ("np.matmul(f, f)", {"linalg"}),
        ("np.einsum('ij,jk->ik', f, f)", {"linalg"}),
        ("np.linalg.det(f)", {"linalg"}),
        ("gp.ndimage.gaussian_filter(f, 1)", {"ndimage", "fft"}),  # some filters are transforms
    ],
)
def test_functions_of_numpy_load_what_they_are_of(calls, homes):
    loaded = after(f"import numpy as np, gpuop as gp; f = gp.ScalarField(np.ones((4, 4), 'f')); {calls}")
    assert of(loaded, HOMES.values()) == {HOMES[name] for name in homes}


def test_fourier_transforms_are_loaded_for_the_first_one():
    field = "import numpy as np, gpuop as gp; f = gp.ScalarField(np.ones((4, 4), 'f'))"
    assert HOMES["fft"] in of(after(f"{field}; np.fft.fft2(f)"), HOMES.values())


COMMANDS = {
    "--version": {"numpy"},
    "--help": {"numpy"},
    "tune show --store {tmp}/none": {"gpuop.engine.bundles"},
    "devices": {"gpuop.engine.bundles", "gpuop.engine.graphs", "gpuop.engine.jit", "gpuop.engine.cli.targets"},
    "run {tmp}/one.py": {
        "gpuop.engine.bundles",
        "gpuop.engine.graphs",
        "gpuop.engine.jit",
        "gpuop.engine.cli.targets",
        "gpuop.engine.dump",
    },
    "source {tmp}/one.py:one --target cuda": {"gpuop.engine.bundles", "gpuop.engine.graphs", *HOMES.values()},
}


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_load_what_they_need(command, tmp_path):
    (tmp_path / "one.py").write_text("import gpuop as gp\n\n\ndef one():\n    return gp.ones((4, 4)) + 1\n")
    arguments = command.format(tmp=tmp_path).split()
    loaded = after(f"from gpuop.__main__ import main\ntry: main({arguments!r})\nexcept SystemExit: pass")
    assert of(loaded, COMMANDS[command]) == set()


# --- names ------------------------------------------------------------------------------------------------------------

LISTED = ["cog", "fft", "linalg", "ndimage", "random", "dask", "mpi", "testing"]


def seen_by_checkers(package: ModuleType) -> dict[str, str]:
    """The imports of a package under `if TYPE_CHECKING`, by names; not the modules of its own."""
    tree = ast.parse(Path(str(package.__file__)).read_text(encoding="utf-8"))
    blocks = [n for n in tree.body if isinstance(n, ast.If) and ast.unparse(n.test) == "TYPE_CHECKING"]
    results = [n for block in blocks for n in block.body if isinstance(n, ast.ImportFrom)]
    return {a.asname or a.name: f"{n.module}.{a.name}" for n in results for a in n.names if a.asname != a.name}


@pytest.mark.parametrize("package", [gp, gpuop.testing], ids=lambda p: p.__name__)
def test_names_are_what_checkers_see(package):
    """Of gpuop itself a stub has them, which is made of `NAMES`."""
    assert package is gp or seen_by_checkers(package) == package.NAMES
    assert sorted(package.NAMES) == sorted(package.__all__)
    for name, where in package.NAMES.items():
        module, _, own = where.rpartition(".")
        assert getattr(package, name) is getattr(import_module(module), own)


def test_dir_lists_the_names_and_the_modules_of_the_library():
    modules = {"cog", "dsl", "fft", "linalg", "ndimage", "random"}
    assert {*gp.__all__, *modules, "__version__"} == set(dir(gp))
    for name in modules:
        assert inspect.ismodule(getattr(gp, name))


@pytest.mark.parametrize("name", LISTED)
def test_dir_of_the_library_lists_what_it_is_for(name):
    pytest.importorskip({"dask": "dask.array", "mpi": "mpi4py"}.get(name, "numpy"))
    module = import_module(f"gpuop.{name}")
    assert dir(module) == sorted(module.__all__)
    assert not any(inspect.ismodule(getattr(module, entry)) for entry in dir(module))


def test_a_device_is_opened_before_anything_else_is_loaded():
    """Its self-test has the kernel functions that it expands; so have passes."""
    after('import gpuop as gp\nwith gp.use_device("reference"): pass')
    after("import gpuop.passes.narrow_integers\nfrom gpuop.ir.expansions.registry import EXPANSIONS\nassert EXPANSIONS")


def test_star_imports():
    code = "from gpuop import *\nfrom gpuop.dsl import *\nassert ScalarField and iterate and tune and _readTensor and zeros"
    assert "gpuop.dsl" in after(f"{code}\nimport gpuop\nassert all(n in globals() for n in gpuop.__all__)")


def test_names_stay_what_they_are():
    """A module of a name of the package's, once loaded, would stand in its place."""
    every = [p.relative_to(ROOT).with_suffix("").parts for p in sorted((ROOT / "gpuop").rglob("*.py"))]
    names = [
        ".".join(p).removesuffix(".__init__") for p in every if p[-1] not in ("__main__", "plugin", "test_conformance")
    ]
    optional = ("gpuop.dask", "gpuop.mpi", "gpuop.torch", "gpuop.jax", "gpuop.frameworks", "gpuop.runtime.cuda")
    code = f"""
import gpuop, types
from importlib import import_module
for name in {[n for n in names if not n.startswith(optional)]}:
    import_module(name)
for name in gpuop.NAMES:
    assert not isinstance(getattr(gpuop, name), types.ModuleType), name
"""
    assert len(of_gpuop(after(code))) > 500


# --- tables that modules fill in --------------------------------------------------------------------------------------

REGISTERED = """
import sys, json
from gpuop.dsl.fields import services

made = {"array_functions": [], "algebra": []}

def note(registry, names):
    kind = "algebra" if registry is services.algebra else "array_functions"
    module = sys._getframe(2).f_globals["__name__"]
    made[kind] += [(name, module, registry.module_of(name)) for name in names]

def update(self, *tables, **named):
    note(self, [*dict(*tables), *named])
    dict.update(self, *tables, **named)

def setitem(self, name, function):
    note(self, [name])
    dict.__setitem__(self, name, function)

services.Registry.update, services.Registry.__setitem__ = update, setitem
import gpuop.array_namespace, gpuop.cog, gpuop.fft, gpuop.linalg, gpuop.ndimage, gpuop.random
"""


@cache
def registered() -> dict[str, list[tuple[str, str, str]]]:
    """Of each table every name, the module that fills it in, and the one that is loaded for it."""
    files = sorted((ROOT / "gpuop" / "ops").glob("[a-z]*.py"))
    every = "\n".join(f"import gpuop.ops.{path.stem}" for path in files)
    code = f"{REGISTERED}{every}\nprint(json.dumps(made))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    names: dict[str, list[tuple[str, str, str]]] = json.loads(done.stdout)
    return names


@pytest.mark.parametrize("table", ["array_functions", "algebra"])
def test_the_module_of_each_name_is_known(table):
    rows = registered()[table]
    assert len(rows) > 100 and [row for row in rows if row[1] != row[2]] == []
    assert len({name for name, _, _ in rows}) == len({(name, module) for name, module, _ in rows})


def test_names_that_tables_say_are_there():
    from gpuop.dsl.fields import services

    for registry in (services.array_functions, services.algebra):
        assert not {name for name in registry.modules if name.strip(".") == name != ""} - set(registry)


def answers(cls: Any) -> dict[str, list[str]]:
    return {
        n: list(inspect.signature(f).parameters) for n, f in vars(cls).items() if inspect.isfunction(f) and n[0] != "_"
    }


def test_every_question_is_answered():
    from gpuop.dsl.fields.services import Services
    from gpuop.providers import Providers

    assert answers(Providers) == answers(Services)


# --- threads ----------------------------------------------------------------------------------------------------------

TOGETHER = """
import random, sys, threading
from importlib import import_module
import numpy

sys.setswitchinterval(1e-6)
names, begin, failed = random.Random({seed}).sample({names}, 20), threading.Barrier(20), []

def load(name):
    begin.wait()
    try:
        import_module(name)
    except BaseException as error:
        failed.append(f"{{name}}: {{error!r}}")

threads = [threading.Thread(target=load, args=(name,)) for name in names]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert not failed, failed
"""


@pytest.mark.parametrize("seed", range(4))
def test_threads_import_modules_at_once(seed):
    modules = [p.relative_to(ROOT).with_suffix("").parts for p in sorted((ROOT / "gpuop").rglob("*.py"))]
    optional = {
        "__main__",
        "__init__",
        "plugin",
        "test_conformance",
        "dask",
        "mpi",
        "torch",
        "jax",
        "frameworks",
        "cuda",
    }
    names = [".".join(parts) for parts in modules if not optional & set(parts)]
    assert len(of_gpuop(after(TOGETHER.format(seed=seed, names=names)))) > 100


def test_packages_import_none_of_their_modules():
    """A thread that imports a module holds its lock while it waits for that of the package, whose own thread would wait for it."""
    for path in sorted((ROOT / "gpuop").rglob("__init__.py")):
        loaded = [
            n for n in ast.parse(path.read_text(encoding="utf-8")).body if isinstance(n, (ast.Import, ast.ImportFrom))
        ]
        names = [a.name for n in loaded if isinstance(n, ast.Import) for a in n.names]
        names += [n.module or "." for n in loaded if isinstance(n, ast.ImportFrom)]
        assert not [name for name in names if name.split(".")[0] in ("gpuop", "")], path
