// The bytes of a tokenizer.model: reading and encoding end in ids of the vocabulary or in a UserError.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "fuzz/tokenizer_round_trip.h"
#include "io/sentencepiece_model.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  for (const bool is_legacy : {false, true}) {
    try {
      weft::check_round_trips(weft::Tokenizer(
          weft::read_sentencepiece_model({reinterpret_cast<const char*>(data), size}, "tokenizer.model", is_legacy)));
    } catch (const weft::UserError&) {
    }
  }
  return 0;
}
