"""Makes the folders beside this file: one tiny model of random weights for each architecture, as transformers writes
and runs it, and one whose layers differ in their windows. Run with torch and transformers installed; README.md says
which versions made what is here.

    python3 tests/data/models/make.py [FOLDER...]
"""

import json
import os
import string
import sys

import torch
import transformers
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

# Wide heads (4 of 16 over a width of 32), so that nothing works by chance where head_dim is hidden_size / heads.
SHAPE = dict(
    vocab_size=64, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
    num_key_value_heads=2, head_dim=16, max_position_embeddings=64, bos_token_id=None, eos_token_id=63,
    pad_token_id=None)

WITHOUT_HEAD_DIM = {key: value for key, value in SHAPE.items() if key != "head_dim"}

WITHOUT_GROUPS = {key: value for key, value in WITHOUT_HEAD_DIM.items() if key != "num_key_value_heads"}

WITHOUT_WIDTH = {key: value for key, value in SHAPE.items() if key != "intermediate_size"}

GPT2_SHAPE = dict(
    vocab_size=64, n_embd=32, n_layer=2, n_head=4, n_positions=64, bos_token_id=None, eos_token_id=63,
    pad_token_id=None)

OPT_SHAPE = dict(
    **{key: value for key, value in WITHOUT_GROUPS.items() if key != "intermediate_size"}, ffn_dim=48)

FALCON_SHAPE = {key: value for key, value in WITHOUT_GROUPS.items() if key != "intermediate_size"}

BLOOM_SHAPE = dict(vocab_size=64, n_layer=2, bos_token_id=None, eos_token_id=63, pad_token_id=None)

MPT_SHAPE = dict(vocab_size=64, n_layers=2, max_seq_len=64, bos_token_id=None, eos_token_id=63, pad_token_id=None)

GPT_NEO_SHAPE = dict(
    vocab_size=64, hidden_size=32, num_layers=2, num_heads=4, max_position_embeddings=64, bos_token_id=None,
    eos_token_id=63, pad_token_id=None)

LLAMA3 = dict(rope_type="llama3", rope_theta=10000.0, factor=4.0, low_freq_factor=1.0, high_freq_factor=4.0,
              original_max_position_embeddings=16)

GRANITE = dict(embedding_multiplier=12.0, attention_multiplier=0.25, residual_multiplier=0.25, logits_scaling=2.0)

# Chunks of 16, so that some end within the ids. 12 numbers of state for each number of a head of 8.
MAMBA = dict(mamba_n_heads=8, mamba_d_head=8, mamba_d_state=12, mamba_chunk_size=16)

MAMBA_1_SHAPE = dict(
    vocab_size=64, hidden_size=32, num_hidden_layers=2, bos_token_id=1, eos_token_id=63, pad_token_id=None,
    state_size=12, conv_kernel=3)

# Values are wider than keys.
DELTA = dict(linear_conv_kernel_dim=4, linear_key_head_dim=8, linear_value_head_dim=12, linear_num_key_heads=2,
             linear_num_value_heads=4)

FALCON_H1 = dict(
    mamba_d_ssm=48, mamba_n_heads=6, mamba_d_head=8, mamba_d_state=12, mamba_chunk_size=16, lm_head_multiplier=0.6,
    embedding_multiplier=3.0, mlp_multipliers=[0.8, 0.7], key_multiplier=0.4, attention_out_multiplier=0.9,
    attention_in_multiplier=1.2, ssm_multipliers=[0.9, 0.8, 0.7, 1.3, 0.6], ssm_in_multiplier=1.25,
    ssm_out_multiplier=0.75)

NEMOTRON_H = dict(
    **{key: value for key, value in SHAPE.items() if key != "num_hidden_layers"}, mamba_num_heads=6, mamba_head_dim=8,
    ssm_state_size=12, n_groups=2, chunk_size=16, n_routed_experts=6, num_experts_per_tok=2, moe_intermediate_size=24,
    moe_shared_expert_intermediate_size=20, routed_scaling_factor=2.5)


def phimoe(jitter):
    return transformers.PhimoeConfig(
        **WITHOUT_HEAD_DIM, rope_parameters=dict(
            rope_type="longrope", rope_theta=10000.0, short_factor=[1.0, 1.1, 1.3, 1.6],
            long_factor=[1.0, 2.0, 4.0, 8.0], short_mscale=1.2, long_mscale=1.4, original_max_position_embeddings=64),
        original_max_position_embeddings=64, rms_norm_eps=1e-5, num_local_experts=5, num_experts_per_tok=2,
        router_jitter_noise=jitter, attention_bias=True, lm_head_bias=True)


CONFIGS = {
    "llama": lambda: transformers.LlamaConfig(**SHAPE, rope_parameters=LLAMA3, rms_norm_eps=1e-5),
    "qwen3": lambda: transformers.Qwen3Config(
        **SHAPE, rope_parameters=dict(rope_type="default", rope_theta=1000000.0), rms_norm_eps=1e-6),
    "gemma": lambda: transformers.GemmaConfig(
        **SHAPE, rope_parameters=dict(rope_type="default", rope_theta=10000.0), rms_norm_eps=1e-6),
    "mistral": lambda: transformers.MistralConfig(
        **SHAPE, rope_parameters=dict(rope_type="default", rope_theta=10000.0), rms_norm_eps=1e-5, sliding_window=6),
    "qwen3_windows": lambda: transformers.Qwen3Config(
        **SHAPE, rope_parameters=dict(rope_type="default", rope_theta=1000000.0), rms_norm_eps=1e-6,
        use_sliding_window=True, sliding_window=6, max_window_layers=1),
    "qwen3_moe": lambda: transformers.Qwen3MoeConfig(
        **SHAPE, rope_parameters=dict(rope_type="default", rope_theta=1000000.0), rms_norm_eps=1e-6, num_experts=5,
        num_experts_per_tok=2, moe_intermediate_size=40, norm_topk_prob=True),
    "qwen2_moe": lambda: transformers.Qwen2MoeConfig(
        **WITHOUT_HEAD_DIM, rope_parameters=dict(rope_type="default", rope_theta=1000000.0), rms_norm_eps=1e-6,
        num_experts=5, num_experts_per_tok=2, moe_intermediate_size=40, shared_expert_intermediate_size=24,
        norm_topk_prob=False),
    "mixtral": lambda: transformers.MixtralConfig(
        **SHAPE, rope_parameters=dict(rope_type="default", rope_theta=1000000.0), rms_norm_eps=1e-5,
        num_local_experts=5, num_experts_per_tok=2),
    "olmoe": lambda: transformers.OlmoeConfig(
        **dict(WITHOUT_HEAD_DIM, num_key_value_heads=4), rope_parameters=dict(rope_type="default", rope_theta=10000.0),
        rms_norm_eps=1e-5, num_experts=5, num_experts_per_tok=2, norm_topk_prob=False),
    "granitemoe": lambda: transformers.GraniteMoeConfig(
        **WITHOUT_HEAD_DIM, rope_parameters=dict(rope_type="default", rope_theta=10000.0), rms_norm_eps=1e-5,
        num_local_experts=5, num_experts_per_tok=2, embedding_multiplier=12.0, attention_multiplier=0.25,
        residual_multiplier=0.25, logits_scaling=2.0),
    "glm4_moe": lambda: transformers.Glm4MoeConfig(
        **dict(SHAPE, num_hidden_layers=3), partial_rotary_factor=0.5,
        rope_parameters=dict(rope_type="default", rope_theta=10000.0, partial_rotary_factor=0.5), rms_norm_eps=1e-5,
        attention_bias=True, use_qk_norm=True, n_routed_experts=6, num_experts_per_tok=2, moe_intermediate_size=24,
        first_k_dense_replace=1, n_shared_experts=1, n_group=3, topk_group=2, routed_scaling_factor=1.5,
        num_nextn_predict_layers=0),
    "deepseek_v2": lambda: transformers.DeepseekV2Config(
        **dict(WITHOUT_HEAD_DIM, num_hidden_layers=3, num_key_value_heads=4),
        rope_parameters=dict(rope_type="yarn", rope_theta=10000.0, factor=4.0, beta_fast=32, beta_slow=1, mscale=0.707,
                             mscale_all_dim=0.707, original_max_position_embeddings=16), rms_norm_eps=1e-6,
        q_lora_rank=None, kv_lora_rank=24, qk_nope_head_dim=16, qk_rope_head_dim=8, v_head_dim=12, n_routed_experts=6,
        num_experts_per_tok=2, moe_intermediate_size=24, first_k_dense_replace=1, n_shared_experts=2, n_group=1,
        topk_group=1, topk_method="greedy", routed_scaling_factor=1.0),
    "deepseek_v3": lambda: transformers.DeepseekV3Config(
        **dict(WITHOUT_HEAD_DIM, num_hidden_layers=3, num_key_value_heads=4),
        rope_parameters=dict(rope_type="yarn", rope_theta=10000.0, factor=4.0, beta_fast=32, beta_slow=1, mscale=1.0,
                             mscale_all_dim=1.0, original_max_position_embeddings=16), rms_norm_eps=1e-6,
        q_lora_rank=20, kv_lora_rank=24, qk_nope_head_dim=16, qk_rope_head_dim=8, v_head_dim=12, n_routed_experts=6,
        num_experts_per_tok=2, moe_intermediate_size=24, first_k_dense_replace=1, n_shared_experts=1, n_group=3,
        topk_group=2, routed_scaling_factor=2.5, num_nextn_predict_layers=0),
    "gpt_oss": lambda: transformers.GptOssConfig(
        **SHAPE, num_local_experts=5, num_experts_per_tok=2, sliding_window=6,
        rope_parameters=dict(rope_type="yarn", rope_theta=150000.0, factor=4.0, beta_fast=32.0, beta_slow=1.0,
                             truncate=False, original_max_position_embeddings=16), rms_norm_eps=1e-5),
    "stablelm_heads": lambda: transformers.StableLmConfig(
        **WITHOUT_HEAD_DIM, rope_parameters=dict(rope_type="default", rope_theta=10000.0, partial_rotary_factor=0.25),
        layer_norm_eps=1e-5, use_parallel_residual=True, qk_layernorm=True, use_qkv_bias=False),
    "olmoe_clipped": lambda: transformers.OlmoeConfig(
        **dict(WITHOUT_HEAD_DIM, num_key_value_heads=4), rope_parameters=dict(rope_type="default", rope_theta=10000.0),
        rms_norm_eps=1e-5, num_experts=5, num_experts_per_tok=2, norm_topk_prob=False, clip_qkv=0.7),
    "gemma4_moe": lambda: transformers.Gemma4TextConfig(
        **dict(SHAPE, num_hidden_layers=3), global_head_dim=32, num_global_key_value_heads=2, attention_k_eq_v=True,
        sliding_window=6, layer_types=["sliding_attention", "full_attention", "full_attention"],
        hidden_size_per_layer_input=0, vocab_size_per_layer_input=64, rms_norm_eps=1e-6, tie_word_embeddings=True,
        final_logit_softcapping=30.0, num_kv_shared_layers=0, enable_moe_block=True, num_experts=6, top_k_experts=2,
        moe_intermediate_size=24),
    "minimax_m2": lambda: transformers.MiniMaxM2Config(
        **SHAPE, rope_parameters=dict(rope_type="default", rope_theta=5000000.0, partial_rotary_factor=0.5),
        rms_norm_eps=1e-6, num_local_experts=6, num_experts_per_tok=2),
    "ernie4_5_moe": lambda: transformers.Ernie4_5_MoeConfig(
        **dict(WITHOUT_HEAD_DIM, num_hidden_layers=4), rope_parameters=dict(rope_type="default", rope_theta=500000.0),
        rms_norm_eps=1e-5, tie_word_embeddings=False, moe_num_experts=6, moe_k=2, moe_intermediate_size=24,
        moe_num_shared_experts=2, moe_layer_start_index=1, moe_layer_interval=2),
    "granitemoeshared": lambda: transformers.GraniteMoeSharedConfig(
        **WITHOUT_HEAD_DIM, rope_parameters=dict(rope_type="default", rope_theta=10000.0), rms_norm_eps=1e-5,
        num_local_experts=5, num_experts_per_tok=2, shared_intermediate_size=24, **GRANITE),
    "granitemoehybrid": lambda: transformers.GraniteMoeHybridConfig(
        **WITHOUT_HEAD_DIM, rope_parameters=dict(rope_type="default", rope_theta=10000.0), rms_norm_eps=1e-5,
        num_local_experts=0, num_experts_per_tok=0, shared_intermediate_size=48, mamba_n_heads=4,
        layer_types=["full_attention"] * 2, position_embedding_type="rope", **GRANITE),
    "granitemoehybrid_moe": lambda: transformers.GraniteMoeHybridConfig(
        **WITHOUT_HEAD_DIM, rope_parameters=dict(rope_type="default", rope_theta=10000.0), rms_norm_eps=1e-5,
        num_local_experts=5, num_experts_per_tok=2, shared_intermediate_size=24, mamba_n_heads=4,
        layer_types=["full_attention"] * 2, position_embedding_type=None, **GRANITE),
    "llama4_text": lambda: transformers.Llama4TextConfig(
        **dict(SHAPE, num_hidden_layers=4), rope_parameters=LLAMA3, rms_norm_eps=1e-5, intermediate_size_mlp=40,
        num_local_experts=5, num_experts_per_tok=1, interleave_moe_layer_step=2, attention_chunk_size=64),
    "llama4_text_scaled": lambda: transformers.Llama4TextConfig(
        **dict(SHAPE, num_hidden_layers=4), rope_parameters=dict(rope_type="default", rope_theta=500000.0),
        rms_norm_eps=1e-5, intermediate_size_mlp=40, num_local_experts=5, num_experts_per_tok=1,
        interleave_moe_layer_step=1, attention_chunk_size=64, floor_scale=8, attn_scale=0.25, use_qk_norm=False,
        no_rope_layers=[0, 1, 0, 1]),
    "phimoe": lambda: phimoe(0.01),
    "phimoe_near": lambda: phimoe(0.4),
    "hunyuan_v1_moe": lambda: transformers.HunYuanMoEV1Config(
        **SHAPE, rope_parameters=dict(rope_type="dynamic", rope_theta=10000.0, alpha=50.0, factor=1.0), rms_norm_eps=1e-5,
        num_experts=5, moe_topk=2),
    "dots1": lambda: transformers.Dots1Config(
        **dict(SHAPE, num_hidden_layers=3), rope_parameters=dict(rope_type="default", rope_theta=10000.0),
        rms_norm_eps=1e-6, n_routed_experts=6, num_experts_per_tok=2, moe_intermediate_size=24, n_shared_experts=2,
        first_k_dense_replace=1, norm_topk_prob=True, routed_scaling_factor=2.5, sliding_window=None),
    "gpt_neox": lambda: transformers.GPTNeoXConfig(
        **WITHOUT_GROUPS, rope_parameters=dict(rope_type="default", rope_theta=10000.0, partial_rotary_factor=0.5)),
    "cohere": lambda: transformers.CohereConfig(
        **WITHOUT_HEAD_DIM, rope_parameters=dict(rope_type="default", rope_theta=10000.0), logit_scale=0.5,
        use_qk_norm=True, tie_word_embeddings=True),
    "arcee": lambda: transformers.ArceeConfig(
        **SHAPE, rope_parameters=dict(rope_type="default", rope_theta=10000.0), mlp_bias=True),
    "olmo": lambda: transformers.OlmoConfig(
        **WITHOUT_HEAD_DIM, rope_parameters=dict(rope_type="default", rope_theta=10000.0), clip_qkv=0.7),
    "gpt_neox_sequential": lambda: transformers.GPTNeoXConfig(
        **WITHOUT_GROUPS, rope_parameters=dict(rope_type="default", rope_theta=10000.0, partial_rotary_factor=0.25),
        use_parallel_residual=False),
    "gpt2": lambda: transformers.GPT2Config(**GPT2_SHAPE),
    "opt": lambda: transformers.OPTConfig(**OPT_SHAPE, word_embed_proj_dim=32),
    "falcon": lambda: transformers.FalconConfig(
        **FALCON_SHAPE, multi_query=True, rope_parameters=dict(rope_type="default", rope_theta=10000.0)),
    "falcon_groups": lambda: transformers.FalconConfig(
        **FALCON_SHAPE, num_kv_heads=2, new_decoder_architecture=True, ffn_hidden_size=48,
        rope_parameters=dict(rope_type="default", rope_theta=10000.0)),
    "gpt_bigcode": lambda: transformers.GPTBigCodeConfig(**GPT2_SHAPE, multi_query=True),
    "gpt_bigcode_heads": lambda: transformers.GPTBigCodeConfig(**dict(GPT2_SHAPE, n_inner=48), multi_query=False),
    "gpt_neo": lambda: transformers.GPTNeoConfig(
        **GPT_NEO_SHAPE, attention_types=[[["global", "local"], 1]], window_size=6),
    "lfm2": lambda: transformers.Lfm2Config(
        **dict(WITHOUT_HEAD_DIM, num_hidden_layers=4, intermediate_size=50),
        layer_types=["conv", "conv", "full_attention", "conv"],
        rope_parameters=dict(rope_type="default", rope_theta=1000000.0), block_multiple_of=8,
        block_ffn_dim_multiplier=1.3),
    "lfm2_biases": lambda: transformers.Lfm2Config(
        **dict(WITHOUT_HEAD_DIM, num_hidden_layers=3), layer_types=["full_attention", "conv", "conv"],
        rope_parameters=dict(rope_type="default", rope_theta=1000000.0), conv_bias=True, conv_L_cache=4,
        block_auto_adjust_ff_dim=False, tie_word_embeddings=False),
    "qwen3_5_text": lambda: transformers.Qwen3_5TextConfig(
        **dict(SHAPE, num_hidden_layers=4), **DELTA,
        rope_parameters=dict(rope_type="default", rope_theta=10000000.0, partial_rotary_factor=0.25)),
    "qwen3_5_text_tied": lambda: transformers.Qwen3_5TextConfig(
        **dict(SHAPE, num_hidden_layers=4, max_position_embeddings=128),
        **dict(DELTA, linear_value_head_dim=8, linear_num_key_heads=3, linear_num_value_heads=3,
               linear_conv_kernel_dim=3), rms_norm_eps=1e-5,
        rope_parameters=dict(rope_type="default", rope_theta=10000000.0, partial_rotary_factor=0.5,
                             mrope_interleaved=True, mrope_section=[2, 1, 1]),
        layer_types=["full_attention", "linear_attention", "linear_attention", "linear_attention"],
        tie_word_embeddings=True),
    "lfm2_moe": lambda: transformers.Lfm2MoeConfig(
        **dict(WITHOUT_HEAD_DIM, num_hidden_layers=4), layer_types=["conv", "full_attention", "conv", "conv"],
        rope_parameters=dict(rope_type="default", rope_theta=1000000.0), num_dense_layers=1, num_experts=6,
        num_experts_per_tok=2, moe_intermediate_size=24),
    "qwen3_next": lambda: transformers.Qwen3NextConfig(
        **dict(SHAPE, num_hidden_layers=4), **DELTA,
        rope_parameters=dict(rope_type="default", rope_theta=10000000.0, partial_rotary_factor=0.25), num_experts=5,
        num_experts_per_tok=2, moe_intermediate_size=24, shared_expert_intermediate_size=20),
    "qwen3_next_dense_layers": lambda: transformers.Qwen3NextConfig(
        **dict(SHAPE, num_hidden_layers=4), **DELTA,
        rope_parameters=dict(rope_type="default", rope_theta=10000000.0, partial_rotary_factor=0.5), num_experts=5,
        num_experts_per_tok=2, moe_intermediate_size=24, shared_expert_intermediate_size=20, norm_topk_prob=False,
        mlp_only_layers=[0, 3], rms_norm_eps=1e-5),
    "qwen3_5_moe_text": lambda: transformers.Qwen3_5MoeTextConfig(
        **dict(WITHOUT_WIDTH, num_hidden_layers=4), **DELTA,
        rope_parameters=dict(rope_type="default", rope_theta=10000000.0, partial_rotary_factor=0.25), num_experts=5,
        num_experts_per_tok=2, moe_intermediate_size=24, shared_expert_intermediate_size=20),
    "granitemoehybrid_mamba_moe": lambda: transformers.GraniteMoeHybridConfig(
        **dict(WITHOUT_HEAD_DIM, num_hidden_layers=3, intermediate_size=24),
        rope_parameters=dict(rope_type="default", rope_theta=10000.0), rms_norm_eps=1e-5, num_local_experts=5,
        num_experts_per_tok=2, shared_intermediate_size=20, **MAMBA, mamba_n_groups=1,
        layer_types=["linear_attention", "full_attention", "linear_attention"], position_embedding_type="nope",
        **GRANITE),
    "granitemoehybrid_mamba": lambda: transformers.GraniteMoeHybridConfig(
        **dict(WITHOUT_HEAD_DIM, num_hidden_layers=3), rope_parameters=dict(rope_type="default", rope_theta=10000.0),
        rms_norm_eps=1e-5, num_local_experts=0, num_experts_per_tok=0, shared_intermediate_size=48, **MAMBA,
        mamba_n_groups=2, mamba_proj_bias=True, layer_types=["full_attention", "linear_attention", "linear_attention"],
        position_embedding_type="rope", tie_word_embeddings=True, **GRANITE),
    "bamba": lambda: transformers.BambaConfig(
        **dict(WITHOUT_HEAD_DIM, num_hidden_layers=3), rope_parameters=dict(rope_type="default", rope_theta=10000.0),
        attn_layer_indices=[1], **MAMBA, mamba_n_groups=2),
    "falcon_h1": lambda: transformers.FalconH1Config(
        **SHAPE, rope_parameters=dict(rope_type="default", rope_theta=100000.0), **FALCON_H1),
    "falcon_h1_norm": lambda: transformers.FalconH1Config(
        **SHAPE, rope_parameters=dict(rope_type="default", rope_theta=100000.0), **FALCON_H1, mamba_rms_norm=True,
        mamba_norm_before_gate=False, mamba_n_groups=2),
    "falcon_h1_norm_first": lambda: transformers.FalconH1Config(
        **WITHOUT_HEAD_DIM, rope_parameters=dict(rope_type="default", rope_theta=100000.0),
        **dict(FALCON_H1, mamba_d_ssm=None, mamba_n_heads=8), mamba_rms_norm=True, mamba_n_groups=2,
        mamba_proj_bias=True, projectors_bias=True, attention_bias=True, mlp_bias=True),
    "nemotron_h": lambda: transformers.NemotronHConfig(
        **NEMOTRON_H, layers_block_type=["linear_attention", "full_attention", "mlp", "linear_attention", "moe"]),
    "nemotron_h_latent": lambda: transformers.NemotronHConfig(
        **NEMOTRON_H, layers_block_type=["linear_attention", "moe", "full_attention", "moe"], moe_latent_size=16,
        n_group=3, topk_group=2),
    "mamba2": lambda: transformers.Mamba2Config(
        **{key: SHAPE[key] for key in ("vocab_size", "hidden_size", "num_hidden_layers", "bos_token_id", "eos_token_id",
                                       "pad_token_id")},
        num_heads=8, head_dim=8, state_size=12, n_groups=2, chunk_size=16),
    "bloom": lambda: transformers.BloomConfig(**dict(BLOOM_SHAPE, hidden_size=48, n_head=6)),
    "mpt": lambda: transformers.MptConfig(
        **MPT_SHAPE, d_model=48, n_heads=6, attn_config=dict(clip_qkv=0.7)),
    "mpt_scaled": lambda: transformers.MptConfig(
        **MPT_SHAPE, d_model=32, n_heads=4, attn_config=dict(softmax_scale=0.5)),
    "falcon_rw": lambda: transformers.FalconConfig(
        **FALCON_SHAPE, multi_query=False, parallel_attn=False, alibi=True, bias=True),
    "opt_norms_of_sums": lambda: transformers.OPTConfig(
        **OPT_SHAPE, word_embed_proj_dim=20, do_layer_norm_before=False),
    "opt_plain": lambda: transformers.OPTConfig(
        **OPT_SHAPE, word_embed_proj_dim=32, activation_function="gelu", enable_bias=False,
        layer_norm_elementwise_affine=False),
    "gpt2_scaled_by_layer": lambda: transformers.GPT2Config(
        **GPT2_SHAPE, scale_attn_by_inverse_layer_idx=True, reorder_and_upcast_attn=True),
    "exaone": lambda: transformers.ExaoneConfig(
        **SHAPE, rope_parameters=LLAMA3, rms_norm_eps=1e-5, tie_word_embeddings=True),
    "internlm3": lambda: transformers.InternLM3Config(
        **SHAPE, rope_parameters=dict(rope_type="dynamic", rope_theta=10000.0, factor=6.0), rms_norm_eps=1e-5,
        attention_bias=True, mlp_bias=True),
    "cwm": lambda: transformers.CwmConfig(
        **dict(SHAPE, num_hidden_layers=4, bos_token_id=1), rope_parameters=LLAMA3, rms_norm_eps=1e-5, sliding_window=6),
    "helium": lambda: transformers.HeliumConfig(
        **dict(SHAPE, head_dim=8), rope_parameters=dict(rope_type="default", rope_theta=100000.0),
        rms_norm_eps=1e-8, attention_bias=True, mlp_bias=True),
    "ministral": lambda: transformers.MinistralConfig(
        **dict(SHAPE, num_hidden_layers=3), rope_parameters=dict(rope_type="default", rope_theta=10000.0),
        rms_norm_eps=1e-5, sliding_window=6,
        layer_types=["full_attention", "sliding_attention", "sliding_attention"]),
    "jais2": lambda: transformers.Jais2Config(
        **WITHOUT_HEAD_DIM, head_dim=8, rope_parameters=dict(rope_type="default", rope_theta=10000.0)),
    "solar_open": lambda: transformers.SolarOpenConfig(
        **WITHOUT_WIDTH, rope_parameters=dict(rope_type="default", rope_theta=1000000.0), rms_norm_eps=1e-5,
        n_routed_experts=6, num_experts_per_tok=2, moe_intermediate_size=24, n_shared_experts=1, n_group=1,
        topk_group=1, routed_scaling_factor=1.5),
    "exaone_moe": lambda: transformers.ExaoneMoeConfig(
        **dict(SHAPE, num_hidden_layers=4), rope_parameters=dict(rope_type="default", rope_theta=1000000.0),
        rms_norm_eps=1e-5, sliding_window=6, sliding_window_pattern=3, num_experts=6, num_experts_per_tok=2,
        moe_intermediate_size=24, num_shared_experts=2, first_k_dense_replace=1),
    "flex_olmo": lambda: transformers.FlexOlmoConfig(
        **WITHOUT_HEAD_DIM, rope_parameters=dict(rope_type="default", rope_theta=500000.0), num_experts=5,
        num_experts_per_tok=3),
    "hyperclovax": lambda: transformers.HyperCLOVAXConfig(
        **SHAPE, rope_parameters=dict(rope_type="default", rope_theta=10000.0), embedding_multiplier=3.0,
        attention_multiplier=0.2, residual_multiplier=0.6, logits_scaling=0.5),
    "youtu": lambda: transformers.YoutuConfig(
        **dict(WITHOUT_HEAD_DIM, num_key_value_heads=4), rope_parameters=dict(rope_type="default", rope_theta=10000.0),
        q_lora_rank=20, kv_lora_rank=24, qk_nope_head_dim=16, qk_rope_head_dim=8, v_head_dim=12),
    "vaultgemma": lambda: transformers.VaultGemmaConfig(
        **dict(SHAPE, num_hidden_layers=3), rope_parameters=dict(rope_type="default", rope_theta=10000.0),
        rms_norm_eps=1e-6, sliding_window=6, query_pre_attn_scalar=16, attn_logit_softcapping=3.0,
        final_logit_softcapping=4.0),
    "apertus": lambda: transformers.ApertusConfig(**SHAPE, rope_parameters=LLAMA3, rms_norm_eps=1e-5),
    "minicpm3": lambda: transformers.MiniCPM3Config(
        **dict(WITHOUT_HEAD_DIM, num_key_value_heads=4),
        rope_parameters=dict(rope_type="longrope", rope_theta=10000.0, short_factor=[1.0, 1.1, 1.3, 1.6],
                             long_factor=[1.0, 1.2, 1.4, 1.8], original_max_position_embeddings=64),
        q_lora_rank=20, kv_lora_rank=24, qk_nope_head_dim=16, qk_rope_head_dim=8),
    "afmoe": lambda: transformers.AfmoeConfig(
        **dict(SHAPE, num_hidden_layers=4), rope_parameters=dict(rope_type="default", rope_theta=10000.0),
        sliding_window=6, global_attn_every_n_layers=3, num_experts=6, num_experts_per_tok=2, moe_intermediate_size=24,
        num_shared_experts=2, num_dense_layers=1, route_scale=2.5, mup_enabled=True),
    "gptj": lambda: transformers.GPTJConfig(**GPT2_SHAPE, rotary_dim=4),
    "mamba": lambda: transformers.MambaConfig(
        **MAMBA_1_SHAPE, use_bias=True, tie_word_embeddings=False, time_step_rank=5),
    "nanochat": lambda: transformers.NanoChatConfig(
        **dict(WITHOUT_HEAD_DIM, bos_token_id=1), rope_parameters=dict(rope_type="default", rope_theta=10000.0),
        final_logit_softcapping=3.0),
    "jamba": lambda: transformers.JambaConfig(
        **dict(WITHOUT_HEAD_DIM, num_hidden_layers=5), num_experts=5, num_experts_per_tok=2, expert_layer_period=3,
        expert_layer_offset=1, attn_layer_period=4, attn_layer_offset=2, mamba_d_state=12, mamba_d_conv=3,
        mamba_dt_rank=5),
    "falcon_mamba": lambda: transformers.FalconMambaConfig(**MAMBA_1_SHAPE, mixer_rms_eps=1e-5),
    "mimo": lambda: transformers.Qwen2Config(
        **SHAPE, rope_parameters=dict(rope_type="default", rope_theta=640000.0), rms_norm_eps=1e-5),
    "bitnet": lambda: transformers.BitNetConfig(
        **WITHOUT_HEAD_DIM, tie_word_embeddings=True, rope_parameters=dict(rope_type="default", rope_theta=500000.0)),
    "deepseek_v32": lambda: transformers.DeepseekV32Config(
        **dict(WITHOUT_HEAD_DIM, num_key_value_heads=4), rope_parameters=dict(rope_type="default", rope_theta=10000.0),
        q_lora_rank=20, kv_lora_rank=24, qk_nope_head_dim=16, qk_rope_head_dim=8, v_head_dim=12, n_routed_experts=8,
        num_experts_per_tok=3, moe_intermediate_size=24, first_k_dense_replace=1, n_group=4, topk_group=2,
        index_topk=48, index_head_dim=16, index_n_heads=2),
}

# Keys in which publishers' config.json differs from the one that transformers writes.
PUBLISHED = {
    "gemma4_moe": dict(per_layer_config=None, global_head_dim=32, num_global_key_value_heads=2),
    "minimax_m2": dict(rope_parameters=None, rope_theta=5000000, rotary_dim=8, attn_type_list=[1, 1], use_qk_norm=True,
                       qk_norm_type="per_layer", scoring_func="sigmoid", use_routing_bias=True,
                       shared_intermediate_size=0),
    "granitemoehybrid": dict(layer_types=["attention"] * 2),
    "granitemoehybrid_moe": dict(layer_types=["attention"] * 2, position_embedding_type="nope"),
    "gpt_neox": dict(rope_parameters=None, rotary_pct=0.5, rotary_emb_base=10000),
    "lfm2": dict(rope_parameters=None, rope_theta=1000000.0, layer_types=None, full_attn_idxs=[2],
                 intermediate_size=None, block_ff_dim=50, tie_word_embeddings=None, tie_embedding=True),
    "qwen3_5_text": dict(full_attention_interval=4, attn_output_gate=True, mamba_ssm_dtype="float32"),
    "lfm2_moe": dict(rope_parameters=None, rope_theta=1000000.0),
    "qwen3_next": dict(rope_parameters=None, rope_theta=10000000, partial_rotary_factor=0.25, layer_types=None,
                       full_attention_interval=4),
    "granitemoehybrid_mamba_moe": dict(layer_types=["mamba", "attention", "mamba"], time_step_limit=None),
    "granitemoehybrid_mamba": dict(layer_types=["attention", "mamba", "mamba"]),
    "bamba": dict(rope_parameters=None, rope_theta=10000.0, partial_rotary_factor=0.5, attn_rotary_emb=4,
                  time_step_limit=None),
    "falcon_h1": dict(rope_parameters=None, rope_theta=100000.0, time_step_limit=None),
    "bloom": dict(hidden_size=None, n_embed=48, n_head=None, num_attention_heads=6, seq_length=64, offset_alibi=100,
                  attention_softmax_in_fp32=True, masked_softmax_fusion=True, skip_bias_add=True),
    "nemotron_h": dict(layers_block_type=None, hybrid_override_pattern="M*-ME", num_hidden_layers=5),
    "exaone": dict(num_hidden_layers=None, num_layers=2, rms_norm_eps=None, layer_norm_epsilon=1e-5, hidden_act=None,
                   activation_function="silu", rope_parameters=None, rope_theta=10000.0,
                   rope_scaling={key: value for key, value in LLAMA3.items() if key != "rope_theta"}),
    "internlm3": dict(attention_bias=None, qkv_bias=True, mlp_bias=None, bias=True, rope_parameters=None,
                      rope_theta=10000.0, rope_scaling=dict(factor=6.0, rope_type="dynamic")),
    "cwm": dict(layer_types=None),
    "exaone_moe": dict(layer_types=None, mlp_layer_types=None, sliding_window_pattern="LLG"),
    "youtu": dict(head_dim=None, qk_head_dim=None),
    "apertus": dict(qk_norm=True, post_norm=False, mlp_bias=False, hidden_dropout=0.0),
    "gptj": dict(rotary=True, scale_attn_weights=True, gradient_checkpointing=False),
    "jamba": dict(mamba_inner_layernorms=True, calc_logits_for_entire_prompt=False, sliding_window=None),
    "afmoe": dict(layer_types=None, num_expert_groups=1, num_limited_groups=1, n_group=1, topk_group=1,
                  score_func="sigmoid", route_norm=True, load_balance_coeff=0.001, use_grouped_mm=True),
    "bitnet": dict(rope_parameters=None, rope_theta=500000.0),
    "deepseek_v32": dict(rope_parameters=None, rope_theta=10000, layer_types=None, mlp_layer_types=None,
                         first_k_dense_replace=1, topk_method="noaux_tc", scoring_func="sigmoid", moe_layer_freq=1,
                         ep_size=1, num_nextn_predict_layers=1, num_experts=None),
    "mimo": dict(architectures=["MiMoForCausalLM"], model_type="mimo", attention_bias=True, num_nextn_predict_layers=1,
                 rope_parameters=None, rope_theta=640000, rope_scaling=None, layer_types=None, use_mrope=False),
    "minicpm3": dict(v_head_dim=None, head_dim=None, qk_head_dim=None, rope_parameters=None, rope_theta=10000.0,
                     rope_scaling=dict(type="longrope", short_factor=[1.0, 1.1, 1.3, 1.6],
                                       long_factor=[1.0, 1.2, 1.4, 1.8], original_max_position_embeddings=64)),
}

# Of 40 seeds the one with which rounding moves the recorded logits least: a norm of each head of the delta rule makes
# little numbers large.
SEEDS = {"qwen3_5_text": 117, "qwen3_5_text_tied": 125, "qwen3_next": 104, "qwen3_next_dense_layers": 139,
         "qwen3_5_moe_text": 132}

IDS = [(7 * i * i + 3 * i + 5) % 61 for i in range(80)]
COUNT = 40
POSITIONS = [0, 1, 2, 7, 15, 16, 31, 39]  # both sides of a page of 16 tokens among them
MORE = {"qwen3_5_text_tied": (len(IDS), [63, 64, 79])}  # past the 64 ids of a chunk of transformers' delta rule


def randomise(model, seed):
    generator = torch.Generator().manual_seed(seed)
    for name, parameter in model.named_parameters():
        noise = torch.randn(parameter.shape, generator=generator)
        # Matrices, also those of experts, keep the size of what they multiply; norms stay near what a fresh model has,
        # which is 0 or 1.
        parameter.data = noise / parameter.shape[-1] ** 0.5 if parameter.dim() >= 2 else parameter.data + 0.3 * noise
        if name.endswith("e_score_correction_bias"):
            parameter.data = 0.1 * noise
        if name.endswith("A_log"):  # evenly from -1 to 2
            parameter.data = 3 * torch.special.ndtr(noise) - 1
        if name.endswith(("dt_bias", "dt_proj.bias")):
            parameter.data = noise - 1
        if name.endswith(("conv.bias", "conv1d.bias")):
            parameter.data = 0.3 * noise
    for name, buffer in model.named_buffers():  # the bias of experts' scores
        if name.endswith(("e_score_correction_bias", "expert_bias")):
            buffer.copy_(0.1 * torch.randn(buffer.shape, generator=generator))


def write_tokenizer(path, size):
    letters = string.ascii_letters + string.digits + "\u0120."  # the last but one stands for a space
    tokenizer = Tokenizer(models.BPE(vocab={letter: i for i, letter in enumerate(letters[:size])}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.save(os.path.join(path, "tokenizer.json"))


def publish(path, keys):
    with open(os.path.join(path, "config.json")) as file:
        config = json.load(file)
    config.update(keys)
    with open(os.path.join(path, "config.json"), "w") as file:
        json.dump({key: value for key, value in config.items() if key not in keys or value is not None}, file, indent=2)
        file.write("\n")


def publish_weights(path, change):
    weights = load_file(os.path.join(path, "model.safetensors"))
    save_file(change(weights), os.path.join(path, "model.safetensors"), metadata={"format": "pt"})


def experts_of_a_layer(weights):
    joined = {name: weight for name, weight in weights.items() if ".experts." not in name}
    for layer in [name.split("mlp.")[0] for name in weights if name.endswith("experts.0.up_proj.weight")]:
        def of(part):
            names = [f"{layer}mlp.experts.{expert}.{part}_proj.weight" for expert in range(len(weights))]
            return torch.stack([weights[name] for name in names if name in weights])
        joined[layer + "mlp.experts.gate_up_proj"] = torch.cat([of("gate"), of("up")], 1)
        joined[layer + "mlp.experts.down_proj"] = of("down")
    return joined


def without_module(weights):
    return {name.removeprefix("transformer."): weight for name, weight in weights.items()}


# A layer that predicts a later token, which takes no part in the recorded logits.
def with_later_token(weights):
    layer = {name.replace("layers.0", "mtp_layers.0"): 2 * weight for name, weight in weights.items() if "layers.0." in name}
    width = weights["model.norm.weight"].numel()
    norms = {f"model.mtp_layers.0.{name}_layernorm.weight": torch.ones(width) for name in ("token", "hidden", "final")}
    return {**weights, **layer, **norms, "model.mtp_layers.0.input_proj.weight": torch.ones(width, 2 * width)}


# Weights that publishers' files have in another way than transformers writes them, which reads both; and those that
# transformers does not write.
PUBLISHED_WEIGHTS = {"qwen3_5_moe_text": experts_of_a_layer, "bloom": without_module, "mimo": with_later_token}


def make(name, seed):
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), name)
    config = CONFIGS[name]()
    # Falcon's eager attention adds ALiBi twice, through the mask and by itself.
    attention = "sdpa" if name == "falcon_rw" else "eager"
    model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation=attention, dtype=torch.float32)
    randomise(model, seed)
    model.eval()
    model.save_pretrained(path)
    publish(path, PUBLISHED.get(name, {}))
    if name in PUBLISHED_WEIGHTS:
        publish_weights(path, PUBLISHED_WEIGHTS[name])
    write_tokenizer(path, config.vocab_size)
    os.remove(os.path.join(path, "generation_config.json"))
    count, more = MORE.get(name, (COUNT, []))
    ids, positions = IDS[:count], POSITIONS + more
    with torch.no_grad():
        logits = model(torch.tensor([ids])).logits[0]
    with open(os.path.join(path, "logits.json"), "w") as file:
        json.dump({"ids": ids, "positions": positions,
                   "logits": [[round(v, 7) for v in logits[at].tolist()] for at in positions]}, file)
        file.write("\n")
    print(f"{name}: {sum(p.numel() for p in model.parameters())} weights, logits of {logits.std():.3f} around 0")


if __name__ == "__main__":
    print(f"torch {torch.__version__}, transformers {transformers.__version__}, Python {sys.version.split()[0]}")
    for seed, name in enumerate(CONFIGS):
        if name in sys.argv[1:] or len(sys.argv) == 1:
            make(name, SEEDS.get(name, seed + 1))
