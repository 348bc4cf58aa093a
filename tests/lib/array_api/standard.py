"""The array API standard's own tests run on gpuop.array_namespace: how many pass, and why others are left out.

python -m tests.lib.array_api.standard PATH                   a checkout of github.com/data-apis/array-api-tests, with its submodule
GPUOP_DEVICE=opencl:0 python -m tests.lib.array_api.standard PATH -k sort --max-examples 5
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

# What is left out: patterns in tests' names, and why.
SKIPS = {
    r"::test_setitem": "fields do not change; `gp.updated` makes new ones",
    r"::test_asarray_arrays": "it tells copies by assignments",
    r"::test_getitem_masking": "indices are no bool fields; the capabilities say so",
    r"__index__\(": "a field is no Python integer: it may have no value yet",
    r"::test_isdtype": "the test takes dtypes that are strings, as fields' are, for kinds",
    r"floor_?div\w*\((x1_i is .inf\w+ and isfinite|isf.*(> 0 and x2_i is -|< 0 and x2_i is \+)inf)": "floor division is NumPy's",
    r"expm1\(\(real": "-0 stays -0, as NumPy and C have it",
    r"sqrt\(real\(x_i\) is \+infinity and isfinite": "the real part is infinite, as NumPy and C have it",
    r"tanh\(real\(x_i\) is \+infinity and isfinite": "the zero has the sign of sin(2b), as NumPy and C have it",
}


def command(suite: str, *more: str) -> list[str]:
    """The command that runs them."""
    options = ["-q", "-p", "no:cacheprovider", "-rfEs", "--tb=line", "-W", "ignore", "--disable-deadline"]
    return [sys.executable, "-m", "pytest", *options, *more, str(Path(suite) / "array_api_tests")]


def left_out(names: list[str]) -> dict[str, str]:
    """The skipped tests, and the reasons."""
    results = {name: [why for pattern, why in SKIPS.items() if re.search(pattern, name)] for name in names}
    return {name: reasons[0] for name, reasons in results.items() if reasons}


def counts_of(text: str) -> dict[str, int]:
    """The counts of pytest's last line."""
    return {word: int(n) for n, word in re.findall(r"(\d+) (passed|failed|skipped|error)", text[-400:])}


def run(suite: str, *more: str) -> tuple[dict[str, int], Counter[str], str]:
    """The numbers of passed, failed and skipped tests, those left out by reason, and pytest's output."""
    here = str(Path(__file__).parents[3])
    environment = os.environ | {
        "ARRAY_API_TESTS_MODULE": "gpuop.array_namespace",
        "ARRAY_API_TESTS_VERSION": "2024.12",
        "PYTHONPATH": os.pathsep.join([here, os.environ.get("PYTHONPATH", "")]),
    }
    line = command(str(Path(suite).resolve()), *more)

    def said(*options: str) -> str:
        done = subprocess.run([*line, *options], capture_output=True, text=True, cwd=suite, env=environment)
        return done.stdout + done.stderr

    names = [text for text in said("--collect-only").splitlines() if "::" in text]
    skipped = left_out(names)
    with tempfile.TemporaryDirectory() as folder:
        skips = Path(folder) / "skips.txt"
        skips.write_text("".join(f"# {why}\n{name}\n" for name, why in skipped.items()))
        text = said("--skips-file", str(skips))
    reasons = Counter(skipped.values())
    for count, why in re.findall(r"SKIPPED \[(\d+)\] \S+ (.*)", text):
        if "--skips-file" not in why:
            reasons[why] += int(count)
    return counts_of(text), reasons, text


if __name__ == "__main__":
    if len(sys.argv) < 2:
        raise SystemExit(__doc__)
    counts, reasons, text = run(*sys.argv[1:])
    passed, failed = counts.get("passed", 0), counts.get("failed", 0) + counts.get("error", 0)
    print("\n".join(line for line in text.splitlines() if line.startswith(("FAILED", "ERROR"))) or text[-300:])
    share = passed / max(passed + failed, 1)
    print(f"{passed} of {passed + failed} pass ({share:.1%}); {counts.get('skipped', 0)} are left out:")
    for why, count in reasons.items():
        print(f"  {count:4} {why}")
