// A tiktoken file, a vocab.txt, or a vocab.json in one line and then a merges.txt: reading and encoding end in ids of
// the vocabulary or in a UserError.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"
#include "fuzz/tokenizer_round_trip.h"
#include "io/text_vocabulary.h"
#include "io/vocab_and_merges.h"

namespace weft {
namespace {

Vocabulary read_vocabulary(std::string_view text) {
  if (is_tiktoken(text)) return read_tiktoken(text, "vocab.tiktoken");
  if (!text.starts_with('{')) return read_word_list(text, "vocab.txt", true);
  const std::string_view vocab = take_line(text);
  Vocabulary vocabulary = read_vocab_and_merges({vocab, "vocab.json"}, {text, "merges.txt"});
  vocabulary.steps = {PatternSplit{.pattern = std::string(kGpt2Pattern)}};
  return vocabulary;
}

}  // namespace
}  // namespace weft

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    weft::check_round_trips(weft::Tokenizer(weft::read_vocabulary({reinterpret_cast<const char*>(data), size})));
  } catch (const weft::UserError&) {
  }
  return 0;
}
