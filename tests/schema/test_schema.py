"""A schema lists every array of a step under one name each, and refuses what has no place in it."""

import re

import numpy as np
import pytest

from ringfence import Field, Replay, Schema, SchemaError

BYTE = Field((), np.uint8)
REAL = Field((3,), np.float32)
NUMBER = Field((), np.int64)


def test_leaves_are_named_by_their_path():
    """Nested dicts and tuples become leaves with dotted names, in their own order, the reward after the action."""
    schema = Schema(
        obs={"image": BYTE, "pair": (REAL, {"deep": BYTE})},
        action=(NUMBER, REAL),
        extras={"log_prob": Field((), np.float32)},
    )

    names = [(leaf.name, leaf.role) for leaf in schema.leaves()]
    assert names == [
        ("obs.image", "obs"),
        ("obs.pair.0", "obs"),
        ("obs.pair.1.deep", "obs"),
        ("action.0", "action"),
        ("action.1", "action"),
        ("reward", "reward"),
        ("log_prob", "extra"),
    ]


def test_the_reward_is_one_float32_unless_given():
    """The usual reward needs no words; another one may be declared."""
    assert Schema(obs=BYTE, action=NUMBER).reward == Field((), np.float32)
    assert Schema(obs=BYTE, action=NUMBER, reward=Field((2,), np.float64)).reward == Field((2,), np.float64)


def test_the_longest_stack_counts():
    """A window has to reach back as far as the longest stack of any observation."""
    schema = Schema(obs=(Field((), np.uint8, stack=2), Field((), np.uint8, stack=5), BYTE), action=NUMBER)

    assert schema.stack == 5
    assert Schema(obs=BYTE, action=NUMBER).stack == 1


RESERVED = ["obs", "action", "reward", "next_obs", "terminated", "truncated", "stream", "streams", "discount", "steps"]
RESERVED += ["ids", "weights", "probabilities", "is_first", "mask"]


@pytest.mark.parametrize("name", RESERVED)
def test_extras_cannot_take_the_names_of_a_batch(name):
    """A name that a step or a batch already uses is refused."""
    with pytest.raises(SchemaError, match=f"extras: {name} is a name that a batch already uses"):
        Schema(obs=BYTE, action=NUMBER, extras={name: REAL})


@pytest.mark.parametrize(
    "name", ["keys", "values", "items", "get", "torch", "_taken", "_recipes", "self", "a b", "", 5]
)
def test_extras_that_could_not_be_given_or_read_are_refused(name):
    """An extra is a keyword of ``add`` and an attribute of a batch; a name that cannot be both is refused."""
    with pytest.raises(SchemaError, match=re.escape(f"extras: {name}") + "|" + re.escape(f"extras: {name!r}")):
        Schema(obs=BYTE, action=NUMBER, extras={name: REAL})


@pytest.mark.parametrize("name", ["records", "ages", "marks", "rounding", "reward_", "obs_"])
def test_extras_may_be_named_like_parts_of_the_memory(name):
    """What the ring calls its own parts takes no name from the caller: a big extra of that name is stored right."""
    schema = Schema(obs=NUMBER, action=NUMBER, extras={name: Field((200,), np.float32)})
    replay = Replay(schema, capacity=8, seed=0)
    for step in range(30):
        replay.add(step, 0, 0.0, step + 1, step % 5 == 4, **{name: np.full(200, step)})

    batch = replay.sample(64)
    assert (batch[name] == batch.obs[:, None]).all()
    assert (batch.next_obs == batch.obs + 1).all()
    assert sum(line.nbytes for line in replay.plan.lines) == replay.nbytes


@pytest.mark.parametrize(
    "parts",
    [
        {"obs": {"a.b": BYTE, "a": {"b": REAL}}},
        {"obs": {1: BYTE, "1": REAL}},
        {"action": {"x.0": BYTE, "x": (REAL,)}},
    ],
)
def test_two_leaves_of_one_name_are_refused(parts):
    """Where two paths read the same, errors and plans could not tell them apart."""
    with pytest.raises(SchemaError, match=r"(obs|action)\.\S+"):
        Schema(**{"obs": BYTE, "action": NUMBER, **parts})


def test_an_extra_may_not_shadow_a_leaf():
    """An extra whose name is a leaf's path is refused."""
    with pytest.raises(SchemaError, match=r"obs\.a"):
        Schema(obs={"a": BYTE}, action=NUMBER, extras={"obs.a": REAL})


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ({"obs": np.uint8}, "obs: expected a Field, or a dict or tuple of them, got"),
        ({"obs": {"a": (BYTE, None)}}, "obs.a.1: expected a Field, or a dict or tuple of them, got None"),
        ({"action": [NUMBER]}, "action: expected a Field, or a dict or tuple of them, got"),
        ({"extras": {"log_prob": np.float32}}, "log_prob: expected a Field"),
        ({"obs": {}}, "obs: has no field"),
        ({"obs": {"a": ()}}, "obs: has no field"),
        ({"action": ()}, "action: has no field"),
        ({"action": Field((), np.uint8, stack=2)}, "action: only observations can be stacked"),
        ({"reward": Field((), np.float32, stack=2)}, "reward: only observations can be stacked"),
        ({"extras": {"mood": Field((), np.float32, stack=2)}}, "mood: only observations can be stacked"),
    ],
)
def test_parts_that_are_no_fields_are_refused(parts, words):
    """What is no field, holds none or is stacked where nothing is, is refused by its path."""
    with pytest.raises(SchemaError, match=re.escape(words)):
        Schema(**{"obs": BYTE, "action": NUMBER, **parts})


@pytest.mark.parametrize(
    ("parts", "name"),
    [
        ({"extras": {"mood": {"good": REAL}}}, "mood"),
        ({"reward": {"x": REAL}}, "reward"),
        ({"reward": (REAL,)}, "reward"),
    ],
)
def test_only_observations_and_actions_nest(parts, name):
    """A reward or an extra is one field, and a nest of them is refused when it is declared."""
    with pytest.raises(SchemaError, match=f"{name}.*: expected "):
        Schema(obs=BYTE, action=NUMBER, **parts)


def test_schemas_compare_field_by_field():
    """Equal schemas are equal and hash alike, whichever way they were made."""
    left = Schema(obs={"a": BYTE, "b": REAL}, action=NUMBER)

    assert left == Schema(obs={"a": Field((), "u1"), "b": Field([3], "f4")}, action=Field((), int))
    assert hash(left) == hash(Schema(obs={"a": BYTE, "b": REAL}, action=NUMBER))
    assert left != Schema(obs={"a": BYTE, "c": REAL}, action=NUMBER)
    assert left != Schema(obs={"a": BYTE, "b": REAL}, action=NUMBER, extras={"c": REAL})
    assert left != "obs"


def test_a_schema_is_not_changed_by_what_happens_to_its_parts():
    """The dicts that described the step may change afterwards; the schema does not."""
    obs, extras = {"a": BYTE}, {"log_prob": Field((), np.float32)}
    schema = Schema(obs=obs, action=NUMBER, extras=extras)

    obs["b"] = REAL
    extras.clear()

    replay = Replay(schema, capacity=4)
    replay.add({"a": 1}, 0, 0.0, {"a": 2}, False, log_prob=-1.0)
    assert dict(replay.sample(1).obs).keys() == {"a"}


def test_a_schema_reads_as_the_list_of_its_fields():
    """Its text lists every leaf with shape and dtype."""
    text = repr(Schema(obs={"image": Field((84, 84), np.uint8, stack=4)}, action=NUMBER))

    assert text == "Schema(obs.image (84, 84) uint8, stack 4; action () int64; reward () float32)"
