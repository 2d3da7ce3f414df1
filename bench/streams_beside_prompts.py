#!/usr/bin/env python3
"""Measures the times between tokens of streams, alone and while long prompts arrive.

    bench/streams_beside_prompts.py [MODEL] [--program build/weft] [--streams 8] [--prompts 1] [--rounds 2] [--tokens 4096]
                                    [--flag FLAG of weft serve]...

In each round `--prompts` prompts of random tokens come together. Prints, for both times, the quantiles of the times
between two tokens of a stream, and when the prompts had their first token.
"""

import argparse
import json
import random
import re
import socket
import subprocess
import threading
import time

ALONE_SECONDS = 3


def token_times(port, body, ends=None):
    """When each event of a stream came; until the end, or until `ends` is set."""
    data = json.dumps({**body, "temperature": 0, "stream": True}).encode()
    head = f"POST /v1/completions HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n"
    times = []
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(head.encode() + data)
        for line in connection.makefile("rb"):
            if line.startswith(b"data: [DONE]") or (ends and ends.is_set()):
                break
            if line.startswith(b"data: "):
                times.append(time.monotonic())
    return times


def together(functions):
    """What the functions return, each on a thread of its own."""
    results = [None] * len(functions)

    def call(index):
        results[index] = functions[index]()

    threads = [threading.Thread(target=call, args=(i,)) for i in range(len(functions))]
    for thread in threads:
        thread.start()
    return threads, results


def report(name, streams, begin, end):
    gaps = sorted(b - a for times in streams for a, b in zip(times, times[1:]) if begin <= a < end)
    values = [1e3 * gaps[min(len(gaps) - 1, int(len(gaps) * q))] for q in (0.5, 0.9, 0.99, 1)]
    print(f"{name}: {len(gaps)} tokens, ms between two: median {values[0]:.1f}, p90 {values[1]:.1f}, p99 {values[2]:.1f}, "
          f"longest {values[3]:.1f}")
    return values


def measure(port, arguments):
    chance = random.Random(1)

    def prompt(tokens):
        return [chance.randrange(1000, 40000) for _ in range(tokens)]

    ends = threading.Event()
    bodies = [{"prompt": prompt(64), "max_tokens": 8000, "ignore_eos": True} for _ in range(arguments.streams)]
    threads, streams = together([lambda body=body: token_times(port, body, ends) for body in bodies])
    time.sleep(ALONE_SECONDS + 1)
    begin = time.monotonic()
    time.sleep(ALONE_SECONDS)
    arrival = time.monotonic()
    firsts = []
    for _ in range(arguments.rounds):
        sent = time.monotonic()
        long = [{"prompt": prompt(arguments.tokens), "max_tokens": 1} for _ in range(arguments.prompts)]
        waiting, times = together([lambda body=body: token_times(port, body) for body in long])
        for thread in waiting:
            thread.join()
        firsts += [each[0] - sent for each in times]
    end = time.monotonic()
    ends.set()
    for thread in threads:
        thread.join()
    alone = report("alone", streams, begin, arrival)
    beside = report("beside prompts", streams, arrival, end)
    print(f"p99 beside prompts is {beside[2] / alone[0]:.1f} times the median alone; first tokens of the prompts after "
          f"{', '.join(f'{first:.1f}' for first in firsts)} s")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="?", default="smollm2-135m")
    parser.add_argument("--program", default="build/weft")
    parser.add_argument("--streams", type=int, default=8)
    parser.add_argument("--prompts", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--tokens", type=int, default=4096)
    parser.add_argument("--flag", action="append", default=[])
    arguments = parser.parse_args()
    command = [arguments.program, "serve", arguments.model, "--port", "0", "--disable-uvicorn-access-log", *arguments.flag]
    server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        for line in server.stderr:
            if found := re.search(r" on http://127\.0\.0\.1:(\d+)", line):
                threading.Thread(target=server.stderr.read, daemon=True).start()
                return measure(int(found[1]), arguments)
        raise SystemExit(f"{' '.join(command)} ended")
    finally:
        server.terminate()
        server.wait()


if __name__ == "__main__":
    main()
