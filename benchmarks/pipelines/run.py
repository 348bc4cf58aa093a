"""Measure gpuop's pipelines beside other libraries and kernels written by hand, in one process and in turns.

    python -m benchmarks.pipelines.run                              every pipeline on the default device
    python -m benchmarks.pipelines.run --only harris,sobel --size 2048 --rounds 5 --device opencl:1
    python -m benchmarks.pipelines.run --who gpuop --cold 0         gpuop's own entries alone

Before anything is timed, gpuop's results of small arrays are compared with NumPy's, and everyone's results of the arrays
that are measured with those of gpuop's unfused operators. Results go into a file as each pipeline is done; a later run of
some pipelines replaces these. `python -m benchmarks.pipelines.report` makes tables and pictures of the files.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import gpuop as gp
from gpuop.runtime.devices import current

from . import gpuop_itself, peers
from .catalogue import CATALOGUE
from .contestant import Maker
from .measure import check, measure
from .pipeline import Pipeline
from .report import table

RESULTS = Path(__file__).parent.parent / "results"


def shape_of(size: str | None, pipeline: Pipeline, device: str) -> tuple[int, ...]:
    """`2048`: so many rows and columns, or a sixteenth along each of three axes; `1023x2047`: rows and columns."""
    usual = pipeline.shapes[device]
    if size is None:
        return usual
    given = tuple(map(int, size.split("x")))
    if len(given) == 1:
        return given * 2 if len(usual) == 2 else (max(given[0] // 16, 1),) * 3
    if len(given) != len(usual):
        raise ValueError(f"--size {size}: the grid of {pipeline.name} has {len(usual)} axes")
    return given


def makers_of(pipeline: Pipeline, backend: Any, who: list[str]) -> tuple[dict[str, Maker], dict[str, str]]:
    """Whoever has this pipeline, and which libraries are not there."""
    others, missing = peers.entries(pipeline, backend)
    found = gpuop_itself.entries(pipeline) | others
    if who:
        found = {name: maker for name, maker in found.items() if any(name.startswith(w) for w in who)}
    return found, missing


def one(name: str, given: argparse.Namespace, backend: Any, seconds: float) -> dict[str, Any]:
    """The measurements of a pipeline after at most about so many seconds."""
    pipeline = CATALOGUE[name]
    shape = shape_of(given.size, pipeline, backend.target.device)
    makers, missing = makers_of(pipeline, backend, given.who.split(",") if given.who else [])
    wrong = check(pipeline, gpuop_itself.entries(pipeline)[gpuop_itself.AS_IT_IS])
    result = measure(pipeline, shape, makers, backend, given.rounds, seconds)
    result["left_out"] |= missing
    result["numpy"] = wrong or "equal"
    small = tuple(min(n, 4096) for n in shape)  # the way of large arrays to a GPU is no part of it
    for _ in range(given.cold):
        try:
            found = gpuop_itself.cold(name, backend.name, small, seconds=max(seconds, 30))
        except Exception as error:  # noqa: BLE001 - a process that ended badly
            result["left_out"]["cold start"] = str(error)[:200]
            break
        result["cold"] = {k: min(v, result.get("cold", found)[k]) for k, v in found.items()}
    return result


def path_of(given: argparse.Namespace) -> Path:
    path: Path = given.output or RESULTS / f"pipelines-{given.device.replace(':', '')}.json"
    return path


def failed(why: str) -> dict[str, Any]:
    return {"shape": (), "contestants": {}, "left_out": {"all": why}}


def write(path: Path, about: dict[str, str], name: str, result: dict[str, Any]) -> None:
    """Put a pipeline's results in the place of older ones."""
    results = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    results |= about
    results.setdefault("pipelines", {})[name] = result
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help=f"pipelines, with commas between: {', '.join(CATALOGUE)}")
    parser.add_argument("--device", help="as `gpuop devices` names it")
    parser.add_argument("--size", help="rows and columns, 2048 or 1023x2047 (default: 4096 on CPUs, 16384 on GPUs)")
    parser.add_argument("--rounds", type=int, default=7, help="turns of each contestant (default: %(default)s)")
    parser.add_argument("--seconds", type=float, default=3600, help="about the most for all (default: %(default)s)")
    parser.add_argument("--who", default="", help="only contestants whose names begin so: gpuop,Halide")
    parser.add_argument(
        "--cold", type=int, default=1, help="cold starts, in processes of their own (default: %(default)s)"
    )
    parser.add_argument(
        "--output", type=Path, help="the file of results (default: benchmarks/results/pipelines-DEVICE.json)"
    )
    given = parser.parse_args()
    given.device = given.device or current().name
    given.names = [name for name in given.only.split(",") if name] or list(CATALOGUE)
    for name in given.names:
        if name not in CATALOGUE:
            parser.error(f"there is no pipeline {name!r}: {', '.join(CATALOGUE)}")
    return given


def alone(name: str, given: argparse.Namespace) -> None:
    """Measure one pipeline in this process, and write what was found."""
    with gp.use_device(given.device) as backend:
        path = path_of(given)
        try:
            result = one(name, given, backend, given.seconds)
        except Exception as wrong:  # noqa: BLE001 - the other pipelines are measured all the same
            result = failed(f"{type(wrong).__name__}: {wrong}"[:500])
        about = {"device": backend.name, "description": backend.description, "python": platform.python_version()}
        write(path, about, name, result)
        print(table(CATALOGUE[name].title, result), flush=True)


def apart(name: str, given: argparse.Namespace, seconds: float) -> None:
    """Measure one pipeline in a process of its own: what a peer brings down or leaves behind concerns no other one."""
    options = {"--device": given.device, "--rounds": given.rounds, "--seconds": seconds, "--cold": given.cold}
    options |= {"--who": given.who, "--output": path_of(given)} | ({"--size": given.size} if given.size else {})
    command = [sys.executable, "-m", "benchmarks.pipelines.run", "--only", name]
    command += [str(word) for option in options.items() for word in option]
    try:
        code = subprocess.run(command, timeout=1.5 * seconds + 60).returncode
    except subprocess.TimeoutExpired:
        code = "no end"
    if code:
        print(f"\n{CATALOGUE[name].title}: the process ended with {code}", flush=True)
        write(path_of(given), {"device": given.device}, name, failed(f"the process ended with {code}"))


def main() -> None:
    warnings.simplefilter("ignore")  # of peers, and of their compilers
    given = arguments()
    end = time.monotonic() + given.seconds
    if len(given.names) == 1:
        alone(given.names[0], given)
        return
    for n, name in enumerate(given.names):
        left = end - time.monotonic()
        if left <= 0:
            print(f"no time for {', '.join(given.names[n:])}", flush=True)
            break
        apart(name, given, left / (len(given.names) - n))
    print(f"written to {path_of(given)}")


if __name__ == "__main__":
    main()
