"""A process that is forked after drivers were loaded: a sentence from each, and no waiting."""

from __future__ import annotations

import os

import pytest

import gpuop as gp
from tests.process import python

DEVICES = [device.name for device in gp.devices()]
# Uses a device, forks while it works, and tells what the child says of everything. A child that waits is ended by its alarm.
PROGRAM = """
import gc, os, signal, sys, threading
import numpy as np
import gpuop as gp
from gpuop.dsl import *
from gpuop.runtime import devices

@gp.operator
def twice(f):
    return _readTensor(f) * 2

def eager(): return twice(gp.ScalarField(np.arange(4.0, dtype="f"))).numpy()[3]
def evaluated(): return before.numpy()[3]
def pipelined(): return pipeline(np.arange(4, dtype="f"))[3]
def read(): return graph.read("s")[0]
def stop(): return graph.stop()
def event(): return done.result()[3]
def queued():
    with gp.queue("io"): return eager()
def defined():
    with gp.ComputeGraph() as another:
        t = gp.ScalarField(np.zeros(3, "f"))
        t.next = t + 1
        another.probe(t, "t")
    another.step(3)
    return another.read("t")[0]
def default():
    chosen = devices._chosen
    token = chosen.set(())
    try: return eager()
    finally: chosen.reset(token)
def reference():
    with gp.use_device("reference"): return eager()
def listed(): return [d.name for d in gp.devices()]

class Odd:  # as some libraries' types are
    __module__ = property(lambda self: "odd")

odd = Odd()
device = sys.argv[1]
gp.devices()  # drivers are loaded, also where the reference is used
pipeline = gp.pipeline(lambda a: twice(gp.ScalarField(a)))
with gp.use_device(device):
    before = gp.evaluate(twice(gp.ScalarField(np.arange(4, dtype="f"))))
    eager(), pipelined()
    with gp.ComputeGraph() as graph:
        s = gp.ScalarField(np.zeros(1 << 12, "f"))
        s.next = twice(s) * 0.25 + 1
        graph.probe(s, "s")
    graph.step(20)
    done = gp.submit(twice(before))
    queued()
    for name in (eager, event, queued, evaluated, pipelined, read, stop, defined, default, reference, listed):
        if name is stop: graph.run()
        child = os.fork()
        if not child:
            signal.alarm(20)
            try:
                print(name.__name__, name(), flush=True)
            except gp.GpuopError as error:
                print(name.__name__, type(error).__name__, str(error).partition(chr(10))[0], flush=True)
            if name not in (eager, stop): os._exit(0)
            del before, graph
            gc.collect()
            sys.exit()
        _, status = os.waitpid(child, 0)
        if status:
            print(name.__name__, "ended with", status, flush=True)
        if name is stop: graph.stop()
    print("parent", eager(), float(graph.read("s")[0] > 1))
"""
SENTENCE = (
    "a driver that was loaded before a process was forked does not work in it, and may wait for ever; start processes with "
    '`multiprocessing.get_context("spawn")`, or compute on the device `reference` there'
)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore")
@pytest.mark.in_turn
@pytest.mark.parametrize("on", dict.fromkeys((DEVICES[0], "reference")))  # no driver is called
def test_everything_in_a_child(on, tmp_path):
    script = tmp_path / "forks.py"
    script.write_text(PROGRAM)
    done = python(str(script), on, GPUOP_DEVICE=None)
    assert "ignored" not in done.stderr, done.stderr
    messages = dict(line.split(" ", 1) for line in done.stdout.splitlines())
    lost = f"DeviceError {on}: {SENTENCE}"
    ran = f"DeviceError this ComputeGraph ran in another process, and {SENTENCE}"
    mine = on == "reference"
    assert messages == {
        "eager": "6.0" if mine else lost,
        "event": "12.0" if mine else lost,
        "queued": "6.0" if mine else lost,
        "evaluated": "6.0" if mine else lost,
        "pipelined": "6.0" if mine else lost,
        "read": ran,
        "stop": "None",
        "defined": "3.0" if mine else lost,
        "default": f"DeviceError no device was chosen, and {SENTENCE}" if len(DEVICES) > 1 else "6.0",
        "reference": "6.0",
        "listed": "['reference']",
        "parent": "6.0 1.0",
    }


def test_a_process_that_is_forked_before_any_use():
    """It has its devices, and so has a worker of a pool."""
    done = python(
        "-c",
        "import multiprocessing, numpy as np, gpuop as gp\n"
        "def total(x): return float((gp.ScalarField(x) * 2).sum())\n"
        "with multiprocessing.get_context('fork').Pool(1) as pool: print(pool.apply(total, (np.ones(5, 'f'),)))",
        GPUOP_DEVICE=DEVICES[0],
    )
    assert done.stdout == "10.0\n"


ON_THE_REFERENCE = """
import os, signal
import numpy as np
import gpuop as gp

with gp.use_device("reference"):
    assert (gp.ScalarField(np.ones(3, "f")) + 1).numpy().sum() == 6
child = os.fork()
if not child:
    signal.alarm(60)
    print([d.name for d in gp.devices()], (gp.ScalarField(np.ones(3, "f")) + 1).numpy().sum(), flush=True)
    os._exit(0)
os.waitpid(child, 0)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore")
def test_a_child_has_all_devices_where_no_driver_was_loaded():
    """The reference loads none."""
    done = python("-c", ON_THE_REFERENCE, GPUOP_DEVICE=None)
    assert done.stdout == f"{[device.name for device in gp.devices()]} 6.0\n"
