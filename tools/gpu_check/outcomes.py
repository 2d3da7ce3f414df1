"""How a step ends other than well, and how a step starts a program."""

import subprocess


class Skipped(Exception):
    """A step that cannot run here, and why."""


class Failed(Exception):
    """What a step found to be wrong, with what it measured all the same."""

    def __init__(self, says, data=None):
        super().__init__(says)
        self.data = data or {}


class Refused(Exception):
    """A program that did not answer: its command line and its last words, so that both can be repeated."""


def last_words(text, limit=500):
    lines = [line for line in text.strip().splitlines() if line.strip()]
    return " / ".join(lines[-2:])[-limit:]


def answer(words, seconds=120, **more):
    """What the command prints. Refused where it fails or takes longer."""
    words = [str(word) for word in words]
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=seconds, **more)
    except subprocess.TimeoutExpired:
        raise Refused(f"{' '.join(words)}: no answer in {seconds} s") from None
    except OSError as error:
        raise Refused(f"{' '.join(words)}: {error}") from None
    if done.returncode != 0:
        raise Refused(f"{' '.join(words)}: status {done.returncode}: {last_words(done.stderr or done.stdout)}")
    return done.stdout
