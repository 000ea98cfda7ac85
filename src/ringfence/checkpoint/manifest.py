"""The one file that makes a save: what was saved, and which files hold it.

It is JSON that a person can read. Its last line is the CRC-32 of every byte before that line, so that no bit of it can
change unnoticed.
"""

from __future__ import annotations

import json
import re
import zlib
from dataclasses import dataclass
from typing import Any

from ringfence.checkpoint.npy import Entry
from ringfence.errors import CheckpointError

FORMAT = "ringfence checkpoint"
VERSION = 1
LARGEST = 256 << 20  # bytes of a manifest
NAME = re.compile(r"\d{8}-\d{4,8}-[a-z0-9-]{1,40}\.npy(\.zst)?")
TAIL = re.compile(rb',\n "crc32": "([0-9a-f]{8})"\n\}\n')
TAIL_BYTES = len(',\n "crc32": "00000000"\n}\n')


@dataclass(frozen=True, slots=True)
class Manifest:
    """What one save is made of."""

    number: int
    """Of the save; each has a higher one than the last."""
    body: dict[str, Any]
    """Whatever the saver wrote, as JSON holds it."""
    files: dict[str, Entry]
    """By name."""
    library: str
    """The version of ringfence that wrote it."""
    crc32: int
    """Tells this save from any other."""


def to_bytes(body: dict[str, Any], files: dict[str, Entry], library: str) -> tuple[bytes, int]:
    """Write a manifest; give its bytes and checksum."""
    listed = [{"name": file.name, "bytes": file.nbytes, "crc32": f"{file.crc32:08x}"} for file in files.values()]
    content = {"format": FORMAT, "version": VERSION, "library": library, "files": listed, "body": body}
    head = json.dumps(content, indent=1, allow_nan=False).encode()
    assert head.endswith(b"\n}")
    head = head[:-2]
    crc = zlib.crc32(head)
    return head + f',\n "crc32": "{crc:08x}"\n}}\n'.encode(), crc


def of_bytes(data: bytes, number: int) -> Manifest:
    """Read a manifest.

    Raises:
        CheckpointError: It is damaged, of another format, or of a version that is not known.
    """
    found = TAIL.fullmatch(data[-TAIL_BYTES:])
    crc = zlib.crc32(data[:-TAIL_BYTES])
    if found is None or int(found[1], 16) != crc:
        raise CheckpointError("the manifest is damaged: its checksum is another")
    try:
        content = json.loads(data, object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"the manifest is damaged: {error}") from error
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise CheckpointError("this is no checkpoint of ringfence")
    if content.get("version") != VERSION:
        raise CheckpointError(
            f"the checkpoint is of version {content.get('version')!r}, and this library reads version {VERSION}; "
            f"it was written by ringfence {content.get('library')}"
        )
    body, files = content.get("body"), content.get("files")
    if not isinstance(body, dict) or not isinstance(files, list):
        raise CheckpointError("the manifest has no body, or no list of files")
    entries = [_entry(one) for one in files]
    return Manifest(number, body, {entry.name: entry for entry in entries}, str(content.get("library")), crc)


def _entry(plain: Any) -> Entry:
    if not isinstance(plain, dict) or plain.keys() != {"name", "bytes", "crc32"}:
        raise CheckpointError(f"files: expected name, bytes and crc32, got {str(plain)[:80]}")
    name, nbytes, crc = plain["name"], plain["bytes"], plain["crc32"]
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise CheckpointError(f"files: {str(name)[:80]!r} is no name of a file of a checkpoint")
    if nbytes.__class__ is not int or nbytes < 0:
        raise CheckpointError(f"files: {name}: expected a number of bytes, got {nbytes!r}")
    if not isinstance(crc, str) or not re.fullmatch("[0-9a-f]{8}", crc):
        raise CheckpointError(f"files: {name}: expected a checksum, got {crc!r}")
    return Entry(name, nbytes, int(crc, 16))


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Refuse a name that is there twice, of which JSON would silently take the last."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name is there twice in one object")
    return found
