#include "io/fill_tokens.h"

#include <span>
#include <string_view>
#include <vector>

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

// The few tokens that may be among the texts above: a vocabulary of 256,000 is read once.
std::vector<int> markers_of(const Vocabulary& vocabulary) {
  std::vector<int> markers;
  for (std::size_t id = 0; id < vocabulary.tokens.size(); ++id) {
    const std::string_view text = vocabulary.tokens[id];
    if (text.starts_with('<') || text.starts_with("\u2581<")) markers.push_back(static_cast<int>(id));
  }
  return markers;
}

std::optional<int> first_of(const Vocabulary& vocabulary, std::span<const int> markers,
                            std::span<const std::string_view> texts) {
  for (const std::string_view text : texts)
    for (const int id : markers)
      if (vocabulary.tokens[static_cast<std::size_t>(id)] == text) return id;
  return std::nullopt;
}

}  // namespace

std::optional<FillTokens> fill_tokens(const Vocabulary& vocabulary) {
  const std::vector<int> markers = markers_of(vocabulary);
  const auto one = [&](const std::optional<int>& named, std::span<const std::string_view> texts) {
    return named ? named : first_of(vocabulary, markers, texts);
  };
  const std::optional<int> prefix = one(vocabulary.fill_prefix, kPrefixes);
  const std::optional<int> suffix = one(vocabulary.fill_suffix, kSuffixes);
  const std::optional<int> middle = one(vocabulary.fill_middle, kMiddles);
  if (!prefix || !suffix || !middle) return std::nullopt;
  return FillTokens{.prefix = *prefix,
                    .suffix = *suffix,
                    .middle = *middle,
                    .repository = first_of(vocabulary, markers, kRepositories),
                    .file = first_of(vocabulary, markers, kFiles)};
}

}  // namespace weft
