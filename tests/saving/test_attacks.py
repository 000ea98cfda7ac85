"""Damaged, foreign and hostile saves are refused with one error type, and take no memory to speak of."""

from __future__ import annotations

import json
import os
import shutil
import tracemalloc
import zlib

import numpy as np
import pytest
from tests.saving import book
from tests.saving.book import FRAMED, SMALL, Filler

from ringfence import CheckpointError, Replay

PEAK = 8 << 20  # bytes that a refusal may take


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    """Give a save with every kind of file in it."""
    path = tmp_path_factory.mktemp("original") / "save"
    replay = Replay(FRAMED, 300, streams=2, seed=2, episode_length=4)
    views = book.views(replay)
    filler = Filler(replay)
    filler.steps(400)
    book.use(views, np.random.default_rng(0))
    replay.save(path, notes=np.zeros(3000))
    return path


@pytest.fixture
def save(original, tmp_path):
    """Give a copy of it to be harmed."""
    shutil.copytree(original, tmp_path / "save")
    return tmp_path / "save"


def manifest(save):
    """Find the manifest."""
    return next(save.glob("save-*.json"))


def load(save):
    """Load with all views, as a user does."""
    book.views(Replay.load(save))


def refused(save, match=None):
    """Find that a save is refused, without much memory; give the text."""
    tracemalloc.start()
    try:
        with pytest.raises(CheckpointError, match=match) as caught:
            load(save)
        assert tracemalloc.get_traced_memory()[1] < PEAK
    finally:
        tracemalloc.stop()
    return str(caught.value)


def rewrite(save, change):
    """Change a manifest's content, with a checksum that fits: what an attacker can do."""
    path = manifest(save)
    content = json.loads(path.read_text())
    del content["crc32"]
    change(content)
    head = json.dumps(content, indent=1).encode()[:-2]
    path.write_bytes(head + f',\n "crc32": "{zlib.crc32(head):08x}"\n}}\n'.encode())


def test_the_copy_loads_unless_harmed(save):
    """So that what follows is refused for what is done to it, a rewritten manifest among it."""
    load(save)
    rewrite(save, dict.copy)
    load(save)


def test_every_flipped_bit_of_the_manifest_is_refused(save):
    """Each byte, one bit of it by turns; the text says that the manifest is damaged."""
    path = manifest(save)
    data = bytearray(path.read_bytes())
    for at in range(len(data)):
        data[at] ^= 1 << at % 8
        path.write_bytes(data)
        with pytest.raises(CheckpointError, match="the manifest"):
            Replay.load(save)
        data[at] ^= 1 << at % 8


def test_flipped_bits_of_files_are_refused(save):
    """Sampled bytes of every file, header and data: the text names the file."""
    random = np.random.default_rng(0)
    for path in sorted(save.glob("*.npy")):
        whole = path.read_bytes()
        for at in [0, 9, len(whole) - 1, *random.integers(0, len(whole), 9).tolist()]:
            data = bytearray(whole)
            data[at] ^= 1 << int(random.integers(8))
            path.write_bytes(data)
            with pytest.raises(CheckpointError, match=path.name):
                load(save)
        path.write_bytes(whole)


@pytest.mark.parametrize("size", [0, 1, 50, -1])
def test_truncated_files_are_refused(save, size):
    """Any file cut short, the manifest among them."""
    for path in [manifest(save), *save.glob("*.npy")]:
        data = path.read_bytes()
        path.write_bytes(data[:size])
        refused(save)
        path.write_bytes(data + b"\0")
        refused(save)
        path.write_bytes(data)
    load(save)


def test_missing_and_swapped_files_are_refused(save):
    """A file that is gone is named; two that changed places are found out."""
    files = sorted(save.glob("*.npy"))
    for path in files:
        path.rename(save / "away")
        assert path.name in refused(save)
        (save / "away").rename(path)
    for one in files:
        for other in files:
            if one != other:
                one.rename(save / "away")
                other.rename(one)
                (save / "away").rename(other)
                refused(save)
                one.rename(save / "away")
                other.rename(one)
                (save / "away").rename(other)
    load(save)


def test_links_and_pipes_are_refused(save, tmp_path):
    """A file of a save is a plain file: a link out of the directory, or a pipe that would hang, is none."""
    for path in [manifest(save), *save.glob("*.npy")]:
        data = path.read_bytes()
        (tmp_path / "outside").write_bytes(data)
        path.unlink()
        path.symlink_to(tmp_path / "outside")
        refused(save, "no plain file")
        path.unlink()
        os.mkfifo(path)
        refused(save, "no plain file")
        path.unlink()
        path.write_bytes(data)


@pytest.mark.parametrize(
    "name", ["../outside.npy", "/etc/passwd", "a/b.npy", "..", "00000001-0000-x.npy\n", "lock", ""]
)
def test_names_that_leave_the_directory_are_refused(save, name):
    """A manifest names its own files and no others, whatever its checksum says."""
    rewrite(save, lambda content: content["files"][0].update(name=name))
    refused(save, "is no name of a file of a checkpoint")


def set_in(*keys, value):
    """Give a change that puts a value somewhere into the body."""

    def change(content):
        part = content["body"]
        for key in keys[:-1]:
            part = part[key]
        part[keys[-1]] = value

    return change


def array(values, dtype="<i8", shape=None):
    """Give an array as a manifest holds it."""
    import base64

    numbers = np.asarray(values, dtype)
    return {"$array": base64.b64encode(numbers.tobytes()).decode(), "dtype": dtype, "shape": shape or [*numbers.shape]}


HUGE = 1 << 60
LIES = {
    "capacity": set_in("capacity", value=HUGE),
    "streams": set_in("streams", value=HUGE),
    "no streams": set_in("streams", value=0),
    "episode length": set_in("episode_length", value=-1),
    "kind": set_in("kind", value="reservoir"),
    "no schema": lambda content: content["body"].pop("schema"),
    "schema": set_in("schema", "obs", value={"shape": [HUGE], "dtype": "uint8"}),
    "a field more": set_in("schema", "extras", "more", value={"shape": [], "dtype": "float32"}),
    "a code for a dtype": set_in("schema", "action", "dtype", value="O"),
    "heads": set_in("heads", value=array([HUGE, HUGE])),
    "heads below tails": set_in("heads", value=array([1, 1])),
    "negative heads": set_in("heads", value=array([-1, -1])),
    "three heads": set_in("heads", value=array([200, 200, 200])),
    "heads of floats": set_in("heads", value=array([200.0, 200.0], "<f8")),
    "a larger head": set_in("heads", value=array([400, 400])),
    "tails": set_in("tails", value=array([0, 0])),
    "runs": set_in("runs", value=array([7, 7])),
    "ages": set_in("ages", value=array([2**31, 2**31])),
    "no segments": set_in("segments", value=[]),
    "segments": set_in("segments", value={"a": 1}),
    "steps twice": lambda content: content["body"]["segments"].append(content["body"]["segments"][0]),
    "a run of a stream that is not": set_in("segments", 0, "steps", value=array([[9, 0, 10]])),
    "a run of no steps": set_in("segments", 0, "steps", value=array([[0, 0, 0]])),
    "a huge run": set_in("segments", 0, "steps", value=array([[0, 0, 2**44]])),
    "huge counts": set_in("final_counts", value=array([2**44, 2**44])),
    "files of a segment": set_in("segments", 0, "files", value={"records": "00000001-0000-records.npy"}),
    "a file that is not listed": set_in("segments", 0, "files", "records", value="00000009-0000-records.npy"),
    "breaks": set_in("breaks", value="many"),
    "generator": set_in("draws", "generator", value={"bits": {"bit_generator": "Mine"}, "seed": None}),
    "generator state": set_in("draws", "generator", "bits", "state", value={"state": -1, "inc": "x"}),
    "seed": set_in("draws", "generator", "seed", "spawn_key", value=["x"]),
    "views": set_in("draws", "views", value=[{"kind": "x"}]),
    "a view's generator": set_in("draws", "views", 1, "state", "generator", value=7),
    "a view's priority": set_in("draws", "views", 1, "state", "max_priority", value=-1.0),
    "a view's tails": set_in("draws", "views", 1, "state", "tails", value=array([-5, 2**60])),
    "an epoch's order": set_in("draws", "views", 6, "state", "again", value=array([2**62])),
    "fresh steps": set_in("draws", "views", 7, "state", "next", value=array([2**50, 2**50])),
    "a huge array": set_in("draws", "views", 1, "state", "leaves", value=array([1.0], "<f8", [HUGE])),
    "a huge empty array": set_in("notes", value=array([], "<f8", [0, HUGE, HUGE])),
    "an array of objects": set_in("notes", value={"$array": "", "dtype": "|O", "shape": [0]}),
    "a strange dtype": set_in("notes", value={"$array": "", "dtype": "<M8[ns]", "shape": [0]}),
    "a file as array": set_in("notes", value={"$file": "../x", "dtype": "<f8", "shape": [3]}),
    "a float": set_in("notes", value={"$float": "1e5"}),
    "version": lambda content: content.update(version=2),
    "format": lambda content: content.update(format="zip"),
    "body": lambda content: content.update(body=[]),
    "files": lambda content: content.update(files={}),
    "bytes": lambda content: content["files"][0].update(bytes=-1),
    "a checksum": lambda content: content["files"][0].update(crc32="zzzzzzzz"),
    "depth": lambda content: content["body"].update(notes=deep(3000)),
}


def deep(levels):
    """Give a list in a list in a list."""
    value = []
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES)
def test_lies_with_a_fitting_checksum_are_refused(save, lie):
    """Whatever a manifest claims is compared with what is there, before memory is taken."""
    try:
        rewrite(save, lie)
    except RecursionError:
        pytest.skip("this Python cannot even write it")
    refused(save)


def test_records_that_end_other_episodes_than_the_marks_are_refused(save):
    """A file with a fitting checksum whose records disagree with the manifest is found out."""
    path = next(save.glob("*-records.npy"))
    records = np.load(path)
    records["_final"] = 5
    data = path.read_bytes()
    path.write_bytes(data[: len(data) - records.nbytes] + records.tobytes())

    def fit(content):
        entry = next(file for file in content["files"] if file["name"] == path.name)
        entry["crc32"] = f"{zlib.crc32(path.read_bytes()):08x}"

    rewrite(save, fit)
    refused(save, "records of stream . end other episodes than its marks")


def test_other_directories_are_left_alone(tmp_path):
    """Nothing is saved into a directory that holds something else, nor loaded from what is no save."""
    replay = Replay(SMALL, 10)
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "thesis.tex").write_text("dear reader")
    (tmp_path / "file").write_text("x")
    with pytest.raises(CheckpointError, match=r"holds 'thesis\.tex', which is no part of a checkpoint"):
        replay.save(tmp_path / "home")
    assert [path.name for path in (tmp_path / "home").iterdir()] == ["thesis.tex"]
    with pytest.raises(CheckpointError, match="cannot be made"):
        replay.save(tmp_path / "file")
    for missing in ("home", "nowhere"):
        with pytest.raises(CheckpointError):
            Replay.load(tmp_path / missing)
    with pytest.raises(CheckpointError, match="cannot be read"):
        Replay.load(tmp_path / "file")


def test_extra_files_of_a_crash_are_cleared_by_the_next_save(save):
    """Files that a save left half done are no error, and go."""
    (save / "00000009-0000-records.npy").write_bytes(b"half")
    (save / "save-00000009.json.half").write_bytes(b"{")
    replay = Replay.load(save)
    replay.save(save)

    assert not (save / "00000009-0000-records.npy").exists()
    assert not (save / "save-00000009.json.half").exists()


def test_a_damaged_newest_save_names_the_ones_before(tmp_path):
    """Where more than one is kept, the error says which others are there, and they load."""
    replay = Replay(SMALL, 10)
    filler = Filler(replay)
    for _ in range(2):
        filler.steps(4)
        replay.save(tmp_path / "save", keep=2)
    (tmp_path / "save" / "save-00000002.json").write_bytes(b"{}")
    with pytest.raises(CheckpointError, match=r"save 2: the manifest is damaged.*saves 1 are there too"):
        Replay.load(tmp_path / "save")
    assert len(Replay.load(tmp_path / "save", save=1)) == 4


def test_a_second_saver_is_refused(save):
    """Two processes that save to one directory at the same time: the later one is told."""
    fcntl = pytest.importorskip("fcntl")
    replay = Replay.load(save)
    with (save / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(CheckpointError, match="is being saved to by another process"):
            replay.save(save)
    replay.save(save)


def test_a_compressed_save_that_unpacks_to_more_than_it_says_is_refused(tmp_path):
    """A stream that goes on and on is stopped where the array ends."""
    import zstandard

    replay = Replay(SMALL, 100)
    Filler(replay).steps(90)
    replay.save(tmp_path / "save", compress=True)
    path = next((tmp_path / "save").glob("*-records.npy.zst"))
    data = zstandard.ZstdDecompressor().decompressobj().decompress(path.read_bytes())
    path.write_bytes(zstandard.ZstdCompressor().compress(data + bytes(1 << 28)))

    def fit(content):
        entry = next(file for file in content["files"] if file["name"] == path.name)
        entry.update(bytes=path.stat().st_size, crc32=f"{zlib.crc32(path.read_bytes()):08x}")

    rewrite(tmp_path / "save", fit)
    refused(tmp_path / "save", "goes on behind its end")
