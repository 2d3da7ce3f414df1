#pragma once

// Byte-level BPE: text to token ids and back.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/pre_tokenizer.h"
#include "io/special_tokens.h"
#include "io/token_index.h"
#include "io/tokenizer_bpe.h"
#include "io/vocabulary.h"

namespace weft {

struct EncodeOptions {
  bool parse_special = true;  // the text of a control token becomes that token, instead of ordinary text
  bool add_special = true;    // the vocabulary's prefix and suffix, such as a beginning-of-text token, are put around
};

struct DecodeOptions {
  bool skip_special = false;  // control tokens give no text
};

// Never changes after construction; may be used from several threads.
class Tokenizer {
 public:
  // UserError, saying what is wrong with the vocabulary: two tokens with one text, a merge of texts that are not
  // tokens, an id outside it, a pattern that cannot be used.
  explicit Tokenizer(Vocabulary vocabulary);

  // UserError: text that is not UTF-8 (says at which byte), has 2 GiB or more, or drives a pattern past its limits.
  std::vector<int> encode(std::string_view text, EncodeOptions options = {}) const;

  // Bytes that are not UTF-8 when put together become U+FFFD, one for each maximal broken part. UserError: an id
  // outside the vocabulary.
  std::string decode(std::span<const int> ids, DecodeOptions options = {}) const;

  // The raw bytes of one token: "" for an id without a token. UserError: an id outside the vocabulary.
  std::string_view token_bytes(int id) const;

  // The id of the token whose text, as the vocabulary has it, is exactly this.
  std::optional<int> find(std::string_view token_text) const;

  // Whether this is a control token, which skip_special leaves out. UserError: an id outside the vocabulary.
  bool is_special(int id) const;

  int token_count() const { return static_cast<int>(vocabulary_.tokens.size()); }

  // What was given, but for the merges, which are kept in another form.
  const Vocabulary& vocabulary() const { return vocabulary_; }

 private:
  void check_id(int id) const;
  void append_plain(std::string text, BytePairMerger::Scratch& scratch, std::vector<int>& ids) const;
  std::optional<int> whole_token(std::string_view piece, std::string& text) const;

  Vocabulary vocabulary_;
  TokenIndex index_;
  BytePairMerger merger_;
  PreTokenizer pre_tokenizer_;
  SpecialTokenFinder raw_finder_;
  SpecialTokenFinder normalized_finder_;
  std::string bytes_;              // of all tokens, one after the other
  std::vector<size_t> byte_ends_;  // of token i: bytes_[byte_ends_[i], byte_ends_[i + 1])
};

}  // namespace weft
