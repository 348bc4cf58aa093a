"""Files that are not what was written: bytes, members, documents and arrays changed at random, as strangers and bad disks do."""

from __future__ import annotations

import copy
import io
import json
import random
import re
import zipfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpuop.engine.bundles import writing

Members = dict[str, bytes]
STRANGE = (
    -1, 0, 1, 2, 7, 2**31 - 1, 2**31, 2**63 - 1, 2**63, 10**40, -(10**40), 0.5, 1e308, float("inf"), float("nan"), True, False,
    None, "", "x", "class; import os", "a\nb", "\udcff", "\0", "float32", "cuda", "cuda:sm_90", "opencl", "1", "-1", "../../x",
    [], {}, [[]], [0], [1, 2, 3], [[3], [], "float32"], {"0": 0}, {"given": {}, "plan": {}},
)  # fmt: skip


@dataclass(frozen=True)
class Format:
    """The document of a format: read from the members, and put back (as if it belonged there, or not)."""

    read: Callable[[Members], Any]
    put: Callable[[Members, str, bool], Members]


def _states_put(members: Members, text: str, consistent: bool) -> Members:
    return members | {"head.npy": npy(np.array(text))}


def _bundle_put(members: Members, text: str, consistent: bool) -> Members:
    """With texts and a digest that fit, as those of a stranger who means it."""
    others = {name: data for name, data in members.items() if name != writing.HEAD}
    with suppress(ValueError, TypeError, LookupError, AttributeError, RecursionError):  # it has no such form any more
        head = json.loads(text)
        if consistent:
            with suppress(ValueError, TypeError, LookupError, AttributeError):
                others |= dict(retold(head, others))
            text = json.dumps(head | {"digest": writing.digest(head, others)})
    return others | {writing.HEAD: text.encode(errors="surrogatepass")}


def retold(head: Any, members: Members) -> Iterator[tuple[str, bytes]]:
    """Texts with what a head says of their kernels now."""
    for target, plan in head["targets"].items():
        for k, facts in enumerate(kernels(plan)):
            name = f"{target.replace(':', '_')}/{k}.text"
            lines = members[name].decode().splitlines(keepends=True)
            yield name, "".join([*lines[:-1], writing.last_line(facts)]).encode()


def kernels(plan: Any) -> Iterator[Any]:
    """The report of a plan about its kernels, in order."""
    for step in plan["steps"]:
        if "repeat" in step:
            for part in (step["repeat"]["turn"], step["repeat"]["until"]):
                yield from kernels(part["plan"]) if part else ()
        else:
            yield {fact: step[fact] for fact in step if fact not in ("inputs", "outputs")}


STATES = Format(lambda members: json.loads(str(np.load(io.BytesIO(members["head.npy"])))), _states_put)
BUNDLES = Format(lambda members: json.loads(members[writing.HEAD]), _bundle_put)


def npy(array: Any) -> bytes:
    data = io.BytesIO()
    np.save(data, array)
    return data.getvalue()


def unzipped(data: bytes) -> Members:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def zipped(members: Members, compression: int = zipfile.ZIP_STORED) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", compression) as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name), content, compression)
    return data.getvalue()


# --- bytes --------------------------------------------------------------------------------------------------------------


def flipped(data: bytes, rng: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 8))):
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8) if rng.random() < 0.5 else rng.randrange(1, 256)
    return bytes(changed)


def cut(data: bytes, rng: random.Random) -> bytes:
    start, end = sorted((rng.randrange(len(data) + 1), rng.randrange(len(data) + 1)))
    return rng.choice(
        (data[:start], data[start:], data[:start] + data[end:], data[:end] + data[start:], data + data[start:end])
    )


def in_the_directory(data: bytes, rng: random.Random) -> bytes:
    """Numbers of zip's own: what it says of sizes, places, methods and flags."""
    starts = [m.start() for sign in (b"PK\1\2", b"PK\3\4", b"PK\5\6") for m in re.finditer(re.escape(sign), data)]
    at = rng.choice(starts) + rng.randrange(4, 46)
    new = rng.choice((0, 1, 0xFFFFFFFF, 0xFFFF, 99, 8, 9, 12, 14, 2**31, len(data), rng.getrandbits(32)))
    width = rng.choice((1, 2, 4))
    return data[:at] + (new % (1 << 8 * width)).to_bytes(width, "little") + data[at + width :]


# --- members ------------------------------------------------------------------------------------------------------------


def with_other_members(members: Members, rng: random.Random) -> bytes:
    changed, name, other = dict(members), rng.choice(list(members)), rng.choice(list(members))
    match rng.randrange(8):
        case 0:
            del changed[name]
        case 1:
            changed[name + rng.choice(("x", "/", "\0", "é"))] = changed.pop(name)
        case 2:
            changed[name], changed[other] = changed[other], changed[name]
        case 3:
            changed[name] = b""
        case 4:
            changed[name] = cut(changed[name], rng) if changed[name] else b"x"
        case 5:
            return zipped(changed, rng.choice((zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)))
        case 6:
            changed[name] = bytes(rng.choice((1, 100_000)))
        case 7:
            data = io.BytesIO(zipped(members))
            with zipfile.ZipFile(data, "a") as archive:
                archive.writestr("twice.npy", b"")
            return data.getvalue().replace(b"twice.npy", name.encode().ljust(9)[:9])
    return zipped(changed)


def with_another_array(members: Members, rng: random.Random) -> bytes:
    """A header of NumPy's that says something else, or one that it never writes."""
    name = rng.choice([name for name in members if name.endswith(".npy")] or list(members))
    content = members[name]
    old, new = rng.choice((
        (rb"<f4|<i8|\|u1|<U\d+", rng.choice((b"|O", b"<f8", b">f4", b"<M8[s]", b"<U9", b"|V9", b"x", b"<f4,", b"'+'"))),
        (rb"\((\d*,? ?)*\)", rng.choice((b"()", b"(3,)", b"(1000000000000,)", b"(-1,)", b"(0,)", b"(3, 1)", b"(((((", b"9**9**9"))),
        (b"False", rng.choice((b"True", b"None", b"0", b"[" * 500))),
        (b"\x93NUMPY\x01", rng.choice((b"\x93NUMPY\x02", b"\x93NUMPY\x03", b"NUMPY\x01\x01", b"PK\3\4"))),
        (rb"[^{]{2}\{", rng.choice((b"\0\0{", b"\xff\xff{", b"v\0[[[["))),
    ))  # fmt: skip
    return zipped(members | {name: re.sub(old, lambda _: new, content, count=1)})


# --- documents ----------------------------------------------------------------------------------------------------------


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    below = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, part in below for place in places(part, (*path, key)))]


def at(value: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        value = value[key]
    return value


def changed_document(head: Any, rng: random.Random) -> Any:
    """A part of it replaced, dropped, doubled, swapped, nudged or renamed."""
    every = places(head)[1:]
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        path = rng.choice(every)
        try:
            parent, key, part = at(head, path[:-1]), path[-1], at(head, path)
        except (KeyError, IndexError, TypeError):
            continue  # it went with another part
        if not isinstance(parent, (dict, list)):
            continue
        choice = rng.randrange(7)
        if choice == 0 and isinstance(part, int) and not isinstance(part, bool):
            parent[key] = part + rng.choice((-1, 1, 8, -8))
        elif choice == 1:
            del parent[key]
        elif choice == 2 and isinstance(parent, list):
            parent.insert(rng.randrange(len(parent) + 1), copy.deepcopy(part))
        elif choice == 3:
            other = rng.choice(every)
            try:
                parent[key] = copy.deepcopy(at(head, other))
            except (KeyError, IndexError, TypeError):
                continue
        elif choice == 4 and isinstance(parent, dict):
            parent[rng.choice((key + "x", "0", "1", "repeat", "inputs"))] = parent.pop(key)
        else:
            parent[key] = copy.deepcopy(rng.choice(STRANGE))
    return head


def with_another_document(members: Members, form: Format, rng: random.Random) -> bytes:
    if rng.random() < 0.05:
        text = rng.choice(("[" * 100_000, '{"format":' * 50_000, "9" * 100_000, "", "null", "NaN", "[1,", '"\\ud800"'))
    else:
        text = json.dumps(changed_document(form.read(members), rng))
    return zipped(form.put(members, text, rng.random() < 0.9))


def mutated(data: bytes, form: Format, rng: random.Random) -> bytes:
    """A file of the format, changed."""
    kind = rng.randrange(10)
    if kind < 3:
        return (flipped, cut, in_the_directory)[kind](data, rng)
    members = unzipped(data)
    if kind == 3:
        return with_other_members(members, rng)
    if kind == 4:
        return with_another_array(members, rng)
    return with_another_document(members, form, rng)
