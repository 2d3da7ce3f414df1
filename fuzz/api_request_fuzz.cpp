// Any body is a request within the ranges of its fields, or an ApiError.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "server/api_error.h"
#include "server/api_request.h"
#include "server/json_body.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weft;
  const std::string text(reinterpret_cast<const char*>(data), size);
  for (const Endpoint endpoint :
       {completions, chat, tokenize, detokenize, responses, anthropic_messages, anthropic_count, embeddings}) {
    try {
      const JsonBody body(text);
      const ApiRequest request = read_fields(body.object(), endpoint);
      check_fields(request);
      if (request.temperature.value_or(0) > 2 || request.n.value_or(1) < 1) std::abort();
    } catch (const ApiError& error) {
      json_text(error.body());
    }
  }
  return 0;
}
