"""Steps about what models compute on the device."""

import json
import pathlib
import sys

import checkpoints
import logits
from outcomes import Failed, answer

# Most relative difference of all logits of a prompt. Against the emulated device, which runs the same kernels with exact
# functions in the place of the device's approximate ones, and sums of products in another order than cuBLASLt:
FROM_EMULATED = {"bf16": 0.01, "int8": 0.03, "fp8-per-token": 0.05, "fp8-block": 0.05, "nvfp4": 0.15}
# And against the host's processor, whose attention rounds in other places: codes of few bits then fall on the other side
# of a step here and there.
FROM_CPU = {"bf16": 0.015, "int8": 0.04, "fp8-per-token": 0.06, "fp8-block": 0.06, "nvfp4": 0.25}
CUDAGRAPH_MODES = ("NONE", "PIECEWISE", "FULL", "FULL_DECODE_ONLY", "FULL_AND_PIECEWISE")


def _format_of(model):
    return next(form for form in sorted(checkpoints.FORMATS, key=len, reverse=True) if model.endswith("-" + form))


def models(session):
    """Each checkpoint's logits and greedy tokens beside those of the processor and of the emulated device."""
    expected = json.loads((session.folder / "models" / "expected.json").read_text())
    rows, wrong = {}, []
    for model, wanted in expected.items():
        form = _format_of(model)
        found = logits.compute(session.weft, session.model(model), session.device)
        row = {"from_cpu": logits.relative_difference(found["logits"], wanted["cpu"]["logits"]),
               "from_emulated": logits.relative_difference(found["logits"], wanted["fake-cuda"]["logits"]),
               "tokens_as_cpu": logits.same_tokens(found["tokens"], wanted["cpu"]["tokens"]),
               "tokens_as_emulated": logits.same_tokens(found["tokens"], wanted["fake-cuda"]["tokens"]),
               "tokens": len(wanted["cpu"]["tokens"])}
        # The emulated device of one machine computes the bits of another's.
        bound = 0.0 if session.is_fake else FROM_EMULATED[form]
        if not row["from_emulated"] <= bound:
            wrong.append(f"{model} differs from the emulated device by {row['from_emulated']:.4f}, bound {bound}")
        if not row["from_cpu"] <= FROM_CPU[form]:
            wrong.append(f"{model} differs from the processor by {row['from_cpu']:.4f}, bound {FROM_CPU[form]}")
        rows[model] = row
    data = {"rows": rows, "bounds": {"from_emulated": FROM_EMULATED, "from_cpu": FROM_CPU},
            "command": f"weft logits MODEL -p '{checkpoints.PROMPT}' --positions all --device {session.device}"}
    if wrong:
        raise Failed("; ".join(wrong), data)
    largest = max(row["from_emulated"] for row in rows.values())
    return f"{len(rows)} checkpoints, at most {largest:.4f} from the emulated device", data


def modes(session):
    """The same bits however a step is captured."""
    ways = {mode: [f"-cc.cudagraph_mode={mode}"] for mode in CUDAGRAPH_MODES}
    ways |= {"lazy": ["--capture", "lazy"], "check-replay": ["--check-replay"],
             "copied inputs": ["-cc.cudagraph_copy_inputs=true"]}
    wrong, data = [], {}
    for model in ("llama-fp8-block", "qwen3-bf16"):
        first = None
        for way, options in ways.items():
            found = logits.compute(session.weft, session.model(model), session.device, *options)
            first = first or found
            data.setdefault(model, {})[way] = found == first
            if found != first:
                wrong.append(f"{model} {way}: {logits.same_tokens(found['tokens'], first['tokens'])} equal tokens, "
                             f"logits differ by {logits.relative_difference(found['logits'], first['logits']):.6f}")
    if wrong:
        raise Failed("; ".join(wrong), data)
    return f"{len(ways)} ways, equal bits", data


def verify(session):
    """Each compiled piece beside its graph, run op by op."""
    data = {}
    for model in ("llama-bf16", "qwen3-fp8-block"):
        answered = answer([session.weft, "verify", session.model(model), "--device", session.device, "--json"])
        data[model] = json.loads(answered)["pieces"]
    return f"{sum(map(len, data.values()))} pieces", data


def engines(session):
    """Two engines in one process, out of memory between their answers."""
    words = [sys.executable, pathlib.Path(__file__).parent / "engines.py", session.programs / "libweft.so",
             session.device, session.model("llama-bf16"), session.model("qwen3-fp8-block"), session.shape("endless-bf16")]
    data = json.loads(answer(words, session.seconds))
    expected = json.loads((session.folder / "models" / "expected.json").read_text())
    for name, model in (("first", "llama-bf16"), ("second", "qwen3-fp8-block")):
        ways = data[name]
        if not ways["alone"] == ways["together"] == ways["after"]:
            raise Failed(f"{model} answers otherwise beside another engine or after memory ran out: {ways}", data)
        if session.is_fake and ways["alone"] != expected[model]["fake-cuda"]["tokens"]:
            raise Failed(f"{model} answers otherwise by the C interface: {ways}", data)
    # What can be known before is the user's error, what the device answers is the device's.
    for refusal, status, words in (("too long", 2, "--max-model-len"), ("memory", 4, "OUT_OF_MEMORY")):
        found = data.get(refusal, {"status": None, "text": "it was not tried"})
        if found["status"] != status or words not in found["text"]:
            raise Failed(f"wanted status {status} and {words} of a model that does not fit, but came {found}", data)
    return data["memory"]["text"][:160], data
