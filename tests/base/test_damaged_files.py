"""Files that gpuop keeps: damaged ones, those in the places of others, folders that others could write, links, no locks."""

import json
import os
import random
import shutil
import stat
import subprocess
import sys

import numpy as np
import pytest

import gpuop as gp
from gpuop.base.cache import blob_store
from gpuop.base.config import config
from gpuop.base.system import lock
from gpuop.runtime.opencl import icd
from gpuop.runtime.tuning.store import TuneStore
from gpuop.scaleout.stream.checkpoint import Checkpoint, locked
from tests import nightly, rotation

PROGRAM = """
import numpy as np, gpuop as gp
f = gp.ScalarField(np.arange(2000, dtype="float32").reshape(40, 50))
print((gp.ndimage.uniform_filter(f, 3) * 2 + f.sum()).numpy()[5, 5], gp.devices()[0].name)
"""
DAMAGES = {
    "random": lambda data, rng: rng.randbytes(max(len(data), 40)),
    "no UTF-8": lambda data, rng: b"\xff\xfe\x80" * 20,
    "longer than a path": lambda data, rng: b"x" * 70000,
    "nothing": lambda data, rng: b"",
    "zeros": lambda data, rng: bytes(len(data)),
    "half": lambda data, rng: data[: len(data) // 2],
    "one bit": lambda data, rng: data[:-1] + bytes([data[-1] ^ 4]),
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(config, "cache", tmp_path / "cache")
    return tmp_path / "cache"


def files_in(path):
    return sorted(file for file in path.rglob("*") if file.is_file())


def ran(home, program=PROGRAM):
    fixed = {"HOME": str(home), "GPUOP_TUNE_STORE": str(home / "tuned")}
    environment = {n: v for n, v in os.environ.items() if not n.startswith(("GPUOP_", "XDG_", "OCL_", "OPENCL_"))}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment | fixed, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """A home with what the program keeps, and what it prints."""
    home = tmp_path_factory.mktemp("home")
    return home, ran(home)


def test_all_that_is_kept_may_be_damaged(filled, tmp_path):
    rng, (home, expected) = random.Random(3), filled
    shutil.copytree(home, tmp_path, dirs_exist_ok=True)
    files = files_in(tmp_path / ".cache" / "gpuop")
    assert len(files) > 3
    damages = ("random", "no UTF-8")
    for damage in damages if nightly.is_nightly() else rotation.share(damages, 1):
        for file in files:
            file.write_bytes(DAMAGES[damage](file.read_bytes(), rng))
        assert ran(tmp_path) == expected


def test_files_in_the_places_of_others(filled, tmp_path):
    home, expected = filled
    shutil.copytree(home, tmp_path, dirs_exist_ok=True)
    files = [file for file in files_in(tmp_path / ".cache" / "gpuop") if file.suffix != ".icd"]
    texts = [file.read_bytes() for file in files]
    for file, other in zip(files, [*texts[1:], texts[0]], strict=True):
        file.write_bytes(other)
    assert ran(tmp_path) == expected


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_not_there(folder, damage):
    blob_store.store("ab" * 32, b"a kernel" * 9)
    (file,) = files_in(folder)
    file.write_bytes(DAMAGES[damage](file.read_bytes(), random.Random(1)))
    assert blob_store.load("ab" * 32) is None
    blob_store.store("ab" * 32, b"another")
    assert blob_store.load("ab" * 32) == b"another"


def test_a_file_is_known_by_its_name(folder):
    blob_store.store("aa", b"one")
    blob_store.store("bb", b"two")
    one, two = files_in(folder)
    texts = one.read_bytes(), two.read_bytes()
    one.write_bytes(texts[1])
    two.write_bytes(texts[0])
    assert blob_store.load("aa") is None
    assert blob_store.load("bb") is None


@pytest.mark.parametrize("damage", DAMAGES)
def test_files_that_name_drivers_are_written_anew(tmp_path, damage):
    icd._write(tmp_path / "known", ["/one.so", "/Gerät.so"])
    for file in files_in(tmp_path):
        file.write_bytes(DAMAGES[damage](file.read_bytes(), random.Random(2)))
    icd._write(tmp_path / "known", ["/one.so", "/Gerät.so"])
    assert [file.read_bytes() for file in files_in(tmp_path)] == [b"/one.so", "/Gerät.so".encode()]


@pytest.mark.parametrize("damage", DAMAGES)
def test_files_of_others_that_name_drivers(tmp_path, monkeypatch, damage):
    vendors = tmp_path / "etc/OpenCL/vendors"
    vendors.mkdir(parents=True)
    (vendors / "bad.icd").write_bytes(DAMAGES[damage](b"/nowhere/libx.so", random.Random(4)))
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.delenv("OCL_ICD_VENDORS", raising=False)
    for driver in [*icd.find(), *icd._listed(vendors)]:
        icd.load_error(driver)


@pytest.mark.parametrize("damage", DAMAGES)
def test_notes_of_another_stream_are_told(tmp_path, damage):
    path = tmp_path / "out.npy.gpuop-stream"
    message = json.dumps({"function": "a"}).encode() + b"\n"
    path.write_bytes(DAMAGES[damage](message, random.Random(5)) + b"\n[[\n" + b"[" * 100000 + b"\n")
    with pytest.raises(gp.SemanticError, match="is of another stream, as these differ: "):
        Checkpoint([str(path)], {"function": "b"}, True, True)


def test_folders_are_nobody_elses(tmp_path, folder):
    before = os.umask(0)
    try:
        blob_store.store("cc", b"one")
        TuneStore(tmp_path / "config" / "gpuop" / "tuned").put([])
        icd._write(tmp_path / "home" / ".cache" / "gpuop" / "known", ["/one.so"])
    finally:
        os.umask(before)
    results = [path for path in tmp_path.rglob("*") if path.is_dir()]
    assert len(results) == 8
    assert {stat.S_IMODE(path.stat().st_mode) for path in results} == {0o700}


def test_notes_do_not_follow_links(tmp_path):
    (tmp_path / "precious").write_bytes(b"mine")
    link = tmp_path / "out.npy.gpuop-stream"
    for target in ("precious", "nowhere"):
        link.symlink_to(tmp_path / target)
        with pytest.raises(gp.SemanticError, match="is a link, but the checkpoint of a stream is a file"):
            locked(str(link))
        with pytest.raises(gp.SemanticError, match="is a link"):
            gp.stream(
                gp.pipeline(lambda x: gp.ScalarField(x) + 1), np.zeros((8, 8), "f4"), out=str(tmp_path / "out.npy")
            )
        link.unlink()
    assert (tmp_path / "precious").read_bytes() == b"mine"
    assert not (tmp_path / "nowhere").exists()


def test_without_locks(tmp_path):
    program = (
        f"""
import sys
sys.modules["fcntl"] = None
import numpy as np, gpuop as gp
gp.stream(gp.pipeline(lambda x: gp.ScalarField(x) + 1), np.zeros((8, 8), "f4"), out={str(tmp_path / "out.npy")!r})
print(np.load({str(tmp_path / "out.npy")!r}).sum())
"""
        + PROGRAM
    )
    assert ran(tmp_path, program).startswith("64.0\n")
    assert not list(tmp_path.glob("*.gpuop-stream"))


def test_one_has_a_lock(tmp_path):
    with open(tmp_path / "a", "wb") as one, open(tmp_path / "a", "rb") as other:
        lock(one)
        with pytest.raises(BlockingIOError):
            lock(other)
