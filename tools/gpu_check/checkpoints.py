"""Small random checkpoints for the check on a GPU, and config.json shapes whose weights are dummies."""

import array
import json
import pathlib
import random

# Widths that the kernels read by whole vectors, and one that they do not: 5 heads of 40 columns.
WIDE = {"hidden_size": 256, "intermediate_size": 384, "num_attention_heads": 4, "num_key_value_heads": 2,
        "head_dim": 64}
ODD = {"hidden_size": 200, "intermediate_size": 328, "num_attention_heads": 5, "num_key_value_heads": 5,
       "head_dim": 40}
# What `weft quantize` is asked for; None: as the checkpoint was made, in bf16.
FORMATS = {"bf16": None, "fp8-block": ["--format", "fp8-block", "--block", "128x128"],
           "fp8-per-token": ["--format", "fp8-per-token"], "int8": ["--format", "int8"], "nvfp4": ["--format", "nvfp4"]}
ARCHITECTURES = {"llama": "LlamaForCausalLM", "qwen3": "Qwen3ForCausalLM", "gemma": "GemmaForCausalLM"}
# name -> (architecture, widths, formats)
CHECKPOINTS = {"llama": ("llama", WIDE, list(FORMATS)), "qwen3": ("qwen3", WIDE, list(FORMATS)),
               "gemma": ("gemma", WIDE, list(FORMATS)), "llama-odd": ("llama", ODD, ["bf16"])}
LAYERS, VOCABULARY, CONTEXT = 2, 512, 512
PROMPT = "It was a bright cold day in April, and the clocks were striking thirteen."
ROWS_OF_CALIBRATION = 8  # repetitions of the prompt

SHAPES = {
    "smollm2-135m": {"hidden_size": 576, "intermediate_size": 1536, "num_hidden_layers": 30, "num_attention_heads": 9,
                     "num_key_value_heads": 3, "head_dim": 64, "vocab_size": 49152, "tie_word_embeddings": True},
    "llama-3-8b": {"hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
                   "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 128256,
                   "tie_word_embeddings": False},
    "qwen3-8b": {"model_type": "qwen3", "hidden_size": 4096, "intermediate_size": 12288, "num_hidden_layers": 36,
                 "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 151936,
                 "tie_word_embeddings": False},
    # Its KV pages fit no device: 128 KiB a token, 2^22 tokens.
    "endless": {"hidden_size": 256, "intermediate_size": 384, "num_hidden_layers": 1, "num_attention_heads": 256,
                "num_key_value_heads": 256, "head_dim": 128, "vocab_size": 512, "tie_word_embeddings": True,
                "max_position_embeddings": 1 << 22},
    # For a machine without a GPU, where the emulator computes each element.
    "tiny": {"hidden_size": 256, "intermediate_size": 384, "num_hidden_layers": 1, "num_attention_heads": 4,
             "num_key_value_heads": 2, "head_dim": 64, "vocab_size": 512, "tie_word_embeddings": True},
}
# As vLLM's own checkpoints spell it: in blocks of 128 x 128 where they divide the widths, else one scale a row.
FP8_BLOCKS = {"quant_method": "fp8", "activation_scheme": "dynamic", "weight_block_size": [128, 128]}
FP8_ROWS = {"quant_method": "compressed-tensors", "format": "float-quantized", "ignore": ["lm_head"],
            "config_groups": {"group_0": {
                "targets": ["Linear"],
                "weights": {"num_bits": 8, "type": "float", "symmetric": True, "strategy": "channel", "dynamic": False},
                "input_activations": {"num_bits": 8, "type": "float", "symmetric": True, "strategy": "token",
                                      "dynamic": True}}}}


def byte_alphabet():
    """The characters by which byte-level BPE spells the 256 bytes."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    return {byte: chr(byte) for byte in printable} | {byte: chr(256 + i) for i, byte in enumerate(others)}


def tokenizer():
    """A token for each byte, and no more: ids are the prompt's bytes."""
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None,
            "pre_tokenizer": level, "post_processor": None, "decoder": level,
            "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
                      "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, "merges": [],
                      "vocab": {character: byte for byte, character in byte_alphabet().items()}}}


def config(architecture, **over):
    return {"architectures": [ARCHITECTURES[architecture]], "model_type": architecture,
            "hidden_act": "gelu_pytorch_tanh" if architecture == "gemma" else "silu",
            "max_position_embeddings": CONTEXT, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "torch_dtype": "bfloat16",
            "tie_word_embeddings": architecture == "gemma", "num_hidden_layers": LAYERS, "vocab_size": VOCABULARY,
            "bos_token_id": None, "eos_token_id": None} | over


def weights(configuration):
    """Names, sizes, and the mean and half width of the uniform values."""
    width, inner = configuration["hidden_size"], configuration["intermediate_size"]
    head = configuration["head_dim"]
    queries, keys = (configuration[f"num_{kind}_heads"] * head for kind in ("attention", "key_value"))
    is_gemma, is_qwen = (configuration["model_type"] == name for name in ("gemma", "qwen3"))
    mean_of_norms = 0.0 if is_gemma else 1.0  # Gemma's norms multiply by 1 + weight
    # Gemma multiplies it by the square root of the width.
    yield "model.embed_tokens.weight", (configuration["vocab_size"], width), 0.0, 1 / 16 if is_gemma else 1.0
    yield "model.norm.weight", (width,), mean_of_norms, 0.2
    if not configuration["tie_word_embeddings"]:
        yield "lm_head.weight", (configuration["vocab_size"], width), 0.0, 0.2
    for layer in range(configuration["num_hidden_layers"]):
        front = f"model.layers.{layer}."
        for name, rows, columns in (("self_attn.q_proj", queries, width), ("self_attn.k_proj", keys, width),
                                    ("self_attn.v_proj", keys, width), ("self_attn.o_proj", width, queries),
                                    ("mlp.gate_proj", inner, width), ("mlp.up_proj", inner, width),
                                    ("mlp.down_proj", width, inner)):
            yield f"{front}{name}.weight", (rows, columns), 0.0, 0.08
        for name in ("input_layernorm", "post_attention_layernorm"):
            yield f"{front}{name}.weight", (width,), mean_of_norms, 0.2
        if is_qwen:
            for name in ("q_norm", "k_norm"):
                yield f"{front}self_attn.{name}.weight", (head,), 1.0, 0.2


def bf16_bytes(values):
    """By cutting f32 off: any bf16 numbers do."""
    whole = array.array("f", values).tobytes()
    cut = bytearray(len(whole) // 2)
    cut[0::2], cut[1::2] = whole[2::4], whole[3::4]
    return bytes(cut)


def write_safetensors(path, configuration, seed):
    draw = random.Random(seed).random
    header, parts, offset = {}, [], 0
    for name, shape, mean, half in weights(configuration):
        count = shape[0] * (shape[1] if len(shape) > 1 else 1)
        parts.append(bf16_bytes([mean + half * (2.0 * draw() - 1.0) for _ in range(count)]))
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [offset, offset + 2 * count]}
        offset += 2 * count
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(len(text).to_bytes(8, "little") + text + b"".join(parts))


def write_checkpoint(folder, architecture, widths, seed):
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True)
    configuration = config(architecture, **widths)
    (folder / "config.json").write_text(json.dumps(configuration, indent=1))
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer()))
    write_safetensors(folder / "model.safetensors", configuration, seed)


def write_shapes(folder):
    """A config.json for each shape, plain and quantized to fp8 by blocks."""
    for name, shape in SHAPES.items():
        shape = {"model_type": "llama", "max_position_embeddings": 8192, "rope_theta": 500000.0} | shape
        plain = config(shape["model_type"], **shape)
        plain["architectures"] = [ARCHITECTURES[shape["model_type"]]]
        has_blocks = shape["hidden_size"] % 128 == 0
        fp8 = {"quantization_config": FP8_BLOCKS if has_blocks else FP8_ROWS}
        for kind, more in (("bf16", {}), ("fp8", fp8)):
            target = pathlib.Path(folder) / f"{name}-{kind}"
            target.mkdir(parents=True)
            (target / "config.json").write_text(json.dumps(plain | more, indent=1))
