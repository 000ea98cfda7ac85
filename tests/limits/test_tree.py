"""Reading small files without ever failing."""

from pathlib import Path

import pytest

from ringfence.limits.tree import Tree, field


def test_a_file_is_read_from_the_made_up_machine(plant):
    """An absolute path is looked up inside the tree, whether its root came as a text or as a path."""
    root = plant({"/proc/x": "hello\n"})

    assert Tree(root).read("/proc/x") == Tree(f"{root}/").read("/proc/x") == "hello\n"


@pytest.mark.parametrize("path", ["/missing", "/folder", "/null\x00byte"])
def test_what_cannot_be_read_is_empty(tmp_path, path):
    """A missing file, a folder and an impossible name all read as nothing."""
    (tmp_path / "folder").mkdir()

    assert Tree(tmp_path).read(path) == ""
    assert Tree(tmp_path).number(path) is None
    assert Tree(tmp_path).holds(path) is (path == "/folder")


def test_bytes_that_are_no_text_are_read(tmp_path):
    """Names of groups may hold any byte, and come out so that they can be opened again."""
    (tmp_path / "x").write_bytes(b"0::/\xff\n")

    assert Tree(tmp_path).read("/x") == "0::/\udcff\n"


@pytest.mark.parametrize(("text", "number"), [("12\n", 12), ("0", 0), ("max\n", None), ("-1", None), ("1e3", None)])
def test_a_number_is_digits_and_nothing_else(plant, text, number):
    """Only plain digits, with or without a trailing newline, are a number."""
    assert Tree(plant({"/x": text})).number("/x") == number


@pytest.mark.parametrize(
    ("text", "number"),
    [("a 1\nkey 5\n", 5), ("key:\t  5 kB\n", 5120), ("the_key 5\n", None), ("keys 5\n", None), ("key\n5\n", None)],
)
def test_a_field_is_found_by_its_whole_name(text, number):
    """A key is matched from the start of a line to its end, and kB are multiplied out."""
    assert field(text, "key") == number


def test_only_the_root_is_the_real_machine(tmp_path):
    """A folder anywhere else is a made-up machine."""
    assert Tree().real
    assert Tree(Path("/")).real
    assert not Tree(tmp_path).real
