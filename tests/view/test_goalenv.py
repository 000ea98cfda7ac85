"""Hindsight on an environment with goals, which has the interface of Gymnasium-Robotics."""

import gymnasium
import numpy as np

from ringfence import Replay, Schema

BITS = 6
EPISODES = 500


class Flip(gymnasium.Env):
    """Bit flipping (Andrychowicz et al. 2017, section 3): reach a pattern by turning one bit a step, -1 until there."""

    def __init__(self):
        bits = gymnasium.spaces.Box(0, 1, (BITS,), np.int8)
        self.observation_space = gymnasium.spaces.Dict(observation=bits, achieved_goal=bits, desired_goal=bits)
        self.action_space = gymnasium.spaces.Discrete(BITS)

    def reset(self, *, seed=None, options=None):
        """Draw a pattern and another one to reach."""
        super().reset(seed=seed, options=options)
        self.bits, self.goal = self.np_random.integers(0, 2, (2, BITS), np.int8)
        self.left = BITS
        return self._seen(), {}

    def step(self, action):
        """Turn a bit."""
        self.bits[action] ^= 1
        self.left -= 1
        reward = float(self.compute_reward(self.bits[None], self.goal[None], {})[0])
        return self._seen(), reward, reward == 0, self.left == 0, {}

    def compute_reward(self, achieved, desired, _info):
        """Pay as Gymnasium-Robotics' environments do, for arrays of goals."""
        return (achieved == desired).all(axis=-1).astype(np.float32) - 1

    def _seen(self):
        return {"observation": self.bits.copy(), "achieved_goal": self.bits.copy(), "desired_goal": self.goal.copy()}


def learned(ratio):
    """Learn bit flipping by Q-learning in a table; give the share of goals that are then reached without exploring."""
    env, rng, weights = Flip(), np.random.default_rng(0), 1 << np.arange(BITS)
    env.reset(seed=0)
    replay = Replay(Schema.from_env(env), capacity=3000, seed=0)
    view = replay.hindsight(
        env.compute_reward, ratio=ratio, gamma=0.95, terminate=lambda a, d: env.compute_reward(a, d, {}) == 0
    )
    values = np.full((2**BITS, 2**BITS, BITS), -10.0)

    def places(obs):
        return obs["observation"] @ weights, obs["desired_goal"] @ weights

    def run(explore):
        obs, _ = env.reset()
        terminated = truncated = False
        while not terminated and not truncated:
            known = values[places(obs)]
            greedy = rng.random() >= explore
            action = int(rng.choice(np.flatnonzero(known == known.max())) if greedy else rng.integers(BITS))
            later, reward, terminated, truncated, _ = env.step(action)
            if explore:
                replay.add(obs, action, reward, later, terminated, truncated)
            obs = later
        return terminated

    for _ in range(EPISODES):
        run(0.3)
        batch = view.sample(512)
        at = (*places(batch.obs), batch.action)
        best = values[places(batch.next_obs)].max(axis=1)
        values[at] += 0.5 * (batch.reward + batch.discount * best - values[at])
    return np.mean([run(0) for _ in range(300)])


def test_bit_flipping_is_learned_with_hindsight():
    """From as many steps, a table learns to reach most goals with hindsight, and few without."""
    assert learned(0.8) > 0.75
    assert learned(0) < 0.4


def test_relabelled_rewards_are_the_environment_s():
    """Each relabelled row is paid what the environment would have paid for the same step with the new goal."""
    env = Flip()
    replay = Replay(Schema.from_env(env), capacity=200, seed=0)
    for seed in range(30):
        obs, _ = env.reset(seed=seed)
        ended = False
        while not ended:
            action = int(env.np_random.integers(BITS))
            later, reward, terminated, truncated, _ = env.step(action)
            replay.add(obs, action, reward, later, terminated, truncated)
            obs, ended = later, terminated or truncated
    batch = replay.hindsight(env.compute_reward).sample(500)

    for row in range(500):
        env.bits, env.goal = batch.obs["observation"][row].copy(), batch.obs["desired_goal"][row]
        later, reward, *_ = env.step(int(batch.action[row]))
        assert reward == batch.reward[row]
        np.testing.assert_array_equal(later["achieved_goal"], batch.next_obs["achieved_goal"][row])
    assert 0.1 < (batch.reward == 0).mean() < 0.9
