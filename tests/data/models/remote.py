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


def qwen(w, ids):
    def attention(x, at):
        query, key, value = (heads_of(part) for part in w.linear(x, at + "attn.c_attn", 3 * WIDTH, bias=True).chunk(3, -1))
        found = attend(rotated(query, 1e4, HEAD), rotated(key, 1e4, HEAD), value)
        return w.linear(found, at + "attn.c_proj", WIDTH)

    def feed_forward(x, at):
        return w.linear(w.linear(x, at + "mlp.w1", MIDDLE) * silu(w.linear(x, at + "mlp.w2", MIDDLE)),
                        at + "mlp.c_proj", WIDTH)

    x = decoder(w, ids, 2, dict(embedding="transformer.wte", layer="transformer.h.{}.", first="ln_1", second="ln_2",
                                last="transformer.ln_f"), attention, feed_forward,
                lambda x, name: w.rms_norm(x, name, 1e-6))
    config = dict(CONFIG, architectures=["QWenLMHeadModel"], model_type="qwen", intermediate_size=2 * MIDDLE,
                  attn_dropout_prob=0.0, bf16=False, emb_dropout_prob=0.0, fp16=False, fp32=False, kv_channels=HEAD,
                  layer_norm_epsilon=1e-6, max_position_embeddings=256, no_bias=True, onnx_safe=None,
                  rotary_emb_base=10000, rotary_pct=1.0, scale_attn_weights=True, seq_length=64,
                  softmax_in_fp32=False, tokenizer_class="QWenTokenizer", use_cache_kernel=False,
                  use_cache_quantization=False, use_dynamic_ntk=True, use_flash_attn="auto", use_logn_attn=True)
    del config["hidden_act"]
    return w.linear(x, "lm_head", TOKENS), config


def ling_attention(w, theta, width, has_norms):
    def attention(x, at):
        rows = w.linear(x, at + "attention.query_key_value", (HEADS + 2 * KEY_HEADS) * HEAD)
        query, key, value = (heads_of(part) for part in rows.split([HEADS * HEAD, KEY_HEADS * HEAD, KEY_HEADS * HEAD], -1))
        if has_norms:
            query = w.rms_norm(query, at + "attention.query_layernorm", 1e-6)
            key = w.rms_norm(key, at + "attention.key_layernorm", 1e-6)
        return w.linear(attend(rotated(query, theta, width), rotated(key, theta, width), value), at + "attention.dense", WIDTH)
    return attention


def gated(w, x, at, middle):
    return w.linear(silu(w.linear(x, at + "gate_proj", middle)) * w.linear(x, at + "up_proj", middle), at + "down_proj", WIDTH)


def ling_feed_forward(w, choose, experts, middle, shared):
    """The first layer has no experts."""
    def feed_forward(x, at):
        if at == "model.layers.0.":
            return gated(w, x, at + "mlp.", MIDDLE)
        chosen, weights = choose(w.linear(x, at + "mlp.gate", experts), at)
        all_of = torch.stack([gated(w, x, f"{at}mlp.experts.{expert}.", middle) for expert in range(experts)], 1)
        mixed = (all_of.gather(1, chosen[:, :, None].expand(-1, -1, WIDTH)) * weights[:, :, None]).sum(1)
        return mixed + gated(w, x, at + "mlp.shared_experts.", middle * shared)
    return feed_forward


LING_NAMES = dict(LLAMA_NAMES, embedding="model.word_embeddings")


def ling_config(model_class, model_type, **more):
    return dict(CONFIG, architectures=[model_class], model_type=model_type, num_key_value_heads=KEY_HEADS, head_dim=HEAD,
                max_position_embeddings=64, rms_norm_eps=1e-6, rope_theta=600000, rope_scaling=None, use_bias=False,
                use_qkv_bias=False, first_k_dense_replace=1, moe_intermediate_size=24, norm_topk_prob=True,
                embedding_dropout=0.0, output_dropout=0.0, norm_softmax=False, output_router_logits=False,
                max_window_layers=2, **more)


def bailing_moe(w, ids):
    def choose(logits, at):
        weights, chosen = logits.softmax(-1).topk(3, -1)
        return chosen, weights / weights.sum(-1, keepdim=True)

    x = decoder(w, ids, 2, LING_NAMES, ling_attention(w, 6e5, HEAD, False), ling_feed_forward(w, choose, 6, 24, 2),
                lambda x, name: w.rms_norm(x, name, 1e-6))
    head = w.draw("lm_head.weight", TOKENS, WIDTH)
    logits = x @ (head / (head.norm(p=2, dim=0, keepdim=True) + 1e-7)).T
    return logits, ling_config("BailingMoeForCausalLM", "bailing_moe", num_experts=6, num_experts_per_tok=3,
                               num_shared_experts=2, norm_head=True, pretraining_tp=1)


def bailing_moe_v2(w, ids):
    def choose(logits, at):
        scores = logits.sigmoid()
        ranked = scores + w.draw(at + "mlp.gate.expert_bias", 8)
        of_groups = ranked.unflatten(-1, (4, 2)).topk(2, -1)[0].sum(-1)
        mask = torch.zeros_like(of_groups).scatter(1, of_groups.topk(2, -1)[1], 1).repeat_interleave(2, -1)
        chosen = ranked.masked_fill(mask == 0, -math.inf).topk(3, -1)[1]
        weights = scores.gather(1, chosen)
        return chosen, 2.5 * weights / (weights.sum(-1, keepdim=True) + 1e-20)

    x = decoder(w, ids, 2, LING_NAMES, ling_attention(w, 6e5, HEAD // 2, True), ling_feed_forward(w, choose, 8, 24, 1),
                lambda x, name: w.rms_norm(x, name, 1e-6))
    return w.linear(x, "lm_head", TOKENS), ling_config(
        "BailingMoeV2ForCausalLM", "bailing_moe", num_experts=8, num_experts_per_tok=3, num_shared_experts=1, n_group=4,
        topk_group=2, routed_scaling_factor=2.5, score_function="sigmoid", partial_rotary_factor=0.5, rotary_dim=4,
        use_qk_norm=True, use_rmsnorm=True, router_dtype="fp32", moe_router_enable_expert_bias=True,
        moe_shared_expert_intermediate_size=24, num_nextn_predict_layers=0, mtp_loss_scaling_factor=0)


MODELS = {"internlm2": internlm2, "baichuan": baichuan_of(2, False), "baichuan_alibi": baichuan_of(40, True),
          "minicpm": minicpm, "orion": orion, "chatglm": chatglm, "qwen": qwen,
          "bailing_moe": bailing_moe, "bailing_moe_v2": bailing_moe_v2}


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
