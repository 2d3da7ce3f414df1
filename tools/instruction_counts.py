#!/usr/bin/env python3
"""Counts the instructions of steps of small models, and compares them with tools/instruction_counts.txt.

    tools/instruction_counts.py [--record] [CASE...]     after: ninja -C build weft

A count is of all calls of ModelRunner::step: kernels, generated functions and the code around them, on one thread, with
AVX2, by valgrind's callgrind. Weights are zeros that take no memory. Counts are the same in every run and on every
machine with the same compiler, so that a loss of speed shows that a noisy clock would hide; they say nothing of memory,
and nothing of newer instruction sets. Fails if a count is more than 2 % higher than the recorded one. A count that is more
than 2 % lower is to be recorded, with --record, in the commit that made it lower.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
RECORD = ROOT / "tools" / "instruction_counts.txt"
TOLERANCE = 0.02
SHOWN = 12

# The shape of SmolLM2's layers.
LLAMA = dict(architectures=["LlamaForCausalLM"], model_type="llama", hidden_act="silu", hidden_size=576,
             intermediate_size=1536, num_attention_heads=9, num_key_value_heads=3, num_hidden_layers=2,
             max_position_embeddings=4096, rms_norm_eps=1e-5, rope_theta=10000.0, vocab_size=1024,
             torch_dtype="bfloat16", tie_word_embeddings=True)
MIXTURE = dict(LLAMA, architectures=["Qwen3MoeForCausalLM"], model_type="qwen3_moe", head_dim=64, num_experts=16,
               num_experts_per_tok=4, moe_intermediate_size=256, decoder_sparse_step=1, norm_topk_prob=True,
               mlp_only_layers=[])

# Little besides attention.
ATTENTION = dict(LLAMA, num_hidden_layers=1, hidden_size=64, head_dim=64, intermediate_size=64, vocab_size=64)

# Name, model, and what `weft bench model` runs of it.
CASES = {
    "q4_1-prompt": ("smollm2-135m", ["-p", "16", "-n", "0"]),
    "q4_1-generation": ("smollm2-135m", ["-p", "0", "-n", "2"]),
    "bf16-prompt": (LLAMA, ["-p", "16", "-n", "0"]),
    "bf16-generation": (LLAMA, ["-p", "0", "-n", "2"]),
    "attention-prompt": (ATTENTION, ["-p", "256", "-n", "0"]),
    "attention-generation": (ATTENTION, ["-d", "256", "-p", "0", "-n", "32"]),
    "mixture-prompt": (MIXTURE, ["-p", "16", "-n", "0"]),
}


def profile(model, arguments, out):
    """Runs one case under callgrind and returns its count."""
    command = ["valgrind", "--tool=callgrind", "--smc-check=all-non-file", "--toggle-collect=weft::ModelRunner::step(*",
               f"--callgrind-out-file={out}", str(ROOT / "build" / "weft"), "bench", "model", str(model),
               "--load-format", "dummy", "-r", "1", "--no-warmup", "-t", "1", *arguments]
    environment = dict(os.environ, WEFT_CPU_FEATURES="avx2")
    ran = subprocess.run(command, capture_output=True, text=True, env=environment)
    counted = re.search(r"Collected : (\d+)", ran.stderr)
    if ran.returncode != 0 or counted is None:
        sys.exit(f"instruction counts: {' '.join(command)} failed\n{ran.stderr}")
    return int(counted[1])


def largest_functions(out):
    lines = subprocess.run(["callgrind_annotate", str(out)], capture_output=True, text=True).stdout.splitlines()
    return [line.strip()[:150] for line in lines if re.match(r"\s*[\d,]+ \(", line)][1:SHOWN + 1]


def recorded():
    if not RECORD.exists():
        return {}
    rows = (line.split() for line in RECORD.read_text().splitlines() if line and not line.startswith("#"))
    return {name: int(count) for name, count in rows}


def main():
    arguments = sys.argv[1:]
    records = "--record" in arguments
    names = [name for name in arguments if name != "--record"] or list(CASES)
    if unknown := [name for name in names if name not in CASES]:
        sys.exit(f"instruction counts: unknown case {unknown[0]}; there are {', '.join(CASES)}")
    before, failed = recorded(), False
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            model, arguments = CASES[name]
            if isinstance(model, dict):
                path = pathlib.Path(folder) / name
                path.mkdir()
                (path / "config.json").write_text(json.dumps(model))
                model = path
            out = pathlib.Path(folder) / f"{name}.callgrind"
            count = profile(model, arguments, out)
            change = count / before[name] - 1 if name in before else None
            print(f"{name:24} {count:>12,}" + ("" if change is None else f"  {change:+.2%} of {before[name]:,}"), flush=True)
            before[name] = count
            if records:
                continue
            if change is None or change > TOLERANCE:
                failed = True
                print("\n".join(["  the largest functions:"] + ["    " + line for line in largest_functions(out)]))
            elif change < -TOLERANCE:
                print("  fewer than recorded: run tools/instruction_counts.py --record")
    if records:
        text = "# Instructions of steps, by tools/instruction_counts.py --record.\n"
        RECORD.write_text(text + "".join(f"{name} {before[name]}\n" for name in CASES if name in before))
    elif failed:
        sys.exit(f"instruction counts: more than {TOLERANCE:.0%} above tools/instruction_counts.txt, or not recorded")


if __name__ == "__main__":
    main()
