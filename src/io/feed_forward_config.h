#pragma once

// Reads the width of the feed-forward; a part of model_config.cpp.

#include <string_view>
#include <vector>

#include "io/config_fields.h"
#include "io/model_config.h"

namespace weft {

// Far above the widths of existing models, and so small that a product of several of them fits into 63 bits.
constexpr Range<std::int64_t> kWidths = {1, 1 << 20};

// The keys of config.json by which the width is adjusted.
std::vector<std::string_view> feed_forward_keys(const ArchitectureFacts& facts);

// The width as files state it.
std::int64_t stated_feed_forward_width(const ModelConfig& config, const ArchitectureFacts& facts);

// The keys of config.json that state the width of a config.
Json feed_forward_json(const ModelConfig& config, const ArchitectureFacts& facts);

// The width of all layers. UserErrors as in model_config.h.
std::int64_t feed_forward_width(const JsonFields& fields, const ArchitectureFacts& facts, std::int64_t hidden_size);
// `config` must already have its halves. Other numbers of a list are read by read_layer_lists.
std::int64_t feed_forward_width(const GgufFields& fields, const Gguf& gguf, const ArchitectureFacts& facts,
                                const ModelConfig& config);

// A number of all layers, or the first one of a list with a number for each layer, which read_layer_lists reads.
std::int64_t first_or_only(const GgufFields& fields, const Gguf& gguf, const char* key, Range<std::int64_t> range);

}  // namespace weft
