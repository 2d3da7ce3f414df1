#include "io/embedding_config.h"

#include <utility>

#include <fmt/ranges.h>

#include "base/error.h"
#include "base/text.h"
#include "io/checkpoint.h"
#include "io/config_fields.h"
#include "io/gguf.h"

namespace weft {
namespace {

constexpr const char *kModuleList = "modules.json", *kModuleConfig = "config.json";

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

std::optional<Pooling> pooling_of_modules(const Checkpoint& checkpoint, std::span<const SentenceModule> modules) {
  std::optional<Pooling> pooling;
  for (const SentenceModule& module : modules) {
    const std::string& name = module.name;
    if (name == "Transformer" || name == "Normalize" || (name == "Dense" && pooling)) continue;
    USER_CHECK(
        name == "Pooling" && !pooling,
        "[{}] modules must be a Transformer, a Pooling, then Dense and Normalize, but there is {}, without which "
        "embeddings would be others",
        kModuleList, quote(name));
    const Json config = config_of(checkpoint, module);
    pooling = pooling_of_config(JsonFields(config, module.path(kModuleConfig)));
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
      fail_user("[{}] must be 0 (none), 1 (mean), 2 (cls) or 3 (last), but is {}; 4 (rank) needs cls.output.weight",
                key, *type);
  }
}

}  // namespace

Json config_of(const Checkpoint& checkpoint, const SentenceModule& module) {
  const std::string name = module.path(kModuleConfig);
  const auto text = checkpoint.folder_file(name);
  USER_CHECK(text.has_value(), "[{}] names the module {}, but there is no {}", kModuleList, quote(module.folder), name);
  return parse_config_json(*text, name);
}

// The names of modules end with their class: sentence_transformers.models.Pooling.
std::vector<SentenceModule> modules_of(const Checkpoint& checkpoint) {
  const auto text = checkpoint.is_gguf() ? std::nullopt : checkpoint.folder_file(kModuleList);
  if (!text) return {};
  const Json list = parse_json(*text, kModuleList, {.most_bytes = 1u << 20, .deepest = 20});
  USER_CHECK(list.is_array(), "[{}] must be a list of modules, but is {}", kModuleList, list.type_name());
  std::vector<SentenceModule> modules;
  for (const Json& one : list) {
    const JsonFields fields(one, kModuleList);
    const std::string type = fields.find_text("type").value_or("");
    modules.push_back({type.substr(type.rfind('.') + 1), fields.find_text("path").value_or("")});
    const std::string& folder = modules.back().folder;
    USER_CHECK(!folder.starts_with('/') && folder.find("..") == std::string::npos,
               "[{}] a path must be in the folder of the model, but is {}", kModuleList, quote(folder));
  }
  return modules;
}

Pooling pooling_from_text(std::string_view text, const std::string& what) {
  std::vector<std::string_view> words;
  for (const auto& [word, pooling] : kPoolingWords) {
    if (text == word) return pooling;
    words.push_back(word);
  }
  fail_user("[{}] must be one of {}, but is {}", what, fmt::join(words, ", "), quote(text));
}

std::string_view pooling_text(Pooling pooling) { return kPoolingWords[static_cast<std::size_t>(pooling)].first; }

std::optional<Pooling> pooling_of(const Checkpoint& checkpoint, std::span<const SentenceModule> modules) {
  if (checkpoint.is_gguf()) return pooling_of_gguf(checkpoint);
  return pooling_of_modules(checkpoint, modules);
}

std::optional<std::int64_t> longest_text_of(const Checkpoint& checkpoint) {
  constexpr const char* kTextConfig = "sentence_bert_config.json";
  const auto text = checkpoint.is_gguf() ? std::nullopt : checkpoint.folder_file(kTextConfig);
  if (!text) return std::nullopt;
  const Json config = parse_config_json(*text, kTextConfig);
  return integer_in(JsonFields(config, kTextConfig), "max_seq_length", Range<std::int64_t>{1, INT64_MAX});
}

}  // namespace weft
