#!/usr/bin/env python3
"""What compiling costs and brings, each figure beside what is wanted of it.

    bench/compile.py [MODEL] [--threads 2] [--pairs 5] [--functions]

Start and compile with and without a cache, memory, a step taken apart, compiled against kernels alone in interleaved
pairs; with --functions also each generated function beside the kernel of its op (build/bench/generated_bench, some 15
minutes) and beside a copy (bench/row_programs.py, which wants LLVM's tools). Rates want a machine where nobody else
computes.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
WEFT = ROOT / "build" / "weft"
LEAST_OF_KERNELS = 0.87  # of a kernel's speed: 15 % slower


def report(*command):
    """What a command of weft prints as JSON."""
    return json.loads(subprocess.run([WEFT, *map(str, command), "--json"], check=True, capture_output=True).stdout)


def row(what, came, wanted=""):
    print(f"| {what} | {came} | {wanted} |", flush=True)


def peak_megabytes(model, folder, threads):
    process = subprocess.Popen([WEFT, "complete", model, "-p", "The capital of France is", "-n", "16", "-t", str(threads)],
                               env=dict(os.environ, WEFT_CACHE_ROOT=folder), stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        sys.exit(f"weft complete ended with status {status}")
    return usage.ru_maxrss / 1024


def start(model, threads):
    found = report("bench", "startup", model, "-t", threads, "--num-iters-cold", 5, "--num-iters-warm", 5)
    warm = found["warm_phases_ms"]
    row("ready, empty cache, s", f"{min(found['cold_startup_times']):.3f}", "0.6")
    row("of which compile, s", f"{min(found['cold_compilation_times']):.3f}", "0.3")
    row("ready, filled cache, s", f"{min(found['warm_startup_times']):.3f}", "0.120")
    row("of which trace, keys and code, ms", f"{warm['trace'] + warm['compile']:.1f}", "10")
    found = report("bench", "startup", ROOT / "bench/models/llama-3-8b", "--load-format", "dummy", "-t", threads)
    row("shape of Llama-3-8B, compile, s", f"{min(found['cold_compilation_times']):.3f}", "1")


def memory(model, threads):
    # A model's name is found in the cache's folder, which is another one here.
    model = report("bench", "model", model, "-p", 1, "-n", 0, "-r", 1)[0]["model_filename"]
    with tempfile.TemporaryDirectory() as folder:
        compiling, warm = (peak_megabytes(model, folder, threads) for _ in range(2))
    allowed = report("explain", model)["memory"]["weights"] / 1e6 + 64
    row("peak resident set, filled cache, MB", f"{warm:.0f}", f"{allowed:.0f} and KV pages")
    row("while compiling, MB", f"{compiling:.0f}", f"{allowed + 160:.0f} and KV pages")


def rates(model, threads, pairs):
    came = {}
    for _ in range(pairs):
        for backend in ("", "eager"):
            options = [f"-cc.backend={backend}"] if backend else []
            for found in report("bench", "model", model, "-t", threads, "-p", 512, "-n", 64, "-r", 1, *options):
                came.setdefault((found["n_gen"] > 0, backend), []).append(found["avg_ts"])
    for is_generation, what in ((False, "prompts of 512"), (True, "generation of 64")):
        compiled, kernels = (statistics.median(came[is_generation, backend]) for backend in ("", "eager"))
        row(f"{what}, tokens/s, compiled / kernels alone", f"{compiled:.0f} / {kernels:.0f}, {compiled / kernels:.2f}",
            LEAST_OF_KERNELS)


def steps(model, threads):
    for depth in (0, 1024):
        found = report("bench", "model", model, "-t", threads, "-p", 0, "-n", 64, "-d", depth, "-r", 3, "--breakdown")[0]
        row(f"generation behind {depth} tokens: kernels, barriers, rest, %",
            ", ".join(f"{found[f'step_{part}_percent']:.1f}" for part in ("kernels", "barriers", "rest")),
            "barriers 8, rest 3")


def functions_beside_kernels():
    found = json.loads(subprocess.run(
        [ROOT / "build/bench/generated_bench", "--benchmark_format=json", "--benchmark_repetitions=5",
         "--benchmark_enable_random_interleaving=true", "--benchmark_min_time=0.01s"],
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
    print("| what | came | wanted |\n|---|---|---|")
    start(given.model, given.threads)
    memory(given.model, given.threads)
    rates(given.model, given.threads, given.pairs)
    steps(given.model, given.threads)
    if given.functions:
        functions_beside_kernels()
        print(flush=True)
        subprocess.run([sys.executable, ROOT / "bench/row_programs.py", given.model, "--threads", str(given.threads)],
                       check=True)


if __name__ == "__main__":
    main()
