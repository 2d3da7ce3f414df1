// A tokenizer.json, a zero byte, a prompt. Whatever they are, reading and encoding end in ids of the vocabulary or in a
// UserError, and streaming those ids gives the text that decoding gives.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/utf8.h"
#include "io/detokenizer.h"
#include "io/tokenizer.h"
#include "io/tokenizer_json.h"

namespace {

void require(bool condition) {
  if (!condition) std::abort();
}

void check_round_trip(const weft::Tokenizer& tokenizer, std::string_view prompt, bool parse_special) {
  const std::vector<int> ids = tokenizer.encode(prompt, {.parse_special = parse_special});
  for (const bool skip_special : {false, true}) {
    weft::StreamingDetokenizer stream(tokenizer, {.skip_special = skip_special});
    std::string text;
    for (const int id : ids) {
      require(id >= 0 && id < tokenizer.token_count());
      const std::string piece = stream.push(id);
      require(!weft::first_invalid_utf8(piece));
      text += piece;
    }
    text += stream.finish();
    require(text == tokenizer.decode(ids, {.skip_special = skip_special}));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t zero = input.find('\0');
  const std::string_view prompt = zero == input.npos ? "It's 12 caf\u00e9s\n <|s|>" : input.substr(zero + 1);
  try {
    const weft::Tokenizer tokenizer(weft::read_tokenizer_json(input.substr(0, zero)));
    check_round_trip(tokenizer, prompt, true);
    check_round_trip(tokenizer, prompt, false);
  } catch (const weft::UserError&) {
  }
  return 0;
}
