"""States in files: what comes back, what is refused without a change, and that a file is whole or not there."""

from __future__ import annotations

import os
import zipfile

import numpy as np
import pytest

import gpuop as gp
from tests.fuzz import files
from tests.harness import image, same_bits

START = image(6, 7)
COLORS = np.arange(24, dtype="uint8").reshape(2, 3, 4)


def evolving(start=START, extra=True):
    """A graph with states of several kinds, one of which nobody reads."""
    with gp.ComputeGraph() as graph:
        heat = gp.ScalarField(start)
        count = gp.ScalarField(np.int64(2**40))
        colors = gp.ColorField(COLORS)
        ignored = gp.ScalarField(np.zeros(3))
        heat.next = heat * 0.5 + 1
        count.next = count + 1
        ignored.next = gp.ScalarField(np.ones(3))
        graph.probe(heat, "heat")
        graph.probe(heat * 2, "double")
        graph.probe(count, "count")
        if extra:
            wave = gp.ComplexField(np.array([1, 2j, 3]))
            wave.next = wave * 1j
            colors.next = colors
            graph.probe(wave, "wave")
            graph.probe(colors, "colors")
    return graph


NAMES = ("heat", "double", "count", "wave", "colors")


def values(graph):
    return graph.tick, {name: graph.read(name) for name in NAMES}


def same(graph, states):
    tick, arrays = states
    assert graph.tick == tick
    for name, want in arrays.items():
        same_bits(graph.read(name), want, name)


def test_what_was_saved_comes_back(device, tmp_path):
    path = tmp_path / "states.npz"
    graph = evolving()
    graph.step(5)
    graph.save(path)
    five = values(graph)
    graph.step(3)
    eight = values(graph)
    for other in (graph, evolving()):
        other.load(str(path))
        same(other, five)
        other.step(3)
        same(other, eight)
    want = START
    for _ in range(8):
        want = want * np.float32(0.5) + 1
    same_bits(graph.read("heat"), want)
    graph.save(path)  # over the old one
    fresh = evolving()
    fresh.load(path)
    same(fresh, eight)
    assert os.listdir(tmp_path) == ["states.npz"]
    fresh.reset()
    same_bits(fresh.read("heat"), START)


def test_numpy_reads_the_file(tmp_path):
    graph = evolving()
    graph.save(tmp_path / "states")  # resets, as reading does; the name stays what it is
    with np.load(tmp_path / "states", allow_pickle=False) as members:
        same_bits(members["state0"], START)
        same_bits(members["state1"], np.array(2**40))


def test_another_process_goes_on_with_the_frame_of_the_tick(device, tmp_path):
    def summing(first: int) -> gp.ComputeGraph:
        frames = (np.full(1, n, np.float32) for n in range(first, 100))
        with gp.ComputeGraph() as graph:
            total = gp.ScalarField(np.zeros(1, np.float32))
            total.next = total + gp.Sensor(gp.FieldType(1), frames)
            graph.probe(total)
        return graph

    whole, begun, other = summing(0), summing(0), summing(5)
    whole.step(8)
    begun.step(5)
    begun.save(tmp_path / "s")
    other.load(tmp_path / "s")
    other.step(3)
    assert other.tick == whole.tick == 8
    assert other.read("total")[0] == whole.read("total")[0] == sum(range(8))


def test_sensors_keep_their_frames(device, tmp_path):
    def build():
        actual = []
        with gp.ComputeGraph() as graph:
            frame = gp.Sensor(gp.FieldType(2), (np.full(2, k) for k in range(1, 9)))
            total = gp.ScalarField(np.zeros(2, "f"))
            total.next = total + frame
            graph.probe(total, "total")
            graph.probe(total + frame, "both")
            gp.Actuator(total, actual.append)
        return graph, actual

    graph, result = build()
    graph.step(2)  # 1 and 2 in the total, 3 to be seen
    graph.save(tmp_path / "two.npz")
    graph.step(2)
    graph.load(tmp_path / "two.npz")
    assert graph.tick == 2 and graph.read("total")[0] == 3 and graph.read("both")[0] == 8
    assert len(result) == 5
    graph.step()
    assert graph.read("total")[0] == 8 and graph.read("both")[0] == 14
    other, result = build()
    other.load(tmp_path / "two.npz")
    assert other.tick == 2 and other.read("both")[0] == 3 + 1 and not result  # the first frame
    other.step()
    assert other.tick == 3 and other.read("both")[0] == 4 + 2


def test_files_that_are_cut_off(device, tmp_path):
    graph = evolving()
    graph.step(2)
    graph.save(tmp_path / "whole.npz")
    graph.step()
    before = values(graph)
    whole = (tmp_path / "whole.npz").read_bytes()
    for eighth in range(8):
        (tmp_path / "cut.npz").write_bytes(whole[: len(whole) * eighth // 8])
        with pytest.raises(
            gp.SemanticError, match=r"cut\.npz is not a file that `graph\.save` wrote, or it is cut off"
        ):
            graph.load(tmp_path / "cut.npz")
        same(graph, before)
    graph.step()


def test_files_that_are_damaged(tmp_path):
    graph = evolving()
    graph.step(2)
    graph.save(tmp_path / "whole.npz")
    before, whole = values(graph), (tmp_path / "whole.npz").read_bytes()
    with zipfile.ZipFile(tmp_path / "whole.npz") as members:
        at = members.getinfo("state0.npy").header_offset + 200  # in its array
    (tmp_path / "bad.npz").write_bytes(whole[:at] + bytes([whole[at] ^ 255]) + whole[at + 1 :])
    with pytest.raises(gp.SemanticError, match=r"bad\.npz is damaged: Bad CRC-32.*; take another one"):
        graph.load(tmp_path / "bad.npz")
    for name, members in {
        "less": {"state0": START},
        "other type": {f"state{k}": START for k in range(5)},
    }.items():
        with np.load(tmp_path / "whole.npz") as saved:
            np.savez(tmp_path / "made.npz", head=saved["head"], **members)
        with pytest.raises(gp.SemanticError, match=r"made\.npz is damaged: ") as caught:
            graph.load(tmp_path / "made.npz")
        assert name != "other type" or "state1.npy is float32 of shape (6, 7), for a 0D int64 field" in str(
            caught.value
        )
    same(graph, before)


def test_foreign_files(tmp_path):
    graph = evolving()
    before = values(graph)
    np.savez(tmp_path / "foreign.npz", a=START)
    np.savez(tmp_path / "pickled.npz", head=np.array([{"format": "gpuop states"}], object))
    np.savez(tmp_path / "newer.npz", head=np.array('{"format": "gpuop states", "version": 2}'))
    np.savez(tmp_path / "numbers.npz", head=np.array('{"format": "gpuop states", "version": 1, "states": 5}'))
    np.savez(tmp_path / "words.npz", head=np.array("no JSON"))
    np.save(tmp_path / "array.npy", START)
    (tmp_path / "text.npz").write_text("states")
    for name, message in {
        "foreign.npz": r"foreign\.npz is an \.npz file, but none that `graph\.save` wrote",
        "pickled.npz": r"pickled\.npz is damaged: head\.npy is no array as NumPy's `save` writes it",
        "newer.npz": r"has version 2 of the format, and this gpuop reads version 1; load it with the gpuop that saved it",
        "numbers.npz": r"numbers\.npz is damaged: ",
        "words.npz": r"words\.npz is damaged: ",
        "array.npy": r"array\.npy is not a file that `graph\.save` wrote",
        "text.npz": r"text\.npz is not a file that `graph\.save` wrote",
    }.items():
        with pytest.raises(gp.SemanticError, match=message):
            graph.load(tmp_path / name)
        same(graph, before)
    with pytest.raises(FileNotFoundError):
        graph.load(tmp_path / "missing.npz")


def head(tick="3", states='[["s", "3 float32"]]'):
    return f'{{"format": "gpuop states", "version": 1, "tick": {tick}, "states": {states}}}'


def made(state=None, name="state0.npy", compression=zipfile.ZIP_STORED, text=None):
    """A file of one state, with another member or head in it."""
    state = files.npy(np.zeros(3, "f")) if state is None else state
    return files.zipped({"head.npy": files.npy(np.array(text or head())), name: state}, compression)


def array_header(text):
    text = text.ljust(117).encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + bytes(12)


def in_directory(offset, value):
    """Two bytes of zip's directory of the last member; the state's."""
    data = bytearray(made())
    at = data.rindex(b"PK\x01\x02") + offset
    data[at : at + 2] = value.to_bytes(2, "little")
    return bytes(data)


def overlapping():
    """A file whose directory has ten names for the bytes of one large member."""
    data = made(bytes(5000))
    start, end = data.index(b"PK\x01\x02"), data.rindex(b"PK\x05\x06")
    last = data[data.rindex(b"PK\x01\x02") : end]
    more = b"".join(last.replace(b"state0", b"state%d" % k) for k in range(1, 9))
    size, count = end - start + len(more), data.count(b"PK\x01\x02") + 8
    closing = count.to_bytes(2, "little") * 2 + size.to_bytes(4, "little") + start.to_bytes(4, "little") + b"\0\0"
    return data[:end] + more + b"PK\x05\x06\0\0\0\0" + closing


BAD_FILES = {
    "no array": (lambda: made(b"hello"), "state0.npy is no array as NumPy's `save` writes it"),
    "an endless tick": (lambda: made(text=head("Infinity")), "`tick` is inf, not an integer from 0 to"),
    "a negative tick": (lambda: made(text=head("-5")), "`tick` is -5, not an integer from 0 to 9223372036854775807"),
    "a tick of 41 digits": (lambda: made(text=head("1" + "0" * 40)), "it has a number of 41 digits"),
    "a tick of 2**63": (lambda: made(text=head(str(2**63))), "`tick` is 9223372036854775808, not an integer"),
    "a tick that is true": (lambda: made(text=head("true")), "`tick` is True, not an integer"),
    "a million digits": (lambda: made(text=head("9" * 10**6)), "it has a number of 1000000 digits"),
    "brackets": (lambda: made(text="[" * 100_000), "it is nested too deeply"),
    "states that are no pairs": (lambda: made(text=head(states='[["s"]]')), "`states[0]` is a list, not an array of 2"),
    "states that are no texts": (lambda: made(text=head(states='[[1, "x"]]')), "`states[0][0]` is 1, not a text"),
    "a huge shape": (
        lambda: made(array_header("{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000000,), }")),
        "state0.npy is float32 of shape (1000000000000,), for a 3 float32 field",
    ),
    "Python in a header": (
        lambda: made(array_header("{'descr': '<f4', 'fortran_order': False, 'shape': (9**9**9,), }")), "is no array",
    ),
    "too little": (lambda: made(files.npy(np.zeros(3, "f"))[:-1]), "state0.npy has 11 bytes, for a 3 float32 field"),
    "too much": (lambda: made(files.npy(np.zeros(3, "f")) + b"x"), "state0.npy has 13 bytes, for a 3 float32 field"),
    "pickled": (lambda: made(files.npy(np.array([None] * 3))), "state0.npy is no array as NumPy's `save` writes it"),
    "no state": (lambda: made(name="state1.npy"), "it has no state0.npy"),
    "compressed": (lambda: made(bytes(10**6), compression=zipfile.ZIP_DEFLATED), "is compressed"),
    "encrypted": (lambda: in_directory(8, 1), "is encrypted"),
    "a method of no zip's": (lambda: in_directory(10, 99), "state0.npy is compressed"),
    "a version of no zip's": (lambda: in_directory(6, 118), "zip file version 11.8"),
    "a size that is not there": (lambda: in_directory(26, 9999), "state0.npy is compressed, and members are stored as they are"),
    "members in one another": (lambda: overlapping(), "its members are larger than the file"),
}  # fmt: skip


@pytest.mark.parametrize("bad", BAD_FILES)
def test_files_that_others_made(bad, tmp_path):
    data, message = BAD_FILES[bad]
    path = tmp_path / "bad.npz"
    path.write_bytes(data())
    with gp.ComputeGraph("reference") as graph:
        s = gp.ScalarField(np.zeros(3, "float32"))
        s.next = s + 1
        graph.probe(s, "s")
    graph.step(2)
    with pytest.raises(
        gp.SemanticError, match=r"bad\.npz is damaged: .*; take another one that `graph\.save` wrote"
    ) as caught:
        graph.load(path)
    assert message in str(caught.value)
    assert graph.tick == 2 and graph.read("s").tolist() == [2] * 3
    path.write_bytes(made())
    graph.load(path)
    assert graph.tick == 3


def test_states_of_a_machine_of_the_other_byte_order(tmp_path):
    path = tmp_path / "big.npz"
    path.write_bytes(made(files.npy(np.array([1, 2, 3], ">f4"))))
    with gp.ComputeGraph("reference") as graph:
        s = gp.ScalarField(np.zeros(3, "float32"))
        s.next = s
        graph.probe(s, "s")
    graph.load(path)
    assert graph.read("s").tolist() == [1, 2, 3]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_what_is_no_file(tmp_path):
    os.mkfifo(tmp_path / "pipe")  # who opens it waits
    for path in (tmp_path / "pipe", tmp_path, "/dev/zero"):
        for load in (evolving().load, gp.load_bundle):
            with pytest.raises(
                gp.SemanticError, match=r"is not a (file|bundle) that .* wrote, or it is cut off|is a folder"
            ):
                load(path)


def test_other_graphs_states(tmp_path):
    path = tmp_path / "states.npz"
    evolving().save(path)
    wave, colors = "wave (3 complex64)", "colors (2×3 unorm8[4])"
    saved = f"heat (6×7 float32), count (0D int64), {wave}, {colors}"
    for other, own in {
        evolving(extra=False): "heat (6×7 float32), count (0D int64)",
        evolving(start=START[:2]): f"heat (2×7 float32), count (0D int64), {wave}, {colors}",
        renamed(): f"heat (6×7 float32), ticks (0D int64), {colors}, {wave}",
    }.items():
        other.step(2)
        with pytest.raises(gp.SemanticError) as caught:
            other.load(path)
        assert str(caught.value).split("\n")[0] == (
            f"{path} has the states {saved}, and this graph has {own}; it was saved by another graph, or a variable has "
            "another name now (`field.name = …` gives a state its name back)"
        )
        assert other.tick == 2
        other.step()


def renamed():
    with gp.ComputeGraph() as graph:
        heat = gp.ScalarField(START)
        ticks = gp.ScalarField(np.int64(3))
        colors = gp.ColorField(COLORS)
        wave = gp.ComplexField(np.ones(3))
        for state in (heat, ticks, colors, wave):
            state.next = state
            graph.probe(state)
    return graph


def test_states_are_known_by_their_names(device, tmp_path):
    """Not by the order in which the program has them."""

    def build(turned, name=None):
        with gp.ComputeGraph() as graph:
            low = gp.ScalarField(np.int32(0))
            high = gp.ScalarField(np.int32(1000))
            for field in (high, low) if turned else (low, high):
                field.next = field + 1
            if name:
                low.name = name
            graph.probe(low, "low")
            graph.probe(high, "high")
        return graph

    graph = build(False)
    graph.step(3)
    graph.save(tmp_path / "states.npz")
    other = build(True)
    other.load(tmp_path / "states.npz")
    assert (other.read("low"), other.read("high"), other.tick) == (3, 1003, 3)
    other.step()
    assert (other.read("low"), other.read("high")) == (4, 1004)
    with pytest.raises(gp.SemanticError, match=r"this graph has bottom \(0D int32\), high \(0D int32\); it was"):
        build(False, "bottom").load(tmp_path / "states.npz")
    with_name = build(False, "bottom")
    with_name.save(tmp_path / "named.npz")
    build(True, "bottom").load(tmp_path / "named.npz")


def test_states_that_share_a_name_keep_their_order(device, tmp_path):
    def build(names):
        with gp.ComputeGraph() as graph:
            line = [gp.ScalarField(np.float32(10 * k)) for k in range(len(names))]
            for k, (field, name) in enumerate(zip(line, names, strict=True)):
                field.name = name
                field.next = field + k
                graph.probe(field, f"field {k}")
        return graph

    graph = build(["", "x", "", "x"])
    graph.step(2)
    graph.save(tmp_path / "line.npz")
    other = build(["x", "x", "", ""])
    other.load(tmp_path / "line.npz")
    assert [float(other.read(f"field {k}")) for k in range(4)] == [12, 36, 0, 24]
    with pytest.raises(gp.SemanticError, match=r"nameless \(0D float32\), x .*, nameless .*, and this graph has x"):
        build(["x", "x", "x", ""]).load(tmp_path / "line.npz")
    many = build([f"s{k}" for k in range(20)])
    with pytest.raises(gp.SemanticError, match=r"s11 \(0D float32\) and 8 more; it was saved"):
        many.load(tmp_path / "line.npz")


def test_writing_that_fails_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "states.npz"
    graph = evolving()
    graph.save(path)
    old = path.read_bytes()
    graph.step()

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        graph.save(path)
    assert path.read_bytes() == old and os.listdir(tmp_path) == ["states.npz"]
    with pytest.raises(FileNotFoundError):
        graph.save(tmp_path / "no folder" / "states.npz")


def test_saving_and_loading_while_it_runs(device, tmp_path):
    path = tmp_path / "states.npz"
    with gp.ComputeGraph() as graph:
        low = gp.ScalarField(np.int32(0))
        high = gp.ScalarField(np.int32(1000))
        low.next, high.next = low + 1, high + 1
        graph.probe(high - low, "difference")
    graph.run()
    for _ in range(5):
        graph.save(path)
        with np.load(path) as members:
            assert members["state1"] - members["state0"] == 1000
        graph.load(path)
        assert graph.read("difference") == 1000
    graph.stop()
