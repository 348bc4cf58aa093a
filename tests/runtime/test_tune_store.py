"""The store of tuned choices: processes side by side, writes that are interrupted, files that are none; and `gpuop tune`."""

from __future__ import annotations

import os
import runpy
import sqlite3
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import gpuop as gp
from gpuop.__main__ import main
from gpuop.base.config import config
from gpuop.base.errors import GpuopError
from gpuop.runtime.tuning.store import VARIANT, DeviceSignature, TunedChoice, TuneStore
from tests.process import ROOT

HERE = DeviceSignature("opencl", 0, "cpu", "a CPU", "3.1")
ENTRY = TunedChoice(VARIANT, "ab12", HERE, "blurred", "9 float32", "block=8", 0.5, "block=8: 500 ms", 10.0)

OPERATORS = """
import sys
import numpy as np
import gpuop as gp
from gpuop.dsl import *


@gp.operator(tune={"turns": (300, 1)})
def wrapped(field, turns):
    x = _var(_readTensor(field))
    with _for(turns):
        x @= _fmod(x, 2.0)
    return x


@gp.operator(tune={"turns": (200, 1)})
def other(field, turns):
    return wrapped.function(field, turns) + turns // 300


if __name__ == "__main__":
    for operator in (wrapped, other):
        operator(gp.ScalarField(np.ones(int(sys.argv[1]), "f"))).numpy()
"""


@pytest.fixture
def store(tmp_path: Path) -> TuneStore:
    return TuneStore(tmp_path / "tuned.sqlite")


def started(file: Path, store: TuneStore, length: int) -> subprocess.Popen[str]:
    mine = {**os.environ, "PYTHONPATH": str(ROOT), "GPUOP_DEVICE": "reference"}
    mine |= {"GPUOP_TUNE": "auto", "GPUOP_TUNE_STORE": str(store.path)}
    return subprocess.Popen(
        [sys.executable, str(file), str(length)], env=mine, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def test_processes_share_what_they_measure(
    tmp_path: Path, store: TuneStore, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Two measure at once and leave a whole store; a third one finds what they have measured, and measures nothing."""
    file = tmp_path / "operators.py"
    file.write_text(OPERATORS)
    both = [started(file, store, length) for length in (9, 12)]
    messages = [process.communicate(timeout=60)[0] for process in both]
    assert messages == ["".join(f"gpuop: measuring {n} on reference: 2 variants\n" for n in ("wrapped", "other"))] * 2
    results = [(e.name, e.types, e.choice) for e in store.entries()]
    assert results == [(n, f"{k} float32", "turns=1") for n in ("other", "wrapped") for k in (12, 9)]
    database = sqlite3.connect(store.path)
    assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    assert [p.name for p in tmp_path.iterdir() if p.name.startswith("tuned")] == ["tuned.sqlite"]
    monkeypatch.setattr(config, "tune_store", store.path)
    here = runpy.run_path(str(file))
    with gp.use_device("reference"), gp.tuning("auto"):
        here["wrapped"](gp.ScalarField(np.ones(9, "f"))).numpy()
    assert capfd.readouterr().err == ""


def test_threads_that_write_at_once(store: TuneStore) -> None:
    def put(k: int) -> None:
        for n in range(5):
            store.put([replace(ENTRY, kernel=f"{k} {n}")])

    threads = [threading.Thread(target=put, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(store.entries()) == 20


def test_a_write_that_is_interrupted(store: TuneStore) -> None:
    """A process that is killed leaves what there was before, and nothing of its own; the next one writes."""
    store.put([ENTRY])
    code = (
        "import os, sqlite3, sys\nd = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
        "d.execute('PRAGMA cache_size = 1'); d.execute('BEGIN IMMEDIATE'); d.execute('DELETE FROM tuned')\n"
        "for n in range(2000): d.execute('INSERT INTO tuned (kernel, what) VALUES (?, ?)', ('x' * 99, str(n)))\n"
        "os._exit(9)"
    )
    assert subprocess.run([sys.executable, "-c", code, str(store.path)], check=False).returncode == 9
    assert store.path.with_name("tuned.sqlite-journal").exists()
    assert store.entries() == [ENTRY]
    store.put([replace(ENTRY, kernel="cd34")])
    assert len(store.entries()) == 2


def test_what_was_measured_later_stays(store: TuneStore) -> None:
    later = replace(ENTRY, choice="block=16", measured=11.0)
    assert (store.put([later]), store.put([ENTRY]), store.entries()) == (1, 0, [later])


def test_files_that_are_none(tmp_path: Path, store: TuneStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Evaluating warns and goes on; who asks for the file gets an error."""
    monkeypatch.setattr(config, "tune_store", store.path)
    assert store.entries() == []
    store.path.write_bytes(b"no database" * 99)
    with pytest.raises(GpuopError, match="file is not a database"):
        store.entries()
    with gp.use_device("reference"), pytest.warns(UserWarning, match="file is not a database; nothing of it is used"):
        assert (gp.ScalarField([1, 2]) + 17).numpy().tolist() == [18, 19]
    store.path.unlink()
    sqlite3.connect(store.path).execute("PRAGMA user_version = 7")
    with pytest.raises(GpuopError, match="it is of version 7, and this gpuop knows 1"):
        store.put([ENTRY])
    with pytest.raises(GpuopError, match="the store of tuned choices "):
        TuneStore(store.path / "below").put([ENTRY])


def test_rows_that_nobody_stores(store: TuneStore) -> None:
    store.put([ENTRY])
    database = sqlite3.connect(store.path)
    database.execute("INSERT INTO tuned (kernel, what, seconds) VALUES ('z', 'variant', 'soon')")
    database.commit()
    assert store.entries() == [ENTRY]


# --- the command --------------------------------------------------------------------------------------------------------


def test_commands(tmp_path: Path, store: TuneStore, capsys: pytest.CaptureFixture[str]) -> None:
    file, usual = tmp_path / "operators.py", config.tune_store
    file.write_text(OPERATORS)

    def tune(*words: str, status: int = 0) -> str:
        assert main(["tune", *words, "--store", str(store.path)]) == status
        read = capsys.readouterr()
        return read.out + read.err

    assert tune("show", status=1) == f"gpuop: there is no store of tuned choices {store.path}\n"
    message = tune("run", f"{file}:wrapped", "--types", "float32[9]", "--device", "reference", "--seconds", "2")
    assert message.splitlines()[0] == "wrapped on reference: 2 variants"
    assert message.splitlines()[-1].startswith("wrapped (9 float32) on reference reference: turns=1, ")
    shipped = TuneStore(tmp_path / "shipped.sqlite")
    shipped.put([ENTRY, replace(ENTRY, place=DeviceSignature("cuda", 90, "gpu", "H200", "1"), choice="block=32")])
    assert tune("merge", str(shipped.path)) == f"{shipped.path}: 2 of 2 entries are new in {store.path}\n"
    assert tune("merge", str(shipped.path)) == f"{shipped.path}: 2 of 2 entries are new in {store.path}\n"
    assert tune("merge", str(file), status=1) == f"gpuop: the store of tuned choices {file}: file is not a database\n"
    shown = tune("show", "--tried").splitlines()
    assert shown[0] == "variant blurred (9 float32) on cuda:sm_90 H200: block=32, 500 ms"
    assert shown[1] == "    block=8: 500 ms" and "    turns=300: " in "\n".join(shown)
    assert '"cuda:sm_90": {\n        "block": 32\n      }' in tune("export")
    tune("export", "-o", str(tmp_path / "tables.json"))
    assert '"reference": {\n        "turns": 1\n      }' in (tmp_path / "tables.json").read_text()
    assert config.tune_store == usual
