"""Runs the steps of a packed folder, in order of worth, each in a process of its own with a time limit. After each a
line of JSON goes to OUT/results.jsonl, so that a run that is cut short still says what it saw."""

import ctypes
import dataclasses
import datetime
import json
import multiprocessing
import os
import pathlib
import platform
import queue
import signal
import sys
import tarfile
import time

import steps

FOLDER = pathlib.Path(__file__).resolve().parent.parent  # the packed one
PROGRAMS = "programs.tar.xz"
PR_SET_PDEATHSIG = 1  # of prctl(2)


@dataclasses.dataclass
class Session:
    """What a step is given."""
    folder: pathlib.Path  # the packed one
    programs: pathlib.Path  # unpacked, with their libraries
    out: pathlib.Path  # for files of a step
    is_fake: bool
    seconds: float  # that the step may take

    @property
    def device(self):
        return "fake-cuda" if self.is_fake else "cuda"

    @property
    def weft(self):
        return self.programs / "weft"

    def model(self, name):
        return self.folder / "models" / name

    def shape(self, name):
        return self.folder / "shapes" / name


class Results:
    """OUT/results.jsonl, a line at a time, each on the disk before the next step begins."""

    def __init__(self, path):
        self._file = open(path, "w", encoding="utf-8")

    def add(self, **line):
        self._file.write(json.dumps(line) + "\n")
        self._file.flush()
        os.fsync(self._file.fileno())


def unpack(folder, programs):
    programs.mkdir(parents=True, exist_ok=True)
    with tarfile.open(folder / PROGRAMS) as archive:
        archive.extractall(programs)


def environment(programs, out):
    """Of every program that a step starts. Caches are of this run alone."""
    os.environ["LD_LIBRARY_PATH"] = ":".join(filter(None, [str(programs), os.environ.get("LD_LIBRARY_PATH")]))
    os.environ["WEFT_CACHE_ROOT"] = str(out / "cache")
    os.environ["PYTHONUNBUFFERED"] = "1"
    # Where the program also looks for cuBLASLt and NVRTC of Python's packages.
    os.environ.setdefault("VIRTUAL_ENV", sys.prefix)


def _do(step, session, answers):
    os.setsid()  # so that all it starts ends with it
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)  # and it with the run
    try:
        answers.put(steps.run_step(step, session))
    except BaseException as error:  # a step never takes the run with it
        answers.put(("failed", f"{type(error).__name__}: {error}", {}))


def run_limited(step, session):
    """(outcome, words, data) of a step; "cut" where it did not end in time."""
    answers = multiprocessing.Queue()
    process = multiprocessing.Process(target=_do, args=(step, session, answers))
    process.start()
    try:
        result = answers.get(timeout=session.seconds + 5)
        process.join(5)
    except queue.Empty:
        result = ("cut", f"no end after {session.seconds:.0f} s", {})
    try:
        os.killpg(process.pid, 9)
    except ProcessLookupError:
        pass
    process.join()
    return result


def run(out, minutes, is_fake, only):
    if not (FOLDER / PROGRAMS).exists():
        print(f"gpu_check: {FOLDER} is no packed folder: make one with tools/gpu_check.sh pack", file=sys.stderr)
        return 2
    chosen = [step for step in steps.STEPS if not only or step.name in only.split(",")]
    unknown = set(filter(None, only.split(","))) - {step.name for step in steps.STEPS}
    if unknown:
        print(f"gpu_check: no step is called {', '.join(sorted(unknown))}; there are "
              f"{', '.join(step.name for step in steps.STEPS)}", file=sys.stderr)
        return 2
    begin = time.monotonic()
    out = out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    programs = out / "programs"
    unpack(FOLDER, programs)
    environment(programs, out)
    results = Results(out / "results.jsonl")
    results.add(run="begin", date=datetime.date.today().isoformat(), is_fake=is_fake, minutes=minutes,
                host=platform.node(), steps=[step.name for step in chosen])
    has_failed = False
    for step in chosen:
        left = 60 * minutes - (time.monotonic() - begin)
        seconds = min(step.seconds, left)
        if seconds < step.least_seconds:
            results.add(step=step.name, outcome="skipped", says=f"{left:.0f} s were left", seconds=0, data={})
            continue
        results.add(step=step.name, begins=True)
        started = time.monotonic()
        outcome, says, data = run_limited(step, Session(FOLDER, programs, out, is_fake, seconds))
        took = round(time.monotonic() - started, 2)
        results.add(step=step.name, outcome=outcome, says=says, seconds=took, data=data)
        print(f"{took:7.1f} s  {step.name}: {outcome}{': ' + says if says else ''}", flush=True)
        has_failed = has_failed or outcome in ("failed", "cut")
        if step.is_needed and outcome != "passed":
            results.add(run="end", why=f"{step.name} {outcome}")
            return 4
    results.add(run="end", why="")
    return 1 if has_failed else 0
