"""Files that are written whole or not at all, and what is left when their writer is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import numpy as np
import pytest

import gpuop as gp
from gpuop.base.cache import blob_store
from gpuop.base.cache.atomic_files import replacing
from gpuop.base.config import config
from tests.engine.interrupts.bytecodes import Places

# Writes half of a file, tells so, and waits.
HALF = """
import sys
from gpuop.base.cache.atomic_files import replacing
with replacing(sys.argv[1]) as file:
    file.write(b"half")
    file.flush()
    print(flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def killed():
    """Kills a process that writes half of a file."""

    def kill(path, end=signal.SIGKILL):
        process = subprocess.Popen([sys.executable, "-c", HALF, path], stdout=subprocess.PIPE, stdin=subprocess.PIPE)
        with process:
            process.stdout.readline()
            listed = sorted(os.listdir(os.path.dirname(path)))
            process.send_signal(end)
        return listed

    return kill


def test_what_a_killed_writer_left_goes_with_the_next_one(killed, tmp_path, monkeypatch):
    with gp.ComputeGraph("reference") as graph:
        state = gp.ScalarField(np.zeros(4, "f"))
        state.next = state + 1
        graph.probe(state)
    path = tmp_path / "k.npz"
    graph.save(path)
    others = [".k.npz", ".k.npz.0123", ".other.npz." + 32 * "a", "k.npz." + 32 * "a", ".k.npz." + 33 * "a"]
    for name in others:
        (tmp_path / name).touch()
    for _ in range(2):
        assert len(killed(str(path))) == len(others) + 2  # the file, and what is written
    assert len(os.listdir(tmp_path)) == len(others) + 2  # of the second: it had cleaned
    graph.load(path)
    graph.step(3)
    graph.save(path)
    assert sorted(os.listdir(tmp_path)) == sorted([*others, "k.npz"])
    graph.reset()
    graph.load(path)
    assert graph.tick == 3


def test_the_compile_cache_too(killed, tmp_path, monkeypatch):
    monkeypatch.setattr(config, "cache", tmp_path)
    blob_store.store("name", b"1")
    (folder,) = tmp_path.iterdir()
    killed(str(folder / "name"))
    assert len(os.listdir(folder)) == 2
    blob_store.store("name", b"2")
    assert os.listdir(folder) == ["name"] and blob_store.load("name") == b"2"


def test_writers_that_live_are_left_alone(tmp_path):
    path = tmp_path / "file"
    with replacing(path) as first:
        first.write(b"1")
        with replacing(path) as second:
            second.write(b"2")
        assert path.read_bytes() == b"2"
    assert path.read_bytes() == b"1" and os.listdir(tmp_path) == ["file"]


def test_a_writer_whose_file_was_taken_for_a_dead_ones(tmp_path, monkeypatch):
    """Between its creation and its lock another one may clean; then it is made again."""
    import fcntl

    lock, locks = fcntl.flock, []

    def late(file, how):
        if not locks:
            locks.append(file)
            os.unlink(file.name)
        return lock(file, how)

    monkeypatch.setattr(fcntl, "flock", late)
    with replacing(tmp_path / "file") as file:
        file.write(b"1")
    assert (tmp_path / "file").read_bytes() == b"1" and locks[0].closed


@pytest.mark.skipif(sys.version_info < (3, 11), reason="what handles an exception is in a table since 3.11")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning")
def test_interrupts_leave_nothing(tmp_path):
    def write():
        with replacing(path) as file:
            file.write(b"new")

    path, interrupts = tmp_path / "file", 0
    for n in range(1, 80):
        path.write_bytes(b"old")
        places = Places(n)
        interrupts += places.run(write)
        assert path.read_bytes() in (b"old", b"new")
        assert os.listdir(tmp_path) == ["file"], places.where
    write()
    assert interrupts > 20 and path.read_bytes() == b"new" and os.listdir(tmp_path) == ["file"]
