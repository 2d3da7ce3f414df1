"""Makes the folders mlx_* beside this file: models of the folders without that prefix, as mlx-lm quantizes and runs them.
Run with mlx (for the processor), mlx-lm and numpy installed; README.md says which versions made what is here.

    python3 tests/data/models/make_mlx.py [FOLDER...]

Scales and minimums are rounded to f16, because Weft's blocks of 4 and 5 bits have no more.
"""

import json
import os
import shutil
import sys
from pathlib import Path

import mlx.core as mx
import numpy
from mlx.utils import tree_flatten, tree_map_with_path
from mlx_lm.utils import load_model, quantize_model
from mlx_lm.utils import _get_classes as classes_of

HERE = os.path.dirname(os.path.abspath(__file__))

MXFP4 = {"group_size": 32, "bits": 4, "mode": "mxfp4"}
NVFP4 = {"group_size": 16, "bits": 4, "mode": "nvfp4"}
MXFP8 = {"group_size": 32, "bits": 8, "mode": "mxfp8"}
BYTES = {"group_size": 64, "bits": 8, "mode": "affine"}


def affine(bits):
    return {"group_size": 32, "bits": bits, "mode": "affine"}


# For each model what is quantized in turn: the codes of most modules, and those of the modules whose names have a part
# (False: none in this turn). gpt-oss is published with experts that have codes, so all others are stated one by one.
CODES = {
    "llama_biases": [(affine(4), {})],
    "qwen3_moe": [(affine(4), {"down_proj": {"group_size": 32, "bits": 5}})],
    "smollm3": [(affine(4), {part: {"group_size": 32, "bits": bits} for part, bits in
                             {"embed_tokens": 6, "q_proj": 5, "v_proj": 8, "gate_proj": 3, "up_proj": 2}.items()})],
    "qwen3": [(NVFP4, {"mlp": MXFP4, "k_proj": {"bits": 5}})],
    "gpt_oss": [(MXFP4, {part: False for part in ("embed", "attn", "router", "head")}), (BYTES, {})],
    "granitemoe": [(NVFP4, {"up_proj": {"group_size": 32, "bits": 4}})],
    # mlx rounds embeddings of floats to bf16, and products with the factor of Gemma's embeddings are none of bf16.
    "gemma4_moe": [(MXFP8, {"switch_glu.up_proj": MXFP4, "embed_tokens": False})],
    "deepseek_v3": [(affine(4), {"embed_q": MXFP8, "unembed_out": {"group_size": 32, "bits": 5}})],
}

# Keys that transformers writes under other names.
NAMED_BY_MLX = {
    "qwen3_moe": {"num_experts": 5, "rope_theta": 1000000.0},
    "qwen3": {"rope_theta": 1000000.0},
    "gpt_oss": {"rope_theta": 150000.0},
    "granitemoe": {"rope_theta": 10000.0},
}

# Models of other sizes, so that more of their modules have whole groups; their weights are random.
CHANGES = {
    "qwen3": {"hidden_size": 64, "tie_word_embeddings": True},
    "gpt_oss": {"hidden_size": 64, "intermediate_size": 64,
                "rope_parameters": {"rope_theta": 150000.0, "rope_type": "default"}},
    "deepseek_v3": {"hidden_size": 64, "intermediate_size": 64, "moe_intermediate_size": 32, "num_hidden_layers": 2,
                    "kv_lora_rank": 32, "q_lora_rank": 32, "qk_nope_head_dim": 32, "qk_head_dim": 40, "v_head_dim": 32,
                    "rope_parameters": {"rope_theta": 10000.0, "rope_type": "default"}},
}


def random_weight(path, value):
    numbers = mx.random.normal(value.shape)
    if value.ndim > 1:
        return numbers / value.shape[-1] ** 0.5
    return 1 + 0.1 * numbers if "norm" in path else 0.1 * numbers


def load(name, source):
    changes = {**CHANGES.get(name, {}), **NAMED_BY_MLX.get(name, {})}
    if name not in CHANGES:
        return load_model(source, model_config=changes)
    config = {**json.loads((source / "config.json").read_text()), **changes}
    model_class, arguments = classes_of(config)
    model = model_class(arguments.from_dict(config))
    mx.random.seed(len(name))
    model.update(tree_map_with_path(random_weight, model.parameters()))
    return model, config


def rounded(path, value):
    is_of_codes = path.endswith(".scales") or path.endswith(".biases")
    is_number = mx.issubdtype(value.dtype, mx.floating)
    return value.astype(mx.float16).astype(mx.float32) if is_of_codes and is_number else value


def quantized(model, config, rest, own):
    def codes_of(path, module):
        found = [codes for part, codes in own.items() if part in path]
        codes = found[0] if found else True
        width = (codes if isinstance(codes, dict) else rest).get("group_size", 64)
        return codes if hasattr(module, "to_quantized") and module.weight.shape[-1] % width == 0 else False

    return quantize_model(model, config, rest["group_size"], rest["bits"], rest["mode"], quant_predicate=codes_of)


def make(name):
    source, folder = Path(HERE, name), Path(HERE, "mlx_" + name)
    model, config = load(name, source)
    for rest, own in CODES[name]:
        model, config = quantized(model, config, rest, own)
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
    for model_name in CODES:
        if "mlx_" + model_name in sys.argv[1:] or len(sys.argv) == 1:
            make(model_name)
