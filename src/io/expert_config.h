#pragma once

// Reads the mixture of experts of a model's config, and which layers have it. Part of model_config.cpp.

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/config_fields.h"
#include "io/model_config.h"
#include "tensor/meta.h"

namespace weft {

// The keys of config.json that an architecture with these facts reads; none without facts.
std::vector<std::string_view> expert_keys(const std::optional<ExpertFacts>& facts);
// The keys of GGUF files after the architecture.
std::vector<std::string_view> gguf_expert_keys();

// The first layer with experts, and the distance from each to the next one.
struct RoutedLayers {
  std::int64_t first = 0, step = 1;
};
RoutedLayers routed_layers(const ModelConfig& config);

// The keys of config.json that state the mixture of a config, for the architecture with these facts.
Json expert_json(const ModelConfig& config, const ExpertFacts& facts);
// The same for a model without experts, where config.json must state it.
Json no_expert_json(const ExpertFacts& facts);

// The layout of experts in a folder follows from its tensors; before this call it is the usual one.
void read_expert_layout(const std::function<const Meta*(const std::string&)>& find_tensor, ModelConfig& config);

// Sets experts, has_experts and expert_count. UserError for numbers that contradict each other.
void read_experts(const JsonFields& fields, const std::optional<ExpertFacts>& facts, ModelConfig& config);
void read_experts(const GgufFields& fields, const Gguf& gguf, const std::optional<ExpertFacts>& facts,
                  ModelConfig& config);

}  // namespace weft
