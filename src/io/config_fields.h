#pragma once

// Reads facts of a model by key, with bounds, from a JSON object or from the metadata of a GGUF file. A value of the
// wrong kind or out of bounds, or a missing required value, is a UserError that begins with [where] and names the key:
//
//   [config.json] num_hidden_layers must be an integer of 1 to 1024, but is "30"
//
// Both classes have the same members, so that one function template can read from either.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "io/architecture_facts.h"
#include "io/gguf.h"

namespace weft {

// The JSON text of a small file (at most 16 MiB), which must be an object. UserError that begins with [where].
Json parse_config_json(std::string_view text, const std::string& where);

// The value as JSON for messages, truncated if long.
std::string shown_json(const Json& value);

// Fields of a JSON object, which must outlive it. A null value counts as absent, as in Hugging Face.
class JsonFields {
 public:
  // Messages put `prefix` before each key: "rope_scaling.".
  JsonFields(const Json& object, std::string where, std::string prefix = "");
  // The same for an object that may have other names of some keys, which are looked up first. The list must outlive it.
  JsonFields(const Json& object, std::string where, std::span<const KeyName> names);

  const std::string& where() const { return where_; }
  // The key as the object spells it.
  std::string name(std::string_view key) const { return prefix_ + std::string(spelling(key)); }
  bool has(std::string_view key) const { return value(key) != nullptr; }
  bool is_null(std::string_view key) const;  // present, but null
  // The value itself; nullptr if it is absent or null.
  const Json* value(std::string_view key) const;
  // The keys that are not null, in the order of the object.
  std::vector<std::string> keys() const;

  std::optional<std::int64_t> find_integer(std::string_view key) const;
  std::optional<double> find_real(std::string_view key) const;
  std::optional<bool> find_boolean(std::string_view key) const;
  std::optional<std::string> find_text(std::string_view key) const;
  // One integer or a list of them; empty when absent.
  std::vector<std::int64_t> find_integers(std::string_view key) const;
  // A nested object.
  std::optional<JsonFields> find_object(std::string_view key) const;

 private:
  // The name that the object has for the key; a null counts as absent.
  std::string_view spelling(std::string_view key) const;

  const Json* object_;
  std::string where_;
  std::string prefix_;
  std::span<const KeyName> names_;
};

// Fields of the metadata of a GGUF file, which must outlive it. Each key is looked up with `prefix` before it:
// "llama.".
class GgufFields {
 public:
  GgufFields(const Gguf& gguf, std::string prefix) : gguf_(&gguf), prefix_(std::move(prefix)) {}

  const std::string& where() const { return gguf_->where(); }
  std::string name(std::string_view key) const { return prefix_ + std::string(key); }
  bool has(std::string_view key) const { return gguf_->find(name(key)) != nullptr; }

  std::optional<std::int64_t> find_integer(std::string_view key) const { return gguf_->find_integer(name(key)); }
  std::optional<double> find_real(std::string_view key) const { return gguf_->find_real(name(key)); }
  std::optional<bool> find_boolean(std::string_view key) const { return gguf_->find_boolean(name(key)); }
  std::optional<std::string> find_text(std::string_view key) const;

 private:
  const Gguf* gguf_;
  std::string prefix_;
};

// Inclusive bounds.
template <class Number>
struct Range {
  Number least;
  Number greatest;
};

template <class Fields>
std::optional<std::int64_t> integer_in(const Fields& fields, std::string_view key, Range<std::int64_t> range) {
  const auto value = fields.find_integer(key);
  if (value)
    USER_CHECK(*value >= range.least && *value <= range.greatest, "[{}] {} must be {} to {}, but is {}", fields.where(),
               fields.name(key), range.least, range.greatest, *value);
  return value;
}

template <class Fields>
std::int64_t needed_integer_in(const Fields& fields, std::string_view key, Range<std::int64_t> range) {
  const auto value = integer_in(fields, key, range);
  USER_CHECK(value, "[{}] wanted {}, an integer of {} to {}, but there is none", fields.where(), fields.name(key),
             range.least, range.greatest);
  return *value;
}

template <class Fields>
std::optional<double> real_in(const Fields& fields, std::string_view key, Range<double> range) {
  const auto value = fields.find_real(key);
  if (value)
    USER_CHECK(*value >= range.least && *value <= range.greatest, "[{}] {} must be {} to {}, but is {}", fields.where(),
               fields.name(key), range.least, range.greatest, *value);
  return value;
}

template <class Fields>
double needed_real_in(const Fields& fields, std::string_view key, Range<double> range) {
  const auto value = real_in(fields, key, range);
  USER_CHECK(value, "[{}] wanted {}, a number of {} to {}, but there is none", fields.where(), fields.name(key),
             range.least, range.greatest);
  return *value;
}

// Reads a list of as many numbers; an absent key leaves them as they are.
void read_list(const JsonFields& fields, std::string_view key, Range<double> range,
               const std::vector<double*>& numbers);

}  // namespace weft
