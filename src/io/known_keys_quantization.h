#pragma once

// The keys of quantization_config, of all methods. Only known_keys.cpp includes this file.

#include "io/known_keys.h"

namespace weft {

inline constexpr KnownKey kQuantizationKeys[] = {
    // Read by quantization_config.cpp.
    {"activation_scheme", KeyClass::read},
    {"bits", KeyClass::read},
    {"bnb_4bit_quant_storage", KeyClass::read},
    {"bnb_4bit_quant_type", KeyClass::read},
    {"bnb_4bit_use_double_quant", KeyClass::read},
    {"checkpoint_format", KeyClass::read},
    {"config_groups", KeyClass::read},
    {"desc_act", KeyClass::read},
    {"dynamic", KeyClass::read},
    {"exclude_modules", KeyClass::read},
    {"fmt", KeyClass::read},
    {"format", KeyClass::read},
    {"group_size", KeyClass::read},
    {"ignore", KeyClass::read},
    {"ignored_layers", KeyClass::read},
    {"kv_cache_quant_algo", KeyClass::read},
    {"kv_cache_scheme", KeyClass::read},
    {"llm_int8_skip_modules", KeyClass::read},
    {"lm_head", KeyClass::read},
    {"load_in_4bit", KeyClass::read},
    {"load_in_8bit", KeyClass::read},
    {"modules_in_block_to_quantize", KeyClass::read},
    {"modules_to_not_convert", KeyClass::read},
    {"producer", KeyClass::read},
    {"quant_algo", KeyClass::read},
    {"quant_method", KeyClass::read},
    {"quantization", KeyClass::read},
    {"scale_fmt", KeyClass::read},
    {"sparsity_config", KeyClass::read},
    {"sym", KeyClass::read},
    {"version", KeyClass::read},
    {"weight_block_size", KeyClass::read},
    {"zero_point", KeyClass::read},
    // How the weights were made, and which of its programs a library takes.
    {"_load_in_4bit", KeyClass::harmless},
    {"_load_in_8bit", KeyClass::harmless},
    {"act_group_aware", KeyClass::harmless},
    {"backend", KeyClass::harmless},
    {"batch_size", KeyClass::harmless},
    {"block_name_to_quantize", KeyClass::harmless},
    {"bnb_4bit_compute_dtype", KeyClass::harmless},
    {"cache_block_outputs", KeyClass::harmless},
    {"damp_auto_increment", KeyClass::harmless},
    {"damp_percent", KeyClass::harmless},
    {"dataset", KeyClass::harmless},
    {"dequantize", KeyClass::harmless},
    {"disable_exllama", KeyClass::harmless},
    {"do_fuse", KeyClass::harmless},
    {"exllama_config", KeyClass::harmless},
    {"fuse_max_seq_len", KeyClass::harmless},
    {"global_compression_ratio", KeyClass::harmless},
    {"is_marlin_format", KeyClass::changes, "false", "weights in the layout of Marlin"},
    {"llm_int8_enable_fp32_cpu_offload", KeyClass::harmless},
    {"llm_int8_has_fp16_weight", KeyClass::harmless},
    {"llm_int8_threshold", KeyClass::harmless},
    {"max_input_length", KeyClass::harmless},
    {"meta", KeyClass::harmless},
    {"model_file_base_name", KeyClass::harmless},
    {"model_name_or_path", KeyClass::harmless},
    {"model_seqlen", KeyClass::harmless},
    {"module_name_preceding_first_block", KeyClass::harmless},
    {"modules_to_fuse", KeyClass::harmless},
    {"pack_dtype", KeyClass::harmless},
    {"pad_token_id", KeyClass::harmless},
    {"quant_type", KeyClass::harmless},
    {"quantization_status", KeyClass::harmless},
    {"quantizer", KeyClass::harmless},
    {"static_groups", KeyClass::harmless},
    {"tokenizer", KeyClass::harmless},
    {"true_sequential", KeyClass::harmless},
    {"use_cuda_fp16", KeyClass::harmless},
    {"use_exllama", KeyClass::harmless},
    {"transform_config", KeyClass::changes, "{}|{\"config_groups\": {}}",
     "rotated weights, whose inputs are rotated, too"},
};

// Of an element of config_groups.
inline constexpr KnownKey kQuantizationGroupKeys[] = {
    {"format", KeyClass::read},  {"input_activations", KeyClass::read}, {"output_activations", KeyClass::read},
    {"targets", KeyClass::read}, {"weights", KeyClass::read},
};

// Of a rule of GPTQ's `dynamic`.
inline constexpr KnownKey kQuantizationRuleKeys[] = {
    {"bits", KeyClass::read},
    {"desc_act", KeyClass::read},
    {"group_size", KeyClass::read},
    {"sym", KeyClass::read},
    // How scales were found.
    {"act_group_aware", KeyClass::harmless},
    {"damp_auto_increment", KeyClass::harmless},
    {"damp_percent", KeyClass::harmless},
    {"mse", KeyClass::harmless},
    {"static_groups", KeyClass::harmless},
};

// Of a group's weights and input_activations.
inline constexpr KnownKey kQuantizationArgumentKeys[] = {
    {"actorder", KeyClass::read},
    {"block_structure", KeyClass::read},
    {"dynamic", KeyClass::read},
    {"group_size", KeyClass::read},
    {"num_bits", KeyClass::read},
    {"strategy", KeyClass::read},
    {"symmetric", KeyClass::read},
    {"type", KeyClass::read},
    // How scales were found, and their types, which the tensors have, too.
    {"observer", KeyClass::harmless},
    {"observer_kwargs", KeyClass::harmless},
    {"scale_dtype", KeyClass::harmless},
    {"zp_dtype", KeyClass::harmless},
};

}  // namespace weft
