// Source: the tokenizer.json files of the publishers. The rows of kimi-k2 and tiny_aya are the behaviour of llama.cpp,
// which does not split words by letter case there.

#include "io/gguf_pre_tokenizers.h"

#include <algorithm>
#include <initializer_list>
#include <utility>

#include <fmt/core.h>

#include "base/error.h"
#include "base/text.h"
#include "io/vocabulary.h"

namespace weft {
namespace {

std::string joined(std::initializer_list<std::string_view> parts) {
  std::string result;
  for (const std::string_view part : parts) result += part;
  return result;
}

constexpr std::string_view kContractions = R"((?i:'s|'t|'re|'ve|'m|'ll|'d))";
constexpr std::string_view kSpaces = R"(|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kWord = R"([^\r\n\p{L}\p{N}]?\p{L}+)";
constexpr std::string_view kSigns = R"(| ?[^\s\p{L}\p{N}]+[\r\n]*)";
constexpr std::string_view kSignsAndSlashes = R"(| ?[^\s\p{L}\p{N}]+[\r\n/]*)";
constexpr std::string_view kUpper = R"([\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}])";
constexpr std::string_view kLower = R"([\p{Ll}\p{Lm}\p{Lo}\p{M}])";
constexpr std::string_view kFront = R"([^\r\n\p{L}\p{N}]?)";

const std::string& llama3() {
  static const std::string pattern = joined({kContractions, "|", kWord, R"(|\p{N}{1,3})", kSigns, kSpaces});
  return pattern;
}
const std::string& llama3_any_digits() {
  static const std::string pattern = joined({kContractions, "|", kWord, R"(|\p{N}+)", kSigns, kSpaces});
  return pattern;
}
const std::string& qwen2() {
  static const std::string pattern = joined({kContractions, "|", kWord, R"(|\p{N})", kSigns, kSpaces});
  return pattern;
}
const std::string& qwen35() {
  static const std::string pattern =
      joined({kContractions, "|", kFront, R"([\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*)", kSpaces});
  return pattern;
}
const std::string& seed_coder() {
  static const std::string pattern = joined({kContractions, "|", kWord, R"(|\p{N}| ?[^\s\p{L}\p{N}\r\n]+)", kSpaces});
  return pattern;
}
// The pattern of o200k, which splits words by letter case.
std::string by_letter_case(std::string_view digits) {
  return joined({kFront, kUpper, "*", kLower, "+", kContractions, "?|", kFront, kUpper, "+", kLower, "*", kContractions,
                 "?|", digits, kSignsAndSlashes, kSpaces});
}
const std::string& o200k() {
  static const std::string pattern = by_letter_case(R"(\p{N}{1,3})");
  return pattern;
}
const std::string& o200k_single_digits() {
  static const std::string pattern = by_letter_case(R"(\p{N})");
  return pattern;
}
const std::string& tekken() {
  static const std::string pattern =
      joined({kFront, kUpper, "*", kLower, "+|", kFront, kUpper, "+", kLower, R"(*|\p{N})", kSignsAndSlashes, kSpaces});
  return pattern;
}
const std::string& tiny_aya() {
  static const std::string pattern =
      joined({kFront, R"([\p{L}\p{M}]+)", kContractions, R"(?|\p{N}{1,3})", kSignsAndSlashes, kSpaces});
  return pattern;
}
const std::string& kimi() {
  static const std::string pattern =
      joined({R"(\p{Han}+|)", kFront, R"((?:(?!\p{Han})\p{L})+)", kContractions, R"(?|\p{N}{1,3})", kSigns, kSpaces});
  return pattern;
}
constexpr std::string_view kDeepSeek3 =
    R"p([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*)p"
    R"(|\s*[\r\n]+|\s+(?!\S)|\s+)";
const std::string& exaone_moe() {
  static const std::string pattern =
      joined({kContractions, "|", kFront,
              R"((?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+)"});
  return pattern;
}
const std::string& bailing() {
  static const std::string pattern =
      joined({kContractions, "|", kWord, R"(|\p{N})", kSigns, R"(|\s*[\r\n]|\s+(?!\S)|\s+)"});
  return pattern;
}
// Runs of white space in powers of two.
const std::string& jais2() {
  static const std::string pattern = joined(
      {kContractions, "|", kWord, R"(|\p{N}{1,3})", kSigns,
       R"(|\s*[\r\n]+|\s{512}(?!\S)|\s{256}(?!\S)|\s{128}(?!\S)|\s{64}(?!\S)|\s{32}(?!\S)|\s{16}(?!\S)|\s{8}(?!\S))",
       R"(|\s{4}(?!\S)|\s{1,2}(?!\S)|\s)"});
  return pattern;
}
constexpr std::string_view kBloom = R"( ?[^(\s|.,!?\x{2026}\x{3002}\x{FF0C}\x{3001}\x{0964}\x{06D4}\x{060C})]+)";
constexpr std::string_view kFalconSigns = R"([\p{P}\$\+<=>\^~\|`]+)";
constexpr std::string_view kDefaultSigns = R"([\p{P}\$\+<=>\^~\|]+)";
// CJK and Hangul, as in the files of the first DeepSeek models.
constexpr std::string_view kDeepSeekCjk = R"([\x{4E00}-\x{9FA5}\x{0800}-\x{4E00}\x{AC00}-\x{D7FF}]+)";
constexpr std::string_view kDeepSeekSigns =
    R"(\s?[!-/:-~\x{FF01}-\x{FF0F}\x{FF1A}-\x{FF5E}\x{2018}-\x{201F}\x{3000}-\x{3002}]+)";
// Scripts without spaces between words.
constexpr std::string_view kAfmoeScripts =
    R"([\x{4E00}-\x{9FFF}\x{3400}-\x{4DBF}\x{F900}-\x{FAFF}\x{3040}-\x{309F}\x{30A0}-\x{30FF}\x{FF65}-\x{FF9F})"
    R"(\x{2F00}-\x{2FDF}\x{0E40}-\x{0E7F}\x{0E80}-\x{0EFF}\x{1780}-\x{17FF}\x{1000}-\x{109F}\x{AA60}-\x{AA7F})"
    R"(\x{A9E0}-\x{A9FF}\x{AC00}-\x{D7AF}\x{1100}-\x{11FF}]+)";
constexpr std::string_view kYoutuScripts =
    R"([\x{AC00}-\x{D7A3}\x{3131}-\x{318E}]+|[\x{FF01}\x{2026}\x{201C}\x{201D}\x{2018}\x{2019}\x{2014}\x{FF1A}\x{FF1B})"
    R"(\x{FF0C}\x{3001}-\x{303F}\x{FE30}-\x{FE4F}]+|[\x{3105}-\x{312F}]+|[\x{4E00}-\x{9FA5}\x{3040}-\x{309F})"
    R"(\x{30A0}-\x{30FF}]+)";

using Steps = std::vector<PreTokenizerStep>;

template <class... Patterns>
Steps isolate(const Patterns&... patterns) {
  return {PatternSplit{.pattern = std::string(patterns)}...};
}

struct Row {
  std::string_view names;  // with spaces between them
  Steps steps;
  bool ignore_merges = false;
  bool add_bos = false;
};

Steps put_first(PreTokenizerStep first, Steps others) {
  others.insert(others.begin(), std::move(first));
  return others;
}

std::vector<Row> pre_tokenizer_rows() {
  const DigitSplit single{.individual = true};
  const DigitSplit thousands{.individual = false, .in_thousands = true};
  return {
      {"gpt-2 phi-2 mpt olmo jais trillion exaone4 modern-bert gigachat mellum jina-de jina-es jina-v1-en jina-v2-code "
       "jina-v2-de jina-v2-es roberta-bpe a.x-4.0",
       isolate(kGpt2Pattern)},
      {"smollm starcoder refact command-r codeshell exaone minerva-7b mellum2",
       put_first(single, isolate(kGpt2Pattern))},
      {"llama-bpe llama3 llama-v3 falcon3 falcon-h1 pixtral midm-2.0 lfm2 jina-v5-nano", isolate(llama3()), true, true},
      {"dbrx smaug-bpe chatglm-bpe", isolate(llama3())},
      {"glm4", isolate(llama3()), true},
      {"qwen2 deepseek-r1-qwen stablelm2 hunyuan megrez solar-open grok-2 kormo", isolate(qwen2())},
      {"qwen35", isolate(qwen35())},
      {"tekken", isolate(tekken()), true, true},
      {"gpt-4o llama4 kanana2 minimax-m2", isolate(o200k())},
      {"deepseek-v3 hunyuan-dense joyai-llm hy_v4",
       isolate(R"(\p{N}{1,3})", R"([\x{4E00}-\x{9FA5}\x{3040}-\x{309F}\x{30A0}-\x{30FF}]+)", kDeepSeek3)},
      {"deepseek-llm",
       isolate(R"([\r\n])", R"(\s?[\p{Lu}\p{Ll}\p{Lt}]+)", kDeepSeekSigns, R"(\s+$)", kDeepSeekCjk, R"(\p{N}+)")},
      {"deepseek-coder", isolate(R"([\r\n])", R"(\s?\p{L}+)", R"(\s?\p{P}+)", kDeepSeekCjk, R"(\p{N})")},
      {"falcon", isolate(kFalconSigns, kGpt2Pattern, "[0-9][0-9][0-9]")},
      {"default", isolate(kDefaultSigns, kGpt2Pattern, R"(\p{N}+)", "[0-9][0-9][0-9]")},
      {"bloom poro-chat gpt3-finnish", isolate(kBloom)},
      {"viking", isolate(kBloom, R"(\p{N})")},
      {"seed-coder", isolate(seed_coder())},
      {"bailingmoe bailingmoe2 llada-moe", isolate(bailing())},
      {"superbpe", {thousands}},
      {"kimi-k2", isolate(kimi())},
      {"minicpm5", isolate(R"(\p{N}{1,3})", llama3_any_digits()), true},
      {"laguna", isolate(R"([^\n]+|[\n]+)", qwen2())},
      {"chameleon",
       isolate("<sentinel:[0-9]+>", "IMGIMG[A-I]{1,4}Z", R"([\t\n]|    |  )", R"(\p{N})", kPunctuationPattern,
               kGpt2Pattern),
       false, true},
      {"afmoe", put_first(thousands, isolate(kAfmoeScripts, kDeepSeek3))},
      {"exaone-moe", isolate(exaone_moe())},
      {"tiny_aya", isolate(R"(\d{1,3}(?=(?:\d{3})*(?![\p{L}\p{M}\p{N}\p{Pc}])))", tiny_aya())},
      {"youtu", isolate(kYoutuScripts, o200k_single_digits()), true},
      {"jais-2", isolate(jais2())},
      {"gemma4", isolate(R"([^\n]+|\n+)"), false, true},
  };
}

std::vector<GgufPreTokenizer> make_table() {
  std::vector<GgufPreTokenizer> table;
  for (const Row& row : pre_tokenizer_rows()) {
    for (const std::string_view name : split_text(row.names, ' ')) {
      GgufPreTokenizer& one = table.emplace_back();
      one.name = name;
      one.steps = row.steps;
      one.ignore_merges = row.ignore_merges;
      one.add_bos = row.add_bos;
      if (name == "qwen2") one.normalizer = {UnicodeForm::nfc};
      if (name == "gemma4") {
        one.byte_alphabet = false;
        one.normalizer = {ReplaceText{.pattern = " ", .replacement = std::string(kSpaceMark)}};
      }
    }
  }
  std::sort(table.begin(), table.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return table;
}

}  // namespace

const std::vector<GgufPreTokenizer>& gguf_pre_tokenizers() {
  static const std::vector<GgufPreTokenizer> table = make_table();
  return table;
}

const GgufPreTokenizer& find_gguf_pre_tokenizer(std::string_view name) {
  const std::string_view wanted = name.empty() ? "default" : name;
  std::vector<std::string> names;
  for (const GgufPreTokenizer& pre : gguf_pre_tokenizers()) {
    if (pre.name == wanted) return pre;
    names.push_back(pre.name);
  }
  fail_user("[tokenizer] tokenizer.ggml.pre must be one of the {} known names, but is {}{}", names.size(), quote(name),
            suggestion(name, names));
}

}  // namespace weft
