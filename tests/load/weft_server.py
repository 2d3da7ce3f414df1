"""A `weft serve` process, and what can be read of it from outside: metrics, memory, descriptors and processor time."""

import http.client
import json
import os
import re
import subprocess
import tempfile
import threading
import time

TEMPLATE = ("{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}"
            "{% if add_generation_prompt %}<assistant>{% endif %}")


class Fault(AssertionError):
    """The server did what it must not do."""


def wait_for(holds, what, seconds=30):
    """What `holds` returns, once it is true."""
    end = time.monotonic() + seconds
    while True:
        result = holds()
        if result:
            return result
        if time.monotonic() > end:
            raise Fault(f"waited {seconds} s for: {what}")
        time.sleep(0.05)


class WeftServer:
    """A server on a free port. Its log is kept, but for the lines of requests."""

    def __init__(self, program, model, flags=(), needs_template=True):
        self.folder = tempfile.TemporaryDirectory()
        command = [program, "serve", model, "--port", "0", "--disable-uvicorn-access-log", "--disable-log-stats", *flags]
        if needs_template:
            template = os.path.join(self.folder.name, "template.jinja")
            with open(template, "w", encoding="utf-8") as file:
                file.write(TEMPLATE)
            command += ["--chat-template", template]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, errors="replace")
        self.lines = []
        for line in self.process.stderr:
            self.lines.append(line.rstrip())
            if found := re.search(r" on http://127\.0\.0\.1:(\d+)", line):
                self.port = int(found[1])
                break
        else:
            raise Fault(f"{' '.join(command)} ended: {self.lines}")
        self.name = json.loads(self.get("/v1/models"))["data"][0]["id"]
        self.reader = threading.Thread(target=self.read_log, daemon=True)
        self.reader.start()

    def read_log(self):
        for line in self.process.stderr:
            self.lines.append(line.rstrip())

    def request(self, method, path, body=None, timeout=300):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        try:
            connection.request(method, path, body, {"Content-Type": "application/json"} if body is not None else {})
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()

    def get(self, path):
        status, body = self.request("GET", path)
        if status != 200:
            raise Fault(f"GET {path} wanted status 200, but got {status}: {body[:300]}")
        return body

    def post(self, path, fields):
        status, body = self.request("POST", path, json.dumps(fields))
        if status != 200:
            raise Fault(f"POST {path} {fields} wanted status 200, but got {status}: {body[:300]}")
        return json.loads(body)

    def metrics(self):
        """{name and labels as they are written: value}"""
        values = {}
        for line in self.get("/metrics").decode().splitlines():
            if not line.startswith("#"):
                name, value = line.rsplit(" ", 1)
                values[name] = float(value)
        return values

    def metric(self, name):
        """The sum over all labels."""
        return sum(value for key, value in self.metrics().items() if key.split("{")[0] == name)

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def own_memory(self):
        """Bytes that no file backs, in memory or swapped out."""
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as file:
            fields = dict(line.split(":", 1) for line in file)
        return sum(int(fields[name].split()[0]) << 10 for name in ("RssAnon", "VmSwap"))

    def processor_seconds(self):
        with open(f"/proc/{self.process.pid}/stat", encoding="ascii") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def end(self):
        """Ends the server by SIGTERM, which must succeed."""
        self.process.terminate()
        try:
            status = self.process.wait(60)
        except subprocess.TimeoutExpired as problem:
            self.process.kill()
            raise Fault("SIGTERM wanted the server to end, but it ran for a minute more") from problem
        finally:
            self.folder.cleanup()
        if status != 0:
            raise Fault(f"SIGTERM wanted status 0, but got {status}; the log ends with {self.lines[-5:]}")


class AtRest:
    """The state of an idle server, to which it must return after each part of the check."""

    GREEDY = {"prompt": "The capital of France is", "max_tokens": 24, "temperature": 0, "ignore_eos": True,
              "return_token_ids": True, "logprobs": 2}

    def __init__(self, server):
        self.server = server
        self.answer = self.greedy()
        self.descriptors = server.descriptors()

    def greedy(self):
        choice = self.server.post("/v1/completions", self.GREEDY)["choices"][0]
        return choice["token_ids"], choice["logprobs"]

    def check_answer(self, part):
        if self.greedy() != self.answer:
            raise Fault(f"{part}: the greedy answer has other tokens or log probabilities than at the start")

    def check(self, part):
        server = self.server
        if server.process.poll() is not None:
            raise Fault(f"{part}: the server ended with status {server.process.returncode}: {server.lines[-10:]}")
        for name in ("num_requests_running", "num_requests_waiting", "kv_cache_usage_perc"):
            wait_for(lambda: server.metric("vllm:" + name) == 0, f"{part}: {name} to be 0")
        wait_for(lambda: json.loads(server.get("/load"))["server_load"] == 0, f"{part}: the load to be 0")
        # Idle connections end after 5 s.
        wait_for(lambda: server.descriptors() <= self.descriptors, f"{part}: {self.descriptors} open descriptors")
        self.check_answer(part)
        server.get("/health")
        unexpected = [line for line in server.lines if "exception" in line or "internal" in line]
        if unexpected:
            raise Fault(f"{part}: the log has {unexpected[:5]}")
