#pragma once

// How tokens become text again, as plain data. StreamingDetokenizer applies it.

#include <string>
#include <vector>

namespace weft {

struct Decoder {
  enum class Form {
    bytes,       // the bytes of all tokens, concatenated
    pieces,      // the texts of all tokens, concatenated
    metaspace,   // the same, but the first token loses all marks of a space
    word_piece,  // a space before each token that does not continue a word
  };
  // What a run of byte tokens becomes if it is not UTF-8.
  enum class ByteRun {
    keeps_valid_parts,  // one U+FFFD for each broken part (SentencePiece, llama.cpp)
    all_or_nothing,     // one U+FFFD for each byte of the run (Hugging Face's ByteFallback)
  };
  // Which tokens are bytes. Hugging Face's decoder asks for the spelling alone, and has byte tokens only if it has the
  // step ByteFallback, whatever the model does.
  enum class ByteTokens { of_kind, spelled, none };
  struct Replacement {
    std::string from, to;
  };

  Form form = Form::bytes;
  ByteRun byte_run = ByteRun::keeps_valid_parts;
  ByteTokens byte_tokens = ByteTokens::of_kind;
  std::vector<Replacement> replacements{};  // in the text of each token, in this order
  bool replaces_in_control = false;         // also in that of control tokens, as in Hugging Face
  // This text is removed from the begin of the whole text, up to `strip_count` times. It stays after an unknown_text.
  std::string strip = " ";
  size_t strip_count = 0;
  bool clean_up = false;       // Form::word_piece: no space before punctuation and English contractions
  std::string unknown_text{};  // the text of the unknown token; "": its own
};

}  // namespace weft
