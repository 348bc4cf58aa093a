"""A cluster of this machine's: two workers of Dask's, of which one is killed in the middle, and two ranks of MPI, if there is one.

    python examples/cluster.py [--small] [--workers 2] [--device opencl:0]

The examples of a large volume (volume.py), of many images (image_batch.py) and of heat (heat_ranks.py) run on it; their figures,
and how much memory the scheduler and the workers took, are printed. Results are compared, and it ends with status 1 if any differs.
"""

import argparse
import importlib.util
import logging
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import common
import heat_ranks
import image_batch
import volume

SMALL = {"volume": ["--memory", "1"], "images": ["--images", "600"], "heat": ["--size", "24", "--steps", "8"]}


class Deadly(volume.ArrayFile):
    """A file whose middle kills the worker that reads it first."""

    def __init__(self, path):
        super().__init__(path)
        self.armed = path.with_suffix(".armed")
        self.armed.touch()

    def __getitem__(self, place):
        middle = place[0].start <= self.shape[0] // 2 < place[0].stop
        if middle and self.armed.exists():
            self.armed.unlink()
            os.kill(os.getpid(), signal.SIGKILL)
        return super().__getitem__(place)


def peak(*_, **__):
    """The most memory that this process has had, in MB."""
    return int(next(line for line in open("/proc/self/status") if line.startswith("VmHWM")).split()[1]) // 1000


def on_dask(args):
    """Return whether results on workers are right, with one of them killed."""
    from distributed import Client, LocalCluster

    with (
        LocalCluster(args.workers, threads_per_worker=1, dashboard_address=None, silence_logs=logging.ERROR) as cluster,
        Client(cluster) as client,
        tempfile.TemporaryDirectory() as folder,
    ):
        before = set(client.run(os.getpid).values())
        told = [*SMALL["volume"] * args.small, *args.on_device]
        print(f"--- volume.py {' '.join(told)}: {args.workers} workers, one of which is killed")
        wrong = volume.run(Path(folder), volume.arguments(told), Deadly)
        killed = len(before - set(client.run(os.getpid).values()))
        print(
            f"{killed} worker was killed; at most {peak()} MB here, with the scheduler, {client.run(peak)} MB in workers"
        )
        told = ["--address", cluster.scheduler_address, *SMALL["images"] * args.small, *args.on_device]
        print(f"--- image_batch.py {' '.join(told)}")
        return not wrong and killed == 1 and image_batch.main(told) == 0


def on_ranks(args):
    """Return whether heat on two ranks is right, if there is an MPI."""
    beside = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    mpiexec = shutil.which("mpiexec", path=beside)
    if mpiexec is None or importlib.util.find_spec("mpi4py") is None:
        print("--- heat_ranks.py is left out: it wants mpiexec and mpi4py (`pip install mpi4py mpich`)")
        return True
    told = [*SMALL["heat"] * args.small, *args.on_device]
    print(f"--- mpiexec -n 2 heat_ranks.py {' '.join(told)}", flush=True)
    return subprocess.run([mpiexec, "-n", "2", sys.executable, heat_ranks.__file__, *told], check=False).returncode == 0


def main(argv=None):
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--small", action="store_true", help="volumes and images that take a second")
    parser.add_argument("--workers", type=int, default=2, help="(default: %(default)s)")
    common.with_device(parser)
    args = parser.parse_args(argv)
    args.on_device = ["--device", args.device] if args.device else []
    if importlib.util.find_spec("distributed") is None:
        raise common.error("distributed is missing: `pip install '.[dask]'` in gpuop's checkout")
    right = [on_dask(args), on_ranks(args)]
    print("all results are right" if all(right) else "results are wrong")
    return 0 if all(right) else 1


if __name__ == "__main__":
    sys.exit(main())
