#include "io/gguf_vocabulary.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <utility>

#include <fmt/core.h>

#include "base/error.h"
#include "base/sort.h"
#include "base/text.h"
#include "io/gguf_pre_tokenizers.h"
#include "io/message_marks.h"
#include "io/sentencepiece_vocabulary.h"
#include "io/text_vocabulary.h"

namespace weft {
namespace {

Merge parse_merge(std::string text, size_t rank) {
  // The left token is never empty, so the search for the space starts at the second byte.
  const size_t space = text.empty() ? std::string::npos : text.find(' ', 1);
  USER_CHECK(space != std::string::npos && space + 1 < text.size(),
             "[tokenizer] tokenizer.ggml.merges[{}] must be two tokens with a space between them, but is {}", rank,
             quote(text));
  text.erase(space, 1);
  return {std::move(text), static_cast<uint32_t>(space)};
}

std::vector<TokenKind> parse_kinds(const GgufTokenizerFields& fields, bool may_have_bytes) {
  const size_t count = fields.tokens.size();
  USER_CHECK(fields.token_type.empty() || fields.token_type.size() == count,
             "[tokenizer] tokenizer.ggml.token_type must have {} entries, one for each token, but has {}", count,
             fields.token_type.size());
  std::vector<TokenKind> kinds(count, TokenKind::normal);
  for (size_t id = 0; id < fields.token_type.size(); ++id) {
    const int32_t type = fields.token_type[id];
    USER_CHECK(may_have_bytes || type != 6,
               "[tokenizer] tokenizer.ggml.token_type[{}] is 6 (byte), which a vocabulary of the model {} cannot have",
               id, quote(fields.model));
    USER_CHECK(type >= 1 && type <= 6, "[tokenizer] tokenizer.ggml.token_type[{}] must be 1 to 6, but is {}", id, type);
    kinds[id] = static_cast<TokenKind>(type);
  }
  return kinds;
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

// Whether all of these texts are in `ends`.
bool has_all(const Vocabulary& vocabulary, const std::vector<int>& ends,
             std::initializer_list<std::string_view> texts) {
  return std::all_of(texts.begin(), texts.end(), [&](std::string_view text) {
    return std::any_of(ends.begin(), ends.end(),
                       [&](int id) { return vocabulary.tokens[static_cast<size_t>(id)] == text; });
  });
}

// Removes the texts that end nothing in a vocabulary with certain others, as in llama.cpp.
void remove_false_ends(Vocabulary& vocabulary, std::vector<int>& ends) {
  const auto remove = [&](std::string_view text) {
    std::erase_if(ends, [&](int id) { return vocabulary.tokens[static_cast<size_t>(id)] == text; });
  };
  // In gpt-oss <|return|> and <|call|> end a turn, and <|end|> only ends a message: more of the same turn may follow.
  // Solar has other names for the same.
  if (has_all(vocabulary, ends, {"<|return|>", "<|call|>"}) || has_all(vocabulary, ends, {"<|calls|>", "<|flush|>"}))
    remove("<|end|>");
  // In Gemma 4 this is a mark of HTML.
  if (has_all(vocabulary, ends, {"<|tool_response>"})) remove("</s>");
}

// A token with such a text becomes a control token, even if the file gives it another type.
void add_ends_by_text(Vocabulary& vocabulary) {
  std::vector<int> found;
  for (size_t id = 0; id < vocabulary.tokens.size(); ++id)
    if (std::find(std::begin(kEnds), std::end(kEnds), vocabulary.tokens[id]) != std::end(kEnds))
      found.push_back(static_cast<int>(id));
  remove_false_ends(vocabulary, found);
  for (const int id : found) {
    TokenKind& kind = vocabulary.kinds[static_cast<size_t>(id)];
    if (kind == TokenKind::normal || kind == TokenKind::unused) vocabulary.added_tokens.push_back({.id = id});
    kind = TokenKind::control;
    vocabulary.end_of_generation.push_back(id);
  }
}

void add_tokens_of_kinds(Vocabulary& vocabulary) {
  for (size_t id = 0; id < vocabulary.kinds.size(); ++id) {
    const TokenKind kind = vocabulary.kinds[id];
    if (is_special_kind(kind) || kind == TokenKind::user_defined)
      vocabulary.added_tokens.push_back({.id = static_cast<int>(id)});
  }
}

// Byte-pair encoding by a list of merges.
Vocabulary read_gguf_merges(GgufTokenizerFields& fields) {
  const GgufPreTokenizer& pre = find_gguf_pre_tokenizer(fields.pre);
  Vocabulary vocabulary;
  vocabulary.byte_alphabet = pre.byte_alphabet;
  vocabulary.may_repeat = !pre.byte_alphabet;  // the files of Gemma 4 have three texts twice
  vocabulary.kinds = parse_kinds(fields, !pre.byte_alphabet);
  vocabulary.tokens = std::move(fields.tokens);
  add_tokens_of_kinds(vocabulary);
  vocabulary.merges.reserve(fields.merges.size());
  for (size_t rank = 0; rank < fields.merges.size(); ++rank) {
    vocabulary.merges.push_back(parse_merge(std::move(fields.merges[rank]), rank));
  }
  vocabulary.normalizer = pre.normalizer;
  vocabulary.steps = pre.steps;
  vocabulary.ignore_merges = pre.ignore_merges;
  if (!fields.add_bos_token) fields.add_bos_token = pre.add_bos;
  if (!pre.byte_alphabet) {
    vocabulary.unknown = parse_id(fields.unknown_token_id, "unknown_token_id", vocabulary.tokens.size());
    vocabulary.decoder.form = Decoder::Form::pieces;
    vocabulary.decoder.replacements = {{std::string(kSpaceMark), " "}};
  }
  return vocabulary;
}

Vocabulary read_gguf_sentencepiece(GgufTokenizerFields& fields, bool is_unigram) {
  const size_t count = fields.tokens.size();
  USER_CHECK(fields.scores.size() == count,
             "[tokenizer] tokenizer.ggml.scores must have {} entries, one for each token, but has {}", count,
             fields.scores.size());
  // The defaults are those of llama.cpp.
  const auto use = [&](std::optional<int64_t>& id, int64_t otherwise) {
    if (!id && otherwise < static_cast<int64_t>(count)) id = otherwise;
  };
  if (!is_unigram) use(fields.bos_token_id, 1);
  use(fields.eos_token_id, is_unigram ? 1 : 2);
  use(fields.unknown_token_id, is_unigram ? 2 : 0);
  if (!fields.add_bos_token) fields.add_bos_token = !is_unigram;
  if (!fields.add_eos_token) fields.add_eos_token = is_unigram;

  SentencePieceTables tables;
  tables.kinds = parse_kinds(fields, true);
  tables.tokens = std::move(fields.tokens);
  tables.scores = std::move(fields.scores);
  tables.is_unigram = is_unigram;
  using Front = SentencePieceTables::Front;
  tables.front = fields.add_space_prefix.value_or(true) ? Front::every_stretch : Front::none;
  if (is_unigram) {
    tables.remove_extra_spaces = fields.remove_extra_whitespaces.value_or(false);
    tables.character_map = std::move(fields.character_map);
  }
  tables.unknown = parse_id(fields.unknown_token_id, "unknown_token_id", count);
  return vocabulary_from_sentencepiece(std::move(tables));
}

Vocabulary read_gguf_word_piece(GgufTokenizerFields& fields) {
  Vocabulary vocabulary;
  set_bert_rules(fields.lowercase.value_or(true), vocabulary);
  vocabulary.kinds = parse_kinds(fields, false);
  vocabulary.tokens = std::move(fields.tokens);
  add_tokens_of_kinds(vocabulary);
  // The file marks the tokens that begin a word; BERT's own vocabulary marks the others.
  for (size_t id = 0; id < vocabulary.tokens.size(); ++id) {
    std::string& token = vocabulary.tokens[id];
    if (vocabulary.kinds[id] != TokenKind::normal || token.empty()) continue;
    if (token.starts_with(kSpaceMark)) {
      token.erase(0, kSpaceMark.size());
    } else {
      token.insert(0, vocabulary.continuation);
    }
  }
  vocabulary.unknown = parse_id(fields.unknown_token_id, "unknown_token_id", vocabulary.tokens.size());
  if (!fields.bos_token_id) fields.bos_token_id = fields.cls_token_id;
  if (!fields.eos_token_id) fields.eos_token_id = fields.separator_token_id;
  if (!fields.add_bos_token) fields.add_bos_token = true;
  if (!fields.add_sep_token) fields.add_sep_token = true;
  return vocabulary;
}

Vocabulary read_gguf_model(GgufTokenizerFields& fields) {
  if (fields.model == "gemma4" && (fields.pre.empty() || fields.pre == "default")) fields.pre = "gemma4";
  if (fields.model == "gpt2" || fields.model == "gemma4") return read_gguf_merges(fields);
  if (fields.model == "llama") return read_gguf_sentencepiece(fields, false);
  if (fields.model == "t5") return read_gguf_sentencepiece(fields, true);
  if (fields.model == "bert") return read_gguf_word_piece(fields);
  const std::array<std::string, 5> known = {"gpt2", "llama", "t5", "bert", "gemma4"};
  fail_user("[tokenizer] tokenizer.ggml.model must be gpt2, llama, t5, bert or gemma4, but is {}{}",
            fields.model.empty() ? "missing" : quote(fields.model), suggestion(fields.model, known));
}

constexpr std::string_view kEndKeys[] = {"eot_token_id", "eom_token_id", "fim_pad_token_id", "fim_rep_token_id",
                                         "fim_sep_token_id"};

}  // namespace

std::span<const std::string_view> gguf_end_keys() { return kEndKeys; }

Vocabulary vocabulary_from_gguf_fields(GgufTokenizerFields fields) {
  Vocabulary vocabulary = read_gguf_model(fields);
  const size_t token_count = vocabulary.tokens.size();
  vocabulary.bos = parse_id(fields.bos_token_id, "bos_token_id", token_count);
  vocabulary.eos = parse_end(fields.eos_token_id, "eos_token_id", vocabulary);
  vocabulary.padding = parse_id(fields.padding_token_id, "padding_token_id", token_count);
  vocabulary.fill_prefix = parse_id(fields.fim_pre_token_id, "fim_pre_token_id", token_count);
  vocabulary.fill_suffix = parse_id(fields.fim_suf_token_id, "fim_suf_token_id", token_count);
  vocabulary.fill_middle = parse_id(fields.fim_mid_token_id, "fim_mid_token_id", token_count);
  const std::optional<int> separator = parse_id(fields.separator_token_id, "seperator_token_id", token_count);
  const std::optional<int> classifier = parse_id(fields.cls_token_id, "cls_token_id", token_count);
  std::vector<int>& ends = vocabulary.end_of_generation;
  if (vocabulary.eos) ends.push_back(*vocabulary.eos);
  for (const auto& [key, id] : fields.other_ends)
    if (const auto end = parse_end(id, key, vocabulary)) ends.push_back(*end);
  add_ends_by_text(vocabulary);
  show_message_marks(vocabulary);
  sort_without_repeats(ends);
  if (separator) vocabulary.named_texts["sep_token"] = vocabulary.tokens[static_cast<size_t>(*separator)];
  if (classifier) vocabulary.named_texts["cls_token"] = vocabulary.tokens[static_cast<size_t>(*classifier)];
  if (vocabulary.bos && fields.add_bos_token.value_or(false)) vocabulary.prefix = {*vocabulary.bos};
  if (vocabulary.eos && fields.add_eos_token.value_or(false)) vocabulary.suffix = {*vocabulary.eos};
  if (separator && fields.add_sep_token.value_or(false)) vocabulary.suffix = {*separator};
  // BERT has one between two texts, and RoBERTa two.
  vocabulary.between = vocabulary.suffix;
  if (fields.model != "bert")
    vocabulary.between.insert(vocabulary.between.end(), vocabulary.suffix.begin(), vocabulary.suffix.end());
  return vocabulary;
}

}  // namespace weft
