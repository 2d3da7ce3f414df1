#include "io/detokenizer.h"

#include <utility>

#include "base/error.h"
#include "base/utf8.h"

namespace weft {

StreamingDetokenizer::StreamingDetokenizer(const Tokenizer& tokenizer, DecodeOptions options)
    : tokenizer_(&tokenizer), options_(options) {}

std::string StreamingDetokenizer::push(int id) {
  CHECK(id >= 0, "[detokenizer] token id {}", id);
  if (id >= tokenizer_->token_count()) return {};
  if (options_.skip_special && tokenizer_->is_special(id)) return {};
  pending_ += tokenizer_->token_bytes(id);
  return incomplete_utf8_suffix(pending_) == 0 ? finish() : std::string();
}

std::string StreamingDetokenizer::finish() { return replace_invalid_utf8(std::exchange(pending_, {})); }

}  // namespace weft
