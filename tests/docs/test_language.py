"""docs/reference/language.md has every name there is, and every name of Cog's guide, with a test that exists."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

from gpuop import dsl

ROOT = Path(__file__).parents[2]
SCALARS = "char uchar short ushort int uint long ulong half float double"
TYPES = [t + n for t in re.split(" ", SCALARS) for n in ("", "2", "3", "4")]
NAMES = """_abs _abs_diff _add_sat _hadd _rhadd _clz _clamp _mad_hi _mad_sat _max _min _mul_hi _rotate _sub_sat _mad24 _mul24
_acos _acosh _acospi _asin _asinh _asinpi _atan _atan2 _atanh _atanpi _atan2pi _cbrt _ceil _copysign _cos _cosh _cospi
_native_divide _erfc _erf _exp _exp2 _exp10 _expm1 _fabs _fdim _floor _fma _fmax _fmin _fmod _hypot _ilogb _ldexp _lgamma
_lgamma_r _log _log2 _log10 _log1p _logb _mad _maxmag _minmag _nan _nextafter _pow _pown _powr _remainder _remquo _rint
_rootn _round _rsqrt _sin _sinh _sinpi _sqrt _tan _tanh _tanpi _tgamma _trunc
_dot _cross _distance _length _normalize _fast_distance _fast_length _fast_normalize _degrees _mix _radians _sign
_isequal _isnotequal _isgreater _isgreaterequal _isless _islessequal _islessgreater _isfinite _isinf _isnan _isnormal
_isordered _isunordered _signbit _any _all _bitselect _select
_atomic_add _atomic_sub _atomic_xchg _atomic_inc _atomic_dec _atomic_compxchg _atomic_min _atomic_max _atomic_and
_atomic_or _atomic_xor
_syncThreadsLocal _syncThreadsGlobal _local _volatile _pointerTo _for _while _if _elseif _else _forEachTensorElement
_tensorVar _tensorArray _tensorElementVar _tensorElementArray _boolVar
_readTensor _readTensorElement _writeTensor _writeTensorElement _localThreads _globalThreads
_layers _rows _columns _tensorElements _localLayers _localRows _localColumns _layer _row _column _groupLayer _groupRow
_groupColumn _localLayer _localRow _localColumn _tensorElement
isBigTensor GPUVariable GPUArrayVariable GPUExpression
_out0 _out1 _out2 _out3 _out4 _out5 _out6 _out7 _out8 _out9"""
GUIDE = [
    *NAMES.split(),
    *(f"_{t}Var" for t in TYPES),
    *(f"_{t}Array" for t in TYPES),
    *(f"_{t}{n}" for t in ("float", "int") for n in (2, 3, 4)),
    *(f"_convert_{t}{n}" for t in ("float", "int") for n in ("", 2, 3, 4)),
    *(f"_as_{t}{n}" for t in ("float", "int", "uint") for n in ("", 2, 3, 4)),
]
PAGE = (ROOT / "docs" / "reference" / "language.md").read_text()
SHOWN = set(re.findall(r"`(_\w+|isBigTensor|GPU\w+)`", PAGE))


@pytest.fixture(scope="module")
def maker() -> ModuleType:
    return script("make_language")


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "docs" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_name_of_the_guide_exists() -> None:
    assert set(GUIDE) <= set(dsl.__all__)


def test_every_name_is_on_the_page() -> None:
    assert set(dsl.__all__) == SHOWN


def test_the_page_is_what_the_table_says(maker: ModuleType, request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--update-golden"):
        (ROOT / "docs" / "reference" / "language.md").write_text(maker.page())
    assert maker.page() == (ROOT / "docs" / "reference" / "language.md").read_text(), "run docs/make_language.py"


def test_the_stub_is_what_the_vocabulary_says(request: pytest.FixtureRequest) -> None:
    result = script("make_stub")
    if request.config.getoption("--update-golden"):
        result.STUB.write_text(result.stub())
        result.PACKAGE_STUB.write_text(result.package_stub())
    assert result.stub() == result.STUB.read_text(), "run docs/make_stub.py"
    assert result.package_stub() == result.PACKAGE_STUB.read_text(), "run docs/make_stub.py"


def test_every_link_leads_to_a_test() -> None:
    links = re.findall(r"\[(\w+)\]\(\.\./\.\./(tests/[\w/]+\.py)\)", PAGE)
    assert len(links) > 150
    for name, file in set(links):
        text = (ROOT / file).read_text()
        assert f"def {name}(" in text or Path(file).stem == name


def test_every_function_has_its_tests(maker: ModuleType) -> None:
    """The linked tests, or the tables that they go through, name the function."""
    tables = "".join(
        p.read_text() for p in (ROOT / "tests" / "conformance").glob("*.py") if not p.name.startswith("test_")
    )
    for entry in maker.functions.table():
        text = tables + (ROOT / "tests" / "conformance" / maker.GROUPS[entry.group][1]).read_text()
        assert re.search(rf"\b_?{entry.name[1:]}\b", text), f"{entry.name} has no test"
    for name in " ".join(maker.SECTIONS.values()).split():
        assert name in maker.uses() or name.startswith("_atomic_"), f"{name} has no test"  # those go through a table
