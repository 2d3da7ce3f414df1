#pragma once

// The keys of GGUF metadata that describe a model. Only known_keys.cpp includes this file.

#include "io/known_keys.h"

namespace weft {

// Keys after "general.".
inline constexpr KnownKey kGgufGeneralKeys[] = {
    {"type", KeyClass::changes, "\"model\"", "an adapter or another part of a model"},
};

// Keys after the architecture's name and a dot.
inline constexpr KnownKey kGgufModelKeys[] = {
    {"attention.head_count", KeyClass::read},
    {"attention.head_count_kv", KeyClass::read},
    {"attention.key_length", KeyClass::read},
    {"attention.key_length_swa", KeyClass::read},
    {"attention.layer_norm_rms_epsilon", KeyClass::read},
    {"attention.sliding_window", KeyClass::read},
    {"attention.sliding_window_pattern", KeyClass::read},
    {"attention.value_length", KeyClass::read},
    {"attention.value_length_swa", KeyClass::read},
    {"block_count", KeyClass::read},
    {"classifier.output_labels", KeyClass::read},
    {"context_length", KeyClass::read},
    {"embedding_length", KeyClass::read},
    {"expert_count", KeyClass::read},
    {"feed_forward_length", KeyClass::read},
    {"nextn_predict_layers", KeyClass::read},
    {"rope.dimension_count", KeyClass::read},
    {"rope.dimension_count_swa", KeyClass::read},
    {"rope.freq_base", KeyClass::read},
    {"rope.scale_linear", KeyClass::read},
    {"rope.scaling.attn_factor", KeyClass::read},
    {"rope.scaling.factor", KeyClass::read},
    {"rope.scaling.original_context_length", KeyClass::read},
    {"rope.scaling.type", KeyClass::read},
    {"rope.scaling.yarn_attn_factor", KeyClass::read},
    {"rope.scaling.yarn_beta_fast", KeyClass::read},
    {"rope.scaling.yarn_beta_slow", KeyClass::read},
    {"rope.scaling.yarn_ext_factor", KeyClass::read},
    {"rope.scaling.yarn_log_multiplier", KeyClass::read},
    {"vocab_size", KeyClass::read},
    {"expert_used_count", KeyClass::harmless},
    {"rope.scaling.finetuned", KeyClass::harmless},
    {"tensor_data_layout", KeyClass::harmless},
    {"activation_sparsity_scale", KeyClass::changes, "", "gates that pass only if they are large"},
    {"altup.active_idx", KeyClass::changes, "0", "several residual streams"},
    {"altup.num_inputs", KeyClass::changes, "0|1", "several residual streams"},
    {"attention.causal", KeyClass::changes, "true", "attention to later tokens"},
    {"attention.chunk_size", KeyClass::changes, "0", "attention in chunks"},
    {"attention.clamp_kqv", KeyClass::changes, "0", "clipped queries, keys and values"},
    {"attention.kv_lora_rank", KeyClass::changes, "0", "compressed keys and values"},
    {"attention.layer_norm_epsilon", KeyClass::changes, "", "norms that subtract the mean"},
    {"attention.max_alibi_bias", KeyClass::changes, "0", "positions by linear biases"},
    {"attention.q_lora_rank", KeyClass::changes, "0", "compressed queries"},
    {"attention.scale", KeyClass::changes, "0", "a scale of attention scores"},
    {"attention.shared_kv_layers", KeyClass::changes, "0", "layers that share keys and values"},
    {"attention.temperature_length", KeyClass::changes, "0", "queries scaled by position"},
    {"attention.temperature_scale", KeyClass::changes, "0", "queries scaled by position"},
    {"attn_logit_softcapping", KeyClass::changes, "0", "a soft cap of attention scores"},
    {"embedding_length_per_layer_input", KeyClass::changes, "0", "embeddings of each layer"},
    {"embedding_scale", KeyClass::changes, "0|1", "scaled embeddings"},
    {"final_logit_softcapping", KeyClass::changes, "0", "a soft cap of logits"},
    {"leading_dense_block_count", KeyClass::changes, "0", "a mixture of experts"},
    {"logit_scale", KeyClass::changes, "0|1", "scaled logits"},
    {"pooling_type", KeyClass::changes, "0|1|2|3|4", "another pooling of hidden states"},
    {"residual_scale", KeyClass::changes, "0|1", "scaled residual branches"},
    {"rope.dimension_sections", KeyClass::changes, "", "rotary positions in several dims"},
    {"rope.freq_base_swa", KeyClass::changes, "", "other rotary positions in some layers"},
    {"rope.scaling.alpha", KeyClass::changes, "0", "rotary positions scaled by alpha"},
    {"use_parallel_residual", KeyClass::changes, "false", "attention and feed-forward side by side"},
};

}  // namespace weft
