"""Lines are the user's, whoever calls: threads, Dask, xarray and other libraries that only call what they are given."""

import asyncio
import os
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import gpuop as gp
from gpuop.base.errors import is_users
from gpuop.dsl import *
from gpuop.dsl.operators.operator import MANY_CONSTANTS

from .wrong import check_line

OTHER = gp.ScalarField(np.ones((3, 5), np.float32))
X = np.ones((8, 8), np.float32)
GIVEN = gp.ScalarField(X)


def in_pool(function, *arguments):
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(function, *arguments).result()


def in_asyncio(function, *arguments):
    async def waits():
        return await asyncio.to_thread(function, *arguments)

    return asyncio.run(waits())


def in_dask(function, *arguments):
    dask = pytest.importorskip("dask")
    return dask.delayed(function, pure=False)(*arguments).compute(scheduler="threads")


THREADS = (in_pool, in_asyncio, in_dask)


@pytest.fixture(autouse=True)
def anywhere():
    """Threads begin with what was chosen for the process."""
    with gp.use_device("reference"):
        yield


def explained(field):
    with gp.ComputeGraph() as graph:
        graph.probe(field, "out")
    return graph.explain()


@pytest.mark.parametrize("run", THREADS)
def test_an_error_is_at_the_line_of_the_function(run):
    def program():
        return (GIVEN + OTHER).numpy()  # here

    with pytest.raises(gp.SemanticError) as caught:
        run(program)
    check_line(caught.value, program, "# here")


@gp.operator
def sharpen(f):
    return _readTensor(f) * 2 - _readTensor(f, _row, _column + 1)


@pytest.mark.parametrize("run", THREADS)
def test_an_operator_that_others_call_is_at_its_def(run):
    line = sharpen.function.__code__.co_firstlineno + 1  # below its decorator
    assert f"sharpen ({os.path.relpath(__file__)}:{line})" in explained(run(sharpen, GIVEN))


@pytest.mark.parametrize("run", THREADS)
def test_where_no_line_is_the_users_none_is_told(run):
    with pytest.raises(gp.SemanticError, match=r"add: the grids differ, 8×8 and 3×5[^\n]*\Z") as caught:
        run(np.add, GIVEN, OTHER)
    assert caught.value.loc is None
    assert "one operator: multiply\n" in explained(run(np.multiply, GIVEN, 3))
    assert np.array_equal(run(np.multiply, GIVEN, 3).numpy(), X * 3)


def test_who_calls_a_library_is_told_where_that_calls():
    da = pytest.importorskip("dask.array")
    blocks = da.from_array(X, chunks=(4, 8)).map_blocks(gp.ScalarField, dtype=object, meta=np.empty((0, 0)))

    def program():
        blocks.map_blocks(np.add, OTHER, dtype=object, meta=np.empty((0, 0))).compute(scheduler="sync")  # here

    with pytest.raises(gp.SemanticError) as caught:
        program()
    check_line(caught.value, program, "# here")


def test_xarray():
    xarray = pytest.importorskip("xarray")
    pytest.importorskip("dask")
    field = xarray.DataArray(X, dims=("y", "x")).chunk({"y": 4})

    def program(block):
        return (gp.ScalarField(block) + OTHER).numpy()  # here

    with pytest.raises(gp.SemanticError) as caught:
        xarray.apply_ufunc(program, field, dask="parallelized", output_dtypes=["f4"]).compute()
    check_line(caught.value, program, "# here")


def test_reductions_of_blocks_are_at_the_line_that_reduces():
    """The fields of a block are made where the block is computed, by Dask."""
    da, gd = pytest.importorskip("dask.array"), pytest.importorskip("gpuop.dask")

    @gp.pipeline
    def relative(image):
        f = sharpen(gp.ScalarField(image))
        return f - f.mean(), f.max(axis=1)

    with gp.profile() as profile:
        results = gd.map_blocks(relative, da.from_array(X, chunks=(4, 4)))
        for result in results:
            result.compute(scheduler="threads")
    text = str(profile)
    returns = f"test_callers.py:{relative.function.__code__.co_firstlineno + 3})"
    reduced = [row for row in text.splitlines() if "sum (" in row or "max (" in row]
    assert reduced and all(returns in row for row in reduced), text
    assert {word.partition(":")[0].lstrip("(") for word in text.split() if ".py:" in word} == {"test_callers.py"}


def test_a_warning_is_given_where_no_line_is_the_users():
    @gp.operator
    def scaled(f, factor):
        return _readTensor(f) * factor

    with ThreadPoolExecutor(1) as pool:
        for factor in range(MANY_CONSTANTS):
            pool.submit(scaled, GIVEN, factor).result()
        with pytest.warns(UserWarning, match="`scaled` is compiled anew for every value of `factor`"):
            pool.submit(scaled, GIVEN, MANY_CONSTANTS).result()


LIBRARY = os.path.dirname(os.path.dirname(np.__file__))
FILES = {
    __file__: True,
    "<stdin>": True,
    "<string>": True,
    "/tmp/ipykernel_1/1.py": True,
    "/home/me/dask/of_mine.py": True,
    f"{LIBRARY}/of_somebody/kernels.py": True,  # a library that is written with gpuop
    "/usr/lib/python3/dist-packages/of_somebody.py": True,
    "C:\\Python\\Lib\\site-packages\\of_somebody.py": True,
    threading.__file__: False,
    asyncio.__file__: False,
    "<frozen runpy>": False,
    np.__file__: False,
    gp.__file__: False,
    f"{LIBRARY}/dask/_task_spec.py": False,
    f"{LIBRARY}/distributed/worker.py": False,
    f"{LIBRARY}/daskless/file.py": True,
    "C:\\Python\\Lib\\site-packages\\xarray\\core\\computation.py": False,
}


@pytest.mark.parametrize("file", FILES)
def test_whose_a_file_is(file):
    assert is_users(file) == FILES[file]
