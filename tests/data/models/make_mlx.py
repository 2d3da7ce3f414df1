"""Makes the folders mlx_* beside this file: models of the folders without that prefix, as mlx-lm quantizes and runs them.
Run with mlx (for the processor), mlx-lm and numpy installed; README.md says which versions made what is here.

    python3 tests/data/models/make_mlx.py

Scales and minimums are rounded to f16, because Weft's blocks of 4 and 5 bits have no more.
"""

import json
import os
import shutil
from pathlib import Path

import mlx.core as mx
import numpy
from mlx.utils import tree_flatten, tree_map_with_path
from mlx_lm.utils import load_model, quantize_model

HERE = os.path.dirname(os.path.abspath(__file__))

# The bits of modules that have others than 4, by a part of their names.
MODELS = {
    "llama_biases": {},
    "qwen3_moe": {"down_proj": 5},
    "smollm3": {"embed_tokens": 6, "q_proj": 5, "v_proj": 8, "gate_proj": 3, "up_proj": 2},
}

# Keys that transformers writes under other names.
NAMED_BY_MLX = {"qwen3_moe": {"num_experts": 5, "rope_theta": 1000000.0}}


def rounded(path, value):
    is_of_codes = path.endswith(".scales") or path.endswith(".biases")
    return value.astype(mx.float16).astype(mx.float32) if is_of_codes else value


def make(name, bits):
    source, folder = Path(HERE, name), Path(HERE, "mlx_" + name)
    model, config = load_model(source, model_config=NAMED_BY_MLX.get(name))

    def codes_of(path, module):
        if not hasattr(module, "to_quantized") or module.weight.shape[-1] % 32 != 0:
            return False
        own = [count for part, count in bits.items() if part in path]
        return {"group_size": 32, "bits": own[0]} if own else True

    model, config = quantize_model(model, config, 32, 4, quant_predicate=codes_of)
    model.update(tree_map_with_path(rounded, model.parameters()))
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    mx.save_safetensors(str(folder / "model.safetensors"), dict(tree_flatten(model.parameters())), {"format": "mlx"})
    config["quantization_config"] = config["quantization"]
    (folder / "config.json").write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")
    shutil.copy(source / "tokenizer.json", folder)
    recorded = json.loads((source / "logits.json").read_text())
    logits = numpy.array(model(mx.array([recorded["ids"]]))[0].astype(mx.float32))
    recorded["logits"] = [[round(float(x), 7) for x in logits[at]] for at in recorded["positions"]]
    (folder / "logits.json").write_text(json.dumps(recorded) + "\n")


if __name__ == "__main__":
    for model_name, model_bits in MODELS.items():
        make(model_name, model_bits)
