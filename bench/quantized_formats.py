#!/usr/bin/env python3
"""What each format of `weft quantize` costs and keeps: size, fusions, perplexity, greedy text, rates.

    bench/quantized_formats.py [MODEL] [--formats fp8-block int8 ...] [--pairs 3] [--prompt 256] [--generate 64]

Quantizes the model into a temporary folder in each format and prints one row: megabytes; act, rms and attn+quant as
they were matched, of as many as the model declares; perplexity of the recorded text, and its ratio to bf16's; of how
many of the recorded prompts the greedy text is the same with fusions and without; prompt and generation rates with
fusions and without, medians of runs taken in turn. Exit 1 when a text differs or a fusion is missing.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
WEFT = ROOT / "build" / "weft"
PARITY = ROOT / "tests" / "data" / "parity"
# "fp8-calibrated": fp8 with scales of its inputs from the recorded prompts, which is what attention can end in.
FORMATS = ["bf16", "fp8", "fp8-calibrated", "fp8-per-token", "fp8-block", "int8", "nvfp4"]
FUSIONS = {"act_quant": "fuse_act_quant", "rms_quant": "fuse_norm_quant", "attn_quant": "fuse_attn_quant"}
UNFUSED = [f"-cc.pass_config.{name}=false" for name in FUSIONS.values()]


def weft(*arguments):
    done = subprocess.run([str(WEFT), *map(str, arguments)], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"weft {' '.join(map(str, arguments))}: {done.stderr.strip()}")
    return done.stdout


def cases(name):
    return json.loads((PARITY / name).read_text())["cases"]


def fusions(folder):
    """How often each matched."""
    passes = json.loads(weft("explain", folder, "--json"))["passes"]
    return {fusion: sum(entry["counts"]["fused"] for entry in passes if entry["name"] == name)
            for fusion, name in FUSIONS.items()}


def wanted_fusions(name, layers):
    quantized, ends_attention = name != "bf16", name in ("fp8-calibrated", "nvfp4")
    return {"act_quant": layers * quantized, "rms_quant": 2 * layers * quantized, "attn_quant": layers * ends_attention}


def quantize(model, name, folder, scratch):
    more = []
    if name == "fp8-calibrated":
        text = pathlib.Path(scratch) / "calibration.txt"
        text.write_text("\n".join(case["text"] for case in cases("forward.json")))
        more = ["--calibrate", text]
    weft("quantize", model, "--format", name.removesuffix("-calibrated"), *more, "-o", folder)


def perplexity(folder):
    case = cases("perplexity.json")[0]
    return json.loads(weft("logits", folder, "--ids", json.dumps(case["ids"]), "--perplexity"))["perplexity"]


def equal_texts(folder):
    same = 0
    for case in cases("forward.json"):
        fused, unfused = (weft("complete", folder, "-p", case["text"], "-n", 48, "--temp", 0, *more)
                          for more in ([], UNFUSED))
        same += fused == unfused
    return same


def rates(folder, arguments):
    """Medians of (prompt, generation) tokens/s, with fusions and without, in turns."""
    runs = {True: [], False: []}
    for _ in range(arguments.pairs):
        for fused in (True, False):
            rows = json.loads(weft("bench", "model", folder, "-p", arguments.prompt, "-n", arguments.generate, "-r", 1,
                                   "-o", "json", *([] if fused else UNFUSED)))
            runs[fused].append([row["avg_ts"] for row in rows])
    return [[statistics.median(column) for column in zip(*runs[fused])] for fused in (True, False)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", nargs="?", default="smollm2-135m")
    parser.add_argument("--formats", nargs="+", default=FORMATS, choices=FORMATS)
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--prompt", type=int, default=256)
    parser.add_argument("--generate", type=int, default=64)
    arguments = parser.parse_args()
    failed = False
    print("| format | MB | act+quant | rms+quant | attn+quant | perplexity | of bf16's | same text | prompt fused / unfused | "
          "generation fused / unfused |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
    with tempfile.TemporaryDirectory() as scratch:
        base = pathlib.Path(scratch) / "bf16"
        quantize(arguments.model, "bf16", base, scratch)
        reference = perplexity(base)
        for name in arguments.formats:
            folder = pathlib.Path(scratch) / name
            if name != "bf16":
                quantize(arguments.model, name, folder, scratch)
            layers = json.loads((folder / "config.json").read_text())["num_hidden_layers"]
            megabytes = sum(file.stat().st_size for file in folder.glob("*.safetensors")) / 1e6
            found = fusions(folder)
            wanted = wanted_fusions(name, layers)
            came, texts, prompts = perplexity(folder), equal_texts(folder), len(cases("forward.json"))
            (prompt, generation), (prompt_unfused, generation_unfused) = rates(folder, arguments)
            failed = failed or found != wanted or texts != prompts
            counts = " | ".join(f"{found[fusion]} of {wanted[fusion]}" for fusion in FUSIONS)
            print(f"| {name} | {megabytes:.1f} | {counts} | {came:.3f} | {came / reference:.4f} | {texts} of {prompts} | "
                  f"{prompt:.0f} / {prompt_unfused:.0f} | {generation:.1f} / {generation_unfused:.1f} |", flush=True)
    sys.exit(failed)


if __name__ == "__main__":
    main()
