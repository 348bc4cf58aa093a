# `make demo` and `make test` need Python 3.10 or newer, make and PyPI; not root. The first call makes a virtual
# environment, in a few minutes: 1.2 GB for the demo, of which most is Intel's OpenCL runtime for CPUs, and 1.9 GB with the
# tools of tests. Later calls start at once.
#
#   make test PYTHON=python3.13      with that Python
#   make test ARGS="-k square -x"    what else to tell pytest (or the demo)
#   make test EXTRAS=opencl          only the OpenCL drivers that the system has (setup.cfg lists the extras)
#   make test EXTRAS=                without OpenCL, on the reference device
#   make quick                       in a minute: messages, rules, generated text, the shape of the package
#   make test GPUOP_TEST_DAY=2026-01-31   the cases and forms of devices of that day; each day has others
#   make test-all                    every device and form of every case, and random programs that nobody has run: at night
#   make test-all ARGS="--seed 7"    the random programs of the run that says so in its first lines
#   make bench                       the pipelines of benchmarks/pipelines beside other libraries, on the CPU, in .venv-bench
#   make bench ARGS="--only harris --size 2048 --rounds 5 --device opencl:1"
#   make bench-gpu PYTHON=python3    on the first CUDA GPU, with that Python and what it has installed; both with whole calls of frames
#   make frameworks                  tests of gpuop.torch and gpuop.jax, with PyTorch's build for CPUs where an index has it
#   make cluster                     examples on a cluster of this machine: two workers of Dask's, and two ranks where MPI is installed
#   make cluster ARGS=--small        the same in seconds, as CI does
#   make dist                        an sdist and a wheel, in build/dist; .ci/wheel tests the wheel
PYTHON ?= python3
EXTRAS ?= cpu
ARGS ?=

comma := ,
venv := .venv$(if $(filter-out cpu,$(or $(EXTRAS),none)),-$(subst $(comma),-,$(or $(EXTRAS),none)))
bin := $(venv)/bin
install = $(bin)/python -m pip install --config-settings editable_mode=compat --editable
extras := $(if $(EXTRAS),$(EXTRAS)$(comma))
with := $(subst /,_,$(PYTHON))
small := $(venv)/small-$(with)
ready := $(venv)/ready-$(with)
torch := --extra-index-url https://download.pytorch.org/whl/cpu torch==2.13.0+cpu

.PHONY: help demo quick test test-all frameworks test-frameworks check cluster bench bench-gpu measure dist clean
help:
	@sed -n '/^#/!q; s/^# \{0,1\}//p' Makefile

demo: $(small)
	$(bin)/python examples/demo.py $(ARGS)

quick: $(ready)
	$(bin)/python -m pytest -n auto --maxprocesses 8 --dist worksteal tests/errors tests/ir tests/golden tests/test_structure.py $(ARGS)

test: $(ready)
	$(bin)/python -m pytest -n auto --maxprocesses 8 --dist worksteal $(ARGS)

test-all: $(ready)
	$(bin)/python -m pytest -n auto --maxprocesses 8 --dist worksteal --all --seed fresh $(ARGS)

frameworks:
	@$(MAKE) --no-print-directory test-frameworks EXTRAS=cpu,jax

test-frameworks: $(ready)
	$(bin)/python -m pip install $(torch) || echo "frameworks: no index has PyTorch for CPUs here, so its tests are left out"
	$(bin)/python -m pytest -n auto --maxprocesses 8 --dist worksteal tests/frameworks $(ARGS)

cluster: $(ready)
	$(bin)/python examples/cluster.py $(ARGS)

check: $(ready)
	$(bin)/ruff check .
	$(bin)/ruff format --check .
	$(bin)/mypy
	$(bin)/python -m pytest -q tests/test_structure.py

bench:
	@$(MAKE) --no-print-directory measure EXTRAS=bench

measure: $(ready)
	$(bin)/python -m benchmarks.pipelines.run $(ARGS)
	$(bin)/python -m benchmarks.pipelines.report
	$(bin)/python -m benchmarks.pipelines.frames

bench-gpu:
	$(PYTHON) -m benchmarks.pipelines.run --device cuda:0 $(ARGS)
	$(PYTHON) -m benchmarks.pipelines.report
	$(PYTHON) -m benchmarks.pipelines.frames --device cuda:0

dist: $(ready)
	rm -rf build/dist
	$(bin)/python -m build --outdir build/dist .

clean:
	rm -rf .venv .venv-* build *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis

$(small): setup.cfg
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || \
	  { echo 'gpuop needs Python 3.10 or newer, and "$(PYTHON)" is not: make PYTHON=/path/to/python3' >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
	  { echo '"$(PYTHON)" cannot make virtual environments: install its venv module (Debian, Ubuntu: python3-venv),' \
	    'or name another Python: make PYTHON=/path/to/python3' >&2; exit 1; }
	$(PYTHON) -m venv --clear $(venv)
	$(bin)/python -m pip install --upgrade pip  # Python 3.10's own cannot install an editable package
	$(install) '.[$(extras)examples]'
	@touch $@

$(ready): $(small)
	$(install) '.[$(extras)test,dev]'
	@touch $@
