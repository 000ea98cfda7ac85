"""The doctor: watch a training script for a while, and say in plain words what its memory goes to."""

from ringfence.guard.doctor.evidence import Evidence
from ringfence.guard.doctor.examine import NotPython, examine
from ringfence.guard.doctor.finding import Finding
from ringfence.guard.doctor.html import html
from ringfence.guard.doctor.inside import Visit, doctor
from ringfence.guard.doctor.report import plain, text
from ringfence.guard.doctor.rules import diagnose

__all__ = ["Evidence", "Finding", "NotPython", "Visit", "diagnose", "doctor", "examine", "html", "plain", "text"]
