// A tokenizer.json, a zero byte, a prompt. Whatever they are, reading and encoding end in ids of the vocabulary or in a
// UserError, and streaming those ids gives the text that decoding gives.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "fuzz/tokenizer_round_trip.h"
#include "io/tokenizer_json.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t zero = input.find('\0');
  const std::string_view prompt = zero == input.npos ? "It's 12 caf\u00e9s\n <|s|>" : input.substr(zero + 1);
  try {
    const weft::Tokenizer tokenizer(weft::read_tokenizer_json(std::string(input.substr(0, zero))));
    weft::check_round_trip(tokenizer, prompt, true);
    weft::check_round_trip(tokenizer, prompt, false);
  } catch (const weft::UserError&) {
  }
  return 0;
}
