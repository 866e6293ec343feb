"""Members of a whole model file and a random generator -> the bytes of a damaged one."""

from __future__ import annotations

import hashlib
import io
import json
import os
import pickle
import struct
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

Rng = np.random.Generator
Members = dict[str, bytes]

DOCUMENT, CHECKSUMS = "model.json", "checksums.json"

NONSENSE: list[Any] = [
    *(None, True, False, 0, 1, -1, -5, 2, 10**9, 10**30, 10**4000, -0.0, 0.5, 1e-300, 1e300),
    *(float("nan"), float("inf"), -float("inf"), "", "x", "None", "categorical", "1", "\0", "\n"),
    *("\x1b[31m", "é☃", "\ud800", "x" * 100_000, [], [None], [[]], [1, 2], ["a", "a"], {}),
    *({"a": 1}, {"text": "x"}, {"object": "EBIC", "options": {"gamma": 7}}, {"tuple": [1]}),
    *({"object": "os.system", "options": {}}, {"mapping": [[[], 1]]}, {"schema": {}}, ["x"] * 2000),
]
NUMBERS = [np.nan, np.inf, -np.inf, 0.0, -0.0, -1.0, 1.0, 2.0, 1e-300, 1e300, -1e300, 5.0, 0.3]


@dataclass
class Damaged:
    """A damaged file: its bytes, and whether only the same model may come of it."""

    content: bytes
    kind: str
    same: bool = True
    made: Callable[[Path], None] | None = field(default=None)
    """Makes the thing at the path where it is not a plain file."""


class Executed:
    """What a pickle would run: it leaves a mark."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return Path.touch, (self.mark,)


def packed(
    members: list[tuple[str, bytes]], compressed: str | None = None, comment: bytes = b""
) -> bytes:
    """A zip archive with these members, which may repeat."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.comment = comment
        for name, content in members:
            info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            if name == compressed:
                info.compress_type = zipfile.ZIP_DEFLATED
            _write_anyway(archive, info, content)
    return buffer.getvalue()


def _write_anyway(archive: zipfile.ZipFile, info: zipfile.ZipInfo, content: bytes) -> None:
    archive.NameToInfo.pop(info.filename, None)  # a repeated name is not worth a warning here
    archive.writestr(info, content)


def npy(array: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, array, version=(1, 0), allow_pickle=True)
    return buffer.getvalue()


def sealed(members: Members, rng: Rng) -> tuple[list[tuple[str, bytes]], str]:
    """The members with their checksums as they were, without any, or made to fit."""
    how = str(rng.choice(["stale", "removed", "forged"]))
    own = {name: content for name, content in members.items() if name != CHECKSUMS}
    if how == "removed":
        return list(own.items()), how
    if how == "forged":
        sums = {name: hashlib.sha256(content).hexdigest() for name, content in own.items()}
        return [*own.items(), (CHECKSUMS, json.dumps({"sha256": sums}).encode())], how
    return list(members.items()), how


def _finished(members: Members, rng: Rng, kind: str) -> Damaged:
    listed, how = sealed(members, rng)
    return Damaged(packed(listed), f"{kind}, checksums {how}", same=how == "stale")


# -- bytes -----------------------------------------------------------------------------------------


def bytes_changed(members: Members, rng: Rng, folder: Path) -> Damaged:
    content = bytearray(packed(list(members.items())))
    end = len(content)
    for _ in range(rng.integers(1, 5)):
        at = int(rng.integers(end) if rng.random() < 0.4 else end - rng.integers(1, min(end, 5000)))
        content[at] = (
            content[at] ^ (1 << rng.integers(8)) if rng.random() < 0.5 else rng.integers(256)
        )
    return Damaged(bytes(content), "bytes changed")


def cut_or_spliced(members: Members, rng: Rng, folder: Path) -> Damaged:
    content = packed(list(members.items()))
    a, b = sorted(int(at) for at in rng.integers(len(content), size=2))
    parts = {
        "truncated": content[:b],
        "beginning lost": content[a:],
        "part lost": content[:a] + content[b:],
        "part zeroed": content[:a] + bytes(b - a) + content[b:],
        "part repeated": content[:b] + content[a:],
        "junk added": content + rng.bytes(int(rng.integers(1, 5000))),
        "twice": content + content,
        "junk first": rng.bytes(100) + content,
        "junk": rng.bytes(a),
        "start and junk": content[:4] + rng.bytes(a),
        "comment": packed(list(members.items()), comment=rng.bytes(30)),
    }
    kind = str(rng.choice(list(parts)))
    return Damaged(parts[kind], kind)


# -- members ---------------------------------------------------------------------------------------


def members_changed(members: Members, rng: Rng, folder: Path) -> Damaged:
    own, names = dict(members), list(members)
    name, other = (str(each) for each in rng.choice(names, 2, replace=False))
    kind = str(
        rng.choice(["lost", "renamed", "swapped", "emptied", "added", "doubled", "squeezed"])
    )
    if kind in ("doubled", "squeezed"):
        listed, how = sealed(own, rng)
        more = [(name, members[other])] if kind == "doubled" else []
        content = packed(listed + more, compressed=name if kind == "squeezed" else None)
        return Damaged(content, f"member {kind}, checksums {how}", same=how == "stale")
    if kind == "lost":
        del own[name]
    elif kind == "renamed":
        own[str(rng.choice(["x.npy", f"{name}x", "../x", "scores_7.npy", ""]))] = own.pop(name)
    elif kind == "swapped":
        own[name], own[other] = own[other], own[name]
    elif kind == "emptied":
        own[name] = own[name][: int(rng.integers(0, 200))]
    else:
        own[str(rng.choice(["x.npy", "selection_frequency.npy", "x/"]))] = own[name]
    return _finished(own, rng, f"member {kind}")


def array_changed(members: Members, rng: Rng, folder: Path) -> Damaged:
    own = dict(members)
    name = str(rng.choice([name for name in own if name.endswith(".npy")]))
    array = np.lib.format.read_array(io.BytesIO(own[name]))
    kind = str(rng.choice(["value", "value", "value", "dtype", "shape", "header", "pickle"]))
    if kind == "value" and array.size:
        array = array.copy()
        value = rng.choice(NUMBERS) if rng.random() < 0.7 else rng.normal()
        with np.errstate(all="ignore"):
            array.flat[rng.integers(array.size)] = np.array(value).astype(array.dtype)
    elif kind == "dtype":
        wanted = rng.choice(["<f4", ">f8", "<i8", "<c16", "|b1", "<U3", "|S8", "<M8[s]", "<f8"])
        with np.errstate(all="ignore"):
            array = np.resize(np.zeros(1), array.shape).astype(str(wanted))
    elif kind == "shape":
        shapes = [(), (0,), (1,), (*array.shape, 1), array.shape[::-1], (array.size,), (3, 3)]
        array = np.resize(array, shapes[rng.integers(len(shapes))])
        array = np.asfortranarray(array) if rng.random() < 0.3 else array
    elif kind == "pickle":
        array = np.array([Executed(folder / "executed")], dtype=object)
    own[name] = npy(array)
    if kind == "header":
        text = rng.choice(["(9" + "9" * 14 + ",)", "(-1,)", "x", "()" * 5000, "(9**9**9,)", "[1]"])
        header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {text}, }}\n".encode()
        own[name] = b"\x93NUMPY\x01\0" + struct.pack("<H", len(header)) + header + bytes(80)
    elif kind == "pickle" and rng.random() < 0.5:
        own[name] = pickle.dumps(Executed(folder / "executed"))
    return _finished(own, rng, f"array {kind}")


# -- the document ----------------------------------------------------------------------------------


def _places(value: Any, so_far: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    items: Any = value.items() if isinstance(value, dict) else ()
    for key, item in enumerate(value) if isinstance(value, list) else items:
        yield (*so_far, key)
        yield from _places(item, (*so_far, key))


def document_changed(members: Members, rng: Rng, folder: Path) -> Damaged:
    document = json.loads(members[DOCUMENT])
    # Each counts the same, however long it is; those with most to say count more.
    first = str(rng.choice([*document, *["schema", "report", "path", "settings"] * 4]))
    places = [(first,), *_places(document[first], (first,))]
    *above, last = places[rng.integers(len(places))]
    holder = document
    for key in above:
        holder = holder[key]
    kind = str(rng.choice(["value", "value", "value", "value", "lost", "field added", "doubled"]))
    if kind == "lost":
        del holder[last]
    elif kind == "field added" and isinstance(holder, dict):
        holder[str(rng.choice(["x", "text", "schema", "label", "lam"]))] = _nonsense(rng)
    elif kind == "doubled" and isinstance(holder, list):
        holder.append(holder[last])
    else:
        holder[last] = _nonsense(rng, holder[last])
    own = {**members, DOCUMENT: json.dumps(document).encode()}
    return _finished(own, rng, f"document {kind}")


def _nonsense(rng: Rng, before: Any = None) -> Any:
    """Any value; where there was a number, sometimes one that is merely another."""
    if type(before) in (int, float) and rng.random() < 0.3:
        return type(before)(rng.choice([before + 1, before * 2, -before, before * 1e3]))
    return NONSENSE[rng.integers(len(NONSENSE))]


def text_changed(members: Members, rng: Rng, folder: Path) -> Damaged:
    text = members[DOCUMENT].decode()
    at, depth = int(rng.integers(len(text))), int(rng.integers(1, 200_000))
    kinds = {
        "key twice": text.replace('"report":', '"settings": {}, "report":', 1),
        "deep list": text.replace(
            '"settings":', f'"deep": {"[" * depth}{"]" * depth}, "settings":'
        ),
        "deep object": text.replace('"scores":', '"deep": ' + '{"a":' * depth + '"scores":'),
        "letter": text[:at] + chr(rng.integers(1, 128)) + text[at + 1 :],
        "cut": text[:at],
        "digits": text.replace('"n_iter": ', '"n_iter": ' + "9" * depth),
        "latin": text.replace('"message": "', '"message": "\xe9'),
        "number": "1",
        "null": "null",
        "empty": "",
    }
    kind = str(rng.choice(list(kinds)))
    own = {**members, DOCUMENT: kinds[kind].encode("latin-1")}
    return _finished(own, rng, f"text {kind}")


# -- large ones, and what is not a file ------------------------------------------------------------


def large(members: Members, rng: Rng, folder: Path) -> Damaged:
    document, own = json.loads(members[DOCUMENT]), dict(members)
    kind = str(rng.choice(["columns", "lists", "numbers", "texts", "members", "levels", "header"]))
    n = int(rng.integers(20_000, 60_000))
    if kind == "columns":
        like = document["schema"]["columns"][0]
        document["schema"]["columns"] = [{**like, "name": f"column {k}"} for k in range(n)]
    elif kind == "levels":
        document["schema"]["columns"][0] |= {"kind": "categorical", "levels": list(range(n))}
    elif kind == "texts":
        document["report"]["notes"] = ["x" * 3000] * (n // 10)
    elif kind == "members":
        return Damaged(packed([*own.items(), *((f"{k}", b"") for k in range(n))]), "many members")
    filling = {"lists": b"[]," * 30 * n, "numbers": b"1.5," * 20 * n}.get(kind, b"")
    text = json.dumps(document).encode()
    own[DOCUMENT] = text.replace(b'"scores": [', b'"scores": [' + filling, 1)
    if kind == "header":
        own["node_scales.npy"] = npy(np.zeros(n * 10))
    return _finished(own, rng, f"large {kind}")


def no_file(members: Members, rng: Rng, folder: Path) -> Damaged:
    makers: dict[str, Callable[[Path], None]] = {
        "pipe": os.mkfifo,
        "folder": Path.mkdir,
        "device": lambda path: path.symlink_to("/dev/zero"),
        "link to itself": lambda path: path.symlink_to(path),
        "nothing": lambda path: None,
    }
    kind = str(rng.choice(list(makers)))
    return Damaged(b"", kind, made=makers[kind])


DAMAGES: list[tuple[float, Callable[[Members, Rng, Path], Damaged]]] = [
    (0.22, bytes_changed),
    (0.08, cut_or_spliced),
    (0.10, members_changed),
    (0.20, array_changed),
    (0.32, document_changed),
    (0.06, text_changed),
    (0.01, large),
    (0.01, no_file),
]
