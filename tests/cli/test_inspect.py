"""``ringfence inspect``: figures of a sound save, and one line for one that is not."""

import json

import pytest

import ringfence as rf
from ringfence.cli import main
from ringfence.cli.inspect import survey

SCHEMA = rf.Schema(obs=rf.Field((3,), "float32"), action=rf.Field((), "int64"))


@pytest.fixture
def inspect(capsys):
    """Return a function that runs the command and gives exit code, stdout and stderr."""

    def run(*arguments):
        code = main(["inspect", *map(str, arguments)])
        return code, *capsys.readouterr()

    return run


@pytest.fixture
def saved(tmp_path):
    """Give the directory of two saves of a replay."""
    replay = rf.Replay(SCHEMA, 100, seed=0)
    for step in range(50):
        replay.add([step] * 3, step, step % 7, [step + 1] * 3, terminated=step % 10 == 9)
    for _ in range(2):
        replay.save(tmp_path / "save", keep=2, notes={"step": 50})
    return tmp_path / "save"


def test_json_holds_what_the_survey_says(inspect, saved):
    """Scripts read the very values of the library's survey."""
    code, out, err = inspect(saved, "--json", "--verify", "--save", 1)
    assert (code, err) == (0, "")
    assert json.loads(out) == survey(saved, 1, verify=True)


def test_the_page_names_fields_and_counts(inspect, saved):
    """A person sees each field, the steps, the episodes, the notes and the bars of the rewards."""
    code, out, _ = inspect(saved)
    assert code == 0
    for text in ("obs", "(3,)", "50 of 100", "5 ended and held, 0 open", "{'step': 50}", "#"):
        assert text in out


def test_a_reservoir_is_told_by_its_kind(inspect, tmp_path):
    """Of what is no ring, the files and their health are told."""
    rf.Reservoir(SCHEMA, 100, seed=0).save(tmp_path)
    code, out, _ = inspect(tmp_path, "--verify")
    assert code == 0
    assert "a reservoir" in out


def test_damage_ends_with_one_and_names_the_file(inspect, saved):
    """One line says which file it is."""
    path = next(saved.glob("*-records.npy"))
    path.write_bytes(path.read_bytes()[:-1])
    code, out, err = inspect(saved)
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert path.name in err


def test_what_is_no_checkpoint_ends_with_two(inspect, tmp_path):
    """An empty directory holds no save, sound or damaged."""
    code, _, err = inspect(tmp_path)
    assert code == 2
    assert "is no checkpoint" in err
