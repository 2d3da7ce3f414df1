"""The steps of the check, in order of worth: one row each."""

import dataclasses
import typing

import correctness
import machine
import speed
from outcomes import Failed, Refused, Skipped


@dataclasses.dataclass(frozen=True)
class Step:
    name: str
    seconds: float  # most that it may take on a GPU
    does: typing.Callable  # of a Session: (words, data); Failed or Refused where it fails, Skipped where it cannot run
    expected: float  # seconds on one H100, for the plan of a run
    least_seconds: float = 5  # with less left it is not begun
    is_needed: bool = False  # without it nothing else makes sense


STEPS = [
    Step("device", 30, machine.device, 1, is_needed=True),
    Step("kernels", 120, machine.kernels, 26),
    Step("models", 60, correctness.models, 22),
    Step("modes", 60, correctness.modes, 21),
    Step("verify", 30, correctness.verify, 2),
    Step("engines", 60, correctness.engines, 2),
    Step("decode", 90, speed.decode, 60),
    Step("torch_rows", 100, speed.torch_rows, 50),
    Step("start", 40, speed.start, 15),
    Step("step_kernels", 40, machine.step_kernels, 22),
    Step("counters", 40, machine.counters, 8),
    Step("memcheck", 60, machine.memcheck, 3),
    Step("racecheck", 60, machine.racecheck, 3),
    Step("synccheck", 60, machine.synccheck, 2),
    Step("torch_decode", 300, speed.torch_decode, 240),
]


def run_step(step, session):
    """(outcome, words, data)."""
    try:
        says, data = step.does(session)
        return "passed", says, data
    except Skipped as reason:
        return "skipped", str(reason), {}
    except Refused as refusal:
        return "failed", str(refusal), {}
    except Failed as failure:
        return "failed", str(failure), failure.data
