#!/usr/bin/env python3
"""Runs `weft serve` under load and abuse, and checks that nothing is lost, leaked or answered wrongly.

    load_check.py PROGRAM MODEL [--minutes M] [--requests N] [--malformed N] [--connections N] [--parts PART...]

The parts, each of which must leave the server as it was (no sequence, no KV page in use, no descriptor more, the same
answer to a greedy request):

    malformed     requests that are wrong, by hand with the status that each must get, and N by random changes, beside
                  a client whose answers must stay the same
    heavy         requests that ask for a lot of work, each of which must be answered while others are
    clients       clients that read, cancel, reset, stall, write slowly and pipeline at random, for M minutes
    idle          open connections that send nothing, and the memory that each takes
    memory        N requests, and the bytes that are kept of each
    rest          no processor time while nothing is asked

The defaults take about a minute, and assert no latencies. These are printed for the long runs by hand.
"""

import argparse
import json
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time

from heavy_requests import heavy_requests
from http_bytes import RawConnection, request_bytes
from malformed import known_cases, random_case, send
from random_clients import RandomClients
from valid_requests import request_of
from weft_server import AtRest, Fault, WeftServer, wait_for

# Few pages, so that sequences lose theirs and that all are in use before memory is measured.
FLAGS = ["--num-gpu-blocks-override", "130", "--max-model-len", "2048", "--max-num-seqs", "32"]
MEMORY_OF_A_REQUEST = 1024
MEMORY_OF_A_CONNECTION = 10000


class Watch:
    """Asks for /health all the time, and keeps the longest answer."""

    def __init__(self, port):
        program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "health_watch.py")
        self.process = subprocess.Popen([sys.executable, program, str(port)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True)

    def end(self):
        out, problem = self.process.communicate()
        if self.process.returncode != 0:
            raise Fault(f"/health: {problem[-1000:]}")
        times = sorted(json.loads(out))
        return (f"/health {len(times)} times, median {1e3 * times[len(times) // 2]:.1f} ms, "
                f"p99 {1e3 * times[int(len(times) * 0.99)]:.1f} ms, longest {1e3 * times[-1]:.1f} ms")


class SteadyClient:
    """Asks for the greedy answer all the time, which must stay the same."""

    def __init__(self, rest):
        self.rest, self.answers, self.problem, self.is_ended = rest, 0, None, False
        self.thread = threading.Thread(target=self.loop)
        self.thread.start()

    def loop(self):
        try:
            while not self.is_ended:
                self.rest.check_answer("beside other requests")
                self.answers += 1
        except Exception as problem:  # pylint: disable=broad-except
            self.problem = problem

    def end(self):
        self.is_ended = True
        self.thread.join()
        if self.problem:
            raise self.problem
        return self.answers


def with_long_context(model, folder):
    """A copy of a folder with a config, in which sequences may have 2,048 tokens; other models as they are."""
    config = os.path.join(model, "config.json")
    if not os.path.isfile(config):
        return model
    copy = shutil.copytree(model, os.path.join(folder, "model"))
    with open(config, encoding="utf-8") as file:
        fields = json.load(file)
    fields["max_position_embeddings"] = max(fields["max_position_embeddings"], 2048)
    with open(os.path.join(copy, "config.json"), "w", encoding="utf-8") as file:
        json.dump(fields, file)
    return copy


class LoadCheck:
    def __init__(self, arguments, folder):
        self.arguments = arguments
        model = with_long_context(arguments.model, folder)
        self.server = WeftServer(arguments.program, model, [*FLAGS, *arguments.flag])
        self.rest = AtRest(self.server)

    def in_parallel(self, count, one, threads=8):
        """Calls one(chance, index) `count` times on several threads; the first problem ends it."""
        problems, lock, left = [], threading.Lock(), iter(range(count))

        def loop(number):
            chance = random.Random(f"{self.arguments.seed} {number}")
            while not problems:
                with lock:
                    index = next(left, None)
                if index is None:
                    return
                try:
                    one(chance, index)
                except Exception as problem:  # pylint: disable=broad-except
                    problems.append(problem)

        workers = [threading.Thread(target=loop, args=(i,)) for i in range(threads)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        if problems:
            raise problems[0]

    def malformed(self):
        port, known = self.server.port, list(known_cases())
        if self.arguments.malformed < len(known):  # all with a status of their own, and some of the others
            chance = random.Random(self.arguments.seed)
            exact = [case for case in known if len(case[1]) < 5]
            known = exact + chance.sample([case for case in known if len(case[1]) >= 5], 400)
        count = self.arguments.malformed
        client = SteadyClient(self.rest)
        try:
            # Most of the time of a request that is cut is the wait for its rest, so many are sent at once.
            self.in_parallel(len(known), lambda chance, index: send(port, *known[index]), 32)
            self.in_parallel(count // 2, lambda chance, index: send(port, random_case(chance)), 32)
            before = self.server.own_memory()
            self.in_parallel(count - count // 2, lambda chance, index: send(port, random_case(chance)), 32)
            # Of a short run it is what buffers and caches take until they have their size.
            kept = f", {self.kept_of_each(before, count // 2):.0f} bytes kept of each" if count >= 10000 else ""
        finally:
            answers = client.end()
        return f"{len(known)} known ones, {count} random ones{kept}, {answers} equal answers beside them"

    def kept_of_each(self, before, count):
        grown = (self.server.own_memory() - before) / count
        # What an allocator takes for a moment counts little in a long run, and may be all in a short one.
        if grown > MEMORY_OF_A_REQUEST + (1 << 20) / count:
            raise Fault(f"each of {count} requests keeps {grown:.0f} bytes: more than {MEMORY_OF_A_REQUEST}")
        return grown

    def heavy(self):
        longest = (0, "")
        for name, (path, body) in heavy_requests().items():
            begin = time.monotonic()
            try:
                statuses = send(self.server.port, request_bytes(path, body), (200, 400))
            except TimeoutError as problem:
                raise Fault(f"{name}: no answer in two minutes") from problem
            except AssertionError as problem:
                raise Fault(f"{name}: {str(problem)[:1000]}") from problem
            longest = max(longest, (time.monotonic() - begin, f"{name}, status {statuses[0]}"))
        return f"{len(heavy_requests())} requests, the longest {longest[0]:.1f} s ({longest[1]})"

    def clients(self):
        clients = RandomClients(self.server.port, self.arguments.seed, self.arguments.different)
        end = time.monotonic() + 60 * self.arguments.minutes
        clients.run(64, lambda: time.monotonic() < end)
        preemptions = self.server.metric("vllm:num_preemptions_total")
        return f"{clients.counts}, {preemptions:.0f} preemptions"

    def idle(self):
        limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
        count = min(self.arguments.connections, limit - 100)
        before = self.server.own_memory()
        connections = [RawConnection(self.server.port) for _ in range(count)]
        for connection in connections:
            connection.send(b"GET /health HTTP/1.1\r\n")  # the rest must come within 10 s
        # Other connections may end meanwhile, so that their number at rest is no base.
        wait_for(lambda: self.server.descriptors() >= count, f"{count} connections")
        taken = self.server.own_memory() - before
        begin, used = time.monotonic(), self.server.processor_seconds()
        time.sleep(2)
        used = (self.server.processor_seconds() - used) / (time.monotonic() - begin)
        with RawConnection(self.server.port) as another:
            another.send(b"GET /health HTTP/1.1\r\nHost: a\r\n\r\n")
            status = another.response()[0]
        if status != (200 if count < 10000 else 503):
            raise Fault(f"one connection more than {count} idle ones got status {status}")
        for connection in connections:
            connection.send(b"Host: a\r\n\r\n")
        for connection in connections:
            if connection.response()[0] != 200:
                raise Fault("a connection that was idle got no answer")
            connection.socket.close()
        if taken > count * MEMORY_OF_A_CONNECTION + (1 << 20):
            raise Fault(f"{count} idle connections take {taken} bytes: more than {MEMORY_OF_A_CONNECTION} each")
        return f"{count} connections take {taken / 1e6:.1f} MB, and {100 * used:.1f} % of a core"

    def memory(self):
        """All requests are different, so that nothing of them is found again."""
        def one(chance, index):
            path, body = request_of(chance.randrange(1 << 30))
            with RawConnection(self.server.port) as connection:
                connection.send(request_bytes(path, body))
                connection.response()

        count = self.arguments.requests
        self.in_parallel(max(count // 2, 500), one, 16)  # until buffers and caches have their size
        before = self.server.own_memory()
        self.in_parallel(count, one, 16)
        return f"{self.kept_of_each(before, count):.0f} bytes are kept of each of {count} requests"

    def at_rest(self):
        begin, used = time.monotonic(), self.server.processor_seconds()
        time.sleep(self.arguments.rest_seconds)
        used = (self.server.processor_seconds() - used) / (time.monotonic() - begin)
        if used > 0.05:
            raise Fault(f"the server takes {100 * used:.1f} % of a core while nothing is asked")
        return f"{100 * used:.2f} % of a core while nothing is asked"

    def run(self):
        parts = {"malformed": self.malformed, "heavy": self.heavy, "clients": self.clients, "idle": self.idle, "memory": self.memory,
                 "rest": self.at_rest}
        for name in self.arguments.parts or parts:
            begin, watch = time.monotonic(), Watch(self.server.port) if name in ("malformed", "heavy", "clients") else None
            try:
                result = parts[name]()
            finally:
                health = watch.end() if watch else ""
            self.rest.check(name)
            print(f"{name}: {result} ({time.monotonic() - begin:.0f} s) {health}", flush=True)
        self.server.end()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("model")
    parser.add_argument("--minutes", type=float, default=0.15, help="of the part clients")
    parser.add_argument("--requests", type=int, default=600, help="of the part memory")
    parser.add_argument("--malformed", type=int, default=600, help="random ones")
    parser.add_argument("--connections", type=int, default=2000, help="of the part idle")
    parser.add_argument("--different", type=int, default=300, help="requests of the part clients")
    parser.add_argument("--rest-seconds", type=float, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--flag", action="append", default=[], help="one more of weft serve")
    parser.add_argument("--parts", nargs="*")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        check = LoadCheck(arguments, folder)
        try:
            check.run()
        except AssertionError as problem:
            print(f"FAILED: {problem}", file=sys.stderr)
            return 1
        finally:
            if check.server.process.poll() is None:
                check.server.process.kill()
    return 0


if __name__ == "__main__":
    sys.exit(main())
