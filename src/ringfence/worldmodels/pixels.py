"""Images between the bytes that are kept and the numbers that a diffusion model is given."""

from __future__ import annotations

import math

import torch

from ringfence.view.pool import Pool


def to_model_domain(frames: torch.Tensor) -> torch.Tensor:
    """Bring pixels from 0 to 255 to float32 from -1 to 1, in a tensor of its own."""
    return frames.float().div_(127.5).sub_(1.0)


def to_pixel_domain(frames: torch.Tensor) -> torch.Tensor:
    """Bring numbers from -1 to 1 to those from 0 to 1, for showing; what lies beyond is cut off.

    255 times these, rounded, are the bytes that :func:`to_model_domain` was given.
    """
    return (frames + 1.0).mul_(0.5).clamp_(0.0, 1.0)


def channels_first(frames: torch.Tensor, pool: Pool | None = None) -> torch.Tensor:
    """Bring (..., H, W, C) bytes to (..., C, H, W) in the model's domain, without moving a number for it.

    With a pool of such images, in memory that an earlier batch let go: pages of new memory take as long as the rest.
    """
    if pool is None or frames.device.type != "cpu":
        return to_model_domain(frames).movedim(-1, -3)
    out = torch.from_numpy(pool.take(math.prod(frames.shape[:-3]))).view(frames.shape)
    return out.copy_(frames).div_(127.5).sub_(1.0).movedim(-1, -3)
