"""Device model: the numbers of time predictions and of the choices of fusion, each with its unit, and rates of a device.

Choices go by typical devices, so that plans are the same on all devices of a kind. Times are in operations: a device adds two
floats in one. `benchmarks/predictions.py` compares predicted times of the kernels of the examples with measured ones;
`gpuop/runtime/profile/device_facts.py` times the kinds of work one by one. Other sources stand at the number.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from gpuop.base.records import dataclass

Copy = tuple[int, float]  # bytes that are read and written, and the seconds of it

# --- work, in operations ------------------------------------------------------------------------------------------------

FUNCTION = 20.0  # a mathematical function
READ = 2.0  # a load and its address
WEIGHTS = {"div": 4.0, "mod": 4.0, "sqrt": 4.0}  # operations of several cycles, as choices count them
INTEGER_DIVISION = 8.0  # a quotient or remainder of integers, as predictions count them in the printable form
BARRIER_WAIT = 32.0  # a barrier, for each thread
SHARED_BY_LANES = 0.5  # an operation that all lanes of a vector share, relative to one of the lanes
NARROW_GATHER = 3.0  # times as long as floats, elements of fewer bits take that a CPU gathers
ITERATIONS = 16  # the assumed iterations of a loop with unknown bounds
DEPENDENT_CHAIN = 8  # length of dependent chains on a CPU
MASK_BITS = 32  # bits of what a comparison in vectors leaves, where nothing narrower is with it
WIDE_ACCESS = 4.0  # neighbouring elements that one access of a GPU takes
FAR_STRIDE = 16  # elements from one thread to the next, from which on each has a line of the memory to itself

# --- launches and memory ------------------------------------------------------------------------------------------------

LAUNCH = 2**20  # bytes that a device moves while it launches a kernel
BALANCE = 10.0  # operations that a device does while it moves a byte
CACHED_STATES = 10 << 20  # bytes of states that the last-level cache of a CPU holds twice

# --- choices of fusion --------------------------------------------------------------------------------------------------

CHEAP = 6.0  # operations, a read among them, that take no longer than a read of their result
ONE_THREAD = 2**13  # operations that one thread does in the time of a launch
BUSY_THREADS = 2**18  # threads that keep a device busy
REPEATED_READ = (
    10.0  # operations of a read that neighbours repeat: fused 5×5 sums of sums take CPUs 57 ms, separate ones 15
)
SHARED_BY_THREADS = 8.0  # operations on values that all threads share cost so many times less
SLOWER_THAN_PARTS = 1.3  # least ratio of the fused time to that of the parts of a kernel, from which on they stay
POSSIBLY_SLOWER = 1.6  # the same to a lower bound of the parts, which leaves out accesses and what threads share
SLOWER_THAN_CUT = 1.05  # the same for a kernel that one of its operators keeps from vectors


@dataclass(frozen=True, kw_only=True)
class DeviceModel:
    """A kind of device.

    Attributes:
        sharpness: the greater, the more the shorter of moving and computing hides behind the longer.
        line: bytes that memory gives at once.
        access: operations that an access to near memory takes as long as.
        crowding: times as long as measured alone, operations take among others.
        library: times as long as those of a kernel, operations of a library's transform take (`benchmarks/ffts.py`).
        byte: operations in the time in which a byte is moved.
        neighbour: operations in the time of a read of a computed place.
        atomic: operations in the time of an atomic update.
        function: operations in the time of a mathematical function.
    """

    sharpness: float
    line: int
    access: float
    crowding: float
    library: float
    byte: float
    neighbour: float
    atomic: float
    function: float


MODELS: Mapping[str, DeviceModel] = {
    "cpu": DeviceModel(
        sharpness=4.0,
        line=64,
        access=1.0,
        crowding=1.2,
        library=6.0,
        byte=BALANCE / 2,
        neighbour=40.0,
        atomic=800.0,
        function=FUNCTION,
    ),
    "gpu": DeviceModel(
        sharpness=1.5,
        line=32,
        access=3.0,
        crowding=1.0,
        library=1.0,
        byte=BALANCE,
        neighbour=4.0,
        atomic=50.0,
        function=FUNCTION / 2,
    ),
}


@dataclass(frozen=True)
class DeviceFacts:
    """Rates of a device, measured once (`runtime/profile/device_facts.py`).

    Attributes:
        launch: seconds of a nearly empty launch.
        copies: copies of a few sizes, smallest first; sizes that fit in caches are faster.
        seconds: seconds per unit of each kind of work in `fusion/report/workload.py`, at the throughput of the whole device: an
            operation on floats, a read of a neighbour, "exp float32".
    """

    launch: float
    copies: tuple[Copy, ...]
    seconds: Callable[[str], float]

    def moving(self, nbytes: float) -> float:
        """Seconds to read or write so many bytes, at a rate interpolated between the copies nearest in size."""
        (size, duration), *larger = self.copies
        rate = size / duration
        for more, seconds in larger:
            if nbytes > size:
                share = min((nbytes - size) / (more - size), 1.0)
                rate += share * (more / seconds - rate)
            size = more
        return nbytes / rate
