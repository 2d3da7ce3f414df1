#pragma once

// Reads which layers of a model have a window and which have rotary positions; a part of model_config.cpp.

#include "io/config_fields.h"
#include "io/model_config.h"

namespace weft {

constexpr Range<std::int64_t> kContexts = {1, 1 << 24};  // positions are exact in f32 up to here
constexpr Range<std::int64_t> kLayers = {1, 4096};
constexpr Range<std::int64_t> kHeads = {1, 65536};
constexpr Range<std::int64_t> kHeadDims = {2, 4096};

// For each layer, whether it is not the last one of a period.
std::vector<bool> all_but_every(std::int64_t period, std::int64_t layers);

// Reads a number, or a list with the same number for each layer; nullopt if the key is absent.
std::optional<std::int64_t> number_of_all_layers(const JsonFields& fields, std::string_view key,
                                                 Range<std::int64_t> range);

// Reads a list with a word for each layer, one of `words` or of the others: whether it is one of `words`. Empty if the
// key is absent.
std::vector<bool> layers_of_words(const JsonFields& fields, std::string_view key,
                                  const std::vector<std::string_view>& words,
                                  const std::vector<std::string_view>& others, std::int64_t layer_count);

// Read config.json and the metadata of a GGUF file. `config` must already have the number of layers and the context
// length. UserErrors as in model_config.h.
void read_windows(const JsonFields& fields, const ArchitectureFacts& facts, ModelConfig& config);
void read_windows(const GgufFields& fields, const Gguf& gguf, const std::optional<WindowFacts>& window,
                  ModelConfig& config);

// Which layers have rotary positions, or the table of learned ones. `config` must already have the context length and
// the windows.
void read_rotated_layers(const JsonFields& fields, const ArchitectureFacts& facts, ModelConfig& config);
void read_rotated_layers(const GgufFields& fields, const ArchitectureFacts& facts, ModelConfig& config);

// Reads activation_sparsity_pattern of config.json, the part of the gates that do not pass, one number or one for each
// layer; and activation_sparsity_scale of GGUF files, the cuts themselves.
void read_gate_cuts(const JsonFields& fields, ModelConfig& config);
void read_gate_cuts(const GgufFields& fields, const Gguf& gguf, ModelConfig& config);
// A list of GGUF files with a number for each layer; empty if there is none.
std::vector<double> numbers_of_layers(const GgufFields& fields, const Gguf& gguf, std::string_view key,
                                      std::int64_t layer_count);
// The part of a normal variable's values that are below its mean plus this number of standard deviations.
double part_below(double deviations);

// Reads per_layer_config, in which transformers writes the heads of layers without a window if they differ from others.
// `config` must already have the windows.
void read_layer_overrides(const JsonFields& fields, ModelConfig& config);

// Reads the numbers that differ between the layers of a GGUF file: heads of keys and values by whether a layer has a
// window, widths of the feed-forward by whether it has keys and values of its own.
void read_layer_lists(const GgufFields& fields, const Gguf& gguf, ModelConfig& config);

}  // namespace weft
