"""Uniform draws: reproducible from a seed of their own, and they find legal steps however rare those are."""

import numpy as np
import pytest

from ringfence import Field, NotEnoughData, Replay, Schema, Uniform

NUMBER = Field((), np.int64)
PLAIN = Schema(obs=NUMBER, action=NUMBER)
STACKED = Schema(obs=Field((), np.int64, stack=3), action=NUMBER)


def filled(schema=PLAIN, seed=0, streams=1, capacity=200, steps=150):
    """Build a ring with episodes of nine steps in each stream."""
    replay = Replay(schema, capacity=capacity * streams, streams=streams, seed=seed)
    for step in range(steps):
        for stream in range(streams):
            replay.add(step, step, 0.0, step + 1, step % 9 == 8, stream=stream)
    return replay


def seeds():
    """Make one seed of each kind, from one number."""
    return {"int": 7, "SeedSequence": np.random.SeedSequence(7), "Generator": np.random.default_rng(7)}


@pytest.mark.parametrize("kind", ["int", "SeedSequence", "Generator"])
@pytest.mark.parametrize("schema", [PLAIN, STACKED], ids=["plain", "stacked"])
def test_equal_seeds_draw_equally(kind, schema):
    """Two rings of one seed give the same batches, whichever kind of seed it is; each next one differs."""
    one, other = (filled(schema, seeds()[kind], streams=2) for _ in range(2))
    drawn = [one.sample(32).ids.tolist() for _ in range(3)]

    assert drawn == [other.sample(32).ids.tolist() for _ in range(3)]
    assert drawn[0] != drawn[1] != drawn[2]


def test_an_int_a_sequence_and_a_generator_of_it_are_one_seed():
    """A number means the same generator as NumPy's own of that number."""
    assert len({tuple(filled(seed=seed).sample(32).ids) for seed in seeds().values()}) == 1


def test_other_seeds_draw_otherwise():
    """Without a seed each ring draws on its own; with another seed the draws differ."""
    assert len({tuple(filled(seed=seed).sample(32).ids) for seed in (None, None, 1, 2)}) == 4


@pytest.mark.parametrize("sample", [lambda given: filled(seed=given).sample(4), lambda given: own(given).sample(4)])
def test_a_given_generator_is_the_one_used(sample):
    """A Generator given to a ring or to a draw is drawn from, not copied: its owner sees it move on."""
    generator = np.random.default_rng(3)
    before = generator.bit_generator.state
    sample(generator)

    assert generator.bit_generator.state != before


def own(generator):
    """Make a view whose draw has a generator of its own."""
    return filled().transitions(draw=Uniform(generator))


@pytest.mark.parametrize("schema", [PLAIN, STACKED], ids=["plain", "stacked"])
def test_the_global_generator_is_left_alone(schema):
    """Nothing reads or moves ``numpy.random``'s hidden state: seeding it changes no draw, and no draw advances it."""
    np.random.seed(0)  # noqa: NPY002  (the state that must not matter)
    before = np.random.get_state()  # noqa: NPY002
    first = two_views(filled(schema))
    after = np.random.get_state()  # noqa: NPY002

    assert all(np.array_equal(was, now) for was, now in zip(before, after, strict=True))
    np.random.seed(99)  # noqa: NPY002
    assert two_views(filled(schema)) == first


def two_views(replay):
    """Draw from two views of a ring, one of them with a seed of its own."""
    views = replay.transitions(), replay.transitions(3, draw=Uniform(5))
    return [view.sample(32).ids.tolist() for view in views]


def test_a_draw_may_have_a_seed_of_its_own():
    """``Uniform(seed)`` draws the same on any ring of the same contents, whatever that ring's seed."""
    drawn = [filled(seed=seed).transitions(draw=Uniform(5)).sample(32).ids.tolist() for seed in (1, 2)]

    assert drawn[0] == drawn[1]


def test_views_do_not_draw_alike():
    """Views of one ring have generators of their own, and those too follow from its seed."""
    one, other = filled(), filled()
    drawn = [[replay.transitions().sample(32).ids.tolist() for _ in range(2)] for replay in (one, other)]

    assert drawn[0] == drawn[1]
    assert drawn[0][0] != drawn[0][1]


def test_a_view_that_draws_does_not_change_what_others_draw():
    """How often one view samples has no influence on another's batches."""
    busy, quiet = filled(), filled()
    views = [replay.transitions() for replay in (busy, quiet)]
    for _ in range(10):
        busy.sample(8)

    assert views[0].sample(32).ids.tolist() == views[1].sample(32).ids.tolist()


def test_steps_are_drawn_with_replacement():
    """A batch may be larger than what is held."""
    replay = Replay(PLAIN, capacity=10, seed=0)
    replay.add(1, 1, 0.0, 2, False)

    assert replay.sample(50).action.tolist() == [1] * 50


@pytest.mark.parametrize("streams", [1, 3])
def test_rare_legal_steps_are_found(streams):
    """With three legal steps among thousands, all are drawn, and only those, also in large batches."""
    # one long episode whose beginning is gone: of 40 frames back, only the last steps have all
    schema = Schema(obs=Field((), np.int64, stack=2000), action=NUMBER)
    replay = Replay(schema, capacity=2002 * streams, streams=streams, seed=0)
    last = streams - 1
    for step in range(2600):
        replay.add(step, step, 0.0, step + 1, False, stream=last)
    view = replay.transitions()

    legal = view.ids()
    assert (legal & (1 << 44) - 1).tolist() == [2597, 2598, 2599]
    assert set(view.sample(2).ids.tolist()) <= set(legal.tolist())
    ids, counts = np.unique(view.sample(900).ids, return_counts=True)
    assert ids.tolist() == legal.tolist()
    assert counts.min() > 200


def test_no_legal_step_is_told_at_once_with_the_counts():
    """Where steps are held but none is whole, the error says what is held and what a window needs."""
    schema = Schema(obs=Field((), np.int64, stack=30), action=NUMBER)
    replay = Replay(schema, capacity=60, streams=2, seed=0)
    for step in range(100):
        replay.add(step, step, 0.0, step + 1, False)
    replay.clear()
    words = r"0 transitions are held by 2 stream\(s\), .* is 0, and a window needs 29 step\(s\) before"
    with pytest.raises(NotEnoughData, match=words):
        replay.sample(4)


def test_every_held_step_can_be_drawn_as_the_ring_turns():
    """At every moment, the newest and the oldest step among them, exactly what is held is drawn."""
    replay = Replay(PLAIN, capacity=5, seed=0)
    for step in range(40):
        replay.add(step, step, 0.0, step + 1, step % 3 == 2)
        assert set(replay.sample(120).action.tolist()) == set(range(max(0, step - 4), step + 1))
