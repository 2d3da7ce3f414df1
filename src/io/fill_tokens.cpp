#include "io/fill_tokens.h"

#include <algorithm>
#include <span>
#include <string_view>

namespace weft {
namespace {

// Of Qwen 2.5 Coder and CodeGemma, StarCoder and Granite, DeepSeek Coder, CodeLlama, and GLM.
constexpr std::string_view kPrefixes[] = {
    "<|fim_prefix|>", "<fim_prefix>", "<fim-prefix>",   "<\uff5cfim\u2581begin\uff5c>",
    "\u2581<PRE>",    "<PRE>",        "<|code_prefix|>"};
constexpr std::string_view kSuffixes[] = {
    "<|fim_suffix|>", "<fim_suffix>", "<fim-suffix>",   "<\uff5cfim\u2581hole\uff5c>",
    "\u2581<SUF>",    "<SUF>",        "<|code_suffix|>"};
constexpr std::string_view kMiddles[] = {
    "<|fim_middle|>", "<fim_middle>", "<fim-middle>",   "<\uff5cfim\u2581end\uff5c>",
    "\u2581<MID>",    "<MID>",        "<|code_middle|>"};
constexpr std::string_view kRepositories[] = {"<|fim_repo|>", "<|repo_name|>", "<fim-repo>", "<reponame>"};
constexpr std::string_view kFiles[] = {"<|file_sep|>", "<file_sep>"};

std::optional<int> first_of(const Vocabulary& vocabulary, std::span<const std::string_view> texts) {
  for (const std::string_view text : texts) {
    const auto found = std::find(vocabulary.tokens.begin(), vocabulary.tokens.end(), text);
    if (found != vocabulary.tokens.end()) return static_cast<int>(found - vocabulary.tokens.begin());
  }
  return std::nullopt;
}

}  // namespace

std::optional<FillTokens> fill_tokens(const Vocabulary& vocabulary) {
  const auto one = [&](const std::optional<int>& named, std::span<const std::string_view> texts) {
    return named ? named : first_of(vocabulary, texts);
  };
  const std::optional<int> prefix = one(vocabulary.fill_prefix, kPrefixes);
  const std::optional<int> suffix = one(vocabulary.fill_suffix, kSuffixes);
  const std::optional<int> middle = one(vocabulary.fill_middle, kMiddles);
  if (!prefix || !suffix || !middle) return std::nullopt;
  return FillTokens{.prefix = *prefix,
                    .suffix = *suffix,
                    .middle = *middle,
                    .repository = first_of(vocabulary, kRepositories),
                    .file = first_of(vocabulary, kFiles)};
}

}  // namespace weft
