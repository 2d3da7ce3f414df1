"""Logits and greedy tokens of a model on a device, and how far two of them differ."""

import array
import base64
import json
import math

import checkpoints
from outcomes import answer

GREEDY_TOKENS = 16


def packed(values):
    return base64.b64encode(array.array("f", values).tobytes()).decode()


def unpacked(text):
    values = array.array("f")
    values.frombytes(base64.b64decode(text))
    return values


def compute(weft, model, device, *options, prompt=checkpoints.PROMPT):
    """Greedy tokens after the prompt, and the logits of the prompt's positions."""
    options = ["--device", device, *options]
    generated = json.loads(answer([weft, "complete", model, "-p", prompt, "-n", GREEDY_TOKENS, "--temp", 0,
                                   "--ignore-eos", "--json", *options]))
    rows = []
    printed = answer([weft, "logits", model, "-p", prompt, "--positions", "all", "--top-k", checkpoints.VOCABULARY,
                      *options])
    for line in printed.splitlines():
        row = [math.nan] * checkpoints.VOCABULARY
        for token, value in json.loads(line)["top"]:
            row[token] = math.nan if value is None else value
        rows += row
    return {"tokens": generated["tokens"], "logits": packed(rows)}


def relative_difference(found, wanted):
    """|found - wanted| / |wanted| over all logits; NaN where one is no number."""
    found, wanted = unpacked(found), unpacked(wanted)
    if len(found) != len(wanted):
        return math.nan
    difference = math.fsum((a - b) * (a - b) for a, b in zip(found, wanted))
    return math.sqrt(difference / math.fsum(b * b for b in wanted))


def same_tokens(found, wanted):
    """How many greedy tokens are equal before the first that differs."""
    for i, (a, b) in enumerate(zip(found, wanted)):
        if a != b:
            return i
    return min(len(found), len(wanted))
