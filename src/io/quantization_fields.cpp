#include "io/quantization_fields.h"

#include <algorithm>
#include <cctype>

#include <fmt/ranges.h>

#include "base/error.h"
#include "base/text.h"
#include "io/regex.h"
#include "io/text_config.h"

namespace weft {
namespace {

constexpr Range<std::int64_t> kBlocks = {1, 1 << 20};
constexpr std::string_view kRegex = "re:";

Regex compiled(const std::string& text) {
  try {
    return Regex::compile(std::string_view(text).substr(kRegex.size()));
  } catch (const UserError& error) {
    fail_user("[quantization_config] modules {} cannot be found: {}", quote(text, 1000), error.what());
  }
}

}  // namespace

std::vector<std::string> texts_of(const JsonFields& fields, std::string_view key) {
  std::vector<std::string> texts;
  const auto* list = fields.value(key);
  if (list == nullptr) return texts;
  const bool fits =
      list->is_array() && std::all_of(list->begin(), list->end(), [](const auto& text) { return text.is_string(); });
  USER_CHECK(fits, "[{}] {} must be a list of strings, but is not", fields.where(), fields.name(key));
  for (const auto& text : *list) texts.push_back(text.template get<std::string>());
  return texts;
}

std::string text_among(const JsonFields& fields, std::string_view key, std::vector<std::string_view> known) {
  const auto text = fields.find_text(key);
  USER_CHECK(text && std::find(known.begin(), known.end(), *text) != known.end(), "[{}] {} must be {}, but is {}{}",
             fields.where(), fields.name(key), fmt::join(known, " or "), text ? quote(*text) : "missing",
             text ? suggestion(*text, std::vector<std::string>(known.begin(), known.end())) : "");
  return *text;
}

JsonFields needed_object(const JsonFields& fields, std::string_view key) {
  const auto object = fields.find_object(key);
  USER_CHECK(object, "[{}] wanted {}, an object, but there is none", fields.where(), fields.name(key));
  return *object;
}

bool needed_boolean(const JsonFields& fields, std::string_view key) {
  const auto value = fields.find_boolean(key);
  USER_CHECK(value, "[{}] wanted {}, true or false, but there is none", fields.where(), fields.name(key));
  return *value;
}

void need_integer(const JsonFields& fields, std::string_view key, std::int64_t wanted) {
  const std::int64_t value = needed_integer_in(fields, key, {0, 1 << 20});
  USER_CHECK(value == wanted, "[{}] {} must be {}, but is {}", fields.where(), fields.name(key), wanted, value);
}

void need_symmetric(const JsonFields& fields) {
  USER_CHECK(fields.find_boolean("symmetric").value_or(true),
             "[{}] {} must be true: zero points are not supported, but is false", fields.where(),
             fields.name("symmetric"));
}

std::int64_t read_group_size(const JsonFields& fields, std::string_view key) {
  constexpr std::int64_t kStep = 32;
  const std::int64_t size = fields.find_integer(key).value_or(-1);
  USER_CHECK(size == -1 || (size >= kStep && size <= kBlocks.greatest && size % kStep == 0),
             "[{}] {} must be -1 or a multiple of {}, but is {}", fields.where(), fields.name(key), kStep, size);
  return size == -1 ? 0 : size;
}

void read_block(const JsonFields& fields, std::string_view key, QuantizationConfig& config) {
  const std::vector<std::int64_t> block = fields.find_integers(key);
  const auto fits = [](std::int64_t extent) { return extent >= kBlocks.least && extent <= kBlocks.greatest; };
  USER_CHECK(block.size() == 2 && fits(block[0]) && fits(block[1]),
             "[{}] {} must be rows and columns, each {} to {}, but is [{}]", fields.where(), fields.name(key),
             kBlocks.least, kBlocks.greatest, fmt::join(block, ", "));
  config.scheme = QuantizationScheme::block;
  config.block_rows = block[0];
  config.block_columns = block[1];
}

// Patterns are compiled once: names are asked for many times.
ModulePattern module_pattern(const std::string& text) {
  if (text.starts_with(kRegex))
    return {text, std::make_shared<const Regex>(compiled(text)),
            text.find("language_model") != std::string::npos ? ModulePattern::Names::outer : ModulePattern::Names::own};
  std::string name = name_in_language_model(text + ".");
  name.pop_back();
  return {std::move(name)};
}

ModulePattern module_glob(const std::string& text) {
  if (text.find('*') == std::string::npos) return module_pattern(text);
  std::string regex = "re:";
  for (const char c : text) {
    if (c == '*') {
      regex += ".*";
    } else {
      if (std::ispunct(static_cast<unsigned char>(c)) != 0 && c != '_') regex += '\\';
      regex += c;
    }
  }
  return module_pattern(regex + "$");
}

void add_ignored(const std::vector<std::string>& modules, QuantizationConfig& config) {
  for (const std::string& name : modules) config.ignored.push_back(module_pattern(name));
}

void warn_of_kv_scales(const JsonFields& fields, std::string_view key, QuantizationConfig& config) {
  if (!fields.has(key)) return;
  config.warnings.push_back(
      fmt::format("[{}] {} is not applied: keys and values are stored without scales, in the type of --kv-cache-dtype",
                  fields.where(), fields.name(key)));
}

void add_unknown_keys(KeyTable table, const JsonFields& fields, std::string_view object, QuantizationConfig& config) {
  const auto own = fields.find_object(object);
  if (!own) return;
  const auto keys = unknown_keys(table, *fields.value(object), fields.where(), fields.name(object) + ".");
  config.unknown_keys.insert(config.unknown_keys.end(), keys.begin(), keys.end());
}

}  // namespace weft
