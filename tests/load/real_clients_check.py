#!/usr/bin/env python3
"""Uses a server by programs of others: the clients `openai` and `anthropic`, the reader of `prometheus_client`, and `jsonschema`.

    real_clients_check.py PROGRAM MODEL FOLDER

They are installed into a virtual environment at FOLDER, which stays for the next run. Prints "is skipped" and why if
that does not succeed, as without a network.
"""

import importlib.metadata
import json
import os
import subprocess
import sys
import tempfile

from load_check import with_long_context
from messages_client import check_messages
from responses_client import check_responses
from weft_server import Fault, WeftServer

PACKAGES = ["openai", "anthropic", "prometheus_client", "jsonschema"]
SCHEMA = {"type": "object", "additionalProperties": False, "required": ["name", "tags", "age"],
          "properties": {"name": {"type": "string", "maxLength": 12}, "age": {"type": "integer", "minimum": 1, "maximum": 99},
                         "tags": {"type": "array", "items": {"enum": ["a", "b"]}, "maxItems": 3}}}
TOOLS = [{"type": "function", "function": {"name": "weather", "parameters": {
    "type": "object", "properties": {"town": {"enum": ["Rome", "Oslo"]}}, "required": ["town"]}}}]
QUESTION = [{"role": "user", "content": "Who are you?"}]


def check(holds, *what):
    if not holds:
        raise Fault(" ".join(map(str, what)))


def check_completions(client, name):
    settings = {"model": name, "prompt": "The river", "max_tokens": 12, "seed": 4, "temperature": 0.8}
    whole = client.completions.create(**settings, n=2, logprobs=2)
    check([choice.index for choice in whole.choices] == [0, 1], "choices", whole)
    check(whole.usage.completion_tokens == 24 or whole.choices[0].finish_reason == "stop", "usage", whole.usage)
    check(len(whole.choices[0].logprobs.tokens) == len(whole.choices[0].logprobs.top_logprobs), "log probabilities", whole)
    texts = ["", ""]
    events = list(client.completions.create(**settings, n=2, stream=True, stream_options={"include_usage": True}))
    for event in events[:-1]:
        for choice in event.choices:
            texts[choice.index] += choice.text
    check(texts == [choice.text for choice in whole.choices], "a stream has", texts, "and not", whole.choices)
    check(events[-1].choices == [] and events[-1].usage == whole.usage, "the usage of a stream is", events[-1])


def check_chats(client, name):
    settings = {"model": name, "messages": QUESTION, "max_completion_tokens": 12, "seed": 4}
    whole = client.chat.completions.create(**settings, logprobs=True, top_logprobs=2)
    choice = whole.choices[0]
    check(choice.message.role == "assistant", "the message is", choice.message)
    check(len(choice.logprobs.content[0].top_logprobs) == 2, "log probabilities", choice.logprobs)
    events = list(client.chat.completions.create(**settings, stream=True))
    text = "".join(event.choices[0].delta.content or "" for event in events)
    check(text == choice.message.content, "a stream has", repr(text), "and not", repr(choice.message.content))
    check(events[0].choices[0].delta.role == "assistant", "a stream begins with", events[0])
    check(events[-1].choices[0].finish_reason == choice.finish_reason, "a stream ends with", events[-1])


def check_tools(client, name):
    settings = {"model": name, "messages": QUESTION, "tools": TOOLS, "tool_choice": "required", "max_tokens": 100,
                "temperature": 0}
    calls = client.chat.completions.create(**settings).choices[0].message.tool_calls
    check(calls and calls[0].function.name == "weather", "tool calls are", calls)
    check(json.loads(calls[0].function.arguments)["town"] in ("Rome", "Oslo"), "arguments are", calls[0].function.arguments)
    joined = {}
    for event in client.chat.completions.create(**settings, stream=True):
        for call in event.choices[0].delta.tool_calls or [] if event.choices else []:
            joined[call.index] = joined.get(call.index, "") + (call.function.arguments or "")
    check(joined == {i: call.function.arguments for i, call in enumerate(calls)}, "a stream has the arguments", joined)


def check_structured(client, name, jsonschema):
    form = {"type": "json_schema", "json_schema": {"name": "person", "schema": SCHEMA, "strict": True}}
    for seed in range(20):
        answer = client.chat.completions.create(model=name, messages=QUESTION, response_format=form, max_tokens=400, seed=seed,
                                                temperature=1)
        if answer.choices[0].finish_reason == "stop":
            jsonschema.validate(json.loads(answer.choices[0].message.content), SCHEMA)
    events = client.completions.create(model=name, prompt="a", max_tokens=20, stream=True,
                                       extra_body={"structured_outputs": {"choice": ["yes", "no"]}})
    text = "".join(event.choices[0].text for event in events)
    check(text in ("yes", "no"), "a choice is", repr(text))


def check_embeddings(client, name):
    both = client.embeddings.create(model=name, input=["a town", "another town"])
    check([one.index for one in both.data] == [0, 1], "the indices of embeddings are", both.data)
    alone = client.embeddings.create(model=name, input="a town", encoding_format="float").data[0].embedding
    distance = max(abs(one - other) for one, other in zip(both.data[0].embedding, alone, strict=True))
    check(distance < 1e-7, "an embedding depends on its neighbours or its encoding by", distance)
    check(abs(sum(number * number for number in alone) - 1) < 1e-3, "the length of an embedding is not 1")
    check(both.usage.prompt_tokens == both.usage.total_tokens > 0, "usage", both.usage)


def check_errors(client, openai, name):
    wrong = [(openai.NotFoundError, {"model": "nobody", "prompt": "a"}),
             (openai.BadRequestError, {"model": name, "prompt": "a", "temperature": 9}),
             (openai.BadRequestError, {"model": name, "prompt": "a", "temperature": 9, "stream": True}),
             (openai.BadRequestError, {"model": name, "prompt": [5] * 5000})]
    for kind, fields in wrong:
        try:
            client.completions.create(**fields)
        except kind as problem:
            check(problem.body["message"] and problem.body["code"] == problem.status_code, "an error is", problem.body)
        else:
            raise Fault(f"{fields} wanted {kind.__name__}")


def check_metrics(server, parser):
    families = {family.name: family for family in parser.text_string_to_metric_families(server.get("/metrics").decode())}
    for name, kind in (("vllm:num_requests_running", "gauge"), ("vllm:generation_tokens", "counter"),
                       ("vllm:time_to_first_token_seconds", "histogram")):
        check(name in families and families[name].type == kind, f"{name} is", families.get(name))
    for family in families.values():
        if family.type != "histogram":
            continue
        buckets = {}
        for sample in family.samples:
            key = tuple(sorted((k, v) for k, v in sample.labels.items() if k != "le"))
            if sample.name.endswith("_bucket"):
                buckets.setdefault(key, []).append((float(sample.labels["le"]), sample.value))
            if sample.name.endswith("_count"):
                check(sample.value == buckets[key][-1][1], f"the count of {family.name} is not its last bucket")
        for values in buckets.values():
            check(values == sorted(values) and values[-1][0] == float("inf"), f"the buckets of {family.name} are", values)


def run(program, model):
    # pylint: disable=import-outside-toplevel
    import anthropic
    import jsonschema
    import openai
    import pydantic
    from prometheus_client import parser
    with tempfile.TemporaryDirectory() as folder:
        server = WeftServer(program, with_long_context(model, folder), ["--num-gpu-blocks-override", "300", "--pooling", "last"])
        try:
            client = openai.OpenAI(base_url=f"http://127.0.0.1:{server.port}/v1", api_key="none", max_retries=0, timeout=60)
            name = client.models.list().data[0].id
            check(client.models.retrieve(name).id == name, "the model's name")
            check_completions(client, name)
            check_chats(client, name)
            check_tools(client, name)
            check_structured(client, name, jsonschema)
            check_embeddings(client, name)
            check_errors(client, openai, name)
            check_responses(client, openai, pydantic, name)
            check_messages(server, client, anthropic, pydantic, name)
            check_metrics(server, parser)
            server.end()
        finally:
            if server.process.poll() is None:
                server.process.kill()
    print("passed with", ", ".join(f"{package} {importlib.metadata.version(package)}" for package in PACKAGES))


def read_text(path):
    """Empty if there is no such file."""
    if not os.path.exists(path):
        return ""
    with open(path, encoding="ascii") as file:
        return file.read()


def main():
    program, model, folder = map(os.path.abspath, sys.argv[1:4])
    python = os.path.join(folder, "bin", "python3")
    if os.environ.get("VIRTUAL_ENV") == folder:
        return run(program, model)
    marker = os.path.join(folder, "is_complete")
    if read_text(marker) != " ".join(PACKAGES):
        steps = ([sys.executable, "-m", "venv", folder], [python, "-m", "pip", "install", "--quiet", *PACKAGES])
        for step in steps:
            done = subprocess.run(step, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                print(f"real_clients is skipped: {' '.join(step)} says {done.stdout[-300:]} {done.stderr[-300:]}")
                return None
        with open(marker, "w", encoding="ascii") as file:
            file.write(" ".join(PACKAGES))
    return subprocess.run([python, *sys.argv], env={**os.environ, "VIRTUAL_ENV": folder}, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
