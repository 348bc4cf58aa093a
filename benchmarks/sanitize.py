"""NVIDIA's compute-sanitizer over the conformance suite: its four tools beside one another, each on shares of the tests.

    python benchmarks/sanitize.py [--device cuda:0] [--seconds N] [--jobs N] [--tools NAME …] [--tests PATH …]

Run once per release. memcheck finds accesses outside of memory and misaligned ones, racecheck races in local memory, initcheck
reads of what nobody wrote, synccheck barriers that not all threads meet. Each tool has so many processes and as many seconds;
tests come in an order that a seed makes, so what time leaves out is any of them. Prints how many tests each tool has seen, and its
summary lines. Ends with 1 where a tool found something, a test failed or a process died.
"""

from __future__ import annotations

import argparse
import glob
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")
UNTIL = "GPUOP_SANITIZE_UNTIL"
GRACE = 120  # seconds that a process may take behind its time: a test that has begun is finished
SHOWN = 12  # lines of what a tool found


def pytest_runtest_logfinish() -> None:
    """Pytest's hook, as this file is its plugin in the tools' processes: no test begins behind the time."""
    if time.time() > float(os.environ.get(UNTIL, "inf")):
        raise _ended("the time is up")


def _ended(reason: str) -> BaseException:
    import pytest

    return pytest.exit.Exception(reason, returncode=0)


def sanitizer() -> str:
    """The path of compute-sanitizer."""
    found = shutil.which("compute-sanitizer")
    places = sorted(glob.glob("/usr/local/cuda*/bin/compute-sanitizer") + glob.glob("/opt/cuda*/bin/compute-sanitizer"))
    if not found and not places:
        raise SystemExit(
            "there is no compute-sanitizer on the path or in /usr/local/cuda*/bin; it comes with CUDA's toolkit"
        )
    return found or places[-1]


def cases(tests: list[str], device: str) -> list[str]:
    """The tests that run on a device."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--all", "--collect-only", *tests]
    told = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    return [line for line in told.splitlines() if "::" in line and re.search(rf"[\[-]{re.escape(device)}[\]-]", line)]


def share(tool: str, names: list[str], until: float, told: list[dict[str, Any]]) -> None:
    """Run a tool over some tests in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        listed, log = Path(folder, "tests"), Path(folder, "log")
        listed.write_text("\n".join(names), encoding="utf-8")
        options = ["--target-processes", "all", "--report-api-errors", "no", "--log-file", str(log)]
        suite = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "--all",
            "-p",
            "benchmarks.sanitize",
            f"@{listed}",
        ]
        environment = {**os.environ, UNTIL: str(until)}
        began = time.time()
        try:
            done = subprocess.run(
                [sanitizer(), "--tool", tool, *options, *suite],
                capture_output=True, text=True, check=False, env=environment, timeout=until - began + GRACE,
            )  # fmt: skip
            code, out = done.returncode, done.stdout + done.stderr
        except subprocess.TimeoutExpired as late:
            code, out = -1, (late.stdout or b"").decode(errors="replace") + "killed: it did not end in time"
        lines = log.read_text(errors="replace").splitlines() if log.exists() else []
    told.append({"tool": tool, "code": code, "out": out, "lines": lines, "wanted": len(names)})


def report(tool: str, told: list[dict[str, Any]]) -> bool:
    """Print what a tool saw; whether it found nothing."""
    counts = {
        what: sum(int(n) for each in told for n in re.findall(rf"(\d+) {what}", each["out"]))
        for what in ("passed", "failed", "skipped", "error")
    }
    lines = [line.replace("=========", "").strip() for each in told for line in each["lines"]]
    summaries = [line for line in lines if "SUMMARY" in line]
    print(
        f"{tool}: {counts['passed']} of {sum(each['wanted'] for each in told)} tests passed, {counts['failed']} failed,"
    )
    print(
        f"    {counts['skipped']} skipped, {counts['error']} errors; {len(summaries)} summaries of {len(told)} processes:"
    )
    for line in dict.fromkeys(summaries):
        print(f"    {summaries.count(line)} × {line}")
    found = [line for line in lines if line and "SUMMARY" not in line and "COMPUTE-SANITIZER" not in line]
    print(*(f"    {line[:200]}" for line in found[:SHOWN]), sep="\n", end="\n" * bool(found))
    for each in told:
        if each["code"]:
            print(f"    a process ended with {each['code']}: {' | '.join(each['out'].splitlines()[-6:])[-600:]}")
    clean = all(not any(int(n) for n in re.findall(r"(\d+) (?:error|hazard)", line)) for line in summaries)
    return clean and len(summaries) >= len(told) and not any(each["code"] for each in told)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python benchmarks/sanitize.py", description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--seconds", type=float, default=3600.0, help="of each tool")
    parser.add_argument("--jobs", type=int, default=3, help="processes of each tool")
    parser.add_argument("--tools", nargs="*", default=TOOLS, choices=TOOLS)
    parser.add_argument("--tests", nargs="*", default=["tests/conformance"])
    parser.add_argument("--seed", type=int, default=0, help="of the order of the tests")
    given = parser.parse_args()
    sanitizer()
    names = cases(given.tests, given.device)
    random.Random(given.seed).shuffle(names)
    print(f"{len(names)} tests on {given.device}, {sanitizer()}", flush=True)
    if not names:
        return 1
    until, told = time.time() + given.seconds, {tool: list[dict[str, Any]]() for tool in given.tools}
    parts = [(tool, names[k :: given.jobs]) for tool in given.tools for k in range(given.jobs)]
    threads = [threading.Thread(target=share, args=(tool, part, until, told[tool])) for tool, part in parts if part]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    clean = [report(tool, told[tool]) for tool in given.tools]
    return 0 if all(clean) else 1


if __name__ == "__main__":
    sys.exit(main())
