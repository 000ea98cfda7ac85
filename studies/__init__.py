"""Experiments of the literature, run again on the public interface; each file is a command: `--help` tells how."""
