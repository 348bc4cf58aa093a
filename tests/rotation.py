"""Rotation of `make test`: the cases of a day, each on one form of a device; within a fortnight all have run.

A test function has cases (the rows of `parametrize`), and each case has forms: a driver, the interpreter, the interpreter of what
the passes make, a driver that plans as for a GPU. Every function runs each day; of one with many cases, a share of them runs.
Where the best driver has cases of its own beside those of other forms, a function of few cases runs on either by turns. The
choices depend on the test's name and the day alone, not on its folder, so that GPUOP_TEST_DAY repeats a run.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from datetime import date
from zlib import crc32

DAY = "GPUOP_TEST_DAY"  # in the environment, so that processes which tests start have it
WEEK = 7  # days in which forms of devices take turns
FORTNIGHT = 14  # days in which all cases of a test run


def configure() -> None:
    """Set the day of this run, which processes of xdist inherit: a run may last beyond midnight."""
    os.environ[DAY] = date.fromisoformat(os.environ.get(DAY) or date.today().isoformat()).isoformat()


def day() -> int:
    """The day's number."""
    return date.fromisoformat(os.environ[DAY]).toordinal()


def share(names: Iterable[str], count: int, ahead: int = 0) -> set[str]:
    """About `count` of the names, at least a fourteenth: others each day, and all of them within a fortnight.

    Args:
        ahead: of how many days from now.
    """
    ordered = sorted(set(names), key=_number)  # neighbours in a table are alike, and should not share their days
    days = min(FORTNIGHT, -(-len(ordered) // count))
    return {name for n, name in enumerate(ordered, _number(ordered[0]) + day() + ahead) if n % days == 0}


def form_of(case: str, week: Sequence[Sequence[str]]) -> str:
    """The form that takes a case today.

    Args:
        week: the forms of each day, of which one takes the case, and the next one a week later.
    """
    weeks = day() // WEEK  # also moves the days: else a case that runs once a week would always run on the same form
    forms = week[(_number(case) + day() + weeks) % len(week)]
    return forms[(_number(case) + weeks) % len(forms)]


def is_turn(name: str, days: int) -> bool:
    """Return whether a case that runs once in so many days runs today."""
    return (_number(name) + day()) % days == 0


def is_day_of(case: str) -> bool:
    """Return whether a test function that runs every second day runs today; after a fortnight it takes the other days.

    So that a case which has its turn on an even day, say, is not left out for ever.
    """
    return (_number(case.partition("[")[0]) + day() + day() // FORTNIGHT) % 2 == 0


def _number(name: str) -> int:
    file, *rest = name.partition("::")
    return crc32("".join((file.rpartition("/")[2], *rest)).encode())
