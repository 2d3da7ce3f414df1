#!/usr/bin/env python3
"""Prompt and generation rates of Weft beside those of vLLM's CPU build: same folder, same threads, runs taken in turn.

    bench/beside_vllm.py FOLDER --vllm VENV [--also FILE.gguf ...] [--threads 2] [--pairs 7] [--prompt 512] [--generate 128]

FOLDER is a Hugging Face folder of bf16, VENV a Python environment with vLLM. Files after --also are run by Weft alone and
compared with vLLM on FOLDER. vLLM (eager) stays loaded and waits while Weft runs. Prints every run, then the medians, and
the least, the median and the largest ratio of a pair: AMX may slow down for seconds.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

from beside_llama_cpp import ours


def serve(folder, prompt, generate):
    """In vLLM's environment: for each line of input one measurement, as a line of JSON."""
    os.environ.update(VLLM_CPU_KVCACHE_SPACE="2", HF_HUB_OFFLINE="1", VLLM_NO_USAGE_STATS="1",
                      VLLM_ENABLE_V1_MULTIPROCESSING="0", VLLM_LOGGING_LEVEL="ERROR")
    results = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever vLLM prints
    from vllm import LLM, SamplingParams

    model = LLM(model=folder, dtype="bfloat16", max_model_len=prompt + generate + 16, max_num_seqs=8,
                max_num_batched_tokens=2048, enable_prefix_caching=False, enforce_eager=True)

    def seconds(length, answer, number):
        tokens = {"prompt_token_ids": [(i * 7919 + 11 + number) % 30000 for i in range(length)]}
        start = time.perf_counter()
        model.generate([tokens], SamplingParams(temperature=0, max_tokens=answer, ignore_eos=True), use_tqdm=False)
        return time.perf_counter() - start

    seconds(prompt, 8, 0)
    for number, _ in enumerate(sys.stdin, 1):
        rates = prompt / seconds(prompt, 1, number), generate / seconds(1, generate, number)
        print(json.dumps(rates), file=results, flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--vllm")
    parser.add_argument("--also", nargs="*", default=[])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--prompt", type=int, default=512)
    parser.add_argument("--generate", type=int, default=128)
    parser.add_argument("--peer", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.peer:
        return serve(given.folder, given.prompt, given.generate)
    if not given.vllm:
        parser.error("--vllm VENV is needed")
    command = [str(pathlib.Path(given.vllm) / "bin" / "python"), __file__, given.folder, "--peer", "--prompt",
               str(given.prompt), "--generate", str(given.generate)]
    peer = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                            env={**os.environ, "OMP_NUM_THREADS": str(given.threads)})

    def theirs():
        print("again", file=peer.stdin, flush=True)
        line = peer.stdout.readline()
        if not line:
            sys.exit(f"vLLM ended with {peer.wait()}; its output: {' '.join(command)}")
        return tuple(json.loads(line))

    models = [given.folder, *given.also]
    results = {"vllm": [], **{model: [] for model in models}}
    for pair in range(given.pairs):
        results["vllm"].append(theirs())
        for model in models:
            results[model].append(ours(model, given.threads, given.prompt, given.generate))
        for name, rows in results.items():
            print(f"pair {pair + 1}  {pathlib.Path(name).name:<40} pp{given.prompt} {rows[-1][0]:8.1f}"
                  f"  tg{given.generate} {rows[-1][1]:7.1f}", flush=True)
    peer.stdin.close()
    for column, test in enumerate((f"pp{given.prompt}", f"tg{given.generate}")):
        medians = {name: statistics.median(row[column] for row in rows) for name, rows in results.items()}
        for model in models:
            ratios = sorted(row[column] / peer[column] for row, peer in zip(results[model], results["vllm"]))
            print(f"median {test}: {pathlib.Path(model).name} {medians[model]:.1f}, vLLM {medians['vllm']:.1f} tokens/s; "
                  f"pairs {ratios[0]:.2f}, {statistics.median(ratios):.2f}, {ratios[-1]:.2f}x")


if __name__ == "__main__":
    main()
