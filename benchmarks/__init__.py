"""Measure ringfence beside the replay buffers people use today: `python -m benchmarks --help`."""
