"""The recorder around one environment; `test_gymnasium_vector.py` has the vector environments."""

import gc
import weakref

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.error import ResetNeeded
from gymnasium.wrappers import Autoreset, FrameStackObservation, RecordEpisodeStatistics, TimeLimit
from tests.integrations.chronicle import Chronicle, contents, entries, lengths

import ringfence as rf
from ringfence.integrations.gymnasium import Recorder, SingleRecorder


def recorder_of(env, extras=None, **options):
    """Give a recorder around the environment, and its replay."""
    replay = rf.Replay(rf.Schema.from_env(env, extras=extras), capacity=1000, seed=0)
    return Recorder(env, replay, **options), replay


def play(env, steps, seed=0):
    """Drive a single environment as a user does, with random actions."""
    rng = np.random.default_rng(seed)
    obs, info = env.reset()
    for _ in range(steps):
        obs, _, terminated, truncated, info = env.step(int(rng.integers(4)))
        if terminated or truncated:
            obs, info = env.reset()
    return obs, info


@pytest.mark.parametrize("reuse", [False, True])
def test_what_happened_is_recorded_in_order(reuse):
    """Each step is recorded once with its true successor, also where the environment reuses its array."""
    env = Chronicle(reuse=reuse)
    recorder, replay = recorder_of(env)
    play(recorder, 200)
    assert entries(replay) == {0: env.history}
    assert list(replay.episode_lengths()) == lengths(env.history)
    assert 1 in lengths(env.history)
    assert {(entry.terminated, entry.truncated) for entry in env.history} == {(0, 0), (1, 0), (0, 1)}


def test_the_loop_sees_what_the_environment_gives():
    """The recorder is a wrapper that hands through the very objects of the environment."""
    env = Chronicle(reuse=True, infos=lambda _, t: {"t": t})
    recorder, _ = recorder_of(env)
    assert isinstance(recorder, gymnasium.Wrapper)
    assert isinstance(recorder, SingleRecorder)
    assert recorder.unwrapped is env
    obs, info = recorder.reset(seed=3)
    assert obs is env.buffer
    assert info == {"t": 0}
    obs, reward, _, _, info = recorder.step(1)
    assert obs is env.buffer
    assert (reward, info) == (101.0, {"t": 1})


def test_nested_observations_are_recorded():
    """Dicts with tuples in them come out as they went in, each leaf copied for the next step."""
    env = Chronicle(nested=True, reuse=True)
    recorder, replay = recorder_of(env)
    play(recorder, 50)
    for step, entry in zip(contents(replay), env.history, strict=True):
        assert step["obs"]["place"].tolist() == list(entry.obs)
        assert step["obs"]["parts"][0] == entry.obs[1]
        assert step["next_obs"]["parts"][1].tolist() == [2 * value for value in entry.next_obs]


def test_a_reset_in_mid_episode_begins_anew():
    """The steps before it keep their successors and their flags; no episode goes on across it."""
    env = Chronicle(length=5)
    recorder, replay = recorder_of(env)
    recorder.reset()
    recorder.step(0)
    recorder.step(1)
    recorder.reset()
    recorder.step(2)
    assert entries(replay) == {0: env.history}
    assert not any(entry.terminated or entry.truncated for entry in env.history)
    assert list(replay.episode_lengths()) == [2, 1]
    assert replay.stats()["breaks"] == 1


def test_stepping_on_after_the_end_is_refused():
    """Without a reset after the end the environment is not stepped and nothing is recorded."""
    env = Chronicle(length=1)
    recorder, replay = recorder_of(env)
    with pytest.raises(ResetNeeded, match="call reset"):
        recorder.step(0)
    recorder.reset()
    recorder.step(0)
    with pytest.raises(ResetNeeded, match="the episode has ended"):
        recorder.step(0)
    assert len(env.history) == len(replay) == 1


def test_autoreset_row_is_no_transition():
    """Under the Autoreset wrapper the step that only resets is left out."""
    env = Chronicle()
    recorder, replay = recorder_of(Autoreset(env))
    recorder.reset()
    for _ in range(100):
        recorder.step(0)
    assert len(env.history) < 100
    assert entries(replay) == {0: env.history}


def test_declared_info_is_copied_and_the_rest_dies():
    """Extras are read from info by name and by value; nothing else in info stays alive."""

    class Thing:
        pass

    things = []
    shared = np.zeros(2, np.float32)

    def infos(episode, t):
        shared[:] = episode, t
        thing = Thing()
        things.append(weakref.ref(thing))
        return {"place": shared, "thing": thing, "count": t}

    env = Chronicle(infos=infos)
    recorder, replay = recorder_of(env, {"place": rf.Field((2,), np.float32), "count": rf.Field((), np.int64)})
    play(recorder, 30)
    gc.collect()
    assert not any(ref() for ref in things)
    for step, entry in zip(contents(replay), env.history, strict=True):
        assert step["place"].tolist() == list(entry.next_obs[1:])
        assert step["count"] == entry.next_obs[2]


def test_missing_info_is_refused_unless_it_has_a_default():
    """A declared extra that info lacks is named; a default stands in only where it is missing."""
    extras = {"won": rf.Field((), np.bool_)}

    def infos(episode, t):
        return {"won": True} if t == 2 else {}

    recorder, replay = recorder_of(Chronicle(infos=infos, length=2), extras)
    recorder.reset()
    with pytest.raises(rf.SchemaError, match="won: declared as an extra but missing in info"):
        recorder.step(0)
    assert len(replay) == 0
    recorder, replay = recorder_of(Chronicle(infos=infos, length=2), extras, defaults={"won": False})
    play(recorder, 4)
    assert [bool(step["won"]) for step in contents(replay)] == [False, True, False, True]


def test_a_default_for_an_undeclared_name_is_refused():
    """A default must belong to an extra of the schema."""
    with pytest.raises(rf.SchemaError, match=r"defaults: \['won'\] are not extras"):
        recorder_of(Chronicle(), defaults={"won": False})


def test_a_refused_step_spoils_no_other():
    """After a step that the replay refused, the next one has its own observation and begins anew."""
    env = Chronicle(length=5, infos=lambda _, t: {} if t == 2 else {"t": t})
    recorder, replay = recorder_of(env, {"t": rf.Field((), np.int64)})
    recorder.reset()
    recorder.step(0)
    with pytest.raises(rf.SchemaError, match="t: declared"):
        recorder.step(1)
    recorder.step(2)
    recorder.step(3)
    assert entries(replay) == {0: [env.history[0], *env.history[2:]]}
    assert list(replay.episode_lengths()) == [1, 2]


def test_frame_stack_wrapper_with_a_stacked_field():
    """Under FrameStackObservation one frame a step is kept, and the sampled stack is the one presented."""
    recorder, replay = recorder_of(FrameStackObservation(Chronicle(), 3))
    assert replay.schema.obs.stack == 3
    seen = []
    obs, _ = recorder.reset()
    for _ in range(100):
        after, _, terminated, truncated, _ = recorder.step(0)
        seen.append((obs.tolist(), after.tolist()))
        obs = recorder.reset()[0] if terminated or truncated else after
    assert [(step["obs"].tolist(), step["next_obs"].tolist()) for step in contents(replay)] == seen


def test_with_the_statistics_wrapper():
    """RecordEpisodeStatistics inside and outside changes nothing in what is recorded."""
    env = Chronicle()
    inner = RecordEpisodeStatistics(env)
    recorder, replay = recorder_of(inner)
    play(RecordEpisodeStatistics(recorder, stats_key="outer"), 100)
    assert entries(replay) == {0: env.history}
    assert list(inner.length_queue)[-1] in lengths(env.history)


def test_float64_observations_continue_their_episode():
    """Observations of float64 are stored as float32, and no step is taken for a break by that."""
    rng = np.random.default_rng(0)

    class Drift(Chronicle):
        observation_space = spaces.Box(-np.inf, np.inf, (3,), np.float64)

        def _observe(self):
            return rng.standard_normal(3)

    env = Drift()
    env.observation_space = Drift.observation_space
    recorder, replay = recorder_of(env)
    play(recorder, 100)
    assert replay.stats()["breaks"] == 0
    assert list(replay.episode_lengths()) == lengths(env.history)


def test_several_environments_share_a_replay():
    """Each writes the stream it was given; without one, or with one that is not there, it is refused."""
    envs = [Chronicle(0), Chronicle(1)]
    replay = rf.Replay(rf.Schema.from_env(envs[0]), capacity=1000, streams=2, seed=0)
    for stream, env in enumerate(envs):
        play(Recorder(env, replay, stream=stream), 20)
    assert entries(replay) == {0: envs[0].history, 1: envs[1].history}
    assert list(replay.episode_lengths(stream=1)) == lengths(envs[1].history)
    with pytest.raises(rf.SchemaError, match="2 streams and this is one environment: pass stream="):
        Recorder(envs[0], replay)
    with pytest.raises(rf.SchemaError, match="stream: expected one of 0 to 1, got 2"):
        Recorder(envs[0], replay, stream=2)


def schema_of(obs, action=None):
    """Give a schema with these fields."""
    return rf.Schema(obs=obs, action=action or rf.Field((), np.int64))


FLAT, VECTOR = rf.Field((), np.float32), rf.Field((3,), np.float32)


@pytest.mark.parametrize(
    ("schema", "nested", "text"),
    [
        (schema_of(FLAT), False, r"obs: the schema has \(\) float32 and the environment shape \(3,\)"),
        (schema_of({"place": VECTOR}), False, "obs: the schema has obs.place and the environment obs"),
        (schema_of(VECTOR), True, "obs: the schema has obs and the environment obs.place, obs.parts.0, obs.parts.1"),
        (schema_of({"place": VECTOR, "parts": FLAT}), True, "obs: the schema has obs.place, obs.parts and"),
        (schema_of({"place": VECTOR, "parts": (FLAT, FLAT)}), True, r"obs.parts.1: the schema has \(\) float32"),
        (schema_of(VECTOR, VECTOR), False, r"action: the schema has \(3,\) float32 and the environment shape \(\)"),
    ],
)
def test_spaces_that_do_not_fit_are_refused_at_construction(schema, nested, text):
    """Keys and shapes that differ between the schema and the environment are named before the first step."""
    replay = rf.Replay(schema, capacity=10)
    with pytest.raises(rf.SchemaError, match=text):
        Recorder(Chronicle(nested=nested), replay)


def test_arguments_of_the_other_kind_are_refused():
    """What is no environment, and an autoreset mode for a single one, are refused by name."""
    replay = rf.Replay(rf.Schema.from_env(Chronicle()), capacity=10)
    with pytest.raises(TypeError, match=r"env: expected a gymnasium\.Env"):
        Recorder("HalfCheetah-v5", replay)
    with pytest.raises(TypeError, match="autoreset_mode= is for vector environments"):
        Recorder(Chronicle(), replay, autoreset_mode="NextStep")


def test_a_failed_reset_asks_for_another():
    """When the environment's reset raises, no step is recorded from the state that it left."""

    class Flaky(Chronicle):
        def reset(self, *, seed=None, options=None):
            if options:
                raise RuntimeError("no simulator")
            return super().reset(seed=seed)

    recorder, replay = recorder_of(Flaky(length=5))
    recorder.reset()
    with pytest.raises(RuntimeError, match="no simulator"):
        recorder.reset(options={"fail": True})
    with pytest.raises(ResetNeeded, match="call reset"):
        recorder.step(0)
    assert len(replay) == 0


def test_time_limit_truncates_with_the_real_successor():
    """The observation at a truncation is the one that the environment reached, and it is no termination."""
    env = Chronicle(length=100)
    recorder, replay = recorder_of(TimeLimit(env, 7))
    play(recorder, 21)
    steps = contents(replay)
    assert [int(step["next_obs"][2]) for step in steps] == [1, 2, 3, 4, 5, 6, 7] * 3
    assert [bool(step["truncated"]) for step in steps] == [t == 7 for t in [1, 2, 3, 4, 5, 6, 7] * 3]
    assert not any(step["terminated"] for step in steps)


def test_half_cheetah_three_episodes():
    """Three real episodes of 1000 steps are truncated, each with its real last observation."""
    pytest.importorskip("mujoco")
    env = gymnasium.make("HalfCheetah-v5")
    replay = rf.Replay(rf.Schema.from_env(env), capacity=5000, seed=0)
    recorder = Recorder(env, replay)
    env.action_space.seed(0)
    truth = []
    for episode in range(3):
        obs, _ = recorder.reset(seed=episode)
        truncated = False
        while not truncated:
            action = env.action_space.sample()
            after, reward, terminated, truncated, _ = recorder.step(action)
            truth.append((obs, action, reward, after, truncated))
            assert not terminated
            obs = after
    recorder.close()
    assert list(replay.episode_lengths()) == [1000] * 3
    for step, (obs, action, reward, after, truncated) in zip(contents(replay), truth, strict=True):
        assert np.array_equal(step["obs"], obs.astype(np.float32))
        assert np.array_equal(step["action"], action)
        assert step["reward"] == np.float32(reward)
        assert np.array_equal(step["next_obs"], after.astype(np.float32))
        assert (bool(step["terminated"]), bool(step["truncated"])) == (False, truncated)
