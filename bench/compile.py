#!/usr/bin/env python3
"""What compiling costs and brings, each figure beside what is wanted of it.

    bench/compile.py [MODEL] [--threads 2] [--pairs 5] [--functions]

Start and compile with and without a cache, what further layers cost, memory, a step taken apart; rates of several
lengths of prompts in interleaved rounds: compiled, with generated code for every op that is none of OPAQUE, and with
kernels alone (wanted: as fast as these, but for noise, and at most 15 % slower). With --functions all else that
docs/performance.md has of generated code: each op's function compared with its kernel (build/bench/generated_bench,
some 10 minutes) and with a copy and the limit of issue (bench/row_programs.py, which wants LLVM's tools). Rates want a
machine where no one else computes.

What compiling takes is wanted back at ready. The row that says what is left has no bound: it is LLVM's static state and
the pages of its libraries that relocations wrote, which closing them would free and nothing else. Peaks are allowed KV
pages beside weights and a constant: as many as the run says it touched, where pages are huge all of each.

Layers that differ in a scalar are compiled of a graph's text, since no config says an epsilon for each layer.
"""

import argparse
import itertools
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
WEFT = ROOT / "build" / "weft"
LEAST_OF_KERNELS = 0.87  # of a kernel's speed: 15 % slower
LEAST_FUNCTIONS = 6
OPAQUE = ("attention", "clone", "embedding", "index_select", "kv_cache_update", "linear")  # and linear_...
# Prompts, by how often each is timed in a round: the first three or four of a process are slower, for all ways.
REPETITIONS = {(1, 16): 60, (128, 512): 3}
FEW, MANY = 4, 80  # layers


def report(*command):
    """What a command of weft prints as JSON."""
    return json.loads(subprocess.run([WEFT, *map(str, command), "--json"], check=True, capture_output=True).stdout)


def row(what, came, wanted=""):
    print(f"| {what} | {came} | {wanted} |", flush=True)


def model_path(model):
    """The file of a model that is given by its name."""
    return report("bench", "model", model, "-p", 1, "-n", 0, "-r", 1)[0]["model_filename"]


def cached_in(folder):
    """The environment of a run that keeps what it compiles there."""
    kept = {name: value for name, value in os.environ.items() if name != "WEFT_DISABLE_COMPILE_CACHE"}
    return kept | {"WEFT_CACHE_ROOT": folder}


def megabytes_of_completion(model, folder, threads):
    """The most that was resident, and of that the KV pages."""
    command = [WEFT, "complete", model, "-p", "The capital of France is", "-n", "16", "-t", str(threads), "--json"]
    done = json.loads(subprocess.run(command, check=True, capture_output=True, env=cached_in(folder)).stdout)
    return done["peak_memory_bytes"] / 1e6, done["kv_memory_bytes"] / 1e6


def milliseconds_of_code(model, threads):
    """Of starts with a filled cache, what they take to trace, to make keys and to load code."""
    path = model_path(model)
    with tempfile.TemporaryDirectory() as folder:
        for i in range(16):
            done = subprocess.run([WEFT, "bench", "startup", path, "--once", "-t", str(threads)], check=True,
                                  capture_output=True, env=cached_in(folder))
            phases = json.loads(done.stdout)["timing_ms"]
            if i > 0:  # the first fills the cache
                yield phases["trace"] + phases["compile"]


def start(model, threads):
    found = report("bench", "startup", model, "-t", threads, "--num-iters-cold", 5, "--num-iters-warm", 5)
    cold_memory, warm_memory = found["cold_memory_bytes"], found["warm_memory_bytes"]
    row("ready, empty cache, s", f"{min(found['cold_startup_times']):.3f}", "0.6")
    row("of which compile, s", f"{min(found['cold_compilation_times']):.3f}", "0.3")
    row("ready, filled cache, s", f"{min(found['warm_startup_times']):.3f}", "0.120")
    code = sorted(milliseconds_of_code(model, threads))
    row("of which trace, keys and code, ms, best and median of 15", f"{code[0]:.1f}, {code[len(code) // 2]:.1f}", "10")
    row("compiling took at most, MB beyond a start with a filled cache",
        f"{(cold_memory['peak'] - warm_memory['peak']) / 1e6:.1f}", "160")
    row("of which is still there at ready, MB", f"{(cold_memory['resident'] - warm_memory['resident']) / 1e6:.1f}",
        "returned")
    found = report("bench", "startup", ROOT / "bench/models/llama-3-8b", "--load-format", "dummy", "-t", threads)
    row("functions generated", len(report("dump", "code", model)["functions"]), f"{LEAST_FUNCTIONS} and more")
    row("shape of Llama-3-8B, compile, s", f"{min(found['cold_compilation_times']):.3f}", "1")


def write_layers(folder, count):
    """A model of so many layers of 128 columns: a config.json."""
    config = json.loads((ROOT / "bench/models/llama-3-8b/config.json").read_text())
    config.update(hidden_size=128, intermediate_size=384, num_attention_heads=2, num_key_value_heads=1, vocab_size=512,
                  bos_token_id=1, eos_token_id=2, num_hidden_layers=count)
    model = pathlib.Path(folder) / f"layers-{count}"
    model.mkdir(exist_ok=True)
    (model / "config.json").write_text(json.dumps(config))
    return model


def layers(threads):
    """What a layer costs that is like the ones before: of MANY, beside FEW."""
    best = {}
    with tempfile.TemporaryDirectory() as folder:
        for count in (FEW, MANY) * 2:
            found = report("bench", "startup", write_layers(folder, count), "--load-format", "dummy", "-t", threads,
                           "--num-iters-cold", 5, "--num-iters-warm", 5)
            for kind in ("cold", "warm"):
                best[kind, count] = min(found[f"{kind}_startup_times"] + [best.get((kind, count), float("inf"))])
    for kind, cache in (("cold", "empty"), ("warm", "filled")):
        row(f"each further layer, {cache} cache, ms", f"{each_further(best[kind, FEW], best[kind, MANY]):.2f}", "1")


def each_further(few, many):
    """Milliseconds, of seconds."""
    return (many - few) / (MANY - FEW) * 1000


def write_layers_of_own_epsilon(folder, count):
    """The graph of such a model, as text, each layer with another epsilon."""
    text = subprocess.run([WEFT, "dump", "graph", write_layers(folder, count), "--load-format", "dummy", "--stage",
                           "traced", "--graph", "forward"], check=True, capture_output=True, text=True).stdout
    text = re.sub(r"epsilon=1e-05(?=.*#@ layer=(\d+))", lambda found: f"epsilon={1e-5 + int(found[1]) * 1e-7:.3e}", text)
    path = pathlib.Path(folder) / f"layers-{count}.graph"
    path.write_text(text)
    return path


def layers_of_own_epsilon(threads):
    """The same of layers of which each has its own epsilon: pieces of their own, and the functions shared. Seconds are
    of `dump plan`, which prints them too, without those to read and print the graph."""
    best = {}
    with tempfile.TemporaryDirectory() as folder:
        graphs = {count: write_layers_of_own_epsilon(folder, count) for count in (FEW, MANY)}
        for _ in range(10):
            for count, graph in graphs.items():
                for what, options in (("plan", ()), ("graph", ("--stage", "traced"))):
                    with tempfile.TemporaryDirectory() as cache:
                        begin = time.perf_counter()
                        subprocess.run([WEFT, "dump", what, graph, f"--threads={threads}", *options], check=True,
                                       stdout=subprocess.DEVNULL, env=cached_in(cache))
                        best[what, count] = min(time.perf_counter() - begin, best.get((what, count), float("inf")))
        functions = [len(report("dump", "code", graph)["functions"]) for graph in graphs.values()]
    row(f"functions of {FEW} and of {MANY} layers of other epsilons", f"{functions[0]} and {functions[1]}", "as many")
    cost, reading = (each_further(best[what, FEW], best[what, MANY]) for what in ("plan", "graph"))
    row("each further layer of another epsilon, empty cache, ms", f"{cost - reading:.2f}", "1")


def memory(model, threads):
    model = model_path(model)
    with tempfile.TemporaryDirectory() as folder:
        compiling, warm = (megabytes_of_completion(model, folder, threads) for _ in range(2))
    allowed = report("explain", model)["memory"]["weights"] / 1e6 + 64
    for what, (peak, pages), more in (("filled cache", warm, 0), ("while compiling", compiling, 160)):
        row(f"peak resident set, {what}, MB", f"{peak:.0f}, of which KV pages {pages:.1f}",
            f"{allowed + more:.0f} and these: {allowed + more + pages:.0f}")
    found = report("explain", model, "--measure")["memory"]
    row("activations, planned / measured, MB",
        f"{found['activations_planned'] / 1e6:.2f} / {found['activations_measured'] / 1e6:.2f}")


def native_options(model):
    """Generated code for all that is not opaque, also for what becomes of ops that are then not joined."""
    names = set()
    while True:
        options = [f"--ir-op-priority.{name}=native" for name in sorted(names)]
        found = {node["op"] for node in report("explain", model, *options)["nodes"] if not node["op"].startswith(OPAQUE)}
        if found <= names:
            return options
        names |= found


def ratio_text(ours, theirs):
    """Of what came in the same rounds: the median, and between what the middle half lies."""
    low, middle, high = statistics.quantiles((a / b for a, b in zip(ours, theirs)), n=4, method="inclusive")
    return f"{middle:.2f} ({low:.2f} to {high:.2f})"


def rates(model, threads, pairs):
    ways = {"compiled": [], "native": native_options(model), "kernels": ["-cc.backend=eager"]}
    came = {}
    for turn in range(pairs):
        order = list(ways)
        for way in order[turn % 3:] + order[:turn % 3]:
            for prompts, repetitions in REPETITIONS.items():
                words = ["-p", ",".join(map(str, prompts)), "-n", 0 if 1 in prompts else 64, "-r", repetitions]
                for found in report("bench", "model", model, "-t", threads, *words, *ways[way]):
                    came.setdefault((found["n_prompt"], way), []).append(found["avg_ts"])
    for prompt in [*itertools.chain(*REPETITIONS), 0]:
        compiled, native, kernels = (came[prompt, way] for way in ways)
        rate = "; ".join(f"{name}{statistics.median(all):.0f}" for name, all in
                         (("", compiled), ("every op native ", native), ("kernels alone ", kernels)))
        row(f"prompts of {prompt}, tokens/s" if prompt else "generation of 64, tokens/s",
            f"{rate}; {ratio_text(compiled, kernels)} and {ratio_text(native, kernels)} of these",
            f"1, and {LEAST_OF_KERNELS}")


def steps(model, threads):
    for depth in (0, 1024):
        found = report("bench", "model", model, "-t", threads, "-p", 0, "-n", 64, "-d", depth, "-r", 3, "--breakdown")[0]
        row(f"generation behind {depth} tokens: kernels, barriers, rest, %",
            ", ".join(f"{found[f'step_{part}_percent']:.1f}" for part in ("kernels", "barriers", "rest")),
            "barriers 8, rest 3")


def functions_beside_kernels():
    found = json.loads(subprocess.run(
        [ROOT / "build/bench/generated_bench", "--benchmark_format=json", "--benchmark_repetitions=5",
         "--benchmark_enable_random_interleaving=true", "--benchmark_min_time=0.1"],
        check=True, capture_output=True).stdout)
    best = {}
    for one in found["benchmarks"]:
        if one["run_type"] == "iteration":
            best[one["run_name"]] = min(best.get(one["run_name"], float("inf")), one["cpu_time"])
    for name in sorted(best):
        call, _, provider = name.rpartition("/")
        if provider == "native" and f"{call}/cpu" in best:
            row(f"{call}, times the kernel's speed", f"{best[f'{call}/cpu'] / best[name]:.2f}", LEAST_OF_KERNELS)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="?", default="smollm2-135m")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--functions", action="store_true")
    given = parser.parse_args()
    machine = report("info")
    print(f"{machine['processor']}, {machine['features']['in_use']}, {given.threads} threads\n")
    print("| what | came | wanted |\n|---|---|---|")
    start(given.model, given.threads)
    layers(given.threads)
    layers_of_own_epsilon(given.threads)
    memory(given.model, given.threads)
    rates(given.model, given.threads, given.pairs)
    steps(given.model, given.threads)
    if given.functions:
        functions_beside_kernels()
        print(flush=True)
        subprocess.run([sys.executable, ROOT / "bench/row_programs.py", "--threads", str(given.threads)], check=True)


if __name__ == "__main__":
    main()
