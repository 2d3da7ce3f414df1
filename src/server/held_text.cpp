#include "server/held_text.h"

#include "io/detokenizer.h"

namespace weft {

std::string HeldText::rest(const Tokenizer* tokenizer, std::span<const int> prompt,
                           const SamplingParameters& parameters) const {
  if (tokenizer == nullptr) return "";
  StreamingDetokenizer detokenizer(*tokenizer, {.skip_special = parameters.skips_special,
                                                .shown_special = parameters.shown_special,
                                                .spaces_between_special = parameters.spaces_between_special});
  detokenizer.continue_after(prompt);
  std::string text;
  for (const int token : tokens_) text += detokenizer.push(token);
  text += detokenizer.finish();
  return given_ < text.size() ? text.substr(given_) : "";
}

}  // namespace weft
