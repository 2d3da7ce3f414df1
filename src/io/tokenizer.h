#pragma once

// Text to token ids and back: normalizer, pre-tokenizer, model and decoder of a Vocabulary.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/normalizer.h"
#include "io/piece_model.h"
#include "io/pre_tokenizer.h"
#include "io/special_tokens.h"
#include "io/token_index.h"
#include "io/vocabulary.h"

namespace weft {

struct EncodeOptions {
  bool parse_special = true;  // the text of a control token becomes that token, not ordinary text
  bool add_special = true;    // adds the vocabulary's prefix and suffix, such as a beginning-of-text token
};

struct DecodeOptions {
  bool skip_special = false;            // control tokens give no text
  std::vector<int> shown_special = {};  // but these do
  bool spaces_between_special = true;   // else a control token after another one is not preceded by the decoder's space
};

// Never changes after construction; several threads may use it.
class Tokenizer {
 public:
  // UserError if the vocabulary is invalid: two tokens with the same text, a merge of texts that are not tokens, an id
  // outside the vocabulary, or a pattern that cannot be used.
  explicit Tokenizer(Vocabulary vocabulary);

  // UserError if the text is not UTF-8 (the message gives the byte), has 2 GiB or more, or makes a pattern exceed its
  // limits.
  std::vector<int> encode(std::string_view text, EncodeOptions options = {}) const;

  // Two texts as one, with the tokens that the vocabulary has around and between them. UserError as above, and if the
  // vocabulary has some after a text, but none between texts.
  struct Pair {
    std::vector<int> ids;
    std::size_t second = 0;  // where the tokens of the second text begin, which the last added tokens follow
  };
  Pair encode_pair(std::string_view first, std::string_view second) const;

  // The text by the vocabulary's decoder; it equals what a StreamingDetokenizer returns in parts. UserError for an id
  // outside the vocabulary.
  std::string decode(std::span<const int> ids, DecodeOptions options = {}) const;

  // The bytes that one token adds to a text; "" for an id without a token. The first token of a text may add others,
  // such as one space less. UserError for an id outside the vocabulary.
  std::string_view token_bytes(int id) const;

  // The id of the token with exactly this text in the vocabulary.
  std::optional<int> find(std::string_view token_text) const;

  // Whether this is a control token, which skip_special omits. UserError for an id outside the vocabulary.
  bool is_special(int id) const;

  int token_count() const { return static_cast<int>(vocabulary_->tokens.size()); }

  // The constructor's argument without its merges, which are stored in another form.
  const Vocabulary& vocabulary() const { return *vocabulary_; }

 private:
  void add_texts();
  void check_id(int id) const;
  void append_plain(std::string text, bool is_first, PieceScratch& scratch, std::vector<int>& ids) const;
  std::optional<int> whole_token(std::string_view piece, std::string& text) const;

  // The model has references to these two, which stay valid if the tokenizer is moved.
  std::unique_ptr<Vocabulary> vocabulary_;
  std::unique_ptr<const TokenIndex> index_;
  std::unique_ptr<const PieceModel> model_;
  Normalizer normalizer_;
  PreTokenizer pre_tokenizer_;
  SpecialTokenFinder raw_finder_;
  SpecialTokenFinder normalized_finder_;
  std::string bytes_;              // the bytes of all tokens, concatenated
  std::vector<size_t> byte_ends_;  // token i is bytes_[byte_ends_[i], byte_ends_[i + 1])
};

}  // namespace weft
