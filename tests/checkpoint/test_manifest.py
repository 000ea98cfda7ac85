"""A manifest comes back as it was written, or not at all."""

from __future__ import annotations

import json
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringfence import CheckpointError
from ringfence.checkpoint import manifest
from ringfence.checkpoint.npy import Entry

NAME = "00000001-0000-rows.npy"
FILES = {NAME: Entry(NAME, 128, 0xABC)}
BODIES = st.dictionaries(st.text(max_size=5), st.integers() | st.text(max_size=5) | st.none(), max_size=4)


def sealed(**changes):
    """Write a manifest with other content and a checksum that fits."""
    content = {
        "format": manifest.FORMAT,
        "version": manifest.VERSION,
        "library": "1",
        "files": [{"name": NAME, "bytes": 128, "crc32": "00000abc"}],
        "body": {},
    }
    head = json.dumps(content | changes, indent=1).encode()[:-2]
    return head + f',\n "crc32": "{zlib.crc32(head):08x}"\n}}\n'.encode()


@given(BODIES)
def test_a_manifest_comes_back(body):
    """Body, files, library and checksum are those that were written."""
    data, crc = manifest.to_bytes(body, FILES, "1.2")
    assert manifest.of_bytes(data, 7) == manifest.Manifest(7, body, FILES, "1.2", crc)


def test_each_changed_byte_is_refused():
    """Whatever bit of whatever byte flips, and wherever the end is cut off, the manifest is refused."""
    data, _ = manifest.to_bytes({"a": [1, 2.5, "x"]}, FILES, "1")
    harmed = [data[:at] + bytes([byte ^ 1 << at % 8]) + data[at + 1 :] for at, byte in enumerate(data)]
    for other in harmed + [data[:at] for at in range(len(data))]:
        with pytest.raises(CheckpointError, match="the manifest is damaged"):
            manifest.of_bytes(other, 1)


@pytest.mark.parametrize(
    "name",
    ["../x.npy", "/etc/passwd", "00000001-0000-a/b.npy", NAME + "\n", "00000001-0000-A.npy", NAME + ".zst.zst", "", 5],
)
def test_names_that_escape_are_refused(name):
    """A file's name has one form, which leaves no room for folders."""
    with pytest.raises(CheckpointError, match="is no name of a file"):
        manifest.of_bytes(sealed(files=[{"name": name, "bytes": 1, "crc32": "00000000"}]), 1)


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"format": "other"}, "is no checkpoint of ringfence"),
        ({"version": 2}, "is of version 2, and this library reads version 1"),
        ({"body": []}, "has no body"),
        ({"files": {}}, "no list of files"),
        ({"files": [{"name": NAME}]}, "expected name, bytes and crc32"),
        ({"files": [{"name": NAME, "bytes": -1, "crc32": "00000000"}]}, "expected a number of bytes"),
        ({"files": [{"name": NAME, "bytes": True, "crc32": "00000000"}]}, "expected a number of bytes"),
        ({"files": [{"name": NAME, "bytes": 1, "crc32": "0000000G"}]}, "expected a checksum"),
    ],
)
def test_lies_with_a_fitting_checksum_are_refused(changes, text):
    """What the checksum cannot tell, the content's form does."""
    assert manifest.of_bytes(sealed(), 1).files == FILES
    with pytest.raises(CheckpointError, match=text):
        manifest.of_bytes(sealed(**changes), 1)


def test_a_name_that_is_there_twice_is_refused():
    """JSON would silently take the last of two."""
    head = sealed()[: -manifest.TAIL_BYTES].replace(b'"body": {}', b'"body": {}, "body": {}')
    with pytest.raises(CheckpointError, match="is there twice"):
        manifest.of_bytes(head + f',\n "crc32": "{zlib.crc32(head):08x}"\n}}\n'.encode(), 1)
