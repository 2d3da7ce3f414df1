#pragma once

// What holds for each tokenizer, whatever its file contains.

#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "base/utf8.h"
#include "io/detokenizer.h"
#include "io/tokenizer.h"

namespace weft {

inline void require(bool condition) {
  if (!condition) std::abort();
}

// Encoding ends in ids of the vocabulary or in a UserError, and streaming those ids gives the text that decoding gives.
inline void check_round_trip(const Tokenizer& tokenizer, std::string_view prompt, bool parse_special) {
  const std::vector<int> ids = tokenizer.encode(prompt, {.parse_special = parse_special});
  for (const bool skip_special : {false, true}) {
    StreamingDetokenizer stream(tokenizer, {.skip_special = skip_special});
    std::string text;
    for (const int id : ids) {
      require(id >= 0 && id < tokenizer.token_count());
      const std::string piece = stream.push(id);
      require(!first_invalid_utf8(piece));
      text += piece;
    }
    text += stream.finish();
    require(text == tokenizer.decode(ids, {.skip_special = skip_special}));
  }
}

// Texts with what the rules of tokenizers treat apart.
inline void check_round_trips(const Tokenizer& tokenizer) {
  for (const std::string_view prompt :
       {"It's 12 caf\u00e9s\n <|s|>", "  a  \u2581b\u2581 ", "\uff21\u00a0e\u0301 \u0915\u094d \u4e2d\u6587", ""}) {
    check_round_trip(tokenizer, prompt, true);
    check_round_trip(tokenizer, prompt, false);
  }
}

}  // namespace weft
