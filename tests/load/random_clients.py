"""Clients that send valid requests at once, and behave well, badly or slowly, at random."""

import json
import random
import threading
import time

from http_bytes import BadResponse, Gone, RawConnection, check_error, events_of, request_bytes
from malformed import random_case, read_answer
from valid_requests import request_of

# What a client does with a request, and how often.
BEHAVIOURS = {"reads": 10, "closes": 4, "resets": 4, "reads slowly": 2, "writes slowly": 2, "ends sending": 1, "stalls": 1,
              "pipelines": 2, "malformed": 3}
# Fields of an answer that differ from time to time.
CHANGING = {"id", "created", "timings", "request_id"}


def fixed_part(value):
    if isinstance(value, dict):
        return {key: fixed_part(inner) for key, inner in value.items() if key not in CHANGING}
    return [fixed_part(inner) for inner in value] if isinstance(value, list) else value


def joined(events):
    """The answer of a stream: for each choice its text, its deltas joined by key, and its reason to finish."""
    choices = {}
    for event in events:
        if "error" in event:
            return event
        for choice in event.get("choices", [event]):
            known = choices.setdefault(choice.get("index", 0), {"finish": []})
            delta = {"text": choice.get("text"), "content": choice.get("content"), **choice.get("delta", {})}
            for key in ("text", "content", "reasoning"):
                if isinstance(delta.get(key), str):
                    known[key] = known.get(key, "") + delta[key]
            for call in delta.get("tool_calls") or []:
                calls = known.setdefault("calls", {})
                function = call.get("function", {})
                name, arguments = calls.get(call["index"], ("", ""))
                calls[call["index"]] = (name + function.get("name", ""), arguments + function.get("arguments", ""))
            if choice.get("finish_reason") or choice.get("stop") is True:
                known["finish"].append(choice.get("finish_reason", "stop"))
    for known in choices.values():
        if len(known["finish"]) != 1:
            raise BadResponse(f"a choice of a stream finishes {len(known['finish'])} times")
    return choices


class RandomClients:
    def __init__(self, port, seed, different):
        self.port, self.seed, self.different = port, seed, different
        self.lock = threading.Lock()
        self.answers = {}  # by the number of a request
        self.counts = dict.fromkeys([*BEHAVIOURS, "compared", "refused"], 0)
        self.problems = []

    def count(self, name):
        with self.lock:
            self.counts[name] += 1

    def compare(self, number, status, fields, body):
        """An answer does not depend on what else is served, so it is the same each time."""
        if status != 200:
            check_error(status, body)
            if status not in (400, 404, 501):
                raise BadResponse(f"status {status} with {body[:300]!r}")
            self.count("refused")
        is_stream = fields["content-type"].startswith("text/event-stream")
        answer = joined(events_of(body)) if is_stream else fixed_part(json.loads(body))
        answer = json.loads(json.dumps(answer))
        for choice in answer.get("choices", []) if not is_stream and isinstance(answer, dict) else []:
            for call in (choice.get("message") or {}).get("tool_calls") or []:
                call.pop("id", None)
        with self.lock:
            known = self.answers.setdefault(number, answer)
            self.counts["compared"] += 1
        if known != answer:
            raise BadResponse(f"an answer was {json.dumps(known)[:1500]} and is {json.dumps(answer)[:1500]}")

    def read_slowly(self, connection, chance):
        end = time.monotonic() + chance.uniform(0.2, 1.5)
        try:
            while time.monotonic() < end:
                if connection.wait_for_bytes(0.01):
                    connection.more(chance.choice([1, 10, 100]))
                time.sleep(0.01)
        except Gone:
            pass  # after the answer, which is all there then

    def one(self, chance):
        behaviour = chance.choices(list(BEHAVIOURS), list(BEHAVIOURS.values()))[0]
        self.count(behaviour)
        number = chance.randrange(self.different)
        path, body = request_of(number)
        data = request_bytes(path, body)
        with RawConnection(self.port, receive_buffer=4096 if behaviour in ("reads slowly", "stalls") else 0) as connection:
            try:
                if behaviour == "malformed":
                    connection.send(random_case(chance))
                    connection.wait_for_bytes(1)
                    connection.end_sending()
                    while read_answer(connection, b"") is not None:
                        pass
                    return
                if behaviour == "writes slowly":
                    step = max(len(data) // 20, 1)
                    for at in range(0, len(data), step):
                        connection.send(data[at:at + step])
                        time.sleep(chance.uniform(0, 0.03))
                else:
                    connection.send(data * (3 if behaviour == "pipelines" else 1))
                if behaviour in ("closes", "resets", "ends sending", "stalls"):
                    time.sleep(chance.choice([0, 0, 0.01, 0.1, 0.5]) * (4 if behaviour == "stalls" else 1))
                    if behaviour == "ends sending":
                        connection.end_sending()
                        time.sleep(0.1)
                    if behaviour == "resets" or chance.random() < 0.2:
                        connection.reset()
                    return
                if behaviour == "reads slowly":
                    self.read_slowly(connection, chance)
                for _ in range(3 if behaviour == "pipelines" else 1):
                    self.compare(number, *connection.response())
            except Gone as problem:
                raise BadResponse(f"{behaviour}: the connection ended before the answer, after {data[:1500]!r}, and "
                                  f"{connection.held[-500:]!r}") from problem
            except BadResponse as problem:
                raise BadResponse(f"{behaviour}: {problem}, after {data[:1500]!r}") from problem

    def loop(self, number, goes_on):
        chance = random.Random(f"{self.seed} {number}")
        while goes_on() and not self.problems:
            try:
                self.one(chance)
            except Exception as problem:  # pylint: disable=broad-except
                self.problems.append(problem)

    def run(self, clients, goes_on):
        threads = [threading.Thread(target=self.loop, args=(i, goes_on)) for i in range(clients)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if self.problems:
            raise self.problems[0]
