#pragma once

// Reads the body of a request whose head HeadScanner and framing_of() have checked, by Beast's parser, which decodes
// chunks.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "server/http_head.h"

namespace weft {

class BodyReader {
 public:
  // The body may have `most_bytes`, whatever its chunks say.
  BodyReader(std::uint64_t most_bytes, std::size_t head_bytes);
  ~BodyReader();

  // Takes the head, then the body in parts. Returns how many bytes were used.
  std::size_t put(std::string_view data);
  bool is_done() const;
  const std::optional<HttpFault>& fault() const;
  // Once it is done.
  HttpBody take_body();

 private:
  void check_trailers();

  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace weft
