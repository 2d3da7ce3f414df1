#include "io/gguf_vocabulary.h"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "base/error.h"
#include "base/sort.h"
#include "base/text.h"
#include "base/utf8.h"

namespace weft {
namespace {

constexpr std::string_view kLlama3Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+)"
    R"(|\s+(?!\S)|\s+)";

constexpr std::string_view kQwen2Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+)"
    R"(|\s+(?!\S)|\s+)";

// The pattern of o200k, which splits words by letter case.
constexpr std::string_view kGpt4oPattern =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
    R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
    R"(|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

constexpr std::string_view kTekkenPattern =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
    R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
    R"(|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

PatternSplit isolate(std::string_view pattern) { return {.pattern = std::string(pattern)}; }

std::vector<GgufPreTokenizer> make_pre_tokenizers() {
  const std::vector<PreTokenizerStep> gpt2 = {isolate(kGpt2Pattern)};
  const std::vector<PreTokenizerStep> digits_then_gpt2 = {DigitSplit{.individual = true}, isolate(kGpt2Pattern)};
  const std::vector<PreTokenizerStep> llama3 = {isolate(kLlama3Pattern)};
  const std::vector<PreTokenizerStep> qwen2 = {isolate(kQwen2Pattern)};
  return {
      {.name = "deepseek-r1-qwen", .steps = qwen2, .add_bos = true},
      {.name = "default", .steps = gpt2},
      {.name = "gpt-2", .steps = gpt2},
      {.name = "gpt-4o", .steps = {isolate(kGpt4oPattern)}},
      {.name = "llama-bpe", .steps = llama3, .ignore_merges = true, .add_bos = true},
      {.name = "llama-v3", .steps = llama3, .ignore_merges = true, .add_bos = true},
      {.name = "llama3", .steps = llama3, .ignore_merges = true, .add_bos = true},
      {.name = "phi-2", .steps = gpt2},
      {.name = "qwen2", .steps = qwen2, .normalizer = Normalizer::nfc},
      {.name = "refact", .steps = digits_then_gpt2},
      {.name = "smollm", .steps = digits_then_gpt2},
      {.name = "starcoder", .steps = digits_then_gpt2},
      {.name = "tekken", .steps = {isolate(kTekkenPattern)}, .ignore_merges = true, .add_bos = true},
  };
}

const GgufPreTokenizer& find_pre_tokenizer(std::string_view name) {
  std::string known;
  for (const GgufPreTokenizer& pre : gguf_pre_tokenizers()) {
    if (pre.name == name) return pre;
    known += known.empty() ? "" : ", ";
    known += pre.name;
  }
  fail_user("[tokenizer] tokenizer.ggml.pre must be one of {}, but is {}", known,
            name.empty() ? "missing" : quote(name));
}

Merge parse_merge(std::string text, size_t rank) {
  // The left token is never empty, so the search for the space starts at the second byte.
  const size_t space = text.empty() ? std::string::npos : text.find(' ', 1);
  USER_CHECK(space != std::string::npos && space + 1 < text.size(),
             "[tokenizer] tokenizer.ggml.merges[{}] must be two tokens with a space between them, but is {}", rank,
             quote(text));
  text.erase(space, 1);
  return {std::move(text), static_cast<uint32_t>(space)};
}

TokenKind parse_kind(int32_t type, size_t id) {
  USER_CHECK(type != 6, "[tokenizer] tokenizer.ggml.token_type[{}] is 6 (byte), but byte fallback is not supported",
             id);
  USER_CHECK(type >= 1 && type <= 5, "[tokenizer] tokenizer.ggml.token_type[{}] must be 1 to 6, but is {}", id, type);
  return static_cast<TokenKind>(type);
}

std::optional<int> parse_id(std::optional<int64_t> id, std::string_view key, size_t token_count) {
  if (!id) return std::nullopt;
  USER_CHECK(*id >= 0 && static_cast<uint64_t>(*id) < token_count,
             "[tokenizer] tokenizer.ggml.{} must be an id below {}, but is {}", key, token_count, *id);
  return static_cast<int>(*id);
}

// Returns an id that ends generation. An id that is not a token ends nothing and adds a warning.
std::optional<int> parse_end(std::optional<int64_t> id, std::string_view key, Vocabulary& vocabulary) {
  const size_t count = vocabulary.tokens.size();
  if (!id || (*id >= 0 && static_cast<uint64_t>(*id) < count)) return parse_id(id, key, count);
  vocabulary.warnings.push_back(no_such_token("tokenizer", fmt::format("tokenizer.ggml.{}", key), *id));
  return std::nullopt;
}

// A token with one of these texts ends generation, as in llama.cpp: a model may have several such tokens (the end of a
// turn, of a message or of a text, or a fill-in-the-middle token), but its file names at most one of them.
constexpr std::string_view kEnds[] = {
    "<|eot_id|>",
    "<|im_end|>",
    "<|end|>",
    "<|return|>",
    "<|call|>",
    "<|flush|>",
    "<|calls|>",
    "<end_of_turn>",
    "</s>",
    "<|endoftext|>",
    "<|eom_id|>",
    "<EOT>",
    "_<EOT>",
    "[EOT]",
    "[EOS]",
    "<|end_of_text|>",
    "<end_of_utterance>",
    "<eos>",
    "<turn|>",
    "<|tool_response>",
    "<｜end▁of▁sentence｜>",
    "[e~[",
    "<|fim_pad|>",
    "<fim-pad>",
    "<fim_pad>",
    "<PAD>",
    "[PAD]",
    "<|fim_repo|>",
    "<|repo_name|>",
    "<fim-repo>",
    "<REPO>",
    "<reponame>",
    "<|file_sep|>",
};

// A token with such a text becomes a control token, even if the file gives it another type.
void add_ends_by_text(Vocabulary& vocabulary) {
  std::vector<int> found;
  bool returns = false, calls = false;
  int plain_end = -1;
  for (size_t id = 0; id < vocabulary.tokens.size(); ++id) {
    const std::string& text = vocabulary.tokens[id];
    if (std::find(std::begin(kEnds), std::end(kEnds), text) == std::end(kEnds)) continue;
    if (text == "<|end|>") plain_end = static_cast<int>(id);
    returns = returns || text == "<|return|>";
    calls = calls || text == "<|call|>";
    found.push_back(static_cast<int>(id));
  }
  // If <|return|> and <|call|> end a turn, <|end|> only ends a message, and more messages of the same turn may follow.
  if (returns && calls) std::erase(found, plain_end);
  for (const int id : found) {
    TokenKind& kind = vocabulary.kinds[static_cast<size_t>(id)];
    if (kind == TokenKind::normal || kind == TokenKind::unused) vocabulary.added_tokens.push_back({.id = id});
    kind = TokenKind::control;
    vocabulary.end_of_generation.push_back(id);
  }
}

}  // namespace

const std::vector<GgufPreTokenizer>& gguf_pre_tokenizers() {
  static const std::vector<GgufPreTokenizer> table = make_pre_tokenizers();
  return table;
}

Vocabulary vocabulary_from_gguf_fields(GgufTokenizerFields fields) {
  USER_CHECK(fields.model == "gpt2",
             "[tokenizer] tokenizer.ggml.model must be \"gpt2\" (byte-level BPE), but is {}, which is not supported",
             fields.model.empty() ? "missing" : quote(fields.model));
  const GgufPreTokenizer& pre = find_pre_tokenizer(fields.pre);
  const size_t token_count = fields.tokens.size();
  USER_CHECK(fields.token_type.empty() || fields.token_type.size() == token_count,
             "[tokenizer] tokenizer.ggml.token_type must have {} entries, one for each token, but has {}", token_count,
             fields.token_type.size());

  Vocabulary vocabulary;
  vocabulary.tokens = std::move(fields.tokens);
  vocabulary.kinds.assign(token_count, TokenKind::normal);
  for (size_t id = 0; id < fields.token_type.size(); ++id) {
    const TokenKind kind = parse_kind(fields.token_type[id], id);
    vocabulary.kinds[id] = kind;
    const bool is_added = kind == TokenKind::control || kind == TokenKind::user_defined || kind == TokenKind::unknown;
    if (is_added) vocabulary.added_tokens.push_back({.id = static_cast<int>(id)});
  }
  vocabulary.merges.reserve(fields.merges.size());
  for (size_t rank = 0; rank < fields.merges.size(); ++rank) {
    vocabulary.merges.push_back(parse_merge(std::move(fields.merges[rank]), rank));
  }
  vocabulary.normalizer = pre.normalizer;
  vocabulary.steps = pre.steps;
  vocabulary.ignore_merges = pre.ignore_merges;

  vocabulary.bos = parse_id(fields.bos_token_id, "bos_token_id", token_count);
  vocabulary.eos = parse_end(fields.eos_token_id, "eos_token_id", vocabulary);
  vocabulary.padding = parse_id(fields.padding_token_id, "padding_token_id", token_count);
  const std::optional<int> end_of_turn = parse_end(fields.eot_token_id, "eot_token_id", vocabulary);
  const std::optional<int> end_of_message = parse_end(fields.eom_token_id, "eom_token_id", vocabulary);
  std::vector<int>& ends = vocabulary.end_of_generation;
  for (const std::optional<int> id : {vocabulary.eos, end_of_turn, end_of_message}) {
    if (id) ends.push_back(*id);
  }
  add_ends_by_text(vocabulary);
  sort_without_repeats(ends);
  if (vocabulary.bos && fields.add_bos_token.value_or(pre.add_bos)) vocabulary.prefix = {*vocabulary.bos};
  if (vocabulary.eos && fields.add_eos_token.value_or(false)) vocabulary.suffix = {*vocabulary.eos};
  return vocabulary;
}

}  // namespace weft
