"""``ringfence plan``: the table, the verdict by exit code, and one line for whatever makes no sense."""

import json
import subprocess
import sys
from pathlib import Path

import gymnasium
import numpy as np
import pytest

import ringfence as rf
from ringfence.cli import main
from ringfence.cli.show import decimal

ATARI = ["--obs", "84x84", "--dtype", "uint8", "--stack", "4", "--capacity", "1e6"]


@pytest.fixture
def plan(capsys, monkeypatch, tmp_path):
    """Return a function that runs the command in an empty folder and gives exit code, stdout and stderr."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")

    def run(*arguments):
        code = main(["plan", *map(str, arguments)])
        return code, *capsys.readouterr()

    return run


@pytest.fixture
def figures(plan):
    """Return a function that runs the command with --json and gives what it printed, as values."""

    def run(*arguments):
        code, out, err = plan(*arguments, "--json", "--limit", "1TiB")
        assert (code, err) == (0, "")
        return json.loads(out)

    return run


def test_the_obvious_layout_costs_what_it_cost_in_the_first_place(plan):
    """A million stacked frames in float32 are 225.8 kB a step and 226 GB, 210.30 GiB, beside our 7.2 kB."""
    code, out, _ = plan(*ATARI, "--limit", "16GiB")

    obvious = next(line for line in out.splitlines() if "as float32" in line)
    total = next(line for line in out.splitlines() if "total" in line)
    assert code == 0
    assert all(figure in obvious for figure in ("225.8 kB", "226 GB", "210.30 GiB"))
    assert all(figure in total for figure in ("7.194 kB", "7.19 GB", "6.70 GiB", "full at step 1,000,000"))


def test_the_table_is_the_library_s_own_plan(figures):
    """What is printed for an environment is what ``rf.plan`` says of its schema, line by line."""
    expected = rf.plan(rf.Schema.from_env(gymnasium.make("CartPole-v1")), 1e6, streams=8)

    found = figures("CartPole-v1", "--capacity", "1e6", "--streams", 8)

    assert (found["bytes"], found["step_bytes"], found["streams"]) == (expected.bytes, expected.step_bytes, 8)
    assert [tuple(row.values()) for row in found["rows"]] == expected.rows()


def test_half_cheetah_is_planned_by_name(figures):
    """The example of the help: 17 + 6 float32 numbers, a reward and two flags a step."""
    found = figures("HalfCheetah-v5", "--capacity", "1e6")

    assert found["capacity"] == found["full_at"] == 1_000_000
    assert 98 < found["step_bytes"] < 112


def test_what_does_not_fit_ends_with_one_and_the_capacity_that_would(plan):
    """Over the limit: exit code 1, and the capacity that is named fits when it is asked for."""
    code, out, err = plan(*ATARI, "--limit", "1GiB", "--json")
    fitting = json.loads(out)["fitting"]
    _, table, _ = plan(*ATARI, "--limit", "1GiB")

    assert (code, err) == (1, "")
    assert "DOES NOT FIT" in table
    assert f"at most {fitting:,} transitions" in table
    assert plan(*ATARI[:-1], fitting, "--limit", "1GiB")[0] == 0
    assert plan(*ATARI[:-1], fitting + 1, "--limit", "1GiB")[0] == 1


def test_a_budget_is_filled(figures, plan):
    """With --budget alone as many steps as fit are planned, and with --capacity it is a bound."""
    found = figures("CartPole-v1", "--budget", "64MiB")

    assert 63 * 2**20 < found["bytes"] <= 64 * 2**20
    assert found["capacity"] == found["fitting"]
    assert plan("CartPole-v1", "--budget", "64MiB", "--capacity", found["capacity"] + 1)[0] == 1


def test_the_deciding_limit_is_named(plan):
    """The rule with the least left is shown, and the budget where that is less."""
    _, pretended, _ = plan("CartPole-v1", "--capacity", 1000, "--limit", "1GiB")
    _, real, _ = plan("CartPole-v1", "--capacity", 1000)
    _, budgeted, _ = plan("CartPole-v1", "--capacity", 1000, "--budget", "10MiB")

    assert "1.00 GiB left of 1.00 GiB by --limit 1GiB" in pretended
    assert f"by {rf.memory_limit().shared.rule}" in real
    assert "decided by:   budget='10MiB', 10.00 MiB may be taken" in budgeted


@pytest.mark.parametrize(
    ("flags", "action"),
    [
        ([], rf.Field((), np.int64)),
        (["--action", "6"], rf.Field((6,), np.float32)),
        (["--action", "2x3", "--action-dtype", "float16"], rf.Field((2, 3), np.float16)),
        (["--action-dtype", "uint8"], rf.Field((), np.uint8)),
    ],
)
def test_a_step_is_described_by_flags(figures, flags, action):
    """The action is one discrete number unless --action gives a shape; observations are float32 unless told."""
    expected = rf.plan(rf.Schema(rf.Field((17,), np.float32), action), 1000)

    assert figures("--obs", "17", "--capacity", 1000, *flags)["bytes"] == expected.bytes


def test_stored_narrows_the_observations_that_are_wider(figures):
    """--stored keeps observations in the narrower dtype, and leaves actions and rewards as they are."""
    obs, action = rf.Field((17,), np.float32, stored=np.float16), rf.Field((6,), np.float32)
    expected = rf.plan(rf.Schema(obs, action), 1000)

    found = figures("HalfCheetah-v5", "--capacity", 1000, "--stored", "float16")

    assert found["bytes"] == expected.bytes


def test_a_schema_file_is_read(figures, tmp_path):
    """Nested observations, lists, a reward and extras in a JSON file are the schema that Python would build."""
    camera = {"shape": [64, 64, 3], "dtype": "uint8", "stack": 2, "stack_axis": -1, "pad": "zero"}
    state = [{"shape": [3], "dtype": "float32", "stored": "float16"}, {"shape": [], "dtype": "bool"}]
    content = {
        "obs": {"camera": camera, "state": state},
        "action": {"shape": [], "dtype": "int64"},
        "reward": {"shape": [], "dtype": "float64", "finite": True},
        "extras": {"log_prob": {"shape": [], "dtype": "float32"}},
    }
    (tmp_path / "schema.json").write_text(json.dumps(content))
    obs = {
        "camera": rf.Field((64, 64, 3), np.uint8, stack=2, stack_axis=-1, pad="zero"),
        "state": (rf.Field((3,), np.float32, stored=np.float16), rf.Field((), np.bool_)),
    }
    extras = {"log_prob": rf.Field((), np.float32)}
    schema = rf.Schema(obs, rf.Field((), np.int64), rf.Field((), np.float64, finite=True), extras)

    found = figures("schema.json", "--capacity", 1000)

    assert [tuple(row.values()) for row in found["rows"]] == rf.plan(schema, 1000).rows()


FIELD = '{"shape": [3], "dtype": "float32"}'


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("{", "is no JSON (Expecting property name enclosed in double quotes in line 1, column 2)"),
        ("[]", "expected an object with the keys obs, action, reward, extras, got []"),
        (f'{{"obs": {FIELD}}}', "action: is missing"),
        (f'{{"obs": {FIELD}, "action": {FIELD}, "rewards": 1}}', "rewards: is unknown, known are obs, action"),
        (f'{{"obs": {FIELD}, "obs": {FIELD}}}', "obs: is there twice"),
        (f'{{"obs": {{}}, "action": {FIELD}}}', "obs.shape: is missing"),
        (f'{{"obs": [], "action": {FIELD}}}', "obs: expected a field such as"),
        (f'{{"obs": {{"a": {{"b": {{"shape": [3]}}}}}}, "action": {FIELD}}}', "obs.a.b.dtype: is missing"),
        (f'{{"obs": [{FIELD}, 3], "action": {FIELD}}}', "obs.1: expected a field such as"),
        (
            f'{{"obs": {{"shape": [3], "dtype": "float33"}}, "action": {FIELD}}}',
            "obs.dtype: expected the name of a dtype",
        ),
        (f'{{"obs": {{"shape": [3], "dtype": null}}, "action": {FIELD}}}', "obs.dtype: expected the name of a dtype"),
        (f'{{"obs": {{"shape": [3], "dtype": "object"}}, "action": {FIELD}}}', "obs.dtype: object cannot be kept"),
        (f'{{"obs": {{"shape": ["3"], "dtype": "uint8"}}, "action": {FIELD}}}', "obs.shape: expected a list of sizes"),
        (f'{{"obs": {{"shape": [0], "dtype": "uint8"}}, "action": {FIELD}}}', "obs.shape: expected sizes of 1 or more"),
        (
            f'{{"obs": {{"shape": [3], "dtype": "uint8", "stack": true}}, "action": {FIELD}}}',
            "obs.stack: expected a whole",
        ),
        (f'{{"obs": {{"shape": [3], "dtype": "uint8", "stacks": 4}}, "action": {FIELD}}}', "obs.stacks: is unknown"),
        (
            f'{{"obs": {FIELD}, "action": {FIELD}, "extras": {{"mask": {FIELD}}}}}',
            "extras: mask is a name that a batch",
        ),
        (f'{{"obs": {FIELD}, "action": {FIELD}, "extras": [1]}}', "extras: expected an object of fields by name"),
        ("[" * 100_000, "is nested too deeply"),
    ],
)
def test_a_bad_schema_file_is_refused_by_key_and_file(plan, tmp_path, content, text):
    """Exit code 2, and one line that names the file, the key and what is wrong with it."""
    (tmp_path / "bad.json").write_text(content)

    code, out, err = plan("bad.json", "--capacity", 1000)

    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("ringfence: bad.json: ")
    assert text in err


def test_a_file_that_cannot_be_read_is_refused(plan, tmp_path):
    """A missing file, a folder and bytes that are no text each get a line of their own."""
    (tmp_path / "folder.json").mkdir()
    (tmp_path / "bytes.json").write_bytes(b"\xff\xfe\x00")

    assert plan("none.json", "--capacity", 1)[2] == "ringfence: none.json: cannot be read (No such file or directory)\n"
    assert plan("folder.json", "--capacity", 1)[2] == "ringfence: folder.json: cannot be read (Is a directory)\n"
    assert plan("bytes.json", "--capacity", 1)[2] == "ringfence: bytes.json: is no text in UTF-8\n"


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["CartPole-v1"], "give --capacity 1e6 or --budget 2GiB"),
        (["--capacity", "1e6"], "name an environment or a schema file"),
        (["CartPole-v1", "--capacity", "many"], "cannot read 'many' as a count"),
        (["CartPole-v1", "--capacity", "0"], "it must be a whole number of at least one"),
        (["CartPole-v1", "--budget", "2 lightyears"], "cannot read '2 lightyears'"),
        (["CartPole-v1", "--capacity", "10", "--streams", "0"], "Invalid value for '--streams'"),
        (["CartPole-v1", "--capacity", "10", "--streams", "11"], "the minimum is capacity=11"),
        (["CartPole-v1", "--capacity", "10", "--obs", "3"], "CartPole-v1 and --obs both say what a step is"),
        (["CartPole-v1", "--capacity", "10", "--stack", "4"], "--stack belongs to --obs"),
        (["CartPole-v1", "--capacity", "10", "--stored", "float64"], "--stored float64: no observation is wider"),
        (["CartPole-v1", "--capacity", "10", "--stored", "int8"], "stored: expected a narrower dtype"),
        (["--obs", "84by84", "--capacity", "10"], "cannot read '84by84' as a shape"),
        (["--obs", "84x0", "--capacity", "10"], "write sizes of 1 or more"),
        (["--obs", "3", "--dtype", "object", "--capacity", "10"], "Invalid value for '--dtype'"),
        (["--obs", "3", "--stack", "4", "--capacity", "3"], "a stack of 4 frames needs 4 steps"),
        (["CartPole-v1", "--capacities", "10"], "No such option: --capacities"),
        (["CarPole-v1", "--capacity", "10"], "CarPole-v1: Environment `CarPole` doesn't exist"),
        (["nowhere:CartPole-v1", "--capacity", "10"], "nowhere:CartPole-v1: "),
    ],
)
def test_a_question_that_makes_no_sense_ends_with_two(plan, arguments, text):
    """Exit code 2, nothing on stdout, and one line on stderr that says what is wrong."""
    code, out, err = plan(*arguments)

    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("ringfence: ")
    assert text in err


@pytest.mark.parametrize("command", ["plan", "soak"])
def test_each_command_has_help_with_an_example(capsys, command):
    """--help ends with 0 and shows a command line to copy."""
    assert main([command, "--help"]) == 0

    out = capsys.readouterr().out
    assert f"ringfence {command} HalfCheetah-v5 --" in out


def test_no_command_and_a_wrong_one_are_refused(capsys):
    """Without a command, and with one that does not exist, one line says so."""
    assert main([]) == main(["plam"]) == 2

    missing, wrong = capsys.readouterr().err.splitlines()
    assert missing == "ringfence: Missing command; ringfence --help shows how it is used"
    assert wrong.startswith("ringfence: No such command 'plam'")


def test_the_version_is_told(capsys):
    """--version prints the package's."""
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"ringfence {rf.__version__}\n"


def test_a_described_step_needs_no_environments(tmp_path):
    """A plan for --obs loads neither Gymnasium nor matplotlib, which take a second."""
    probe = (
        "import sys; from ringfence.cli import main; code = main(sys.argv[1:]);"
        "sys.exit(code or any(name in sys.modules for name in ('gymnasium', 'matplotlib', 'torch')))"
    )
    command = [sys.executable, "-c", probe, "plan", *ATARI, "--limit", "16GiB"]

    finished = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60)

    assert (finished.returncode, finished.stderr) == (0, "")


@pytest.mark.parametrize(
    ("module", "env", "extra"), [("mujoco", "HalfCheetah-v5", "mujoco"), ("ale_py", "ALE/Pong-v5", "atari")]
)
def test_a_missing_simulator_names_what_to_install(tmp_path, module, env, extra):
    """Where MuJoCo or the Atari emulator is not installed, the line says which extra of this package brings it."""
    probe = f"import sys; sys.modules['{module}'] = None; from ringfence.cli import main; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", probe, "plan", env, "--capacity", "10"]

    finished = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60)

    assert finished.returncode == 2
    assert finished.stderr.count("\n") == 1
    assert f"pip install 'ringfence[{extra}]'" in finished.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_an_output_that_cannot_be_written_is_told_in_one_line(tmp_path):
    """A full disk behind stdout ends with 1 and its name, not with a traceback."""
    command = [sys.executable, "-m", "ringfence.cli", "plan", "--obs", "3", "--capacity", "10", "--json"]

    with Path("/dev/full").open("w") as full:
        finished = subprocess.run(
            command, cwd=tmp_path, stdout=full, stderr=subprocess.PIPE, text=True, check=False, timeout=60
        )

    assert (finished.returncode, finished.stderr) == (1, "ringfence: No space left on device\n")


@pytest.mark.parametrize(
    ("nbytes", "digits", "text"),
    [
        (0, 3, "0 B"),
        (999, 3, "999 B"),
        (1000, 3, "1.00 kB"),
        (999_499, 3, "999 kB"),
        (999_500, 3, "1.00 MB"),
        (225_806, 4, "225.8 kB"),
        (225_806_000_000, 3, "226 GB"),
        (0.124, 4, "0.1 B"),
        (109.19, 4, "109.2 B"),
        (5e18, 3, "5,000 PB"),
    ],
)
def test_sizes_are_written_in_powers_of_ten(nbytes, digits, text):
    """As many digits as asked for, in the largest unit that leaves one before the point."""
    assert decimal(nbytes, digits) == text
