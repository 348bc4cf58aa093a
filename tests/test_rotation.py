"""Rotation of the suite: other days of a fortnight run the cases that a day leaves out."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import date, timedelta

import pytest

import gpuop as gp
from tests import rotation
from tests.as_gpus import AS_A_GPU
from tests.conftest import FEW, INTERPRETERS, in_use, turns_of, week_of
from tests.runtime.cuda_on_host.host_device import ON_HOST

MONDAY = date.fromordinal(739_550 // 14 * 14)
CASES = [f"tests/some.py::test[{k}]" for k in range(40)]


@pytest.fixture
def week(monkeypatch: pytest.MonkeyPatch) -> list[date]:
    """Seven days, the first of which is today."""
    monkeypatch.setenv(rotation.DAY, MONDAY.isoformat())
    return [MONDAY + timedelta(k) for k in range(rotation.WEEK)]


@pytest.fixture
def fortnight(week: list[date]) -> list[date]:
    """Fourteen days, the first of which is today."""
    return [MONDAY + timedelta(k) for k in range(rotation.FORTNIGHT)]


@pytest.mark.parametrize(
    ("many", "count", "days"), [(40, 1, 14), (40, 4, 10), (40, 20, 2), (5, 2, 3), (2, 2, 1), (1, 4, 1)]
)
def test_each_case_has_its_turn(
    fortnight: list[date], monkeypatch: pytest.MonkeyPatch, many: int, count: int, days: int
) -> None:
    counts: Counter[str] = Counter()
    for at in fortnight[:days]:
        monkeypatch.setenv(rotation.DAY, at.isoformat())
        part = rotation.share(CASES[:many], count)
        assert abs(len(part) - many / days) < 1
        counts.update(part)
    assert counts == Counter(CASES[:many])


def test_a_day_is_the_same_in_every_process(week: list[date]) -> None:
    assert sorted(rotation.share(CASES, 4)) == [CASES[k] for k in (24, 2, 39, 4)]


def test_each_form_has_its_turn(week: list[date], monkeypatch: pytest.MonkeyPatch) -> None:
    """Both drivers and each interpreter within a week; drivers that plan as for GPUs share a day, from week to week."""
    drivers = ["opencl:7", gp.devices()[0].name, "reference"]
    compiled = [f"opencl:7{AS_A_GPU}", f"{drivers[1]}{AS_A_GPU}", ON_HOST]
    best, forms = week_of("tests.conformance.test_reads", [*dict.fromkeys(drivers), *INTERPRETERS, *compiled])
    assert best == gp.devices()[0].name
    for case in CASES:
        parts = set()
        for at in week:
            monkeypatch.setenv(rotation.DAY, at.isoformat())
            parts.add(rotation.form_of(case, forms))
        assert len(parts) == rotation.WEEK
        assert parts >= {*drivers, *INTERPRETERS} - {best}


@pytest.mark.skipif(gp.devices()[0].name == "reference", reason="there is no driver")
def test_what_lies_above_drivers_has_one_form_a_day() -> None:
    names = [gp.devices()[0].name, "reference", "opencl:7", f"opencl:7{AS_A_GPU}", *INTERPRETERS]
    best, forms = week_of("tests.fusion.test_fusion", names)
    assert best == "" and len(forms) == rotation.WEEK
    assert {name for several in forms for name in several} == {*names[:2], names[3]}
    best, forms = week_of("tests.ops.test_half", names)
    assert best == "" and {name for several in forms for name in several} == {*names[:4]}
    assert week_of("tests.engine.test_state", names) == (names[0], [["reference"], ["opencl:7"], [names[3]]])


@pytest.mark.parametrize("many", range(1, FEW + 3))
def test_the_best_driver_takes_few_cases_on_every_second_day(monkeypatch: pytest.MonkeyPatch, many: int) -> None:
    """Each day has a case of each function, the best driver has had all within a fortnight, and other forms all within six."""
    forms = [["reference"], ["lowered"], ["vectorized"], ["opencl:7"], ["a", "b"]]
    cases = set(CASES[:many])
    for function in ("tests/some.py::test", "tests/some.py::test_other"):
        days = []
        for k in range(6 * rotation.FORTNIGHT):
            monkeypatch.setenv(rotation.DAY, (MONDAY + timedelta(k)).isoformat())
            best, others = turns_of(function, cases, "opencl:0", forms)
            assert len(best) + len(others) == 1 if many <= FEW else len(best) == len(others) == 1
            days.append((best, [(case, rotation.form_of(case, forms)) for case in others]))
        for start in range(len(days) - rotation.FORTNIGHT):
            assert set().union(*(best for best, _ in days[start : start + rotation.FORTNIGHT])) == cases
        drawn = {(case, form) for _, others in days for case, form in others}
        assert {case for case, _ in drawn} == cases and {form for _, form in drawn} == {
            form for several in forms for form in several
        }
        if many == 1:
            assert {form for _, others in days[: 2 * rotation.WEEK] for _, form in others} >= {"reference", "lowered"}


@pytest.mark.parametrize("count", [1, 2, 3, 14])
def test_every_second_day_takes_all_cases_in_four_weeks(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    cases, seen = [f"tests/test_a.py::test_b[{n}]" for n in range(count)], set()
    for k in range(2 * rotation.FORTNIGHT):
        monkeypatch.setenv(rotation.DAY, (MONDAY + timedelta(k)).isoformat())
        assert len({rotation.is_day_of(case) for case in cases}) == 1
        seen |= {case for case in rotation.share(cases, 1) if rotation.is_day_of(case)}
    assert seen == set(cases)


@pytest.mark.parametrize("days", [7, 14])
@pytest.mark.parametrize("forms", [3, 5, 7])
def test_a_case_that_runs_seldom_changes_its_form(
    week: list[date], monkeypatch: pytest.MonkeyPatch, days: int, forms: int
) -> None:
    parts = set()
    for k in range(forms):
        monkeypatch.setenv(rotation.DAY, (MONDAY + timedelta(k * days)).isoformat())
        parts.add(rotation.form_of(CASES[0], [[str(n)] for n in range(forms)]))
    assert len(parts) == forms


@pytest.mark.parametrize("form", INTERPRETERS)
def test_a_form_is_a_device_by_its_name(form: str) -> None:
    """In threads too; what is called the reference is the form, or a checked one."""

    def found(checked: bool) -> object:
        with gp.use_device(form, checked) as backend:
            return backend if checked is backend.checked else None

    with in_use(form) as name, ThreadPoolExecutor(1) as other:
        assert other.submit(found, False).result() is gp.device() is gp.device("reference")
        assert type(other.submit(found, True).result()) is type(gp.device(name))
    with pytest.raises(gp.DeviceError, match=f"there is no device '{form}'"):
        gp.device(form)
