// A tiktoken file or a vocab.txt: reading and encoding end in ids of the vocabulary or in a UserError.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "fuzz/tokenizer_round_trip.h"
#include "io/text_vocabulary.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    weft::check_round_trips(weft::Tokenizer(weft::is_tiktoken(text) ? weft::read_tiktoken(text, "vocab.tiktoken")
                                                                    : weft::read_word_list(text, "vocab.txt", true)));
  } catch (const weft::UserError&) {
  }
  return 0;
}
