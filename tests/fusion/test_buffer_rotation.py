"""States that take the values of other states, of sensors and of constants: buffers change places, and nothing is copied."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpuop as gp
from gpuop.dsl import *
from gpuop.fusion.buffer_rotation import MOST, copying, rotation
from gpuop.runtime.devices import current
from tests.harness import blur, image, same_bits

A, B, C = (image(5, 7) + k for k in range(3))


def follow(graph, states, step, times=7):
    """The probes are what `step` makes of the states, at every tick and after a reset."""
    start = states
    for ticks in (times, 3):
        graph.reset()
        states = start
        for tick in range(ticks):
            for name, want in states.items():
                same_bits(graph.read(name), want, f"{name} at {tick}")
            graph.step()
            states = dict(zip(states, step(**states), strict=True))


def delayed(compute, **line):
    return compute(gp.ScalarField(line["d0"])).numpy(), *list(line.values())[:-1]


def states_of(graph, **arrays):
    fields = [gp.ScalarField(array) for array in arrays.values()]
    for name, field in zip(arrays, fields, strict=True):
        field.name = name
        graph.probe(field, name)
    return fields


@pytest.fixture
def moves(monkeypatch):
    """The copies of devices, and the number of buffers that they have made."""
    results = {"copies": 0, "buffers": 0}
    for method, name in (("copy", "copies"), ("empty", "buffers")):
        real = getattr(type(current()), method)

        def counted(self, *args, real=real, name=name):
            results[name] += 1
            return real(self, *args)

        monkeypatch.setattr(type(current()), method, counted)
    return results


def test_two_that_change_places(device, moves):
    with gp.ComputeGraph() as graph:
        a, b = states_of(graph, a=A, b=B)
        a.next, b.next = b, a
    assert graph.kernel_count == 0
    follow(graph, {"a": A, "b": B}, lambda a, b: (b, a))
    assert moves == {"copies": 0, "buffers": 2}


def test_a_state_that_keeps_its_value(device, moves):
    with gp.ComputeGraph() as graph:
        a, b = states_of(graph, a=A, b=B)
        a.next, b.next = a, a
        graph.probe(a * 2, "double")
    assert graph.kernel_count == 1
    follow(graph, {"a": A, "b": B, "double": A * 2}, lambda a, b, double: (a, a, double))
    assert moves["copies"] == 0


@pytest.mark.parametrize("length", [1, 2, 5])
def test_a_delay_line_of_what_is_computed_in_place_or_beside(device, moves, length):
    for compute in (lambda f: f * 0.5 + 1, blur):
        moves.update(copies=0, buffers=0)
        with gp.ComputeGraph() as graph:
            line = states_of(graph, **{f"d{k}": A + k for k in range(length + 1)})
            line[0].next = compute(line[0])
            for late, early in zip(line[1:], line, strict=False):
                late.next = early
        model = partial(delayed, compute)
        follow(graph, {f"d{k}": A + k for k in range(length + 1)}, model)
        assert graph.kernel_count == 1 and moves["copies"] == 0


def test_states_that_take_the_same_value_have_one_buffer_then(device, moves):
    with gp.ComputeGraph() as graph:
        a, b, c = states_of(graph, a=A, b=B, c=C)
        a.next = b.next = a + b
        c.next = b
    assert graph.kernel_count == 1
    follow(graph, {"a": A, "b": B, "c": C}, lambda a, b, c: (a + b, a + b, b))
    assert moves == {"copies": 0, "buffers": 4}


def test_constants_and_parameters(device, moves):
    gain = gp.Parameter(2.0)
    with gp.ComputeGraph() as graph:
        a, b, c, d = states_of(graph, a=A, b=B, c=C, d=A)
        constant = gp.ScalarField(C)
        a.next, b.next, c.next, d.next = constant, a, constant * gain, c
    follow(graph, {"a": A, "b": B, "c": C, "d": A}, lambda a, b, c, d: (C, a, C * 2, c))
    gain.set(3.0)
    same_bits(graph.read("c"), C * 2)
    graph.step()
    same_bits(graph.read("c"), C * 3)
    same_bits(graph.read("d"), C * 2)
    moves["copies"] = 0
    graph.step()
    assert moves["copies"] == 1  # of what the parameter scales: it changes when that is set
    same_bits(constant.numpy(), C)


def test_a_parameter_that_a_state_takes(device):
    for start in (np.float32(5), np.arange(40, dtype="f")):  # passed by value, and in a buffer
        level = gp.Parameter(start + 1)
        with gp.ComputeGraph() as graph:
            a = graph.probe(gp.Field(start, start.ndim), "a")
            b = graph.probe(gp.Field(start, start.ndim), "b")
            a.next, b.next = level, a
        graph.step()
        level.set(start + 2)
        same_bits(graph.read("a"), start + 1)
        same_bits(graph.read("b"), np.asarray(start))
        graph.step()
        same_bits(graph.read("a"), start + 2)
        same_bits(graph.read("b"), start + 1)


@pytest.mark.parametrize("pipelined", [False, True])
def test_frames_of_a_sensor_stay_where_they_came(device, moves, pipelined):
    frames = [A, None, B, C, None, None, A + 5, B + 5]
    shown = np.zeros_like(A)
    with gp.ComputeGraph() as graph:
        frame = gp.Sensor(gp.FieldType((5, 7)), iter(frames), "frame", pipelined)
        (late,) = states_of(graph, late=C)
        late.next = frame
        graph.probe(frame - late, "change")
        graph.probe(frame, "frame")
    want = C
    for tick, given_frame in enumerate(frames):
        if tick in (0, 3):  # the second reset finds buffers that have changed places
            graph.reset()
            want = C
        elif not graph.step():
            raise AssertionError(tick)
        shown = shown if given_frame is None else given_frame
        same_bits(graph.read("late"), want, f"late at {tick}")
        same_bits(graph.read("frame"), shown, f"frame at {tick}")
        same_bits(graph.read("change"), shown - want, f"change at {tick}")
        want = shown
    assert moves["copies"] <= 4  # frames that stay, and one at the reset
    assert not graph.step()


def test_files_of_states_that_share_a_buffer(device, tmp_path):
    """The arrays of a file may differ where the states of the graph are one."""

    def made():
        with gp.ComputeGraph() as graph:
            frame = gp.Sensor(gp.FieldType((5, 7)), iter([A, B, C, A]), "frame")
            a, b, d = states_of(graph, a=A, b=B, d=C)
            a.next = b.next = blur(a)
            d.next = graph.probe(frame, "frame")
        return graph

    graph = made()
    graph.save(tmp_path / "0.npz")
    graph.step(3)
    graph.load(tmp_path / "0.npz")
    for name, array in {"a": A, "b": B, "d": C, "frame": A}.items():
        same_bits(graph.read(name), array, name)
    assert graph.tick == 0


def test_drawings_and_reports(device, tmp_path):
    with gp.ComputeGraph() as graph:
        a, b = states_of(graph, a=A, b=B)
        c = gp.ScalarField(C)
        a.next, b.next, c.next = b, a, b
        calls = []
        gp.Actuator(b, calls.append)
        graph.probe(c + b, "more")
    assert "copy" not in graph.explain().replace("copy nothing", "")
    (kernel,) = json.loads(graph.explain("json"))["kernels"]
    assert [value["name"] for value in kernel["inputs"]] == ["c", "b"]
    graph.draw(tmp_path / "graph.svg")
    drawing = (tmp_path / "graph.svg").read_text()
    assert all(f"{name}.next: taken at the next step" in drawing for name in "abc")
    graph.step(2)
    graph.profile(3)
    same_bits(np.stack(calls), np.stack([B, A, B, A, B, A]))
    same_bits(graph.read("more"), B + A)


# --- iterations --------------------------------------------------------------------------------------------------------


def test_iterations_change_buffers(device, moves):
    """A wave: the state before is kept, and nothing is copied but what ends where it began."""
    u, v = gp.ScalarField(A), gp.ScalarField(B)
    for times in (1, 2, 7, 8):
        was, now = gp.iterate(lambda was, now: (now, now * 1.5 - was), (u, v), times=times)
        x, y = A, B
        moves["copies"] = 0
        gp.evaluate(was, now)
        for _ in range(times):
            x, y = y, y * np.float32(1.5) - x
        same_bits(was.numpy(), x)
        same_bits(now.numpy(), y)
        assert moves["copies"] == (times == 1)


def test_random_iterations(device):
    """States that take one another, or are computed of two, with a number of turns or until a condition holds."""
    for seed in range(30):
        random = Random(seed)
        count = random.randint(1, 5)
        rules = [
            (random.choice(("take", "take", "sum", "half")), *random.choices(range(count), k=2)) for _ in range(count)
        ]
        start, times = [image(3, 4) for _ in range(count)], random.randint(1, 9)

        def turn(*states, rules=rules):
            results = {"take": lambda a, b: a, "sum": lambda a, b: a * 0.5 + b, "half": lambda a, b: a * 0.5}
            return tuple(results[kind](states[a], states[b]) for kind, a, b in rules)

        until = (lambda *states: states[0].max() < 10) if seed % 3 == 0 else None
        fields = tuple(map(gp.ScalarField, start))
        results = gp.iterate(turn, fields, times=times, until=until, every=times)
        gp.evaluate(*results)
        want = tuple(start)
        for _ in range(times):
            want = turn(*want)
        for actual, one in zip(results, want, strict=True):
            same_bits(actual.numpy(), np.float32(one), f"{rules}, {times}")


# --- random graphs ---------------------------------------------------------------------------------------------------------


class Model:
    """A graph of states, a sensor, a constant and a parameter, and what it is in NumPy."""

    def __init__(self, random):
        self.random, self.start = random, [image(3, 4) for _ in range(random.randint(1, 7))]
        self.constant, self.level = image(3, 4), np.float32(1)
        self.frames = [None if random.random() < 0.3 else image(3, 4) for _ in range(30)]
        count = len(self.start)
        kinds = random.choice((["take"], ["take", "take", "sum", "half"], ["take", "roll", "half", "scale"]))
        self.rules = [(random.choice(kinds), self._other(k, count), random.randrange(count)) for k in range(count)]
        self.gain, self.graph = gp.Parameter(1.0), gp.ComputeGraph(optimize=random.random() < 0.8)
        self.shown, self.given = np.zeros((3, 4), "f"), iter(self.frames)
        with self.graph:
            self.build()

    def _other(self, k, count):
        """The source of a state: mostly the one before it, or any, or the sensor's frame (-1) or the constant (-2)."""
        return k - 1 if k and self.random.random() < 0.5 else self.random.randint(-2, count - 1)

    def build(self):
        states = states_of(self.graph, **{f"s{k}": array for k, array in enumerate(self.start)})
        frame = gp.Sensor(gp.FieldType((3, 4)), iter(self.frames), "frame")
        values = [*states, gp.ScalarField(self.constant), frame]
        self.graph.probe(frame, "frame")
        results = [self.apply(rule, values, self.gain) for rule in self.rules]
        for k, (state, value) in enumerate(zip(states, results, strict=True)):
            state.next = results[0] if k and self.rules[k] == self.rules[0] else value

    def apply(self, rule, values, gain):
        kind, a, b = rule
        a, b = values[a], values[b]
        if kind == "roll":
            return rolled(a) if isinstance(a, gp.Field) else np.roll(a, 1, 1)
        return {"take": lambda: a, "sum": lambda: (a + b) * 0.5, "half": lambda: a * 0.5, "scale": lambda: a * gain}[
            kind
        ]()

    def run(self):
        tick, states = None, self.start
        for _ in range(14):
            draw = self.random.random()
            if tick is None or draw < 0.15:
                self.graph.reset()
                tick, states = 0, self.start
            elif draw < 0.25:
                self.level = np.float32(self.random.choice((0.5, 1, 2)))
                self.gain.set(self.level)
                continue
            else:
                self.graph.step()
                values = [*states, self.constant, self.shown]
                tick, states = tick + 1, [self.apply(rule, values, self.level) for rule in self.rules]
            frame = next(self.given)
            self.shown = self.shown if frame is None else frame
            if self.random.random() < 0.6:
                self.check(states, f"{self.rules} at {tick}")

    def check(self, states, what):
        for k, want in enumerate(states):
            same_bits(self.graph.read(f"s{k}"), want, f"s{k} of {what}")
        same_bits(self.graph.read("frame"), self.shown, what)


@gp.operator
def rolled(f):
    return _readTensor(f, _row, _column - 1, border="wrap")


def test_random_graphs(device):
    for seed in range(60 if device == "reference" else 40):
        Model(Random(seed)).run()


# --- how values are placed -----------------------------------------------------------------------------------------------


def test_long_lines_and_rings_of_many_lengths_are_cut():
    assert MOST == 24
    nexts = {k: k - 1 for k in range(1, 101)}
    assert copying(nexts, dict.fromkeys(nexts, 4)) == {24, 47, 70, 93, 100}
    small = {f"{n} {k}": f"{n} {(k + 1) % n}" for n in (5, 7) for k in range(n)}
    large = {f"11 {k}": f"11 {(k + 1) % 11}" for k in range(11)}
    copied = copying(small | large, dict.fromkeys(small, 4) | dict.fromkeys(large, 400))
    assert copied == small.keys()  # the large rotate
    assert copying({"a": "a", "b": "a", "c": "d", "d": "c"}, dict.fromkeys("abcd", 4)) == set()


@st.composite
def links(draw):
    """The sources of states: one another's values, or one of three others."""
    count = draw(st.integers(1, 30))
    near = draw(st.booleans())
    values = lambda k: st.integers(-3 if k < 3 or not near else k - 3, k - 1 if near else count - 1)  # noqa: E731
    return {k: draw(values(k) if k or not near else st.integers(-3, -1)) for k in range(count)}


@settings(max_examples=150, derandomize=True, database=None, deadline=None)
@given(links(), st.sampled_from([(), (-1,), (-1, -2)]))
def test_where_values_are(nexts: Mapping[int, int], anew):
    """Followed by hand: each state's buffer has what it should, whatever was written to the places of new values."""
    copied = copying(nexts, dict.fromkeys(nexts, 4))
    fresh = {state: -10 - state for state in copied}  # the values that are copies
    given_anew = {v for v in anew if v in nexts.values()} | set(fresh.values())
    choices = {state: fresh.get(state, value) for state, value in nexts.items()}
    steps, again = rotation(choices, given_anew)
    assert len(steps) <= 3 * MOST and 0 <= again < len(steps)
    values = {v: f"start of {v}" for v in steps[0]}
    memory = {steps[0][v]: values[v] for v in values}
    assert len(memory) == len(values)
    number = 0
    for tick in range(2 * len(steps) + 1):
        assert {v: memory[at] for v, at in steps[number].items()} == values
        number = number + 1 if number + 1 < len(steps) else again
        values |= {state: values[value] for state, value in choices.items()}
        values |= {v: f"{v} at {tick}" for v in given_anew}
        memory |= {steps[number][v]: values[v] for v in given_anew}
    assert fresh or len(set().union(*(step.values() for step in steps))) == len(values)
