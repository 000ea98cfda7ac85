"""Every Gymnasium space with a fixed shape becomes fields, and every other one is refused by its path."""

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.wrappers import FlattenObservation, FrameStackObservation, NormalizeObservation, TimeLimit

from ringfence import Field, Replay, Schema, SchemaError

BOX = spaces.Box(-1, 1, (3,), np.float32)
PICTURE = spaces.Box(0, 255, (6, 5), np.uint8)
GRAPH = spaces.Graph(node_space=BOX, edge_space=None)
REAL = Field((3,), np.float32)


class Noise(gymnasium.Env):
    """An environment whose observations are random, and that goes on for ever."""

    def __init__(self, observation_space=PICTURE, action_space=None):
        self.observation_space = observation_space
        self.action_space = action_space or spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        """Begin."""
        super().reset(seed=seed, options=options)
        self.observation_space.seed(seed)
        return self.observation_space.sample(), {}

    def step(self, action):
        """Go on."""
        return self.observation_space.sample(), 1.0, False, False, {"action": action}


def fields_of(space):
    """Give the field, or nest of fields, of an observation in this space."""
    return Schema.from_spaces(space, spaces.Discrete(2)).obs


@pytest.mark.parametrize(
    ("space", "field"),
    [
        (BOX, REAL),
        (PICTURE, Field((6, 5), np.uint8)),
        (spaces.Box(0, 1, (), np.float32), Field((), np.float32)),
        (spaces.Box(0, 1, (2, 3), np.float16), Field((2, 3), np.float16)),
        (spaces.Box(-9, 9, (2,), np.int64), Field((2,), np.int64)),
        (spaces.Box(0, 1, (4,), np.int8), Field((4,), np.int8)),
        (spaces.Discrete(7), Field((), np.int64)),
        (spaces.Discrete(7, start=-3), Field((), np.int64)),
        (spaces.MultiDiscrete([3, 4]), Field((2,), np.int64)),
        (spaces.MultiDiscrete([[3, 4], [5, 6]], dtype=np.int32), Field((2, 2), np.int32)),
        (spaces.MultiBinary(5), Field((5,), np.int8)),
        (spaces.MultiBinary([2, 3]), Field((2, 3), np.int8)),
    ],
    ids=lambda value: str(value) if isinstance(value, spaces.Space) else "",
)
def test_every_space_of_fixed_shape_becomes_a_field(space, field):
    """Box, Discrete, MultiDiscrete and MultiBinary give their own shape and dtype, and their samples can be stored."""
    schema = Schema.from_spaces(space, space)

    assert schema.obs == schema.action == field
    replay = Replay(schema, capacity=4, seed=0)
    value = space.sample()
    replay.add(value, value, 1.0, value, False)
    assert np.array_equal(replay.sample(1).obs[0], value)
    assert np.array_equal(replay.sample(1).action[0], value)


def test_nested_spaces_become_nested_fields():
    """Dict and Tuple spaces, as deep as they go, keep their nesting, and their samples can be stored."""
    space = spaces.Dict({"pair": spaces.Tuple([BOX, spaces.Dict({"deep": spaces.MultiBinary(2)})]), "picture": PICTURE})
    schema = Schema.from_spaces(space, spaces.Tuple([spaces.Discrete(2), BOX]))

    assert schema.obs == {"pair": (REAL, {"deep": Field((2,), np.int8)}), "picture": Field((6, 5), np.uint8)}
    assert schema.action == (Field((), np.int64), REAL)
    replay = Replay(schema, capacity=4, seed=0)
    value = space.sample()
    replay.add(value, (1, np.zeros(3, np.float32)), 1.0, value, False)
    batch = replay.sample(2)
    assert np.array_equal(batch.obs["pair"][1]["deep"][0], value["pair"][1]["deep"])
    assert np.array_equal(batch.next_obs["picture"][1], value["picture"])


@pytest.mark.parametrize(
    ("space", "path", "kind"),
    [
        (spaces.Text(5), "obs", "Text"),
        (GRAPH, "obs", "Graph"),
        (spaces.Sequence(BOX), "obs", "Sequence"),
        (spaces.OneOf([BOX, PICTURE]), "obs", "OneOf"),
        (spaces.Dict({"a": BOX, "said": spaces.Text(5)}), r"obs\.said", "Text"),
        (spaces.Tuple([BOX, spaces.Dict({"net": GRAPH})]), r"obs\.1\.net", "Graph"),
        (spaces.Dict({"x": spaces.Dict({"y": spaces.Tuple([spaces.Sequence(BOX)])})}), r"obs\.x\.y\.0", "Sequence"),
        ("a box", "obs", "str"),
        (None, "obs", "NoneType"),
    ],
    ids=str,
)
def test_spaces_without_a_fixed_shape_are_refused_by_path(space, path, kind):
    """The text names where in the space the part lies, what it is, and what can be stored."""
    with pytest.raises(SchemaError, match=f"^{path}: an? {kind} .*Box, Discrete"):
        Schema.from_spaces(space, spaces.Discrete(2))


def test_action_spaces_without_a_fixed_shape_are_refused_by_path():
    """Actions obey the same rule, under their own name."""
    with pytest.raises(SchemaError, match=r"^action\.say: a Text space"):
        Schema.from_spaces(BOX, spaces.Dict({"say": spaces.Text(3)}))


@pytest.mark.parametrize("shape", [(0,), (3, 0)])
def test_spaces_that_hold_nothing_are_refused_by_path(shape):
    """A Box without elements is refused by where it lies."""
    space = spaces.Dict({"a": BOX, "void": spaces.Box(-1, 1, shape)})
    with pytest.raises(SchemaError, match=r"obs\.void.*: expected sizes of 1 or more"):
        Schema.from_spaces(space, spaces.Discrete(2))


def test_float64_becomes_float32_unless_kept():
    """By rule float64 is stored as float32, in observations and actions; ``keep_float64`` keeps both."""
    wide = spaces.Dict({"x": spaces.Box(-1, 1, (3,), np.float64), "n": spaces.Box(0, 9, (), np.int64)})
    action = spaces.Box(-1, 1, (2,), np.float64)

    usual = Schema.from_spaces(wide, action)
    kept = Schema.from_spaces(wide, action, keep_float64=True)

    assert usual.obs["x"].dtype == usual.action.dtype == np.float32
    assert kept.obs["x"].dtype == kept.action.dtype == np.float64
    assert usual.obs["n"].dtype == kept.obs["n"].dtype == np.int64


def test_extras_are_passed_on():
    """Declared values beyond Gymnasium's five come along."""
    extras = {"log_prob": Field((), np.float32)}

    assert Schema.from_spaces(BOX, BOX, extras=extras).extras == extras
    assert Schema.from_env(Noise(), extras=extras).extras == extras


@pytest.mark.parametrize(("shape", "axis"), [((4, 6, 5), 0), ((6, 5, 4), -1)])
def test_a_stacked_space_can_be_told(shape, axis):
    """A space of stacks keeps one frame, wherever the frames lie."""
    space = spaces.Box(0, 255, shape, np.uint8)
    schema = Schema.from_spaces(space, BOX, stack=4, stack_axis=axis, pad="zero")

    assert schema.obs == Field((6, 5), np.uint8, stack=4, stack_axis=axis, pad="zero")
    assert schema.obs.presented == shape


@pytest.mark.parametrize(
    ("space", "options", "path"),
    [
        (spaces.Box(0, 1, (4, 6, 5)), {"stack": 3}, "obs"),
        (spaces.Box(0, 1, (4, 6, 5)), {"stack": 4, "stack_axis": -1}, "obs"),
        (spaces.Discrete(4), {"stack": 4}, "obs"),
        (spaces.Dict({"a": spaces.Box(0, 1, (4, 2)), "b": spaces.Box(0, 1, (2, 4))}), {"stack": 4}, r"obs\.b"),
    ],
)
def test_a_space_that_is_not_stacked_as_told_is_refused(space, options, path):
    """Where the told axis does not hold the told number of frames, the part is named."""
    with pytest.raises(SchemaError, match=rf"^{path}: stack=\d on axis -?\d does not match the space's shape"):
        Schema.from_spaces(space, BOX, **options)


def test_an_environment_gives_its_spaces():
    """A single environment is described by its own spaces, a vector environment by those of one of its parts."""
    single = Schema.from_env(Noise(BOX, PICTURE))
    vector = Schema.from_env(gymnasium.vector.SyncVectorEnv([lambda: Noise(BOX, PICTURE)] * 3))

    assert single == vector == Schema(obs=REAL, action=Field((6, 5), np.uint8))


@pytest.mark.parametrize(("padding", "pad"), [("reset", "first"), ("zero", "zero")])
def test_a_frame_stack_is_found(padding, pad):
    """``FrameStackObservation`` is found, also under wrappers that leave observations alone; one frame is kept."""
    env = TimeLimit(FrameStackObservation(Noise(), 4, padding_type=padding), 50)

    assert Schema.from_env(env).obs == Field((6, 5), np.uint8, stack=4, pad=pad)


@pytest.mark.parametrize("space", [spaces.Dict({"a": BOX, "n": spaces.Discrete(3)}), spaces.Tuple([BOX, PICTURE])])
def test_a_frame_stack_of_nested_observations_is_found(space):
    """Every leaf of a stacked nest keeps one frame, and the stacks come back as the environment gave them."""
    env = FrameStackObservation(Noise(space), 3)
    schema = Schema.from_env(env)
    replay = Replay(schema, capacity=32, seed=0)

    assert [leaf.field.stack for leaf in schema.leaves() if leaf.role == "obs"] == [3, 3]
    compare_with_environment(env, replay)


@pytest.mark.parametrize("padding", ["reset", "zero"])
def test_stacks_come_back_as_the_environment_gave_them(padding):
    """With the padding that was found, every presented stack equals the environment's, the first ones too."""
    env = FrameStackObservation(Noise(), 4, padding_type=padding)

    compare_with_environment(env, Replay(Schema.from_env(env), capacity=32, seed=0))


@pytest.mark.parametrize(
    "space", [spaces.Box(1, 2, (3,), np.float32), spaces.Discrete(3, start=2)], ids=["positive box", "shifted discrete"]
)
def test_a_zero_padding_that_is_not_zero_comes_back_too(space):
    """Where a space has no zero, Gymnasium pads with its least value, and that is what the replay gives back."""
    env = FrameStackObservation(Noise(space), 4, padding_type="zero")

    compare_with_environment(env, Replay(Schema.from_env(env), capacity=32, seed=0))


def test_a_frame_stack_inside_a_vector_environment_comes_back():
    """The stacks of a vector environment's parts are stored right, however they are kept."""
    env = gymnasium.vector.SyncVectorEnv([lambda: FrameStackObservation(Noise(), 4)] * 2)
    replay = Replay(Schema.from_env(env), capacity=64, streams=2, seed=0)
    obs, _ = env.reset(seed=0)
    given = {}
    for _ in range(6):
        action = env.action_space.sample()
        later, reward, terminated, truncated, _ = env.step(action)
        ids = replay.extend(obs, action, reward, later, terminated, truncated)
        given |= {int(id): (obs[row].copy(), later[row].copy()) for row, id in enumerate(ids)}
        obs = later.copy()

    batch = replay.sample(64)
    for row, id in enumerate(batch.ids):
        assert np.array_equal(batch.obs[row], given[int(id)][0])
        assert np.array_equal(batch.next_obs[row], given[int(id)][1])


@pytest.mark.parametrize("wrap", [FlattenObservation, NormalizeObservation], ids=["flattened", "normalised as a whole"])
def test_a_frame_stack_that_was_changed_afterwards_is_stored_whole(wrap):
    """A wrapper above the stack may give each stack frames that no other stack has; nothing is guessed then."""
    env = wrap(FrameStackObservation(Noise(), 4))
    schema = Schema.from_env(env)

    assert schema.stack == 1
    assert schema.obs.shape == env.observation_space.shape
    compare_with_environment(env, Replay(schema, capacity=32, seed=0))


def test_a_stack_with_a_padding_of_its_own_is_stored_whole():
    """Frames before the first that are neither zeros nor the first frame could not be given back from one frame."""
    env = FrameStackObservation(Noise(), 4, padding_type=np.full((6, 5), 9, np.uint8))
    schema = Schema.from_env(env)

    assert schema.obs == Field((4, 6, 5), np.uint8)
    compare_with_environment(env, Replay(schema, capacity=32, seed=0))


def test_told_options_win_over_found_ones():
    """``stack=None`` stores found stacks whole, and another padding may be told."""
    env = FrameStackObservation(Noise(), 4)

    assert Schema.from_env(env, stack=None).obs == Field((4, 6, 5), np.uint8)
    assert Schema.from_env(env, pad="zero").obs == Field((6, 5), np.uint8, stack=4, pad="zero")


def compare_with_environment(env, replay):
    """Play two episodes into a replay and demand that each draw gives what the environment gave."""
    given = {}
    for seed, length in enumerate((2, 7)):
        obs, _ = env.reset(seed=seed)
        for left in reversed(range(length)):
            action = env.action_space.sample()
            later, reward, terminated, _, _ = env.step(action)
            id = replay.add(obs, action, reward, later, terminated, not left)
            given[id] = (leaves(obs), leaves(later))
            obs = later

    batch = replay.sample(64)
    assert set(batch.ids.tolist()) == set(given)
    for row, id in enumerate(batch.ids.tolist()):
        for part, expected in zip((batch.obs, batch.next_obs), given[id], strict=True):
            for came, gave in zip(leaves(part), expected, strict=True):
                assert np.allclose(came[row], gave, rtol=1e-6)


def leaves(tree):
    """List copies of the arrays of a nest, by their path."""
    if isinstance(tree, dict):
        return [leaf for key in sorted(tree) for leaf in leaves(tree[key])]
    if isinstance(tree, tuple):
        return [leaf for part in tree for leaf in leaves(part)]
    return [np.array(tree)]
