"""What can go wrong: every error a caller can meet, each with a text that says what to do."""


class SchemaError(ValueError):
    """Tell that a step, a field or a space does not match what was declared.

    The text names the key, what was expected and what came. The call that raised it changed nothing.
    """


class NotEnoughData(ValueError):
    """Tell that nothing stored can answer the request; the text holds the counts and the reason."""


class BudgetExceeded(MemoryError):
    """Tell that a ring does not fit the memory it may use; the text holds the capacity that would."""


class MemoryPressure(RuntimeError):
    """Tell that the process came near its memory limit, after everything was saved."""


class CheckpointError(OSError):
    """Tell that a checkpoint is damaged, foreign or half written; nothing was loaded."""


class ForeignCheckpoint(CheckpointError, SchemaError):
    """Tell that a checkpoint is of another schema than was asked for; the text names the field."""


class LargeCheckpoint(CheckpointError, BudgetExceeded):
    """Tell that the ring of a checkpoint does not fit; the text holds the capacity that would."""
