#include "io/folder_vocabulary.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>

#include <fmt/core.h>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "io/added_tokens.h"
#include "io/config_fields.h"
#include "io/gguf_pre_tokenizers.h"
#include "io/sentencepiece_model.h"
#include "io/text_vocabulary.h"
#include "io/tokenizer_json.h"

namespace weft {
namespace {

constexpr std::string_view kTokenizerJson = "tokenizer.json";
constexpr std::string_view kWordList = "vocab.txt";
constexpr std::array<std::string_view, 6> kNames = {kTokenizerJson,  "tokenizer.model", "tiktoken.model",
                                                    "qwen.tiktoken", "vocab.tiktoken",  kWordList};

// Of Kimi K2's tokenization_kimi.py, which leaves out Han by an intersection of classes (&&). The pattern of llama.cpp
// for its GGUF files splits words neither by letter case nor at marks.
constexpr std::string_view kKimiPattern =
    R"(\p{Han}+|[^\r\n\p{L}\p{N}]?(?:(?!\p{Han})[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}])*(?:(?!\p{Han})[\p{Ll}\p{Lm}\p{Lo}\p{M}])+)"
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?(?:(?!\p{Han})[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}])+)"
    R"((?:(?!\p{Han})[\p{Ll}\p{Lm}\p{Lo}\p{M}])*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*)"
    R"(|\s*[\r\n]+|\s+(?!\S)|\s+)";

// The pattern of a tiktoken file, which the code of its publisher has: a row of the table of GGUF names, or a text.
struct PublishedPattern {
  std::string_view model, row, text;
};
constexpr PublishedPattern kPatterns[] = {
    {"llama", "llama-bpe", ""},     {"qwen", "qwen2", ""},      {"kimi_k2", "", kKimiPattern},
    {"chatglm", "chatglm-bpe", ""}, {"glm", "chatglm-bpe", ""}, {"glm4", "chatglm-bpe", ""},
    {"gpt_oss", "gpt-4o", ""},
};

std::string path_in(const VocabularyFolder& folder, std::string_view name) {
  return (std::filesystem::path(folder.path) / name).string();
}

std::optional<Json> read_folder_json(const VocabularyFolder& folder, std::string_view name) {
  const auto text = folder.file(name);
  if (!text) return std::nullopt;
  return parse_config_json(*text, path_in(folder, name));
}

// encoding.json has the pattern and the special tokens of a tiktoken file.
void read_encoding(const VocabularyFolder& folder, std::string_view name, Vocabulary& vocabulary) {
  if (const auto json = read_folder_json(folder, "encoding.json")) {
    const std::string its_path = path_in(folder, "encoding.json");
    const JsonFields fields(*json, its_path);
    const auto pattern = fields.find_text("pat_str");
    USER_CHECK(pattern, "[{}] pat_str must be the pattern of {}, but is missing", its_path, name);
    vocabulary.steps = {PatternSplit{.pattern = *pattern}};
    if (const auto* tokens = fields.value("special_tokens")) add_tokens_by_text(*tokens, its_path, true, vocabulary);
    return;
  }
  const auto found = std::find_if(std::begin(kPatterns), std::end(kPatterns),
                                  [&](const PublishedPattern& one) { return one.model == folder.architecture; });
  std::string known;
  for (const PublishedPattern& one : kPatterns) known += fmt::format("{}{}", known.empty() ? "" : ", ", one.model);
  USER_CHECK(
      found != std::end(kPatterns),
      "[{}] has no pattern; wanted an encoding.json with pat_str next to it, or a model_type of {}, but it is {}",
      path_in(folder, name), known, quote(folder.architecture));
  if (!found->text.empty()) {
    vocabulary.steps = {PatternSplit{.pattern = std::string(found->text)}};
    return;
  }
  const GgufPreTokenizer& pre = find_gguf_pre_tokenizer(found->row);
  vocabulary.steps = pre.steps;
  vocabulary.normalizer = pre.normalizer;
}

Vocabulary read_other_vocabulary(const VocabularyFolder& folder, std::string_view name, const std::string& contents,
                                 const std::optional<Json>& config) {
  const std::string config_path = path_in(folder, "tokenizer_config.json");
  const auto flag = [&](const char* key) {
    return config ? JsonFields(*config, config_path).find_boolean(key) : std::optional<bool>();
  };
  Vocabulary vocabulary;
  if (name == kWordList) {
    vocabulary = read_word_list(contents, path_in(folder, name), flag("do_lower_case").value_or(true));
  } else if (name.ends_with(".tiktoken") || is_tiktoken(contents)) {
    vocabulary = read_tiktoken(contents, path_in(folder, name));
    read_encoding(folder, name, vocabulary);
  } else {
    vocabulary = read_sentencepiece_model(contents, path_in(folder, name), flag("legacy").value_or(true));
  }
  if (const auto added = read_folder_json(folder, "added_tokens.json"))
    add_tokens_by_text(*added, path_in(folder, "added_tokens.json"), false, vocabulary);
  if (config) add_tokens_of_config(*config, config_path, vocabulary);
  return vocabulary;
}

}  // namespace

std::span<const std::string_view> vocabulary_file_names() { return kNames; }

Vocabulary read_vocabulary_file(const VocabularyFolder& folder, const std::optional<Json>& tokenizer_config) {
  for (const std::string_view name : kNames) {
    const auto contents = folder.file(name);
    if (!contents) continue;
    if (name != kTokenizerJson) return read_other_vocabulary(folder, name, *contents, tokenizer_config);
    Vocabulary vocabulary = read_tokenizer_json(*contents);
    if (tokenizer_config)
      mark_tokens_of_config(*tokenizer_config, path_in(folder, "tokenizer_config.json"), vocabulary);
    return vocabulary;
  }
  fail_user("[{}] wanted a folder with tokenizer.json, tokenizer.model, a tiktoken file or vocab.txt, but it has none",
            folder.path);
}

}  // namespace weft
