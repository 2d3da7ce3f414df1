#!/usr/bin/env python3
"""Prompt and generation rates of Weft beside llama.cpp's: same file, same threads, runs taken in turn.

    pip install llama-cpp-python
    bench/beside_llama_cpp.py MODEL.gguf [--threads 2] [--pairs 5] [--prompt 512] [--generate 128]

Each pair is one run of each program, each in a process of its own with a warm-up. Prints every run, then the medians and
their ratio.
"""

import argparse
import ctypes
import json
import pathlib
import statistics
import subprocess
import sys
import time

WEFT = pathlib.Path(__file__).resolve().parent.parent / "build" / "weft"


def peer(path, threads, prompt, generate):
    """One measurement by llama.cpp's library, as llama-bench takes it: (prompt tokens/s, generated tokens/s)."""
    import llama_cpp

    silence = llama_cpp.llama_log_callback(lambda level, text, data: None)
    llama_cpp.llama_log_set(silence, ctypes.c_void_p(0))
    llama_cpp.llama_backend_init()
    model = llama_cpp.llama_model_load_from_file(path.encode(), llama_cpp.llama_model_default_params())
    settings = llama_cpp.llama_context_default_params()
    settings.n_ctx = max(1024, prompt + generate)
    settings.n_batch = settings.n_ubatch = 512
    settings.n_threads = settings.n_threads_batch = threads
    context = llama_cpp.llama_init_from_model(model, settings)

    def feed(tokens):
        array = (llama_cpp.llama_token * len(tokens))(*tokens)
        if llama_cpp.llama_decode(context, llama_cpp.llama_batch_get_one(array, len(tokens))) != 0:
            sys.exit("llama_decode failed")
        llama_cpp.llama_synchronize(context)

    def forget():
        llama_cpp.llama_memory_clear(llama_cpp.llama_get_memory(context), True)

    def seconds(batches):
        forget()
        start = time.perf_counter()
        for tokens in batches:
            feed(tokens)
        return time.perf_counter() - start

    whole = [[i * 31 % 30000 + 5 for i in range(prompt)]]
    one_by_one = [[i * 17 % 30000 + 5] for i in range(generate)]
    seconds(whole), seconds(one_by_one[:8])
    return prompt / seconds(whole), generate / seconds(one_by_one)


def ours(path, threads, prompt, generate):
    command = [str(WEFT), "bench", "model", path, "-t", str(threads), "-r", "1", "-o", "json"]
    rates = []
    for extra in (["-p", str(prompt), "-n", "0"], ["-p", "0", "-n", str(generate)]):
        rows = json.loads(subprocess.run(command + extra, check=True, capture_output=True, text=True).stdout)
        rates.append(rows[-1]["avg_ts"])
    return tuple(rates)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--prompt", type=int, default=512)
    parser.add_argument("--generate", type=int, default=128)
    parser.add_argument("--peer", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    sizes = (given.model, given.threads, given.prompt, given.generate)
    if given.peer:
        print(json.dumps(peer(*sizes)))
        return
    results = {"weft": [], "llama.cpp": []}
    for pair in range(given.pairs):
        results["weft"].append(ours(*sizes))
        again = subprocess.run([sys.executable, __file__, given.model, "--peer", "--threads", str(given.threads),
                                "--prompt", str(given.prompt), "--generate", str(given.generate)],
                               check=True, capture_output=True, text=True)
        results["llama.cpp"].append(tuple(json.loads(again.stdout)))
        for name, rows in results.items():
            print(f"pair {pair + 1}  {name:<10} pp{given.prompt} {rows[-1][0]:8.1f}  tg{given.generate} {rows[-1][1]:7.1f}",
                  flush=True)
    for column, test in enumerate((f"pp{given.prompt}", f"tg{given.generate}")):
        median = {name: statistics.median(row[column] for row in rows) for name, rows in results.items()}
        print(f"median {test}: weft {median['weft']:.1f}, llama.cpp {median['llama.cpp']:.1f} tokens/s, "
              f"{median['weft'] / median['llama.cpp']:.2f}x")


if __name__ == "__main__":
    main()
