"""Command line: `gpuop devices`, `gpuop source`, `gpuop passes`, `gpuop run`, `gpuop compile`, `gpuop tune`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from gpuop import __version__

FUNCTION = "a function that gives Fields: an operator, a function of fields, or one without arguments"
TYPES = (
    "for each argument a field's type, as float32[480x640], uint8[480x640]x3 (of 3-vectors), "
    "float32[y=480:x=640] (named dimensions) or float32[] (0D); y=2:x=2 (dimensions without memory), or a Python "
    "literal; `compile` takes float32[?x?], of extents that come with each call, and float32[?1x?1], of equal ones; without "
    "types the function is called without arguments"
)


def _with_version() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="gpuop", description="Operators on tensor fields, fused.")
    parser.add_argument("--version", action="version", version=f"gpuop {__version__}")
    return parser


def _parser() -> argparse.ArgumentParser:
    parser = _with_version()
    subparsers = parser.add_subparsers(dest="command", required=True)
    devices = subparsers.add_parser("devices", help="what was found, what was skipped and why; * marks the default")
    devices.add_argument(
        "--measure", action="store_true", help="measure anew how fast they are, which predictions go by"
    )
    source = subparsers.add_parser("source", help="print generated text")
    passes = subparsers.add_parser(
        "passes", help="print the IR after each pass, from what is recorded to what is printed"
    )
    bundle = subparsers.add_parser("compile", help="compile for several targets, into a file for gpuop.load_bundle")
    measured = _tune_parser(subparsers.add_parser("tune", help="measure what is fastest on a device, for later runs"))
    for command in (source, passes, bundle, measured):
        command.add_argument("function", metavar="FILE:FUNCTION", help=FUNCTION)
        command.add_argument("--types", nargs="*", default=[], metavar="TYPE", help=TYPES)
    for command in (source, passes):
        command.add_argument(
            "--target",
            help="cuda (sm_90) or an architecture as sm_75: as a GPU of it runs them; opencl:cpu: as CPUs run them; "
            "opencl: as any device takes them; by default what the device in use runs",
        )
    source.add_argument(
        "--form",
        default="text",
        help="text; resources: registers, spilled bytes and memory, with the compiler's log; ptx, sass: what CUDA's compiler makes",
    )
    passes.add_argument("--after", metavar="PASS", help="only after passes of this name, as simplify")
    bundle.add_argument(
        "--targets",
        required=True,
        help="separated by commas: opencl (any device, plain kernels), opencl:cpu, and architectures as sm_80, which newer GPUs "
        "run too; cuda is sm_90",
    )
    bundle.add_argument("-o", "--output", required=True, help="the file to write, as sharpen.gpuop")
    run = subparsers.add_parser("run", help="run an example")
    run.add_argument("--device", help="as `gpuop devices` names it; by default the best")
    run.add_argument("example", help="a file, or a module")
    run.add_argument("arguments", nargs=argparse.REMAINDER, help="of the example")
    return parser


def _tune_parser(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    """Add the commands of `gpuop tune`; returns the parser of `run`."""
    subparsers = parser.add_subparsers(dest="action", required=True)
    run = subparsers.add_parser("run", help="measure the variants and schedules of a function")
    run.add_argument("--device", help="as `gpuop devices` names it; by default the best")
    run.add_argument("--seconds", type=float, help="of each operator and kernel, at most")
    show = subparsers.add_parser("show", help="print what was measured to be the fastest")
    show.add_argument("--tried", action="store_true", help="and what the others took")
    merged = subparsers.add_parser("merge", help="take over what other files have, of equal entries the later ones")
    merged.add_argument("files", metavar="FILE", nargs="+")
    exported = subparsers.add_parser("export", help="write tables for `_target.choose`, as JSON")
    exported.add_argument("-o", "--output", help="the file to write; by default they are printed")
    for command in (run, show, merged, exported):
        command.add_argument("--store", help="the file of what was measured; by default GPUOP_TUNE_STORE")
    return run


def _run(args: argparse.Namespace) -> None:
    """Run a command, importing only its modules."""
    if args.command == "source":
        from gpuop.engine.cli.commands import print_source

        print_source(args.function, args.types, args.target, args.form)
    elif args.command == "passes":
        from gpuop.engine.cli.commands import print_passes

        print_passes(args.function, args.types, args.target, args.after)
    elif args.command == "compile":
        from gpuop.engine.cli.bundle import compile_bundle

        compile_bundle(args.function, args.types, args.targets, args.output)
    elif args.command == "run":
        from gpuop.engine.cli.example import run_example

        run_example(args.example, args.arguments, args.device)
    elif args.command == "tune":
        _tune(args)
    else:
        from gpuop.engine.cli.devices import list_devices

        list_devices(args.measure)


def _tune(args: argparse.Namespace) -> None:
    from gpuop.base.config import config

    usual = config.tune_store
    config.tune_store = usual if args.store is None else Path(args.store)
    try:
        _tune_action(args)
    finally:
        config.tune_store = usual


def _tune_action(args: argparse.Namespace) -> None:
    from gpuop.engine.cli import tune

    if args.action == "run":
        tune.run(args.function, args.types, args.device, args.seconds)
    elif args.action == "show":
        tune.show(args.tried)
    elif args.action == "merge":
        tune.merge(args.files)
    else:
        tune.export(args.output)


def main(arguments: Sequence[str] | None = None) -> int:
    args = _parser().parse_args(arguments)
    from gpuop.base.errors import GpuopError, SemanticError, here  # these import NumPy, which `--help` does not need

    try:
        _run(args)
    except (GpuopError, OSError) as failed:  # a file that cannot be read or written
        message = str(failed)
        if (
            isinstance(failed, SemanticError) and failed.loc == here()
        ):  # not a user line, but the caller of this function
            message = failed.message
        print(f"gpuop: {message}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
