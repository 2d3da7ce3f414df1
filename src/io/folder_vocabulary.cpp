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
#include "io/vocab_and_merges.h"

namespace weft {
namespace {

constexpr std::string_view kTokenizerJson = "tokenizer.json";
constexpr std::string_view kWordList = "vocab.txt";
constexpr std::string_view kVocab = "vocab.json", kMerges = "merges.txt";
constexpr std::array<std::string_view, 7> kNames = {
    kTokenizerJson, "tokenizer.model", "tiktoken.model", "qwen.tiktoken", "vocab.tiktoken", kWordList, kVocab};

constexpr std::string_view kTokenizerConfig = "tokenizer_config.json", kAddedTokens = "added_tokens.json",
                           kSpecialTokensMap = "special_tokens_map.json";

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

void read_added_tokens(const VocabularyFolder& folder, const std::optional<Json>& config, Vocabulary& vocabulary) {
  if (const auto added = read_folder_json(folder, kAddedTokens))
    add_tokens_by_text(*added, path_in(folder, kAddedTokens), false, vocabulary);
  if (config) add_tokens_of_config(*config, path_in(folder, kTokenizerConfig), vocabulary);
}

Vocabulary read_one_file(const VocabularyFolder& folder, std::string_view name, const std::string& contents,
                         const std::optional<Json>& config) {
  const auto flag = [&](const char* key) {
    return config ? JsonFields(*config, path_in(folder, kTokenizerConfig)).find_boolean(key) : std::optional<bool>();
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
  read_added_tokens(folder, config, vocabulary);
  return vocabulary;
}

// The class of transformers that reads vocab.json and merges.txt of these models.
struct PairClass {
  std::string_view models;  // with spaces between them
  std::string_view row;     // of the table of GGUF names
  bool has_bos;             // kEndOfText begins a text, if no file names another token
  bool has_padding;         // the same for padding
};
constexpr PairClass kPairClasses[] = {
    {"gpt2 opt gpt_neo gpt_neox gpt_bigcode starcoder2", "gpt-2", true, false},
    {"qwen2 qwen2_moe qwen3 qwen3_moe", "qwen2", false, true},
};
constexpr std::string_view kEndOfText = "<|endoftext|>";

const PairClass& pair_class_of(const VocabularyFolder& folder) {
  std::string known;
  for (const PairClass& one : kPairClasses) {
    for (const std::string_view model : split_text(one.models, ' ')) {
      if (model == folder.architecture) return one;
      known += fmt::format("{}{}", known.empty() ? "" : ", ", model);
    }
  }
  fail_user("[{}] has no pattern; wanted a tokenizer.json next to it, or a model_type of {}, but it is {}",
            path_in(folder, kVocab), known, quote(folder.architecture));
}

// As transformers does: special_tokens_map.json counts unless there is an added_tokens_decoder.
Json complete_config(const VocabularyFolder& folder, const PairClass& its_class, std::optional<Json> config) {
  Json result = std::move(config).value_or(Json::object());
  if (!result.contains("added_tokens_decoder")) {
    if (const auto map = read_folder_json(folder, kSpecialTokensMap)) {
      const JsonFields fields(*map, path_in(folder, kSpecialTokensMap));
      for (const char* key : kNamedTokens)
        if (named_text(fields, key)) result[key] = *fields.value(key);
      for (const char* key : kTokenLists)
        if (fields.has(key)) result[key] = *fields.value(key);
    }
  }
  const auto name = [&](const char* key) {
    if (!result.contains(key)) result[key] = kEndOfText;
  };
  name("eos_token");
  name("unk_token");
  if (its_class.has_bos) name("bos_token");
  if (its_class.has_padding) name("pad_token");
  return result;
}

// Those that have a role are special.
void add_tokens_of_pair(const VocabularyFolder& folder, const Json& config, Vocabulary& vocabulary) {
  const std::string config_path = path_in(folder, kTokenizerConfig);
  read_added_tokens(folder, config, vocabulary);
  for (const SpecialToken& one : special_tokens_of(config, config_path)) {
    for (const AddedToken& added : vocabulary.added_tokens)
      if (vocabulary.tokens[static_cast<size_t>(added.id)] == one.text)
        vocabulary.kinds[static_cast<size_t>(added.id)] = TokenKind::control;
  }
  mark_special_tokens(config, config_path, vocabulary);
}

FolderVocabulary read_pair(const VocabularyFolder& folder, const std::string& vocab, std::optional<Json> given_config) {
  const auto merges = folder.file(kMerges);
  USER_CHECK(merges, "[{}] wanted {} next to it, but there is none", path_in(folder, kVocab), kMerges);
  const PairClass& its_class = pair_class_of(folder);
  Json config = complete_config(folder, its_class, std::move(given_config));
  Vocabulary vocabulary = read_vocab_and_merges({vocab, path_in(folder, kVocab)}, {*merges, path_in(folder, kMerges)});
  const GgufPreTokenizer& pre = find_gguf_pre_tokenizer(its_class.row);
  vocabulary.steps = pre.steps;
  vocabulary.normalizer = pre.normalizer;
  vocabulary.ends_by_config = true;
  // Then the caller reads add_prefix_space.
  vocabulary.byte_level_alone = its_class.row == "gpt-2";
  const std::string config_path = path_in(folder, kTokenizerConfig);
  const bool adds_space = JsonFields(config, config_path).find_boolean("add_prefix_space").value_or(false);
  USER_CHECK(vocabulary.byte_level_alone || !adds_space,
             "[{}] add_prefix_space must be false for the pattern of {}, but is true", config_path,
             quote(folder.architecture));
  add_tokens_of_pair(folder, config, vocabulary);
  return {std::move(vocabulary), std::move(config)};
}

}  // namespace

std::span<const std::string_view> vocabulary_file_names() { return kNames; }

FolderVocabulary read_vocabulary_file(const VocabularyFolder& folder) {
  auto config = read_folder_json(folder, kTokenizerConfig);
  for (const std::string_view name : kNames) {
    const auto contents = folder.file(name);
    if (!contents) continue;
    if (name == kVocab) return read_pair(folder, *contents, std::move(config));
    if (name != kTokenizerJson) {
      Vocabulary vocabulary = read_one_file(folder, name, *contents, config);
      return {std::move(vocabulary), std::move(config)};
    }
    Vocabulary vocabulary = read_tokenizer_json(*contents);
    if (config) mark_tokens_of_config(*config, path_in(folder, kTokenizerConfig), vocabulary);
    return {std::move(vocabulary), std::move(config)};
  }
  USER_CHECK(!folder.file(kMerges), "[{}] wanted {} next to it, but there is none", path_in(folder, kMerges), kVocab);
  fail_user(
      "[{}] wanted a folder with tokenizer.json, tokenizer.model, a tiktoken file, vocab.txt, or vocab.json and "
      "merges.txt, but it has none",
      folder.path);
}

}  // namespace weft
