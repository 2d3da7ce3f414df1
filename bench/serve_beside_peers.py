#!/usr/bin/env python3
"""Streams of Weft's server beside vLLM's CPU server and llama.cpp: same prompts' lengths, same machine, runs in turn.

    bench/serve_beside_peers.py --gguf MODEL.gguf --folder MODEL [--vllm VENV] [--llama VENV] [--streams 8,32] [--rounds 3]
                                [--prompts 4] [--library-alone]

MODEL is a Hugging Face folder of the same model in bf16. VENV is a Python environment with vLLM's CPU build, or with
llama-cpp-python. Each stream has 64 tokens of prompt and 64 of answer. `weft bench serve` is the client of all servers.
Of llama.cpp the tokens/s are those of its library, with all sequences in one batch; its Python server, which takes no
token ids and has no continuous batching, is measured for the times, with prompts of as many tokens of text. A server
that waits for its turn is stopped (SIGSTOP). Prints each run, then the medians.
"""

import argparse
import atexit
import ctypes
import json
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

WEFT = pathlib.Path(__file__).resolve().parent.parent / "build" / "weft"
TOKENS = 64  # of a prompt, and of an answer


def batched_by_llama_cpp(path, sequences):
    """Generated tokens/s of llama.cpp's library, all sequences in each batch, prompts included."""
    import llama_cpp as llama

    silence = llama.llama_log_callback(lambda level, text, data: None)
    llama.llama_log_set(silence, ctypes.c_void_p(0))
    llama.llama_backend_init()
    model = llama.llama_model_load_from_file(path.encode(), llama.llama_model_default_params())
    settings = llama.llama_context_default_params()
    settings.n_ctx, settings.n_seq_max = sequences * 2 * TOKENS, sequences
    settings.n_batch, settings.n_ubatch = 2048, 512
    settings.n_threads = settings.n_threads_batch = 2
    context = llama.llama_init_from_model(model, settings)

    def feed(rows):
        batch = llama.llama_batch_init(len(rows), 0, 1)
        batch.n_tokens = len(rows)
        for i, (sequence, position, wants_logits) in enumerate(rows):
            batch.token[i] = (position * 31 + sequence * 17) % 30000 + 5
            batch.pos[i], batch.n_seq_id[i], batch.seq_id[i][0] = position, 1, sequence
            batch.logits[i] = wants_logits
        if llama.llama_decode(context, batch) != 0:
            sys.exit("llama_decode failed")
        llama.llama_synchronize(context)
        llama.llama_batch_free(batch)

    def run():
        llama.llama_memory_clear(llama.llama_get_memory(context), True)
        start = time.perf_counter()
        prompts = [(s, p, p == TOKENS - 1) for s in range(sequences) for p in range(TOKENS)]
        for first in range(0, len(prompts), settings.n_batch):
            feed(prompts[first : first + settings.n_batch])
        for position in range(TOKENS, 2 * TOKENS):
            feed([(s, position, True) for s in range(sequences)])
        return sequences * TOKENS / (time.perf_counter() - start)

    run()
    return run()


class Server:
    """A server of another program, which is stopped but in its turns."""

    def __init__(self, name, command, port, model, tokenizer, takes_text=False):
        self.name, self.port, self.model, self.tokenizer = name, port, model, tokenizer
        self.takes_text = takes_text
        self.log = tempfile.NamedTemporaryFile(suffix=".log", delete=False)
        environment = dict(os.environ, OMP_NUM_THREADS="2", VLLM_CPU_KVCACHE_SPACE="2")
        self.process = subprocess.Popen(command, stdout=self.log, stderr=self.log, env=environment, start_new_session=True)
        atexit.register(self.end)
        end = time.time() + 600
        while not self.answers():
            if self.process.poll() is not None or time.time() > end:
                sys.exit(f"{name} does not start: see {self.log.name}")
            time.sleep(1)
        self.signal(signal.SIGSTOP)

    def answers(self):
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{self.port}/v1/models", timeout=5)
            return True
        except (urllib.error.URLError, OSError):
            return False

    def signal(self, number):
        os.killpg(self.process.pid, number)

    def measure(self, streams, prompts):
        self.signal(signal.SIGCONT)
        url = ["--base-url", f"http://127.0.0.1:{self.port}", "--served-model-name", self.model,
               "--tokenizer", self.tokenizer]  # fmt: skip
        try:
            return bench_serve(streams, prompts, url, self.takes_text)
        finally:
            self.signal(signal.SIGSTOP)

    def end(self):
        if self.process.poll() is None:
            self.signal(signal.SIGKILL)
            self.process.wait()


def text_prompts(count, path):
    """Writes prompts of TOKENS tokens, if each of these words is one."""
    words = "time water house light river music paper green stone table night world story plant north field".split()
    with open(path, "w") as file:
        for i in range(count):
            text = " ".join(words[(i * 7 + t * (i % 5 + 3)) % len(words)] for t in range(TOKENS))
            file.write(json.dumps({"prompt": text, "output_tokens": TOKENS}) + "\n")


def bench_serve(streams, prompts, arguments, takes_text=False):
    """(generated tokens/s, median time to the first token in ms, p99 between tokens in ms)"""
    with tempfile.TemporaryDirectory() as folder:
        if takes_text:
            path = str(pathlib.Path(folder) / "prompts.jsonl")
            text_prompts(prompts, path)
            dataset = ["--dataset-name", "custom", "--dataset-path", path]
        else:
            dataset = ["--dataset-name", "random", "--random-input-len", str(TOKENS), "--random-output-len", str(TOKENS),
                       "--ignore-eos"]  # fmt: skip
        subprocess.run(
            [WEFT, "bench", "serve", *dataset, "--num-prompts", str(prompts), "--max-concurrency", str(streams),
             "--num-warmups", "2", "--save-result", "--result-dir", folder, "--result-filename", "r.json", *arguments],
            check=True, stdout=subprocess.DEVNULL)  # fmt: skip
        result = json.loads((pathlib.Path(folder) / "r.json").read_text())
    if result["failed"]:
        sys.exit(f"{result['failed']} requests failed: {arguments}")
    return result["output_throughput"], result["median_ttft_ms"], result["p99_itl_ms"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gguf", required=True)
    parser.add_argument("--folder")
    parser.add_argument("--vllm")
    parser.add_argument("--llama")
    parser.add_argument("--streams", default="8,32")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--prompts", type=int, default=4, help="of each stream, one after another")
    parser.add_argument("--library-alone", action="store_true", help="no llama.cpp server, which takes minutes")
    parser.add_argument("--batch", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.batch:
        print(batched_by_llama_cpp(arguments.gguf, int(arguments.batch)))
        return

    ways = {}  # name: function of (streams, prompts) that returns what bench_serve returns
    for name, model in (("weft", arguments.gguf), ("weft bf16", arguments.folder)):
        if model:
            ways[name] = lambda streams, prompts, model=model: bench_serve(streams, prompts, ["--model", model, "-t", "2"])
    servers = []
    if arguments.llama:
        python = str(pathlib.Path(arguments.llama) / "bin" / "python")

        def library(streams, prompts):
            command = [python, __file__, "--gguf", arguments.gguf, "--batch", str(streams)]
            return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout), None, None

        ways["llama.cpp, library"] = library
        if not arguments.library_alone:
            command = [python, "-m", "llama_cpp.server", "--model", arguments.gguf, "--model_alias", "m", "--n_ctx", "2048",
                       "--n_threads", "2", "--n_threads_batch", "2", "--interrupt_requests", "false", "--port", "8773"]  # fmt: skip
            servers.append(Server("llama.cpp, Python server", command, 8773, "m", arguments.gguf, takes_text=True))
    if arguments.vllm:
        command = [str(pathlib.Path(arguments.vllm) / "bin" / "python"), "-m", "vllm.entrypoints.openai.api_server",
                   "--model", arguments.folder, "--served-model-name", "m", "--dtype", "bfloat16",
                   "--max-model-len", "2048", "--port", "8772", "--enforce-eager"]  # fmt: skip
        servers.append(Server("vLLM bf16", command, 8772, "m", arguments.gguf))
    for server in servers:
        ways[server.name] = server.measure

    results = {}
    for streams in map(int, arguments.streams.split(",")):
        for _ in range(arguments.rounds):
            for name, measure in ways.items():
                values = measure(streams, arguments.prompts * streams)
                results.setdefault((streams, name), []).append(values)
                print(streams, name, *("-" if value is None else f"{value:.1f}" for value in values), flush=True)
    print("\nstreams, server, generated tokens/s, median to the first token ms, p99 between tokens ms: medians")
    for (streams, name), values in results.items():
        medians = [None if column[0] is None else statistics.median(column) for column in zip(*values)]
        print(f"| {streams} | {name} |", " | ".join("" if value is None else f"{value:.1f}" for value in medians), "|")


if __name__ == "__main__":
    main()
