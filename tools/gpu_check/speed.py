"""Steps about speed: models of dummy weights, the same work in PyTorch, start-up."""

import json
import os
import pathlib
import subprocess
import sys

import checkpoints
from outcomes import Failed, Refused, Skipped, answer, last_words

HERE = pathlib.Path(__file__).resolve().parent


def _bench(session, shape, *options, seconds=60, **more):
    """Rows of `weft bench model` on dummy weights, and its command line."""
    words = [session.weft, "bench", "model", session.shape(shape), "--load-format", "dummy", "--device",
             session.device, "-o", "jsonl", *options]
    printed = answer(words, seconds, **more)
    return [json.loads(line) for line in printed.splitlines()], " ".join(map(str, words))


def _rate(rows, **wanted):
    return next((max(row["samples_ts"]) for row in rows if all(row[key] == value for key, value in wanted.items())),
                None)


def _host_microseconds(trace):
    """Of each step the time until all its work was handed to the device, median."""
    events = json.loads(trace.read_text())
    events = events["traceEvents"] if isinstance(events, dict) else events
    steps = [event for event in events if event.get("cat") == "step"]
    replays = [event for event in events if event.get("cat") == "replay"]
    times = []
    for step in steps[len(steps) // 2:]:  # the first ones capture
        ends = [one["ts"] + one["dur"] for one in replays if step["ts"] <= one["ts"] <= step["ts"] + step["dur"]]
        if ends:
            times.append(max(ends) - step["ts"])
    return sorted(times)[len(times) // 2] if times else None


def _measure(session, shape, prompts, sequences, tokens):
    rows, command = _bench(session, shape, "-p", ",".join(map(str, prompts)), "-n", "0", "-r", "3",
                           "--max-num-batched-tokens", max(prompts))
    generated, _ = _bench(session, shape, "-p", "0", "-n", tokens, "-r", "3", "-npl", ",".join(map(str, sequences)))
    eager, _ = _bench(session, shape, "-p", "0", "-n", tokens, "-r", "2", "-cc.cudagraph_mode=NONE")
    trace = session.out / "trace.json"
    _bench(session, shape, "-p", "0", "-n", tokens, "-r", "1", env=os.environ | {"WEFT_TRACE": str(trace)})
    one = {"bytes": rows[0]["model_size"], "parameters": rows[0]["model_n_params"], "command": command,
           "prompt": {str(count): _rate(rows, n_prompt=count) for count in prompts},
           "generated": {str(count): _rate(generated, n_parallel=count) for count in sequences},
           "eager": _rate(eager, n_parallel=1), "host_microseconds": _host_microseconds(trace)}
    # What each generated token reads of it: of an untied table of embeddings only a row.
    width = checkpoints.SHAPES[shape.rsplit("-", 1)[0]]
    if not width["tie_word_embeddings"]:
        one["bytes"] -= 2 * width["vocab_size"] * width["hidden_size"]
    return one


def decode(session):
    """Prompts of 512 and 2,048 tokens; generation of 1, 8 and 32 sequences, captured and launch by launch."""
    if session.is_fake:
        plan = [("tiny-bf16", (8, 16), (1, 3), 4), ("tiny-fp8", (8,), (1, 3), 4)]
    else:
        plan = [(f"{shape}-{kind}", (512, 2048), (1, 8, 32), 64) for shape in ("llama-3-8b", "smollm2-135m", "qwen3-8b")
                for kind in ("bf16", "fp8")]
    data, refused = {}, []
    for shape, *sizes in plan:
        try:
            data[shape] = _measure(session, shape, *sizes)
        except Refused as refusal:  # the others are worth having all the same
            refused.append(str(refusal))
    if refused:
        raise Failed("; ".join(refused), {"shapes": data})
    first = next(iter(data))
    return f"{first}: {data[first]['generated']['1']:.1f} tokens/s of one sequence", {"shapes": data}


def start(session):
    """From the start of a process to ready, with an empty compile cache and with a filled one."""
    data = {}
    for shape in (["tiny-bf16"] if session.is_fake else ["smollm2-135m-bf16", "llama-3-8b-bf16"]):
        words = [session.weft, "bench", "startup", session.shape(shape), "--load-format", "dummy", "--device",
                 session.device, "--num-iters-cold", "2", "--num-iters-warm", "2", "--num-iters-warmup", "0", "--json"]
        found = json.loads(answer(words, session.seconds))
        data[shape] = {key: found[key] for key in ("cold_startup_times", "warm_startup_times", "cold_phases_ms",
                                                   "warm_phases_ms")}
        data[shape]["command"] = " ".join(map(str, words))
    return ", ".join(f"{shape} cold {min(one['cold_startup_times']):.2f} s, warm {min(one['warm_startup_times']):.2f} s"
                     for shape, one in data.items()), data


# -- PyTorch beside it

def _has_torch():
    return subprocess.run([sys.executable, "-c", "import torch"], capture_output=True).returncode == 0


def _lines(session, program, *arguments):
    """The lines of JSON that a program of this folder prints, those of one that was ended in time, too."""
    if session.is_fake:
        raise Skipped("torch measures a GPU, and this is an emulated one" if _has_torch() else
                      "there is no torch here, and no GPU for it to measure")
    if not _has_torch():
        raise Skipped("there is no torch on this machine")
    words = [sys.executable, HERE / program, *arguments]
    path = session.out / f"{program}.jsonl"
    problem = ""
    with open(path, "w") as file:
        try:
            done = subprocess.run([str(word) for word in words], stdout=file, stderr=subprocess.PIPE, text=True,
                                  timeout=session.seconds - 2)
            problem = "" if done.returncode == 0 else f"status {done.returncode}: {last_words(done.stderr)}"
        except subprocess.TimeoutExpired:
            problem = "ended at its time limit"
    lines = [json.loads(line) for line in path.read_text().splitlines() if line.startswith("{")]
    data = {"rows": lines, "problem": problem, "command": " ".join(map(str, words))}
    if not lines:
        raise Failed(f"{program} printed nothing: {problem}", data)
    return f"{len(lines)} rows{'; ' + problem if problem else ''}", data


def torch_rows(session):
    """Row-wise ops in eager PyTorch, by torch.compile and, of the fused kernel, in Triton."""
    return _lines(session, "torch_rows.py")


def torch_decode(session):
    """transformers with a static cache and torch.compile on the same shapes."""
    shapes = ("llama-3-8b-bf16", "qwen3-8b-bf16", "smollm2-135m-bf16")
    return _lines(session, "torch_decode.py", *map(session.shape, shapes))
