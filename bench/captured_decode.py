#!/usr/bin/env python3
"""What captured graphs bring to decoding: single tokens on a device with graphs and with launches one by one.

    bench/captured_decode.py [MODEL] [--device cuda] [--pairs 7] [--generate 128] [--depth 0]

A pair is a run of each, each in a process of its own with a warm-up, which begins by turns. Prints every run, tokens
per second, then the medians and their ratio. Where the device is not there it prints "not measured" and why, and ends
with 0. A fake device only shows that both ways run: it has no clock, so nothing of it is printed as a rate.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys

WEFT = pathlib.Path(__file__).resolve().parent.parent / "build" / "weft"
WAYS = {"captured": ["-cc.cudagraph_mode=FULL_AND_PIECEWISE"], "one by one": ["-cc.cudagraph_mode=NONE"]}
STATUS_OF_DEVICES = 4


class NotMeasured(Exception):
    pass


def rate(given, options, was_there):
    command = [str(WEFT), "bench", "model", given.model, "--device", given.device, "-p", "0", "-n", str(given.generate),
               "-d", str(given.depth), "-r", "1", "--json", *options]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode == STATUS_OF_DEVICES and not was_there:
        raise NotMeasured(done.stderr.strip())
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: {done.stderr.strip()}")
    return json.loads(done.stdout)[-1]["avg_ts"]


def measure(given):
    """Tokens per second of each way, one for each pair."""
    rates = {way: [] for way in WAYS}
    for pair in range(given.pairs):
        for way in sorted(WAYS, reverse=pair % 2 == 1):
            rates[way].append(rate(given, WAYS[way], was_there=any(rates.values())))
        if is_fake(given):
            print(f"pair {pair + 1}: both ways ran", flush=True)
        else:
            print(f"pair {pair + 1}: " + ", ".join(f"{way} {came[-1]:.1f}" for way, came in rates.items()), flush=True)
    return rates


def is_fake(given):
    return given.device.startswith("fake")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="?", default="smollm2-135m")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--generate", type=int, default=128)
    parser.add_argument("--depth", type=int, default=0)
    given = parser.parse_args()
    if given.pairs < 1:
        parser.error(f"--pairs must be 1 or more, but is {given.pairs}")
    name = f"decode of {given.model} on {given.device}"
    try:
        rates = measure(given)
    except NotMeasured as why:
        print(f"{name}: not measured ({why})")
        return
    if is_fake(given):
        print(f"{name}: not measured (a fake device has no clock)")
        return
    captured, eager = (statistics.median(rates[way]) for way in WAYS)
    print(f"{name}: captured {captured:.1f} tokens/s, launched one by one {eager:.1f}, {captured / eager:.2f}x")


if __name__ == "__main__":
    main()
