"""`gpuop.testing` and its plugin of pytest: beside NumPy, and beside back ends that are wrong."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import gpuop as gp
from gpuop import testing
from gpuop.runtime.reference.device import Reference

ROOT = Path(__file__).parents[2]
EVERYWHERE = pytest.mark.parametrize("name", list(dict.fromkeys([gp.devices()[0].name, "reference"])))
GAMMA = np.uint64(0x9E3779B97F4A7C15)
WORD = 2**64 - 1


def splitmix(z):
    """Vigna's splitmix64.c, https://prng.di.unimi.it/splitmix64.c, of an array of counters."""
    z = np.atleast_1d(np.asarray(z, np.uint64))
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def random_bits(count, seed):
    with np.errstate(over="ignore"):
        state = splitmix(np.array([(seed & WORD) ^ int(GAMMA)], np.uint64))
        return splitmix(state + GAMMA * np.arange(1, count + 1, dtype=np.uint64))


# --- errors -----------------------------------------------------------------------------------------------------------


def test_errors():
    errors = testing.errors(np.array([[1, 2.5, 0], [-4, 8, 0.25]]), np.array([[1, 2, 0], [-4, 10, 0]]))
    assert (errors.size, errors.differing, errors.first, errors.worst) == (6, 3, (0, 1), (1, 1))
    assert (errors.max_abs, errors.max_rel, errors.mean_rel, errors.max_mixed) == (2, np.inf, 2.75 / 17, 0.25)
    assert str(errors).startswith("max abs 2, max rel inf, mean rel 0.162, max mixed 0.25, max ulps ")
    none = testing.errors(np.array([np.nan, np.inf, -0.0]), np.array([np.nan, np.inf, 0]))
    assert (none.differing, none.max_abs, none.max_ulps, none.first, none.worst) == (0, 0, 0, None, None)
    lost = testing.errors(np.array([np.nan, 1]), np.array([1, np.nan]))
    assert (lost.differing, lost.max_abs, lost.max_mixed, lost.max_ulps) == (2, np.inf, np.inf, np.inf)
    assert testing.errors(np.zeros((0, 3)), np.zeros((0, 3))).max_abs == 0
    next_ones = testing.errors(np.nextafter(np.ones(3, "f"), 2), 1)
    assert next_ones.max_ulps == 1 and testing.errors(np.array([7], "uint64"), [8]).max_abs == 1
    assert testing.errors(np.array([1 + 2j], "complex64"), [1 + 5j]).max_abs == 3
    with pytest.raises(gp.SemanticError, match=r"values of shape \(2,\) are compared with some of shape \(3,\)"):
        testing.errors(np.zeros(2), np.zeros(3))


@EVERYWHERE
def test_messages_say_where(name):
    a = np.linspace(0, 1, 12, dtype="f").reshape(3, 4)
    wrong = a.copy()
    wrong[1, 2], wrong[2, 0] = 7, 1
    with gp.use_device(name):
        ramp = gp.ScalarField(wrong) * 1
        testing.assert_allclose(ramp, wrong)
        testing.assert_allclose(ramp, a, atol=7)
        testing.assert_allclose(gp.ScalarField(np.nextafter(a, np.float32(2))), a, max_ulps=1)
        with pytest.raises(AssertionError) as error:
            testing.assert_allclose(ramp, a)
        with pytest.raises(AssertionError, match=r"`ramp`, .* is compared with values of shape \(5, 4\)"):
            testing.assert_allclose(ramp, np.zeros((5, 4)))
    lines = str(error.value).splitlines()
    assert lines[0] == f"`ramp`, 3×4 float32, on {name}, is not close to what is expected (rtol=1e-07, atol=0)"
    assert lines[1].startswith("  at 2 of 12 places: max abs 6.45, ")
    assert lines[2:] == [f"  {what} at [1, 2]: 7.0, not {a[1, 2]}" for what in ("first", "worst")]


@pytest.mark.parametrize(
    ("actual", "expected", "options", "message"),
    [
        (np.nan, 1.0, {"atol": np.inf}, "at its one value: nan, not 1.0"),
        (np.ones(3), [1, 1, 2], {"rtol": 0.49}, r"at 1 of 3 places: .*\n  first at \[2\]: 1.0, not 2"),
        (np.float32(1) + np.spacing(np.float32(1)) * 2, np.float32(1), {"max_ulps": 1}, "max_ulps=1"),
        (np.zeros((2, 2)), np.zeros((3, 2, 2)), {}, r"an array of shape \(2, 2\) and dtype float64 is compared"),
        (np.array([True, False]), [True, True], {}, r"\[1\]: False, not True"),
        (np.array([1 + 2j]), [1 + 2.5j], {"rtol": 0.01}, r"max abs 0.5"),
    ],
)
def test_what_is_not_close(actual, expected, options, message):
    with pytest.raises(AssertionError, match=message):
        testing.assert_allclose(actual, expected, **options)


# --- hashes -----------------------------------------------------------------------------------------------------------

NOISES = [
    (gp.FieldType((5, 7)), lambda h: (h >> np.uint64(40)).astype("f") * np.float32(2**-24)),
    (gp.FieldType((3, 2), (3, 3), "float64"), lambda h: (h >> np.uint64(11)).astype("f8") * 2**-53),
    (gp.FieldType((2, 2, 3), 2, "uint8"), lambda h: (h >> np.uint64(56)).astype("u1")),
    (gp.FieldType(9, (), "int16"), lambda h: (h >> np.uint64(48)).astype("u2").view("i2")),
    (gp.FieldType((), (), "bool"), lambda h: (h >> np.uint64(63)).astype(bool)),
    (gp.FieldType((0, 4), (), "uint64"), lambda h: h),
]


@EVERYWHERE
@pytest.mark.parametrize(("kind", "value"), NOISES, ids=lambda v: str(v) if isinstance(v, gp.FieldType) else "")
def test_noise(name, kind, value):
    count = int(np.prod(kind.array_shape, dtype=int))
    with gp.use_device(name):
        actual = testing.noise(kind, seed=-3).numpy()
    want = value(random_bits(count, -3)).reshape(kind.array_shape)
    assert actual.dtype == want.dtype and np.array_equal(actual, want)


def digest_of(array):
    """The digest, in NumPy."""
    parts = {"c": 2}.get(array.dtype.kind, 1)
    real = np.ascontiguousarray(array).reshape(-1).view("f4") if parts == 2 else array.reshape(-1)
    if real.dtype.kind == "f":
        wide = real.astype("f4") if real.itemsize == 2 else real
        bits = np.where(np.isnan(wide), np.uint64(0x7FF8 << 48), wide.view(f"u{wide.itemsize}").astype("u8"))
    else:
        bits = real.astype("i8").view("u8") if real.dtype != np.uint64 else real
    name = f"{array.dtype} {array.shape}"
    seed = np.uint64(int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "little"))
    with np.errstate(over="ignore"):
        places = np.arange(1, bits.size // parts + 1, dtype="u8")[:, None] * np.uint64(parts) + np.arange(
            parts, dtype="u8"
        )
        total = splitmix(bits ^ splitmix(places.ravel() * GAMMA + seed)).sum(dtype="u8") + seed
    return f"{int(splitmix(total)[0]):016x}"


ARRAYS = [
    np.array([[np.nan, -0.0, 1e-45], [np.inf, 3, -np.nan]], "f"),
    np.random.default_rng(2).standard_normal((70, 90)),
    np.array([1 + 2j, complex(np.nan, -0.0)], "complex64"),
    np.random.default_rng(3).integers(-9, 9, (5, 3), "int8"),
    np.array([0, 2**64 - 1], "uint64"),
    np.float16(1.5),
    np.zeros((0, 3), bool),
]


@EVERYWHERE
@pytest.mark.parametrize("array", ARRAYS, ids=lambda a: f"{a.dtype}{a.shape}")
def test_digests(name, array):
    array = np.asarray(array)
    with gp.use_device(name):
        assert testing.digest(array) == digest_of(array)


def test_digests_tell_values_apart():
    a = np.arange(12, dtype="f").reshape(3, 4)
    others = [a.T, a.ravel(), a.astype("i4"), a[::-1], np.where(a == 5, np.nextafter(a, np.float32(9)), a), -a]
    with gp.use_device("reference"):
        assert len({testing.digest(each) for each in [a, *others]}) == 7
        assert testing.digest(gp.VectorField(a)) == testing.digest(a) == testing.digest(gp.ScalarField(a - 1) + 1)
    with pytest.raises(gp.SemanticError, match="the seed of noise is an integer, not"):
        testing.noise(3, seed=1.5)


# --- the conformance suite --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("program", testing.PROGRAMS)
def test_the_reference_conforms(program):
    assert testing.conformance("reference", only=[program]) == [program]


class Wrong(Reference):
    """A back end of a user's, whose bytes wrap where they should saturate, and which cannot do one thing."""

    name = "wrong"

    def download(self, kind, buffer):
        planes = super().download(kind, buffer)
        return planes + planes.dtype.type(kind.dtype == "uint8" and kind.field_shape == (19, 37))

    def bind(self, program, arguments):
        if program.name == "histogram":
            raise NotImplementedError("no atomics")
        return super().bind(program, arguments)


def test_what_a_back_end_does_wrong_is_told():
    with pytest.raises(AssertionError) as error:
        testing.conformance(Wrong(), only=["conversions", "atomics", "loops"])
    lines = str(error.value).splitlines()
    assert lines[0] == "wrong fails 2 of 3 programs"
    assert lines[2].startswith("conversions: a field, 19×37 uint8, on wrong, is not close to what is expected")
    assert lines[-1] == "atomics: NotImplementedError: no atomics"
    assert testing.conformance(Wrong(), skip={"conversions"}, only=["conversions", "loops"]) == ["loops"]
    with pytest.raises(gp.SemanticError, match="there is no program `loop` in the conformance suite; it has floats, "):
        testing.conformance(only=["loop"])


# --- the plugin -------------------------------------------------------------------------------------------------------

OURS = """
import sys
import pytest

@pytest.fixture(autouse=True, scope="module")
def no_driver():
    sys.modules["pyopencl"] = None  # it takes a second to load

def test_one(gpuop_device):
    import gpuop as gp
    assert gp.device().name == gpuop_device == "reference"

@pytest.mark.gpuop_devices("cuda")
def test_other(gpuop_device):
    assert False
"""
STRANGERS = """
import sys
import pytest

@pytest.fixture
def device():
    return "mine"

def test_overridden(device):
    assert device == "mine"

@pytest.mark.parametrize("device", ["cpu", "tpu"])
def test_direct(device):
    assert device in ("cpu", "tpu")

def test_nothing_was_imported():
    assert not {"numpy", "pyopencl"} & set(sys.modules)
    of_gpuop = {name for name in sys.modules if name.partition(".")[0] == "gpuop"}
    assert of_gpuop == {"gpuop", "gpuop.testing", "gpuop.testing.plugin"}
"""


def test_the_plugin(tmp_path):
    (tmp_path / "test_first.py").write_text(STRANGERS)
    (tmp_path / "test_second.py").write_text(OURS)
    (tmp_path / "test_third.py").write_text("def test_misspelt(device):\n    pass\n")
    command = [sys.executable, "-m", "pytest", "-q", "-rs", "-p", "gpuop.testing.plugin", "-p", "no:cacheprovider"]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    options = ["--gpuop-devices=reference", "--strict-markers"]
    done = subprocess.run(
        [*command, *options], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    message = done.stdout + done.stderr
    assert "this test is for cuda, not for reference" in message and "5 passed, 1 skipped, 1 error" in message, message
    assert "fixture 'device' not found" in message, message
