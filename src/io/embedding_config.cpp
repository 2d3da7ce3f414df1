#include "io/embedding_config.h"

#include <charconv>
#include <cmath>
#include <utility>

#include <fmt/ranges.h>

#include "base/error.h"
#include "base/text.h"
#include "io/checkpoint.h"
#include "io/config_fields.h"
#include "io/gguf.h"

namespace weft {
namespace {

constexpr std::string_view kModuleList = "modules.json", kPoolingConfig = "config.json";

// In the order of Pooling.
constexpr std::pair<std::string_view, Pooling> kPoolingWords[] = {
    {"last", Pooling::last}, {"mean", Pooling::mean}, {"cls", Pooling::cls}};

// The flags in the config of sentence-transformers' Pooling, of which one is true.
constexpr std::pair<std::string_view, Pooling> kPoolingFlags[] = {{"pooling_mode_lasttoken", Pooling::last},
                                                                  {"pooling_mode_mean_tokens", Pooling::mean},
                                                                  {"pooling_mode_cls_token", Pooling::cls}};
// Its words in newer files, in `pooling_mode`.
constexpr std::pair<std::string_view, Pooling> kPoolingModes[] = {
    {"lasttoken", Pooling::last}, {"mean", Pooling::mean}, {"cls", Pooling::cls}};

Pooling pooling_of_config(const JsonFields& fields) {
  if (const auto mode = fields.find_text("pooling_mode")) {
    for (const auto& [word, pooling] : kPoolingModes)
      if (*mode == word) return pooling;
    fail_user("[{}] pooling_mode must be lasttoken, mean or cls, but is {}", fields.where(), quote(*mode));
  }
  std::optional<Pooling> found;
  for (const auto& [flag, pooling] : kPoolingFlags) {
    if (!fields.find_boolean(flag).value_or(false)) continue;
    USER_CHECK(!found, "[{}] one flag of pooling_mode_* must be true, but several are", fields.where());
    found = pooling;
  }
  for (const char* flag :
       {"pooling_mode_max_tokens", "pooling_mode_mean_sqrt_len_tokens", "pooling_mode_weightedmean_tokens"})
    USER_CHECK(!fields.find_boolean(flag).value_or(false), "[{}] {} is not supported, but is true", fields.where(),
               flag);
  USER_CHECK(found, "[{}] one flag of pooling_mode_* must be true, but none is", fields.where());
  return *found;
}

Pooling pooling_in_folder(const Checkpoint& checkpoint, const std::string& module) {
  USER_CHECK(!module.starts_with('/') && module.find("..") == std::string::npos,
             "[{}] a path must be in the folder of the model, but is {}", kModuleList, quote(module));
  const std::string name = module.empty() ? std::string(kPoolingConfig) : fmt::format("{}/{}", module, kPoolingConfig);
  const auto text = checkpoint.folder_file(name);
  USER_CHECK(text.has_value(), "[{}] names the module {}, but there is no {}", kModuleList, quote(module), name);
  const Json config = parse_config_json(*text, name);
  return pooling_of_config(JsonFields(config, name));
}

// The names of modules end with their class: sentence_transformers.models.Pooling.
std::optional<Pooling> pooling_of_modules(const Checkpoint& checkpoint, const std::string& text) {
  const Json modules = parse_json(text, std::string(kModuleList), {.most_bytes = 1u << 20, .deepest = 20});
  USER_CHECK(modules.is_array(), "[{}] must be a list of modules, but is {}", kModuleList, modules.type_name());
  std::optional<Pooling> pooling;
  for (const Json& module : modules) {
    const JsonFields fields(module, std::string(kModuleList));
    const std::string type = fields.find_text("type").value_or("");
    const std::string name = type.substr(type.rfind('.') + 1);
    if (name == "Transformer" || name == "Normalize") continue;
    USER_CHECK(name == "Pooling" && !pooling,
               "[{}] modules must be a Transformer, a Pooling and a Normalize, but there is {}, without which "
               "embeddings would be others",
               kModuleList, quote(type));
    pooling = pooling_in_folder(checkpoint, fields.find_text("path").value_or(""));
  }
  return pooling;
}

// The numbers are llama.cpp's.
std::optional<Pooling> pooling_of_gguf(const Checkpoint& checkpoint) {
  const std::string key =
      fmt::format("{}.pooling_type", checkpoint.gguf().find_text("general.architecture").value_or(""));
  const auto type = checkpoint.gguf().find_integer(key);
  switch (type.value_or(0)) {
    case 0:
      return std::nullopt;
    case 1:
      return Pooling::mean;
    case 2:
      return Pooling::cls;
    case 3:
      return Pooling::last;
    default:
      fail_user("[{}] must be 0 (none), 1 (mean), 2 (cls) or 3 (last), but is {}", key, *type);
  }
}

}  // namespace

Pooling pooling_from_text(std::string_view text, const std::string& what) {
  std::vector<std::string_view> words;
  for (const auto& [word, pooling] : kPoolingWords) {
    if (text == word) return pooling;
    words.push_back(word);
  }
  fail_user("[{}] must be one of {}, but is {}", what, fmt::join(words, ", "), quote(text));
}

std::string_view pooling_text(Pooling pooling) { return kPoolingWords[static_cast<std::size_t>(pooling)].first; }

std::optional<Pooling> pooling_of(const Checkpoint& checkpoint) {
  if (checkpoint.is_gguf()) return pooling_of_gguf(checkpoint);
  const auto modules = checkpoint.folder_file(kModuleList);
  return modules ? pooling_of_modules(checkpoint, *modules) : std::nullopt;
}

std::vector<float> finished_embedding(std::vector<float> pooled, std::optional<std::int64_t> dimensions,
                                      bool normalizes) {
  if (dimensions) pooled.resize(static_cast<std::size_t>(*dimensions));
  double squares = 0;
  for (const float number : pooled) squares += double{number} * double{number};
  if (!normalizes || squares == 0) return pooled;
  const double factor = 1 / std::sqrt(squares);
  for (float& number : pooled) number = static_cast<float>(number * factor);
  return pooled;
}

Json embedding_json(std::span<const float> embedding) {
  Json numbers = Json::array();
  for (const float number : embedding) {
    char digits[32];
    double shortest = number;
    std::from_chars(digits, std::to_chars(digits, digits + sizeof(digits), number).ptr, shortest);
    numbers.push_back(shortest);
  }
  return numbers;
}

}  // namespace weft
