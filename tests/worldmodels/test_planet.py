"""PlaNet's memory against a plain list of episodes, and its shapes, dtypes and refusals."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.worldmodels.book_planet import LARGE, PROGRAMS, SMALL, Book, episode, read

from ringfence.errors import BudgetExceeded, NotEnoughData, SchemaError
from ringfence.worldmodels.planet import Episode, Memory


def _windows(memory: Memory, length: int, count: int = 400) -> set[tuple[int, ...]]:
    """Draw so many that each window comes up, and check what belongs to each of its observations."""
    (x, u, r, t), lengths = memory.sample(count, length)
    if length == 1:
        u, r, t = u[:, None], r[:, None], t[:, None]
    numbers = read(x, 2)
    assert (u[..., 0] == numbers[:, :-1]).all()
    assert (r == numbers[:, :-1]).all()
    assert t.dtype == np.bool_
    return {(*row, int(steps)) for row, steps in zip(numbers.tolist(), lengths, strict=True)}


def _same(memory: Memory, book: Book) -> None:
    assert len(memory) == len(memory.episodes) == len(book.kept)
    assert memory.eps_lengths == [steps for _, steps in book.kept]
    assert memory.size == sum(memory.eps_lengths)
    for found, (first, steps) in zip(memory.episodes, book.kept, strict=True):
        assert read(found.x, 1).tolist() == list(range(first, first + steps + 1))
        assert found.r.tolist() == list(range(first, first + steps))
        assert found.size == steps
    for length in (1, 2, 5):
        expected = book.windows(length)
        assert memory.can_sample(len(expected), length)
        assert not memory.can_sample(len(expected) + 1, length)
        if expected:
            assert _windows(memory, length) <= expected
        else:
            with pytest.raises(NotEnoughData, match=r"empty|No episodes with length"):
                memory.sample(1, length)


@settings(max_examples=60, deadline=None)
@given(
    program=PROGRAMS,
    room=st.sampled_from([(1, None), (3, None), (70, None), (3, 12), (None, 20)]),
    shape=st.sampled_from([SMALL, LARGE]),
)
def test_random_programs_hold_what_a_list_of_episodes_holds(
    program: Any, room: Any, shape: Any, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Whatever is appended, cleared, saved and refused, the episodes and windows are those of a plain list."""
    memory, book, number = Memory(room[0], steps=room[1], seed=1), Book(*room), 0
    for action in program:
        if action == "clear":
            memory.clear()
            book.kept.clear()
        elif action == "refused":
            with pytest.raises(ValueError, match="only append"):
                memory.append([episode(number, 2, shape), "no episode"])  # type: ignore[list-item, unused-ignore]
        elif action == "save" and number:
            path = tmp_path_factory.mktemp("save") / "memory"
            memory.save(path)
            memory = Memory.load(path)
        elif action == "state" and number:
            state = memory.state_dict()
            memory = Memory(1)
            memory.load_state_dict(state)
        elif isinstance(action, list):
            made = []
            for steps in action:
                made.append(episode(number, steps, shape))
                book.append(number, steps)
                number += steps + 1
            memory.append(made)
        _same(memory, book)


def test_every_window_is_drawn() -> None:
    """Among many draws each window of each episode comes up, also after the ring has turned."""
    memory, book = Memory(3, seed=0), Book(3, None)
    for first, steps in ((0, 4), (10, 4), (20, 2), (30, 6), (40, 3)):
        memory.append(episode(first, steps))
        book.append(first, steps)
    for length in (1, 2, 3, 6):
        assert _windows(memory, length, 3000) == book.windows(length)


@pytest.mark.parametrize(("draw", "share"), [("episodes", 1 / 2), ("windows", 1 / 10)])
def test_the_draw_is_uniform_over_what_was_asked_for(draw: Any, share: float) -> None:
    """An episode of one window is drawn as often as one of nine, or as often as each of its windows."""
    memory = Memory(3, seed=0, draw=draw)
    memory.append([episode(0, 2), episode(10, 10), episode(30, 1)])
    (x, *_), _ = memory.sample(20_000, 2)
    starts = read(x, 2)[:, 0]
    # five standard deviations of a share of 20,000 draws are below 0.018
    assert abs((starts == 0).mean() - share) < 0.018
    for start in range(10, 19):
        assert abs((starts == start).mean() - (1 - share) / 9) < 0.018


@pytest.mark.parametrize("time_first", [False, True])
@pytest.mark.parametrize("length", [1, 3])
def test_shapes_and_dtypes_are_the_documented_ones(length: int, time_first: bool) -> None:
    """Observations have one step more; with one step the others have no axis of time; single actions get an axis."""
    made = Episode()
    for number in range(4):
        made.append(np.full((3, 2), number, np.float32), np.int64(number), 0.5, False)
    made.terminate(np.full((3, 2), 4, np.float32))
    memory = Memory(size=2, seed=0)
    memory.append([made])
    (x, u, r, t), lengths = memory.sample(batch_size=5, tracelen=length, time_first=time_first)

    def laid(steps: int) -> tuple[int, ...]:
        return (steps, 5) if time_first else (5, steps)

    inner = (5,) if length == 1 else laid(length)
    assert (x.shape, x.dtype) == ((*laid(length + 1), 3, 2), np.float32)
    assert (u.shape, u.dtype) == ((*inner, 1), np.int64)
    assert (r.shape, r.dtype) == (inner, np.float64)
    assert (t.shape, t.dtype) == (inner, np.bool_)
    assert (lengths.tolist(), lengths.dtype) == ([4] * 5, np.int64)
    assert memory.episodes[-1].u.shape == (4,)


def test_postprocessed_observations_are_what_is_held() -> None:
    """The function is applied once to each observation, the last one too, and its dtype is kept."""
    made = Episode(lambda obs: obs.astype(np.float64) / 2)
    made.append(np.array([3], np.uint8), np.zeros(1), 0.0, True)
    made.terminate(np.array([5], np.uint8))
    memory = Memory(1, seed=0)
    memory.append(made)
    (x, *_), _ = memory.sample(1)
    assert (x.tolist(), x.dtype) == ([[[1.5], [2.5]]], np.float64)


def test_nothing_is_shared_with_the_caller() -> None:
    """Writing to what was given, or to what was got, changes nothing that is held."""
    memory = Memory(1, seed=0)
    given_one = episode(0, 3)
    memory.append(given_one)
    given_one.x[:] = 99
    (x, *_), _ = memory.sample(2, 3)
    x[:] = 77
    memory.episodes[0].x[:] = 55
    assert read(memory.episodes[0].x, 1).tolist() == [0, 1, 2, 3]


def _broken(**parts: Any) -> Episode:
    made = copy.copy(episode(50, 3))
    for name, value in parts.items():
        setattr(made, name, value)
    return made


@pytest.mark.parametrize(
    ("wrong", "error", "match"),
    [
        ("text", ValueError, "only append"),
        ((episode(0, 1),), ValueError, "only append"),
        (None, ValueError, "only append"),
        (Episode(), SchemaError, "no step"),
        (_broken(x=np.zeros((3, 2), np.uint8)), SchemaError, "terminate"),
        (_broken(x=np.zeros((4, 5), np.uint8)), SchemaError, r"x: expected steps of shape \(2,\)"),
        (_broken(x=np.full((4, 2), 0.5)), SchemaError, "x: expected uint8"),
        (_broken(x=np.full((4, 2), -1)), SchemaError, "x: expected uint8"),
        (_broken(r=np.zeros(2)), SchemaError, "r: expected 3"),
        (_broken(u=np.zeros((3, 2), np.float32)), SchemaError, "u: expected steps"),
        (episode(0, 31), BudgetExceeded, "31 steps does not fit"),
    ],
)
def test_what_is_no_episode_is_refused_and_nothing_is_changed(wrong: Any, error: type, match: str) -> None:
    """One typed error that names the array; a list is taken whole or not at all."""
    memory = Memory(steps=30, seed=0)
    memory.append(episode(0, 4))
    given_list = [episode(10, 3), wrong] if not isinstance(wrong, tuple) else wrong
    with pytest.raises(error, match=match):
        memory.append(given_list)
    assert memory.eps_lengths == [4]
    assert _windows(memory, 4) == {(0, 1, 2, 3, 4, 4)}


def test_a_batch_beyond_the_limit_is_refused_before_anything_is_drawn() -> None:
    """The error is a MemoryError with the figures; the generator has not moved, and a larger limit lets it through."""
    memories = [Memory(1, seed=3, limit="100 kB"), Memory(1, seed=3, limit="100 MB")]
    for memory in memories:
        memory.append(episode(0, 20, LARGE))
    with pytest.raises(MemoryError, match=r"batch of 100 windows of 10 steps .*limit="):
        memories[0].sample(100, 10)
    assert memories[1].sample(100, 10)[0][0].nbytes == 100 * 11 * 600
    fresh = Memory(1, seed=3)
    fresh.append(episode(0, 20, LARGE))
    assert (memories[0].sample(3, 10)[0][0] == fresh.sample(3, 10)[0][0]).all()


@pytest.mark.parametrize("limit", [None, "1000000 TiB"])
def test_a_batch_beyond_the_machine_is_refused(limit: Any) -> None:
    """Without a limit, or with one that is no bound, what the process may still take decides."""
    memory = Memory(1, seed=0, limit=limit)
    memory.append(episode(0, 2, LARGE))
    with pytest.raises(BudgetExceeded, match="may still take"):
        memory.sample(10**12)


def test_a_store_beyond_its_budget_is_refused() -> None:
    """An episode that no ring of the budget can hold is refused; the memory stays empty."""
    memory = Memory(100, budget="64 kB", seed=0)
    with pytest.raises(MemoryError, match="200 steps does not fit"):
        memory.append(episode(0, 200, LARGE))
    assert (len(memory), memory.nbytes) == (0, 0)


@pytest.mark.parametrize("room", [{"size": 50}, {}])
def test_a_budget_bounds_the_ring_and_old_episodes_go(room: Any) -> None:
    """What the ring takes never passes the budget, and the newest episodes are held whole."""
    memory = Memory(**room, budget="400 kB", seed=0)
    for number in range(30):
        memory.append(episode(number * 100, 20 + number, LARGE))
        assert 0 < memory.nbytes <= 400_000
    assert 1 < len(memory) < 30
    assert memory.eps_lengths == [20 + number for number in range(30)][-len(memory) :]


def test_a_ring_for_a_number_of_episodes_grows_with_their_length() -> None:
    """Short first episodes do not keep long ones out: as many are held as was asked for, as simulusion does."""
    memory = Memory(5, seed=0)
    memory.append(episode(0, 1))
    small = memory.nbytes
    memory.append([episode(1000 * number, 300) for number in range(1, 5)])
    assert memory.eps_lengths == [1, 300, 300, 300, 300]
    assert memory.nbytes > small
    assert read(memory.episodes[0].x, 1).tolist() == [0, 1]


def test_clearing_the_views_clears_the_memory() -> None:
    """Simulusion's own loader empties the two deques; here it empties the memory."""
    for name in ("episodes", "eps_lengths"):
        memory = Memory(2)
        memory.append(episode(0, 2))
        getattr(memory, name).clear()
        assert (len(memory), memory.size, list(memory.episodes)) == (0, 0, [])


@pytest.mark.parametrize(
    ("options", "match"),
    [({}, "size: give"), ({"size": 0}, "size: expected"), ({"size": 1, "draw": "all"}, "draw: expected")],
)
def test_senseless_memories_are_refused(options: Any, match: str) -> None:
    """The text names the argument."""
    with pytest.raises(ValueError, match=match):
        Memory(**options)


@pytest.mark.parametrize("arguments", [(0,), (True,), (1.5,), (1, 0)])
def test_senseless_samples_are_refused(arguments: Any) -> None:
    """A batch or a window needs a whole number of at least 1."""
    memory = Memory(1)
    memory.append(episode(0, 2))
    with pytest.raises(SchemaError, match="expected a whole number"):
        memory.sample(*arguments)


def test_the_global_generator_is_not_used() -> None:
    """Two memories of one seed draw alike, and NumPy's own generator stays where it was."""
    before = np.random.get_state()[1].copy()  # noqa: NPY002, the one that must not move
    drawn = []
    for _ in range(2):
        memory = Memory(2, seed=7)
        memory.append([episode(0, 30), episode(100, 40)])
        drawn.append(read(memory.sample(20, 3)[0][0], 2))
    assert (drawn[0] == drawn[1]).all()
    assert (np.random.get_state()[1] == before).all()  # noqa: NPY002


def test_tensors_are_taken() -> None:
    """Observations and actions may be tensors, as the original demands."""
    torch = pytest.importorskip("torch")
    made = Episode()
    made.append(torch.ones(3), torch.zeros(2), torch.tensor(0.5), False)
    made.terminate(torch.zeros(3))
    memory = Memory(1, seed=0)
    memory.append(made)
    (x, u, r, _), _ = memory.sample(2)
    assert (x.shape, u.shape, r.tolist()) == ((2, 2, 3), (2, 2), [0.5, 0.5])
