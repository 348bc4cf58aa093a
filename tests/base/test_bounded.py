"""Caches of bounded size: they have no more entries than the bound, those that were used last, and never mix keys."""

from __future__ import annotations

import random
import threading
import weakref

import pytest

from gpuop.base.lru import BoundedCache
from gpuop.dsl.recorder import frames


def test_what_was_used_last_is_kept():
    cache = BoundedCache(3)
    for key in "abcd":
        cache[key] = key.upper()
    assert [cache.get(key) for key in "abcd"] == [None, "B", "C", "D"]
    cache.get("b")
    cache["c"] = "C again"
    cache["e"] = "E"
    assert [cache.get(key, "-") for key in "abcde"] == ["-", "B", "C again", "-", "E"] and len(cache) == 3
    cache.clear()
    assert len(cache) == 0 and cache.get("e") is None


def test_entries_are_made_once():
    results = []

    def make():
        results.append(0)

    cache = BoundedCache(2)
    assert [cache.find("nothing", make) for _ in range(3)] == [None] * 3 and len(results) == 1


def test_what_is_made_may_look_up():
    cache = BoundedCache(4)
    assert cache.find(3, lambda: cache.find(2, lambda: cache.find(3, lambda: 5) + 1) + 1) == 7


@pytest.mark.parametrize("most", [1, 4, 50])
def test_threads(most):
    """Whatever others do meanwhile, a key's entry is the key's."""
    cache, wrong = BoundedCache(most), []

    def work(seed):
        draw = random.Random(seed)
        for _ in range(4000):
            key = int(draw.expovariate(0.2))
            result = cache.find(key, lambda key=key: [key])
            if result != [key] or len(cache) > most + 4:
                wrong.append((key, result))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong and len(cache) <= most


def test_code_is_let_go():
    """Every cell of a notebook is code of its own."""
    listed = frames.once_per_code(lambda code: code.co_filename)
    calls = []
    for number in range(frames.MOST_CODE + 50):
        code = compile("x = 1", f"<cell {number}>", "exec")  # equal code
        assert listed(code) == f"<cell {number}>" == listed(code)
        calls.append(weakref.ref(code))
    del code
    assert sum(each() is not None for each in calls) == frames.MOST_CODE
