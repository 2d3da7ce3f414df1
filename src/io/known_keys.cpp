#include "io/known_keys.h"

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "base/text.h"
#include "io/config_fields.h"
#include "io/known_keys_config.h"
#include "io/known_keys_gguf.h"
#include "io/known_keys_peft.h"
#include "io/known_keys_quantization.h"
#include "io/known_keys_text.h"

namespace weft {
namespace {

// Numbers are compared as numbers, not as text: 1 and 1.0 are equal.
bool is_without_effect(const KnownKey& key, const Json& value) {
  if (value.is_null()) return true;
  const auto is_neutral = [&](const Json& element) { return is_without_effect(key, element); };
  if (value.is_array() && !value.empty() && std::all_of(value.begin(), value.end(), is_neutral)) return true;
  const std::vector<std::string> neutral = split_text(std::string(key.without_effect), '|');
  return std::any_of(neutral.begin(), neutral.end(),
                     [&](const std::string& text) { return !text.empty() && parse_json(text) == value; });
}

// Formats the values of `key.without_effect` for a message.
std::string wanted_text(const KnownKey& key) {
  std::string wanted = "null";
  for (const std::string& value : split_text(std::string(key.without_effect), '|'))
    if (!value.empty()) wanted += " or " + value;
  return wanted;
}

void check_key(const KnownKey& key, const Json& value, const std::string& where, const std::string& name) {
  USER_CHECK(is_without_effect(key, value), "[{}] {} asks for {}, which is not supported: it must be {}, but is {}",
             where, name, key.why, wanted_text(key), shown_json(value));
}

const KnownKey* find_key(KeyTable table, std::string_view name) {
  const std::span<const KnownKey> keys = known_keys(table);
  const auto found = std::find_if(keys.begin(), keys.end(), [&](const KnownKey& key) { return key.name == name; });
  return found == keys.end() ? nullptr : &*found;
}

// Returns a single value as JSON, and an array as the text of its type.
Json json_of(const Gguf& gguf, const GgufEntry& entry) {
  if (entry.value.is_array) return entry.value.type_name();
  switch (entry.value.type) {
    case GgufType::boolean:
      return gguf.find_boolean(entry.key).value();
    case GgufType::text:
      return std::string(gguf.find_text(entry.key).value());
    default:
      return gguf.find_real(entry.key).value();
  }
}

}  // namespace

std::span<const KnownKey> known_keys(KeyTable table) {
  switch (table) {
    case KeyTable::config:
      return kConfigKeys;
    case KeyTable::rope:
      return kRopeKeys;
    case KeyTable::quantization:
      return kQuantizationKeys;
    case KeyTable::quantization_group:
      return kQuantizationGroupKeys;
    case KeyTable::quantization_arguments:
      return kQuantizationArgumentKeys;
    case KeyTable::quantization_rule:
      return kQuantizationRuleKeys;
    case KeyTable::gguf_model:
      return kGgufModelKeys;
    case KeyTable::gguf_general:
      return kGgufGeneralKeys;
    case KeyTable::gguf_tokenizer:
      return kGgufTokenizerKeys;
    case KeyTable::tokenizer_config:
      return kTokenizerConfigKeys;
    case KeyTable::generation_config:
      return kGenerationConfigKeys;
    case KeyTable::peft:
      return kPeftKeys;
  }
  return {};
}

std::vector<std::string> unknown_keys(KeyTable table, const Json& object, const std::string& where,
                                      const std::string& prefix, std::span<const std::string_view> own) {
  std::vector<std::string> unknown;
  for (const auto& [name, value] : object.items()) {
    if (std::find(own.begin(), own.end(), name) != own.end()) continue;
    const KnownKey* key = find_key(table, name);
    if (key == nullptr) {
      unknown.push_back(prefix + name);
    } else if (key->kind == KeyClass::changes) {
      check_key(*key, value, where, prefix + name);
    }
  }
  return unknown;
}

std::vector<std::string> unknown_gguf_keys(const Gguf& gguf, const std::string& architecture,
                                           std::span<const std::string_view> own) {
  std::vector<std::string> unknown;
  const auto check = [&](KeyTable table, const std::string& prefix, const GgufEntry& entry) {
    if (!entry.key.starts_with(prefix)) return;
    const std::string_view name = entry.key.substr(prefix.size());
    if (table == KeyTable::gguf_model && std::find(own.begin(), own.end(), name) != own.end()) return;
    const KnownKey* key = find_key(table, name);
    if (key == nullptr) {
      // What is general describes the file: names, authors, licences.
      if (table != KeyTable::gguf_general) unknown.emplace_back(entry.key);
    } else if (key->kind == KeyClass::changes) {
      check_key(*key, json_of(gguf, entry), gguf.where(), std::string(entry.key));
    }
  };
  for (const GgufEntry& entry : gguf.entries()) {
    check(KeyTable::gguf_model, architecture + ".", entry);
    check(KeyTable::gguf_tokenizer, "tokenizer.ggml.", entry);
    check(KeyTable::gguf_general, "general.", entry);
    const std::string prefixes[] = {architecture + ".", "tokenizer.", "general.", "quantize.", "split."};
    if (std::none_of(std::begin(prefixes), std::end(prefixes),
                     [&](const std::string& prefix) { return entry.key.starts_with(prefix); }))
      unknown.emplace_back(entry.key);
  }
  return unknown;
}

}  // namespace weft
