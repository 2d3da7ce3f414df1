#pragma once

// What the readers of the methods of quantization_config share: fields with few known values, groups of columns, and
// lists of modules.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/config_fields.h"
#include "io/known_keys.h"
#include "io/quantization_config.h"

namespace weft {

// A list of strings; empty if the key is absent.
std::vector<std::string> texts_of(const JsonFields& fields, std::string_view key);
// The text of the key. UserError unless it is one of `known`.
std::string text_among(const JsonFields& fields, std::string_view key, std::vector<std::string_view> known);
JsonFields needed_object(const JsonFields& fields, std::string_view key);
bool needed_boolean(const JsonFields& fields, std::string_view key);
// UserError if the value differs.
void need_integer(const JsonFields& fields, std::string_view key, std::int64_t wanted);
// UserError if `symmetric` is false: codes with zero points.
void need_symmetric(const JsonFields& fields);
// A group of K columns; 0 for -1 or a missing key, a whole row.
std::int64_t read_group_size(const JsonFields& fields, std::string_view key);
// Sets the scheme `block` and its extents.
void read_block(const JsonFields& fields, std::string_view key, QuantizationConfig& config);

// A module's name, or a pattern after "re:".
ModulePattern module_pattern(const std::string& text);
// A pattern in which each * matches any characters. A text without * is a module's name.
ModulePattern module_glob(const std::string& text);
void add_ignored(const std::vector<std::string>& modules, QuantizationConfig& config);

// Adds the keys of this object that the table lacks to the config's unknown_keys.
void add_unknown_keys(KeyTable table, const JsonFields& fields, std::string_view object, QuantizationConfig& config);

// Adds a warning if the key, which asks for scales of keys and values, is set.
void warn_of_kv_scales(const JsonFields& fields, std::string_view key, QuantizationConfig& config);

// The methods of compressed_tensors_config.cpp, modelopt_config.cpp, quark_config.cpp and grouped_config.cpp.
QuantizationConfig read_compressed_tensors(const JsonFields& fields);
QuantizationConfig read_modelopt(const JsonFields& fields);
QuantizationConfig read_quark(const JsonFields& fields);
QuantizationConfig read_gptq(const JsonFields& fields);
QuantizationConfig read_awq(const JsonFields& fields);
QuantizationConfig read_auto_round(const JsonFields& fields);
QuantizationConfig read_bitsandbytes(const JsonFields& fields);

// mlx_config.cpp. The object `quantization` of config.json, or the same under the other key; nullopt if the folder is
// not of mlx-lm. UserError if another method is under the other key.
std::optional<JsonFields> mlx_quantization(const JsonFields& config);
QuantizationConfig read_mlx(const JsonFields& fields);

}  // namespace weft
