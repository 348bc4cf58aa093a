"""Run many random programs on a device, in processes of their own, and print what disagrees.

    python -m tests.differential --device opencl:0 --programs 3000 --graphs 2000 --seed 0 --jobs 2 --log found.jsonl

The device "opencl:0 as a gpu" has kernels of GPUs. A program is its kind and its seed. With a log, what it has already is
not run again: stop it, and go on later. With --windows, programs are pipelines in windows of their grids, and no graphs.
"""

from __future__ import annotations

import argparse
import atexit
import json
import queue
import shutil
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import gpuop as gp

from .kinds import GRAPHS, PROGRAMS, program
from .program import failure, script
from .shrink import shrunk
from .windows import WINDOWS, in_windows, refusals, windowed_script

PATIENCE = 600  # seconds for a program, with its shrinking
CHUNK = 150  # programs of a process: drivers keep what they compile
Task = tuple[str, int]


def work(device: str) -> None:
    """Run the programs that stdin names; a line of JSON for each. What compilers warn of is a finding."""
    from tests import conftest

    atexit.register(shutil.rmtree, conftest.os.environ["GPUOP_CACHE"], ignore_errors=True)
    for line in sys.stdin:
        kind, seed = json.loads(line)
        began = time.process_time()
        message = in_windows(seed, device) if kind == WINDOWS else compared(kind, seed, device)
        message |= {"kind": kind, "seed": seed, "device": device, "cpu": round(time.process_time() - began, 3)}
        print(json.dumps(message), flush=True)


def compared(kind: str, seed: int, device: str) -> dict[str, Any]:
    """The outcome of a program: the number of compared values, and the first difference, if there is one."""
    recording = program(kind, seed)
    result = failure(recording, device)
    report: dict[str, Any] = {"checks": len(recording.expected())}
    if result is not None:
        small, why = shrunk(recording, device, result)
        report |= {"what": result.what, "script": script(small, device, why)}
    return report


class Worker:
    """A process that runs programs; one that hangs or dies is a finding too."""

    def __init__(self, device: str) -> None:
        self.device, self.left = device, 0
        self.process: subprocess.Popen[str] | None = None

    def run(self, task: Task) -> dict[str, Any]:
        if self.process is None or not self.left:
            self.close()
            command = [sys.executable, "-m", "tests.differential", "--work", "--device", self.device]
            self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            self.left = CHUNK
        self.left -= 1
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        late = threading.Timer(PATIENCE, self.process.kill)
        late.start()
        try:
            self.process.stdin.write(json.dumps(task) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        finally:
            late.cancel()
        if line:
            report: dict[str, Any] = json.loads(line)
            return report
        code, self.process = self.process.wait(), None
        what = f"the process ended with {code}"
        text = windowed_script(task[1], self.device, what) if task[0] == WINDOWS else program(*task).text()
        return {
            "kind": task[0],
            "seed": task[1],
            "device": self.device,
            "checks": 0,
            "what": what,
            "script": text,
            "cpu": 0,
        }

    def close(self) -> None:
        if self.process is not None and self.process.stdin is not None:
            self.process.stdin.close()
            self.process.wait()
            self.process = None


def tasks(programs: int, graphs: int, seed: int, windows: bool) -> list[Task]:
    """Kinds by turns."""
    if windows:
        return [(WINDOWS, seed + k) for k in range(programs)]
    results = [(PROGRAMS[k % len(PROGRAMS)], seed + k // len(PROGRAMS)) for k in range(programs)]
    return results + [(GRAPHS[k % len(GRAPHS)], seed + k // len(GRAPHS)) for k in range(graphs)]


def logged(log: Path | None, device: str) -> list[dict[str, Any]]:
    if log is None or not log.exists():
        return []
    lines = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines() if line.endswith("}")]
    return [report for report in lines if report["device"] == device]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.differential", description=__doc__.splitlines()[0])
    parser.add_argument("--device", default=gp.devices()[0].name)
    parser.add_argument("--programs", type=int, default=300)
    parser.add_argument("--graphs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--windows", action="store_true", help="pipelines in windows of their grids")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--log", type=Path)
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        work(options.device)
        return 0
    done = logged(options.log, options.device)
    jobs = tasks(options.programs, options.graphs, options.seed, options.windows)
    left: queue.SimpleQueue[Task] = queue.SimpleQueue()
    keys = {(report["kind"], report["seed"]) for report in done}
    for task in jobs:
        if task not in keys:
            left.put(task)
    results = [report for report in done if (report["kind"], report["seed"]) in set(jobs)]
    results += run_all(left, options.device, options.jobs, options.log)
    return report(results)


def run_all(left: queue.SimpleQueue[Task], device: str, jobs: int, log: Path | None) -> list[dict[str, Any]]:
    results: list[dict[str, Any]] = []
    lock = threading.Lock()

    def serve() -> None:
        worker = Worker(device)
        while True:
            try:
                task = left.get_nowait()
            except queue.Empty:
                break
            report = worker.run(task)
            with lock:
                results.append(report)
                if log is not None:
                    with log.open("a", encoding="utf-8") as file:
                        file.write(json.dumps(report) + "\n")
        worker.close()

    threads = [threading.Thread(target=serve) for _ in range(jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def report(results: list[dict[str, Any]]) -> int:
    """Print the disagreements, and how much was compared."""
    wrong = [report for report in results if "what" in report]
    for record in wrong:
        print(record["script"], flush=True)
    counts = Counter(report["kind"] for report in results)
    failed = Counter(report["kind"] for report in wrong)
    for kind, count in sorted(counts.items()):
        checks = sum(report["checks"] for report in results if report["kind"] == kind)
        what = "windows" if kind == WINDOWS else "values"
        print(f"{kind:12} {count:6} programs {checks:7} {what} compared {failed[kind]:4} disagree")
    print(*refusals(results), sep="\n", end="\n" * any("refused" in report for report in results))
    print(f"{len(wrong)} of {len(results)} programs disagree; {sum(report['cpu'] for report in results):.0f} s of CPU")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
