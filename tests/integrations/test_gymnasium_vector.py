"""The recorder around vector environments, in all three autoreset modes."""

import gc
import weakref
from functools import partial
from itertools import chain, product

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.error import ResetNeeded
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv, VectorEnv, VectorWrapper
from gymnasium.wrappers import FrameStackObservation
from gymnasium.wrappers.vector import DictInfoToList, RecordEpisodeStatistics
from tests.integrations.chronicle import Chronicle, contents, entries, lengths

import ringfence as rf
from ringfence.integrations.gymnasium import Recorder, VectorRecorder

# Workers are forked: they are ready in milliseconds, and run nothing but the environments above.
pytestmark = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")

MODES = list(AutoresetMode)
NEXT, SAME, DISABLED = AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP, AutoresetMode.DISABLED
KINDS = {
    "sync": SyncVectorEnv,
    "sync-reused-batch": partial(SyncVectorEnv, copy=False),
    "async-shared": partial(AsyncVectorEnv, copy=False),
    "async-pipes": partial(AsyncVectorEnv, shared_memory=False),
}


def chronicles(mode, count=3, kind=SyncVectorEnv, **options):
    """Give a vector environment of chronicles 0 to `count - 1`."""
    return kind([partial(Chronicle, number, **options) for number in range(count)], autoreset_mode=mode)


def recorder_of(env, extras=None, **options):
    """Give a recorder around the vector environment, and its replay."""
    replay = rf.Replay(rf.Schema.from_env(env, extras=extras), capacity=3000, streams=env.num_envs, seed=0)
    return Recorder(env, replay, **options), replay


def play(env, steps, mode, seed=0):
    """Drive a vector environment as a user does: by mask in the mode DISABLED, not at all in the others."""
    rng = np.random.default_rng(seed)
    env.reset(seed=seed)
    for _ in range(steps):
        _, _, terminated, truncated, _ = env.step(rng.integers(2, size=env.num_envs))
        ended = terminated | truncated
        if mode is DISABLED and ended.any():
            env.reset(options={"reset_mask": ended})


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", KINDS)
def test_what_happened_is_recorded_in_order(kind, mode):
    """Each stream holds exactly the steps its sub-environment made; no reset row, each end with its true successor."""
    env = chronicles(mode, kind=KINDS[kind])
    recorder, replay = recorder_of(env)
    play(recorder, 60, mode)
    histories = dict(enumerate(env.call("history")))
    env.close()
    assert entries(replay) == histories
    assert [list(replay.episode_lengths(stream=i)) for i in histories] == [lengths(histories[i]) for i in histories]
    assert replay.stats()["breaks"] == 0


@pytest.mark.parametrize("mode", [NEXT, DISABLED])
def test_reused_arrays_of_the_environments(mode):
    """Sub-environments that write all observations into one array are recorded right."""
    env = chronicles(mode, reuse=True)
    recorder, replay = recorder_of(env)
    play(recorder, 60, mode)
    assert entries(replay) == dict(enumerate(env.call("history")))


@pytest.mark.parametrize("nested", [False, True])
def test_final_observations_that_the_reset_has_overwritten(nested):
    """In the mode SAME_STEP a reused array holds the reset's observation already, and is refused as the final one."""
    recorder, replay = recorder_of(chronicles(SAME, reuse=True, nested=nested, length=1))
    recorder.reset()
    with pytest.raises(rf.SchemaError, match="final_obs: environment 0 writes every observation into one array"):
        recorder.step(np.zeros(3, np.int64))
    assert len(replay) == 0


@pytest.mark.parametrize("mode", MODES)
def test_nested_observations_are_recorded(mode):
    """Dicts with tuples in them are taken row by row, the final ones too."""
    env = chronicles(mode, nested=True)
    recorder, replay = recorder_of(env)
    play(recorder, 40, mode)
    truth = [entry for history in env.call("history") for entry in history]
    for step, entry in zip(contents(replay), truth, strict=True):
        assert step["obs"]["place"].tolist() == list(entry.obs)
        assert step["next_obs"]["place"].tolist() == list(entry.next_obs)
        assert step["next_obs"]["parts"][0] == entry.next_obs[1]
        assert step["next_obs"]["parts"][1].tolist() == [2 * value for value in entry.next_obs]


@pytest.mark.parametrize("mode", MODES)
def test_all_end_at_once(mode):
    """Episodes in lockstep: the row of resets only adds nothing at all."""
    env = chronicles(mode, length=3)
    recorder, replay = recorder_of(env)
    play(recorder, 16, mode)
    assert len(replay) == 3 * (12 if mode is NEXT else 16)
    assert entries(replay) == dict(enumerate(env.call("history")))


@pytest.mark.parametrize("mode", MODES)
def test_a_reset_of_all_in_mid_episode(mode):
    """A user's reset of all begins anew everywhere; ends that stood before it leave no row to skip."""
    env = chronicles(mode)
    recorder, replay = recorder_of(env)
    for seed in range(8):
        play(recorder, 5 + seed, mode, seed)
    assert entries(replay) == dict(enumerate(env.call("history")))


def test_async_without_shared_memory_resets_twice():
    """Such an environment resets ended workers once more after a user's reset; that row is no transition either."""
    env = chronicles(NEXT, kind=KINDS["async-pipes"], length=2)
    recorder, replay = recorder_of(env)
    for _ in range(3):
        play(recorder, 2, NEXT)
    play(recorder, 4, NEXT)
    histories = dict(enumerate(env.call("history")))
    env.close()
    assert entries(replay) == histories


def test_the_loop_sees_what_the_environment_gives():
    """The recorder is a vector wrapper that hands through the very objects of the environment."""
    env = chronicles(SAME, kind=KINDS["sync-reused-batch"], length=1)
    recorder, _ = recorder_of(env)
    assert isinstance(recorder, VectorWrapper)
    assert isinstance(recorder, VectorRecorder)
    assert recorder.unwrapped is env
    recorder.reset(seed=[1, 2, 3])
    obs, reward, terminated, truncated, infos = recorder.step(np.zeros(3, np.int64))
    assert obs[:, 1:].tolist() == [[2, 0]] * 3
    assert reward.tolist() == [101] * 3
    assert (terminated ^ truncated).all()
    assert sorted(infos) == ["_final_info", "_final_obs", "final_info", "final_obs"]


def test_stepping_an_ended_environment_is_refused():
    """In the mode DISABLED the sub-environments that must be reset are named, and none is stepped."""
    env = chronicles(DISABLED)
    recorder, replay = recorder_of(env)
    actions = np.zeros(3, np.int64)
    with pytest.raises(ResetNeeded, match="no episode was begun"):
        recorder.step(actions)
    recorder.reset()
    ended = np.zeros(3, np.bool_)
    while not ended.any():
        _, _, terminated, truncated, _ = recorder.step(actions)
        ended = terminated | truncated
    before = len(replay)
    indices = np.flatnonzero(ended).tolist()
    with pytest.raises(ResetNeeded, match=rf"environments \[{', '.join(map(str, indices))}\] have ended"):
        recorder.step(actions)
    recorder.reset(options={"reset_mask": ~ended})
    with pytest.raises(ResetNeeded, match="have ended"):
        recorder.step(actions)
    recorder.reset(options={"reset_mask": ended})
    recorder.step(actions)
    assert len(replay) == before + 3
    assert entries(replay) == dict(enumerate(env.call("history")))


EXTRAS = {"t": rf.Field((), np.int64), "place": rf.Field((2,), np.float32), "won": rf.Field((), np.bool_)}


def infos_of(episode, t):
    """Give an int, an array, and the numpy bool that Gymnasium keeps in an array of objects."""
    return {"t": t, "place": np.array([episode, t], np.float32), "won": np.bool_(t % 2), "unasked": "dropped"}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", ["sync", "async-shared"])
def test_declared_info_is_that_of_the_step(kind, mode):
    """At an end the extras are those of the last step, never those of the reset that came with it."""
    env = chronicles(mode, kind=KINDS[kind], infos=infos_of)
    recorder, replay = recorder_of(env, EXTRAS)
    play(recorder, 40, mode)
    env.close()
    for step in contents(replay):
        _, episode, t = step["next_obs"].tolist()
        assert step["t"] == t
        assert step["place"].tolist() == [episode, t]
        assert step["won"] == t % 2


@pytest.mark.parametrize("mode", MODES)
def test_missing_info_has_its_default(mode):
    """A key that only some steps set is its default elsewhere, sub-environment by sub-environment."""
    env = chronicles(mode, infos=lambda _, t: {"won": t} if t in (0, 2) else {})
    recorder, replay = recorder_of(env, {"won": rf.Field((), np.int64)}, defaults={"won": -1})
    play(recorder, 40, mode)
    steps = contents(replay)
    assert [int(step["won"]) for step in steps] == [2 if step["next_obs"][2] == 2 else -1 for step in steps]


@pytest.mark.parametrize("mode", MODES)
def test_missing_info_is_refused_naming_the_environment(mode):
    """Without a default the key and the index are named; the step is not recorded, and later ones are."""

    def infos(episode, t):
        return {} if (episode, t) == (1, 1) else {"won": True}

    env = SyncVectorEnv(
        [partial(Chronicle, 0, length=3, infos=infos_of), partial(Chronicle, 1, length=3, infos=infos)],
        autoreset_mode=mode,
    )
    recorder, replay = recorder_of(env, {"won": rf.Field((), np.bool_)})
    recorder.reset()
    actions = np.zeros(2, np.int64)
    with pytest.raises(rf.SchemaError, match="won: declared as an extra but missing in the infos for environment 1"):
        recorder.step(actions)
    assert len(replay) == 0
    recorder.step(actions)
    assert entries(replay) == {i: history[1:] for i, history in enumerate(env.call("history"))}


def test_info_of_differing_shapes_is_refused():
    """Values that do not form one array are named with the environments that gave them."""
    env = chronicles(SAME, infos=lambda _, t: {"path": [0] * t}, length=2)
    recorder, _ = recorder_of(env, {"path": rf.Field((1,), np.int64)}, defaults={"path": [1, 2, 3]})
    env.envs[1].unwrapped.infos = lambda *_: {}
    recorder.reset()
    with pytest.raises(rf.SchemaError, match="path: its values differ in shape between the environments"):
        recorder.step(np.zeros(3, np.int64))


@pytest.mark.parametrize("mode", MODES)
def test_objects_in_info_die(mode):
    """Nothing that came in infos stays referenced after the step."""

    class Thing:
        pass

    things = []

    def infos(episode, t):
        thing = Thing()
        things.append(weakref.ref(thing))
        return {"thing": thing}

    env = chronicles(mode, infos=infos)
    recorder, _ = recorder_of(env)
    play(recorder, 20, mode)
    gc.collect()
    assert len(things) > 60
    assert not any(ref() for ref in things)


@pytest.mark.parametrize("mode", MODES)
def test_stacks_presented_by_the_sub_environments(mode):
    """Sub-environments under FrameStackObservation give the same transitions through a stacked field."""
    env = SyncVectorEnv([lambda: FrameStackObservation(Chronicle(), 3)] * 2, autoreset_mode=mode)
    schema = rf.Schema(obs=rf.Field((3,), np.float32, stack=3), action=rf.Field((), np.int64))
    replay = rf.Replay(schema, capacity=1000, streams=2, seed=0)
    play(Recorder(env, replay), 50, mode)
    truth = [entry for history in env.call("history") for entry in history]
    for step, entry in zip(contents(replay), truth, strict=True):
        _, episode, t = entry.obs
        assert step["obs"].tolist() == [[0, episode, max(t - back, 0)] for back in (2, 1, 0)]
        assert step["next_obs"].tolist() == [[0, episode, max(t + 1 - back, 0)] for back in (2, 1, 0)]


class Scripted(VectorEnv):
    """A vector environment of two that ends at each step and gives the infos it is told to."""

    num_envs = 2
    single_observation_space = spaces.Box(-1, 1, (3,), np.float32)
    single_action_space = spaces.Discrete(2)

    def __init__(self, mode=SAME, infos=None):
        self.metadata = {} if mode is None else {"autoreset_mode": mode}
        self.observation_space = spaces.Box(-1, 1, (2, 3), np.float32)
        self.action_space = spaces.MultiDiscrete([2, 2])
        self.infos = infos or {}

    def reset(self, *, seed=None, options=None):  # noqa: ARG002
        """Give zeros."""
        return np.zeros((2, 3), np.float32), {}

    def step(self, actions):  # noqa: ARG002
        """Give zeros and two ends."""
        return np.zeros((2, 3), np.float32), np.zeros(2), np.ones(2, np.bool_), np.zeros(2, np.bool_), self.infos


def finals(*values):
    """Give infos with these final observations."""
    array = np.full(2, None, dtype=object)
    array[:] = values
    return {"final_obs": array}


@pytest.mark.parametrize(
    ("infos", "text"),
    [
        ({}, "final_obs: missing in the infos for environment 0"),
        (finals(np.ones(3, np.float32), None), "final_obs: missing in the infos for environment 1"),
        (finals(np.ones(3, np.float32), np.ones(1, np.float32)), r"shape \(3,\) and dtype float32 for environment 1"),
        (finals(np.ones(3, np.complex64), None), "expected .* environment 0, got .* complex64"),
        ([{}, {}], "infos: expected a dict of arrays, got list"),
    ],
)
def test_a_final_observation_that_does_not_fit_is_refused(infos, text):
    """In the mode SAME_STEP an end without its observation is refused; nothing is put in its place."""
    recorder, replay = recorder_of(Scripted(infos=infos))
    recorder.reset()
    with pytest.raises(rf.SchemaError, match=text):
        recorder.step(np.zeros(2, np.int64))
    assert len(replay) == 0


def test_the_autoreset_mode_must_be_known():
    """Metadata without a mode are refused unless it is passed; a mode that does not exist always is."""
    with pytest.raises(rf.SchemaError, match=r"the metadata of the environment say None"):
        recorder_of(Scripted(mode=None))
    with pytest.raises(rf.SchemaError, match=r"expected one of .* the argument is 'Never'"):
        recorder_of(Scripted(), autoreset_mode="Never")
    recorder, replay = recorder_of(Scripted(mode=None), autoreset_mode="NextStep")
    recorder.reset()
    recorder.step(np.zeros(2, np.int64))
    recorder.step(np.zeros(2, np.int64))
    assert len(replay) == 2


def test_the_streams_must_be_as_many():
    """A replay with another number of streams, or a stream chosen for a vector, is refused at construction."""
    env = chronicles(NEXT)
    replay = rf.Replay(rf.Schema.from_env(env), capacity=100, streams=4)
    with pytest.raises(rf.SchemaError, match="3 sub-environments and the replay 4 streams"):
        Recorder(env, replay)
    with pytest.raises(TypeError, match="stream= is for one environment"):
        Recorder(env, replay, stream=1)


def test_spaces_that_do_not_fit_are_refused_at_construction():
    """The spaces of one sub-environment are compared with the schema."""
    replay = rf.Replay(rf.Schema(obs=rf.Field((4,), np.float32), action=rf.Field((), np.int64)), 100, streams=3)
    with pytest.raises(rf.SchemaError, match=r"obs: the schema has \(4,\) float32 and the environment shape \(3,\)"):
        Recorder(chronicles(NEXT), replay)


@pytest.mark.parametrize("mode", MODES)
def test_lists_of_infos_outside(mode):
    """A wrapper around the recorder may turn the infos into lists."""
    env = chronicles(mode)
    recorder, replay = recorder_of(env)
    play(DictInfoToList(recorder), 40, mode)
    assert entries(replay) == dict(enumerate(env.call("history")))


@pytest.mark.parametrize("mode", [NEXT, SAME])
def test_statistics_inside(mode):
    """The vector RecordEpisodeStatistics inside changes nothing in what is recorded."""
    env = chronicles(mode)
    statistics = RecordEpisodeStatistics(env)
    recorder, replay = recorder_of(statistics)
    play(recorder, 40, mode)
    assert statistics.episode_count > 10
    assert entries(replay) == dict(enumerate(env.call("history")))


CART_POLES = [*product(["sync", "async"], MODES), ("vector_entry_point", NEXT)]


@pytest.mark.parametrize(("kind", "mode"), CART_POLES)
def test_cart_pole(kind, mode):
    """The transitions of CartPole are those that a careful user would have put together in the loop."""
    vector_kwargs = {} if kind == "vector_entry_point" else {"autoreset_mode": mode}
    env = gymnasium.make_vec("CartPole-v1", num_envs=4, vectorization_mode=kind, vector_kwargs=vector_kwargs)
    recorder, replay = recorder_of(env)
    truth = careful_loop(recorder, 100, mode)
    recorder.close()
    steps = contents(replay)
    assert len(steps) == sum(map(len, truth))
    for step, expected in zip(steps, chain(*truth), strict=True):
        for name, value in expected.items():
            assert np.array_equal(step[name], value), name


def careful_loop(env, steps, mode):
    """Put the transitions together by hand, one list a sub-environment."""
    rng = np.random.default_rng(0)
    truth = [[] for _ in range(env.num_envs)]
    obs, _ = env.reset(seed=0)
    obs, just_reset = obs.copy(), [False] * env.num_envs
    for _ in range(steps):
        actions = rng.integers(2, size=env.num_envs)
        after, reward, terminated, truncated, infos = env.step(actions)
        for i in range(env.num_envs):
            end = terminated[i] or truncated[i]
            final = infos["final_obs"][i] if end and mode is SAME else after[i]
            if not just_reset[i]:
                row = {"obs": obs[i], "action": actions[i], "reward": reward[i], "next_obs": final.copy()}
                truth[i].append({**row, "terminated": terminated[i], "truncated": truncated[i]})
            just_reset[i] = end and mode is NEXT
        if mode is DISABLED and (terminated | truncated).any():
            after, _ = env.reset(options={"reset_mask": terminated | truncated})
        obs = after.copy()
    return truth
