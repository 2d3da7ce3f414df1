"""Makes the folders beside this file of families whose published folders bring a program of their own, which transformers
does not have: tiny models of random weights, with the publishers' names of tensors and keys of config.json. The layers
are written after the publishers' descriptions.

    python3 tests/data/models/remote.py [FOLDER...]
"""

import json
import math
import os
import sys

import torch
from safetensors.torch import save_file

from make import COUNT, IDS, POSITIONS, write_tokenizer

WIDTH, MIDDLE, HEADS, KEY_HEADS, HEAD, TOKENS = 32, 48, 4, 2, 8, 64


class Weights:
    """Draws each tensor when it is first asked for, and keeps it by its published name."""

    def __init__(self, seed):
        self.generator = torch.Generator().manual_seed(seed)
        self.tensors = {}

    def draw(self, name, *shape):
        if name not in self.tensors:
            noise = torch.randn(shape, generator=self.generator)
            is_norm = len(shape) == 1 and name.endswith("weight")
            self.tensors[name] = 1 + 0.3 * noise if is_norm else 0.3 * noise if len(shape) == 1 else \
                noise / shape[-1] ** 0.5
        return self.tensors[name]

    def linear(self, x, name, rows, bias=False):
        y = x @ self.draw(name + ".weight", rows, x.shape[-1]).T
        return y + self.draw(name + ".bias", rows) if bias else y

    def rms_norm(self, x, name, eps):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * self.draw(name + ".weight", x.shape[-1])

    def layer_norm(self, x, name, eps):
        return torch.nn.functional.layer_norm(
            x, x.shape[-1:], self.draw(name + ".weight", x.shape[-1]), self.draw(name + ".bias", x.shape[-1]), eps)


def rotated(x, theta, width, neighbours=False):
    """x [tokens, heads, head], of which the first `width` elements of a head are rotated."""
    angles = torch.arange(x.shape[0])[:, None] / theta ** (torch.arange(0, width, 2) / width)
    cos, sin = angles.cos()[:, None, :], angles.sin()[:, None, :]
    part, rest = x[..., :width], x[..., width:]
    if neighbours:
        a, b = part[..., 0::2], part[..., 1::2]
        turned = torch.stack([a * cos - b * sin, b * cos + a * sin], -1).flatten(-2)
    else:
        a, b = part[..., :width // 2], part[..., width // 2:]
        turned = torch.cat([a * cos - b * sin, b * cos + a * sin], -1)
    return torch.cat([turned, rest], -1)


def slopes(heads):
    power = 2 ** math.floor(math.log2(heads))
    own = [2 ** (-8 * (i + 1) / power) for i in range(power)]
    return own + [2 ** (-4 * (2 * i + 1) / power) for i in range(heads - power)]


def attend(query, key, value, has_alibi=False):
    """[tokens, heads, head] of each -> [tokens, heads * head]."""
    group = query.shape[1] // key.shape[1]
    key, value = key.repeat_interleave(group, 1), value.repeat_interleave(group, 1)
    scores = torch.einsum("qhd,khd->hqk", query, key) / query.shape[-1] ** 0.5
    places = torch.arange(query.shape[0])
    if has_alibi:
        scores = scores + torch.tensor(slopes(query.shape[1]))[:, None, None] * places
    scores = scores.masked_fill(places[None, :] > places[:, None], -math.inf)
    return torch.einsum("hqk,khd->qhd", scores.softmax(-1), value).flatten(1)


def heads_of(x):
    return x.unflatten(-1, (-1, HEAD))


def silu(x):
    return x * x.sigmoid()


def decoder(w, ids, layers, names, attention, feed_forward, norm, scale=1.0):
    x = w.draw(names["embedding"] + ".weight", TOKENS, WIDTH)[ids] * names.get("embedding_scale", 1)
    for layer in range(layers):
        at = names["layer"].format(layer)
        x = x + scale * attention(norm(x, at + names["first"]), at)
        x = x + scale * feed_forward(norm(x, at + names["second"]), at)
    return norm(x, names["last"])


LLAMA_NAMES = dict(embedding="model.embed_tokens", layer="model.layers.{}.", first="input_layernorm",
                   second="post_attention_layernorm", last="model.norm")


def llama_attention(w, theta, bias=False):
    def attention(x, at):
        query, key, value = (heads_of(w.linear(x, f"{at}self_attn.{part}_proj", count * HEAD, bias))
                             for part, count in (("q", HEADS), ("k", KEY_HEADS), ("v", KEY_HEADS)))
        found = attend(rotated(query, theta, HEAD), rotated(key, theta, HEAD), value)
        return w.linear(found, at + "self_attn.o_proj", WIDTH, bias)
    return attention


def llama_feed_forward(w):
    def feed_forward(x, at):
        gate, up = (w.linear(x, f"{at}mlp.{part}_proj", MIDDLE) for part in ("gate", "up"))
        return w.linear(silu(gate) * up, at + "mlp.down_proj", WIDTH)
    return feed_forward


CONFIG = dict(hidden_act="silu", hidden_size=WIDTH, intermediate_size=MIDDLE, num_hidden_layers=2,
              num_attention_heads=HEADS, vocab_size=TOKENS, bos_token_id=1, eos_token_id=63, pad_token_id=None,
              initializer_range=0.02, tie_word_embeddings=False, use_cache=True, torch_dtype="float32",
              transformers_version="4.41.0")


def internlm2(w, ids):
    groups = HEADS // KEY_HEADS

    def attention(x, at):
        rows = w.linear(x, at + "attention.wqkv", (HEADS + 2 * KEY_HEADS) * HEAD, bias=True)
        parts = rows.unflatten(-1, (KEY_HEADS, groups + 2, HEAD))
        query = rotated(parts[:, :, :groups].flatten(1, 2), 1e4, HEAD)
        found = attend(query, rotated(parts[:, :, -2], 1e4, HEAD), parts[:, :, -1])
        return w.linear(found, at + "attention.wo", WIDTH, bias=True)

    def feed_forward(x, at):
        gate, up = (w.linear(x, f"{at}feed_forward.{part}", MIDDLE) for part in ("w1", "w3"))
        return w.linear(silu(gate) * up, at + "feed_forward.w2", WIDTH)

    x = decoder(w, ids, 2, dict(embedding="model.tok_embeddings", layer="model.layers.{}.", first="attention_norm",
                                second="ffn_norm", last="model.norm"), attention, feed_forward,
                lambda x, name: w.rms_norm(x, name, 1e-5))
    return w.linear(x, "output", TOKENS), dict(
        CONFIG, architectures=["InternLM2ForCausalLM"], model_type="internlm2", bias=True,
        num_key_value_heads=KEY_HEADS, max_position_embeddings=64, rms_norm_eps=1e-5, rope_theta=10000,
        rope_scaling=dict(type="dynamic", factor=2.0), attn_implementation="eager", pretraining_tp=1)


def baichuan_of(layers, has_alibi):
    def model(w, ids):
        def attention(x, at):
            query, key, value = (heads_of(part) for part in w.linear(x, at + "self_attn.W_pack", 3 * WIDTH).chunk(3, -1))
            if not has_alibi:
                query, key = rotated(query, 1e4, HEAD), rotated(key, 1e4, HEAD)
            return w.linear(attend(query, key, value, has_alibi), at + "self_attn.o_proj", WIDTH)

        x = decoder(w, ids, layers, LLAMA_NAMES, attention, llama_feed_forward(w),
                    lambda x, name: w.rms_norm(x, name, 1e-6))
        positions = dict(model_max_length=64) if has_alibi else dict(model_max_length=64, max_position_embeddings=64)
        return w.linear(x, "lm_head", TOKENS), dict(
            CONFIG, architectures=["BaichuanForCausalLM"], model_type="baichuan", rms_norm_eps=1e-6,
            num_hidden_layers=layers, _from_model_config=True, **positions)
    return model


def minicpm(w, ids):
    scale = 1.4 / math.sqrt(2)
    x = decoder(w, ids, 2, dict(LLAMA_NAMES, embedding_scale=12), llama_attention(w, 1e4), llama_feed_forward(w),
                lambda x, name: w.rms_norm(x, name, 1e-5), scale)
    logits = x / (WIDTH / 16) @ w.tensors["model.embed_tokens.weight"].T
    config = dict(CONFIG, architectures=["MiniCPMForCausalLM"], model_type="minicpm", num_key_value_heads=KEY_HEADS,
                  max_position_embeddings=64, rms_norm_eps=1e-5, scale_emb=12, scale_depth=1.4, dim_model_base=16,
                  rope_scaling=None)
    del config["tie_word_embeddings"]
    return logits, config


def orion(w, ids):
    x = decoder(w, ids, 2, LLAMA_NAMES, llama_attention(w, 1e4), llama_feed_forward(w),
                lambda x, name: w.layer_norm(x, name, 1e-5))
    return w.linear(x, "lm_head", TOKENS), dict(
        CONFIG, architectures=["OrionForCausalLM"], model_type="orion", num_key_value_heads=KEY_HEADS,
        max_position_embeddings=64, max_sequence_length=64, rms_norm_eps=1e-5, rope_theta=10000.0, rope_scaling=None,
        attention_bias=False, pretraining_tp=1)


def chatglm(w, ids):
    theta = 1e4 * 5

    def attention(x, at):
        rows = w.linear(x, at + "self_attention.query_key_value", (HEADS + 2 * KEY_HEADS) * HEAD, bias=True)
        query, key, value = (heads_of(part) for part in rows.split([HEADS * HEAD, KEY_HEADS * HEAD, KEY_HEADS * HEAD], -1))
        query, key = (rotated(part, theta, HEAD // 2, neighbours=True) for part in (query, key))
        return w.linear(attend(query, key, value), at + "self_attention.dense", WIDTH)

    def feed_forward(x, at):
        gate, up = w.linear(x, at + "mlp.dense_h_to_4h", 2 * MIDDLE).chunk(2, -1)
        return w.linear(silu(gate) * up, at + "mlp.dense_4h_to_h", WIDTH)

    x = decoder(w, ids, 2, dict(embedding="transformer.embedding.word_embeddings", layer="transformer.encoder.layers.{}.",
                                first="input_layernorm", second="post_attention_layernorm",
                                last="transformer.encoder.final_layernorm"), attention, feed_forward,
                lambda x, name: w.rms_norm(x, name, 1e-5))
    w.tensors["transformer.rotary_pos_emb.inv_freq"] = theta ** -(torch.arange(0, HEAD // 2, 2) / (HEAD // 2))
    config = dict(CONFIG, architectures=["ChatGLMModel"], model_type="chatglm", num_layers=2, ffn_hidden_size=MIDDLE,
                  padded_vocab_size=TOKENS, seq_length=64, layernorm_epsilon=1e-5, multi_query_group_num=KEY_HEADS,
                  multi_query_attention=True, kv_channels=HEAD, add_bias_linear=False, add_qkv_bias=True,
                  apply_query_key_layer_scaling=True, apply_residual_connection_post_layernorm=False,
                  attention_softmax_in_fp32=True, bias_dropout_fusion=True, fp32_residual_connection=False,
                  original_rope=True, post_layer_norm=True, rmsnorm=True, rope_ratio=5, classifier_dropout=None,
                  attention_dropout=0.0, hidden_dropout=0.0)
    for key in ("hidden_act", "intermediate_size", "num_hidden_layers", "vocab_size", "initializer_range"):
        del config[key]
    return w.linear(x, "transformer.output_layer", TOKENS), config


MODELS = {"internlm2": internlm2, "baichuan": baichuan_of(2, False), "baichuan_alibi": baichuan_of(40, True),
          "minicpm": minicpm, "orion": orion, "chatglm": chatglm}


def make(name, seed):
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), name)
    os.makedirs(path, exist_ok=True)
    weights = Weights(seed)
    logits, config = MODELS[name](weights, torch.tensor(IDS[:COUNT]))
    save_file({key: tensor.contiguous() for key, tensor in weights.tensors.items()},
              os.path.join(path, "model.safetensors"), metadata={"format": "pt"})
    with open(os.path.join(path, "config.json"), "w") as file:
        json.dump(config, file, indent=2)
        file.write("\n")
    write_tokenizer(path, TOKENS)
    with open(os.path.join(path, "logits.json"), "w") as file:
        json.dump({"ids": IDS[:COUNT], "positions": POSITIONS,
                   "logits": [[round(v, 7) for v in logits[at].tolist()] for at in POSITIONS]}, file)
        file.write("\n")
    print(f"{name}: {sum(t.numel() for t in weights.tensors.values())} weights, logits of {logits.std():.3f} around 0")


if __name__ == "__main__":
    print(f"torch {torch.__version__}, Python {sys.version.split()[0]}")
    for seed, name in enumerate(MODELS):
        if name in sys.argv[1:] or len(sys.argv) == 1:
            make(name, seed + 1)
