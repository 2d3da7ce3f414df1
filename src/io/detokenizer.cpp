#include "io/detokenizer.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/utf8.h"
#include "io/token_text.h"

namespace weft {

StreamingDetokenizer::StreamingDetokenizer(const Tokenizer& tokenizer, DecodeOptions options)
    : tokenizer_(&tokenizer), options_(std::move(options)), strips_left_(tokenizer.vocabulary().decoder.strip_count) {}

bool StreamingDetokenizer::is_hidden(int id) const {
  const std::vector<int>& shown = options_.shown_special;
  return options_.skip_special && id < tokenizer_->token_count() && tokenizer_->is_special(id) &&
         std::find(shown.begin(), shown.end(), id) == shown.end();
}

void StreamingDetokenizer::continue_after(std::span<const int> ids) {
  for (const int id : ids) {
    if (id >= tokenizer_->token_count() || is_hidden(id)) continue;
    is_first_ = false;
    strips_left_ = 0;
    return;
  }
}

std::string StreamingDetokenizer::push(int id) {
  CHECK(id >= 0, "[detokenizer] token id {}", id);
  if (id >= tokenizer_->token_count()) return {};
  if (is_hidden(id)) return {};
  const Vocabulary& vocabulary = tokenizer_->vocabulary();
  const bool is_first = std::exchange(is_first_, false);
  const bool is_special = tokenizer_->is_special(id);
  const bool joins = std::exchange(was_special_, is_special) && is_special && !options_.spaces_between_special;
  if (vocabulary.decoder.form == Decoder::Form::bytes) {
    pending_ += tokenizer_->token_bytes(id);
    return incomplete_utf8_suffix(pending_) == 0 ? stripped(take_bytes()) : std::string();
  }
  if (byte_of_token(vocabulary, id)) {
    pending_ += tokenizer_->token_bytes(id);
    const bool is_complete =
        vocabulary.decoder.byte_run == Decoder::ByteRun::keeps_valid_parts && incomplete_utf8_suffix(pending_) == 0;
    return is_complete ? stripped(take_bytes()) : std::string();
  }
  std::string text = take_bytes();
  // The space in front of SentencePiece's text for the unknown token is not one of the text.
  if (id == vocabulary.unknown && !vocabulary.decoder.unknown_text.empty()) strips_left_ = 0;
  if (is_first || joins) {
    append_token_text(vocabulary, id, true, text);
  } else {
    text += tokenizer_->token_bytes(id);
  }
  return stripped(std::move(text));
}

std::string StreamingDetokenizer::take_bytes() {
  const std::string bytes = std::exchange(pending_, {});
  const bool is_replaced_whole =
      tokenizer_->vocabulary().decoder.byte_run == Decoder::ByteRun::all_or_nothing && first_invalid_utf8(bytes);
  if (!is_replaced_whole) return replace_invalid_utf8(bytes);
  std::string text;
  for (size_t i = 0; i < bytes.size(); ++i) text += "\uFFFD";
  return text;
}

std::string StreamingDetokenizer::stripped(std::string text) {
  const std::string& strip = tokenizer_->vocabulary().decoder.strip;
  for (; strips_left_ > 0 && !text.empty(); --strips_left_) {
    if (!text.starts_with(strip)) {
      strips_left_ = 0;
      break;
    }
    text.erase(0, strip.size());
  }
  return text;
}

std::string StreamingDetokenizer::finish() {
  std::string text = stripped(take_bytes());
  is_first_ = true;
  was_special_ = false;
  strips_left_ = tokenizer_->vocabulary().decoder.strip_count;
  return text;
}

}  // namespace weft
