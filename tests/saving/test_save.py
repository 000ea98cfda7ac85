"""What is saved comes back, to the last byte and the last random number."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.saving import book
from tests.saving.book import FRAMED, SCHEMAS, SMALL, Filler

from ringfence import CheckpointError, Field, Prioritized, Replay, Schema, SchemaError, Uniform
from ringfence.errors import BudgetExceeded


@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS)
@pytest.mark.parametrize("streams", [1, 3])
def test_a_loaded_replay_draws_what_a_run_that_never_stopped_draws(tmp_path, schema, streams):
    """Saved at random steps and loaded, each view gives the same batches, and goes on to give the same."""
    replay = Replay(schema, 150 * streams, streams=streams, seed=3, episode_length=8)
    filler, mine, random = Filler(replay, seed=1), book.views(replay), np.random.default_rng(0)
    for steps in (5, 60, 200, 700):
        for _ in range(steps // 20 + 1):
            filler.steps(20)
            book.use(mine, random)
        replay.save(tmp_path / "save", notes={"steps": filler.count})
        loaded = Replay.load(tmp_path / "save")
        theirs = book.views(loaded)

        book.assert_same_ring(replay, loaded)
        book.assert_same_content(replay, loaded)
        assert loaded.notes == {"steps": filler.count}
        book.assert_same_batches([replay._default, *mine], [loaded._default, *theirs])
        twin = Filler(loaded, ends=filler.ends)
        twin.obs, twin.count = dict(filler.obs), filler.count
        twin.random.bit_generator.state = filler.random.bit_generator.state
        filler.steps(30)
        twin.steps(30)
        book.assert_same_ring(replay, loaded)
        book.assert_same_batches(mine, theirs, rounds=1)


PROGRAM = st.lists(
    st.one_of(
        st.tuples(st.just("steps"), st.integers(1, 40)),
        st.tuples(st.just("save"), st.booleans()),
        st.tuples(st.just("cut"), st.integers(0, 2)),
        st.tuples(st.just("drop"), st.integers(0, 2)),
        st.tuples(st.just("clear"), st.just(0)),
        st.tuples(st.just("write"), st.integers(0, 5)),
    ),
    min_size=3,
    max_size=25,
)


@settings(deadline=None, max_examples=60)
@given(program=PROGRAM, capacity=st.sampled_from([3, 8, 60]), streams=st.integers(1, 3), seed=st.integers(0, 99))
def test_whatever_was_done_every_save_loads_as_it_was(tmp_path_factory, program, capacity, streams, seed):
    """Adds, cuts, drops, clears and later changes in any order: each save, on the last one's files, is the ring."""
    path = tmp_path_factory.mktemp("program")
    replay = Replay(FRAMED, capacity * streams, streams=streams, seed=seed, episode_length=4)
    filler = Filler(replay, seed=seed, ends=0.2)
    for act, value in program:
        stream = int(value) % streams
        if act == "steps":
            filler.steps(value)
        elif act == "cut":
            replay.cut(stream)
        elif act == "drop":
            replay.drop(min(value, len(replay.episode_lengths(stream))), stream)
        elif act == "clear":
            replay.clear()
        elif act == "write":
            ids = replay.transitions().ids()[value : value + 3]
            replay.sequences(1).write(ids, number=np.full(len(ids), -7))
        else:
            replay.save(path, compress=value)
            loaded = Replay.load(path)
            book.assert_same_ring(replay, loaded)
            book.assert_same_content(replay, loaded)
            if value:  # go on with what was loaded, and save on top of what is there
                loaded_filler = Filler(loaded, ends=0.2)
                loaded_filler.obs, loaded_filler.count = filler.obs, filler.count
                loaded_filler.random = filler.random
                replay, filler = loaded, loaded_filler


@pytest.mark.parametrize("capacity", [1000, 120, 30])
def test_another_capacity_keeps_the_newest_steps(tmp_path, capacity):
    """A larger ring holds all that was saved, a smaller one the newest of it, and its views still draw."""
    replay = Replay(FRAMED, 300, streams=3, seed=0, episode_length=2)
    mine = book.views(replay)
    filler = Filler(replay)
    filler.steps(600)
    book.use(mine, np.random.default_rng(0))
    replay.save(tmp_path / "save")
    loaded = Replay.load(tmp_path / "save", capacity=capacity)
    theirs = book.views(loaded)

    expected, got = book.content(replay), book.content(loaded)
    kept = np.isin(expected["ids"], got["ids"])
    assert len(loaded) == min(len(replay), loaded.capacity)
    for name, value in expected.items():
        if name != "probabilities":
            np.testing.assert_array_equal(value[kept], got[name], err_msg=name)
    book.use(theirs, np.random.default_rng(1))


def test_a_smaller_ring_keeps_the_final_observations_it_has_room_for(tmp_path):
    """Where one-step episodes were kept in plenty and there is room for few, the newest come with theirs."""
    replay = Replay(SMALL, 2000, episode_length=1)
    Filler(replay, ends=1.0).steps(2000)
    replay.save(tmp_path / "save")
    manifest = next((tmp_path / "save").glob("*.json"))
    text = json.loads(manifest.read_text())
    assert text["body"]["episode_length"] == 1
    loaded = Replay.load(tmp_path / "save", capacity=500)

    assert len(loaded) == 500
    assert loaded.episode_lengths() == [1] * 500


def test_an_open_episode_goes_on_or_is_truncated_as_asked(tmp_path):
    """Continued, the next step joins it; truncated, it does not, even where its observation would continue it."""
    replay = Replay(SMALL, 10)
    a, b, c = np.eye(3, dtype=np.float32)
    replay.add(a, 0, 0.0, b, terminated=False)
    replay.save(tmp_path / "save")
    on, over = (Replay.load(tmp_path / "save", open=how) for how in ("continue", "truncate"))
    for loaded in (on, over):
        loaded.add(b, 1, 0.0, c, terminated=False)

    assert on.episode_lengths() == [2]
    assert over.episode_lengths() == [1, 1]
    assert book.content(on)["truncated"].tolist() == [False, False]
    assert book.content(over)["truncated"].tolist() == [True, False]
    assert over.stats()["breaks"] == 0


def test_a_second_save_writes_what_came_since(tmp_path):
    """After half a per cent of new steps, at most a twentieth of the first save's bytes are written."""
    replay = Replay(SMALL, 400_000)
    obs = np.zeros((400_001, 3), np.float32)
    filler = Filler(replay)
    filler.obs[0] = obs[0]
    for number in range(200_000):
        replay.add(obs[0], number, 0.0, obs[0], terminated=False)
    first = replay.save(tmp_path / "save")
    for number in range(1000):
        replay.add(obs[0], number, 0.0, obs[0], terminated=False)
    second = replay.save(tmp_path / "save")

    assert first.steps, second.steps == (200_000, 201_000)
    assert second.nbytes <= first.nbytes / 20
    assert Replay.load(tmp_path / "save").stats() == replay.stats()


def test_a_save_elsewhere_or_over_anothers_is_whole(tmp_path):
    """A replay builds on its own last save alone: twins that go different ways do not mix."""
    first = Replay(SMALL, 50, seed=0)
    Filler(first, seed=0).steps(40)
    first.save(tmp_path / "save")
    twin = Replay.load(tmp_path / "save")
    Filler(first, seed=1).steps(5)
    Filler(twin, seed=2).steps(5)
    for replay in (first, twin, first):
        replay.save(tmp_path / "save")
        replay.save(tmp_path / "other")

        book.assert_same_content(replay, Replay.load(tmp_path / "save"))
        book.assert_same_content(replay, Replay.load(tmp_path / "other"))


def test_older_saves_are_kept_as_asked(tmp_path):
    """With keep=3 the last three load by number, each as it was; a fourth is gone."""
    replay = Replay(SMALL, 50)
    filler, sizes = Filler(replay), {}
    for _ in range(5):
        filler.steps(7)
        saved = replay.save(tmp_path / "save", keep=3)
        sizes[saved.number] = len(replay)
    for number in (3, 4, 5):
        assert len(Replay.load(tmp_path / "save", save=number)) == sizes[number]
    with pytest.raises(CheckpointError, match="holds no save 2; there are 3, 4, 5"):
        Replay.load(tmp_path / "save", save=2)


def test_loading_twice_changes_nothing(tmp_path):
    """Two loads of one save are twins, and the files stay as they were."""
    replay = Replay(FRAMED, 60, seed=5)
    Filler(replay).steps(100)
    replay.save(tmp_path / "save")
    before = {path.name: path.read_bytes() for path in (tmp_path / "save").iterdir()}
    one, two = Replay.load(tmp_path / "save"), Replay.load(tmp_path / "save")

    book.assert_same_content(one, two)
    book.assert_same_batches([one._default], [two._default])
    assert before == {path.name: path.read_bytes() for path in (tmp_path / "save").iterdir()}


def test_a_save_of_other_steps_is_refused_by_name(tmp_path):
    """Asked for another schema, the field is named, with what was expected and what is there."""
    replay = Replay(SMALL, 10)
    Filler(replay).steps(3)
    replay.save(tmp_path / "save")
    other = Schema(obs=Field((4,), np.float32), action=Field((), np.int64))
    with pytest.raises(CheckpointError, match=r"obs: expected \(4,\) float32, the save has \(3,\) float32"):
        Replay.load(tmp_path / "save", schema=other)
    with pytest.raises(SchemaError, match="obs: expected"):
        Replay.load(tmp_path / "save", schema=other)


def test_a_ring_that_does_not_fit_is_refused_with_what_would(tmp_path):
    """A budget below what the save needs gives an error with the capacity that fits."""
    replay = Replay(SMALL, 10_000)
    Filler(replay).steps(3)
    replay.save(tmp_path / "save")
    with pytest.raises(CheckpointError, match=r"would fit.*give load\(\) a capacity"):
        Replay.load(tmp_path / "save", capacity=10_000, budget="100 KiB")
    with pytest.raises(BudgetExceeded, match="would fit"):
        Replay.load(tmp_path / "save", capacity=10_000, budget="100 KiB")
    assert 0 < Replay.load(tmp_path / "save", budget="100 KiB").capacity < 10_000


def test_a_state_goes_through_a_dict(tmp_path):
    """A state dict is a snapshot: it does not follow the ring, and what takes it is what was."""
    replay = Replay(FRAMED, 90, streams=3, seed=1, episode_length=4)
    filler, mine = Filler(replay), book.views(replay)
    filler.steps(200)
    book.use(mine, np.random.default_rng(0))
    state = replay.state_dict()
    replay.save(tmp_path / "save")
    filler.steps(50)
    other = Replay(FRAMED, 90, streams=3, seed=9, episode_length=4)
    Filler(other, seed=8).steps(70)
    theirs = book.views(other)
    other.load_state_dict(state)
    twin = Replay.load(tmp_path / "save")
    twins = book.views(twin)

    book.assert_same_ring(twin, other)
    book.assert_same_content(twin, other)
    book.assert_same_batches([twin._default, *twins], [other._default, *theirs])


def test_a_state_goes_through_torch(tmp_path):
    """Its arrays as tensors pass a file that is loaded with weights alone."""
    torch = pytest.importorskip("torch")
    replay = Replay(FRAMED, 40, seed=1)
    Filler(replay).steps(70)
    state = replay.state_dict()
    state["arrays"] = {name: torch.from_numpy(array) for name, array in state["arrays"].items()}
    torch.save(state, tmp_path / "state.pt")
    other = Replay(FRAMED, 40)
    other.load_state_dict(torch.load(tmp_path / "state.pt", weights_only=True))

    book.assert_same_content(replay, other)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda state: state.pop("about"), "expected the keys version, about and arrays"),
        (lambda state: state.update(version=2), "version 2"),
        (lambda state: state.update(about="{"), "about: is damaged"),
        (lambda state: state["arrays"].pop("records"), "records: is missing"),
        (lambda state: state["arrays"].update(records=np.zeros((3, 3), np.uint8)), "records: expected"),
        (lambda state: state["arrays"]["records"].__setitem__(slice(None), 0), "end other episodes"),
    ],
)
def test_a_wrong_state_is_refused_and_changes_nothing(change, match):
    """One typed error says what is wrong; the ring holds what it held."""
    replay = Replay(SMALL, 40, seed=1)
    Filler(replay).steps(70)
    state, before = replay.state_dict(), book.content(replay)
    change(state)
    with pytest.raises(CheckpointError, match=match):
        replay.load_state_dict(state)
    after = book.content(replay)

    assert all(np.array_equal(value, after[name]) for name, value in before.items())


@pytest.mark.parametrize("other", [Replay(SMALL, 41), Replay(SMALL, 40, streams=2)])
def test_a_state_of_another_size_is_refused(other):
    """The text holds both sizes."""
    state = Replay(SMALL, 40).state_dict()
    with pytest.raises(CheckpointError, match=r"is of 40 transitions in 1 stream\(s\), and this replay has room for 4"):
        other.load_state_dict(state)


def test_a_view_with_other_arguments_is_refused_its_state(tmp_path):
    """A saved draw whose state does not fit the new one is an error that names it, and not a silent new start."""
    replay = Replay(SMALL, 40)
    view = replay.transitions(draw=Prioritized(alpha=0.0))
    Filler(replay).steps(40)
    batch = view.sample(4)
    view.update_priorities(batch.ids, np.full(4, 1e200))
    replay.save(tmp_path / "save")
    loaded = Replay.load(tmp_path / "save")
    with pytest.raises(CheckpointError, match="state does not fit this view: transitions over 1 step"):
        loaded.transitions(draw=Prioritized(alpha=2.0))


def test_views_that_nobody_holds_are_forgotten():
    """A loop that makes a view a step leaves none behind, in memory or in saves."""
    replay = Replay(SMALL, 40)
    Filler(replay).steps(20)
    for _ in range(100):
        replay.transitions(draw=Uniform()).sample(1)

    assert len(replay._keeper.views.states()) == 0


@pytest.mark.parametrize("keep", [0, -1, True, 1.5])
def test_a_number_of_saves_that_is_none_is_refused(tmp_path, keep):
    """The error says what keep is; nothing is written."""
    with pytest.raises(ValueError, match="keep: expected a number of saves"):
        Replay(SMALL, 10).save(tmp_path / "save", keep=keep)
    assert not (tmp_path / "save").exists()


def test_notes_that_cannot_be_written_are_refused(tmp_path):
    """An object among the notes is named, and nothing is written, in the background neither."""
    for background in (False, True):
        with pytest.raises(TypeError, match=r"notes\.policy: a object cannot be saved"):
            Replay(SMALL, 10).save(tmp_path / "save", notes={"policy": object()}, background=background)
    assert not (tmp_path / "save").exists()


def test_notes_come_back_exactly(tmp_path):
    """Numbers of any size, infinities, text and arrays of any dtype are what they were."""
    replay = Replay(SMALL, 10)
    notes = {
        "big": 2**200,
        "inf": float("inf"),
        "text": "ä\n",
        "none": None,
        "list": [1, [2.5, True]],
        "array": np.arange(12, dtype=np.uint16).reshape(3, 4),
        "large": np.random.default_rng(0).random((100, 20)),
        "empty": np.zeros((0, 3), np.float32),
        "number": np.array(3.5),
    }
    replay.save(tmp_path / "save", notes=notes)
    got = Replay.load(tmp_path / "save").notes

    assert got.keys() == notes.keys()
    for name, value in notes.items():
        if isinstance(value, np.ndarray):
            assert got[name].dtype == value.dtype
            np.testing.assert_array_equal(got[name], value)
        else:
            assert got[name] == value


def test_numpy_alone_reads_a_save(tmp_path):
    """Records are a structured array by the fields' names."""
    replay = Replay(SMALL, 100)
    Filler(replay).steps(50)
    replay.save(tmp_path / "save")
    records = np.load(next((tmp_path / "save").glob("*-records.npy")), mmap_mode="r", allow_pickle=False)

    assert records["action"].tolist() == list(range(49))
    assert records["obs"].shape == (49, 3)


def test_a_view_of_another_kind_takes_nobodys_state(tmp_path, caplog):
    """Made before the saved one, it begins anew and says so; the saved one is taken up when it is made."""
    replay = Replay(SMALL, 40, seed=0)
    view = replay.transitions(draw=Prioritized())
    Filler(replay).steps(40)
    view.update_priorities(view.ids(), np.arange(40.0))
    replay.save(tmp_path / "save")
    loaded = Replay.load(tmp_path / "save")
    loaded.transitions(n_step=2, draw=Prioritized())

    assert (
        "begins anew; the states that were saved are of: transitions over 1 step(s), drawn by Prioritized"
        in caplog.text
    )
    book.assert_same_batches([view], [loaded.transitions(draw=Prioritized())])
