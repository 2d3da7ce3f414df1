#pragma once

// The keys of PEFT's adapter_config.json. Only known_keys.cpp includes this file.

#include "io/known_keys.h"

namespace weft {

inline constexpr KnownKey kPeftKeys[] = {
    // Read by peft_config.cpp.
    {"alpha_pattern", KeyClass::read},
    {"lora_alpha", KeyClass::read},
    {"r", KeyClass::read},
    {"rank_pattern", KeyClass::read},
    {"target_modules", KeyClass::read},
    {"use_rslora", KeyClass::read},
    // The tensors show which modules are adapted. PEFT stores A and B alike whatever the layout of the weight.
    {"exclude_modules", KeyClass::harmless},
    {"fan_in_fan_out", KeyClass::harmless},
    {"layers_pattern", KeyClass::harmless},
    {"layers_to_transform", KeyClass::harmless},
    // About training, and about the origin of the file.
    {"auto_mapping", KeyClass::harmless},
    {"base_model_name_or_path", KeyClass::harmless},
    {"corda_config", KeyClass::harmless},
    {"eva_config", KeyClass::harmless},
    {"inference_mode", KeyClass::harmless},
    {"loftq_config", KeyClass::harmless},
    {"lora_dropout", KeyClass::harmless},
    {"lora_ga_config", KeyClass::harmless},
    {"megatron_core", KeyClass::harmless},
    {"peft_version", KeyClass::harmless},
    {"qalora_group_size", KeyClass::harmless},
    {"revision", KeyClass::harmless},
    {"task_type", KeyClass::harmless},
    // What is not implemented.
    {"alora_invocation_tokens", KeyClass::changes, "", "an adapter that begins at a certain text"},
    {"arrow_config", KeyClass::changes, "", "adapters that are chosen for each token"},
    {"bias", KeyClass::changes, "\"none\"", "other biases than those of the model"},
    {"ensure_weight_tying", KeyClass::changes, "false", "adapted embeddings"},
    {"init_lora_weights", KeyClass::changes, "true|false|\"gaussian\"|\"eva\"|\"orthogonal\"",
     "other weights of the base model"},
    {"kasa_config", KeyClass::changes, "", "another product than that of A and B"},
    {"layer_replication", KeyClass::changes, "", "layers that the model does not have"},
    {"lora_bias", KeyClass::changes, "false", "biases of the adapter"},
    {"megatron_config", KeyClass::changes, "", "layers of Megatron"},
    {"modules_to_save", KeyClass::changes, "[]", "whole modules in place of the model's"},
    {"monteclora_config", KeyClass::changes, "", "another product than that of A and B"},
    {"peft_type", KeyClass::changes, "\"LORA\"", "another kind of adapter"},
    {"target_parameters", KeyClass::changes, "[]", "adapted parameters that are no module"},
    {"trainable_token_indices", KeyClass::changes, "", "adapted embeddings"},
    {"use_bdlora", KeyClass::changes, "false", "another product than that of A and B"},
    {"use_dora", KeyClass::changes, "false", "DoRA"},
    {"use_qalora", KeyClass::changes, "false", "QALoRA"},
    {"velora_config", KeyClass::changes, "", "another product than that of A and B"},
};

}  // namespace weft
