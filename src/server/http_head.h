#pragma once

// Reads the head of an HTTP request by strict rules. Two programs that read one head differently let a request pass
// that one of them should have stopped, so everything that RFC 9112 leaves to the reader's tolerance is refused: bare
// CR or LF, folded lines, white space before a colon, two lengths.

#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <string_view>

#include "server/http_message.h"

namespace weft {

// Why a connection is refused; it is closed after the response.
struct HttpFault {
  int status;
  std::string message;
};

// The answer to a request that the server could not handle because of an exception: 503 if memory is short, because
// the client may try again, else 500.
struct ServerFault {
  int status;
  const char* message;  // a copy could find no memory
};
ServerFault fault_of(const std::exception& error);

// Finds the end of a head in bytes that arrive in parts. Each byte is looked at once.
class HeadScanner {
 public:
  HeadScanner(std::size_t most_bytes, std::size_t most_lines) : most_bytes_(most_bytes), most_lines_(most_lines) {}

  // `bytes` are all bytes of the request so far. Returns the length of the head with its empty line, or nullopt if it
  // is not complete, or if there is a fault().
  std::optional<std::size_t> scan(std::string_view bytes);
  const std::optional<HttpFault>& fault() const { return fault_; }

 private:
  void check_line(std::string_view line);

  std::size_t most_bytes_, most_lines_;
  std::size_t begin_of_line_ = 0, next_ = 0, lines_ = 0;
  std::optional<HttpFault> fault_;
};

// How the body of a request is delimited.
struct BodyFraming {
  static constexpr std::uint64_t kMostLength = 999'999'999'999'999'999;  // also for all lengths beyond it
  bool is_chunked = false;
  std::uint64_t length = 0;        // of a body that is not chunked
  bool expects_continue = false;   // the client waits for status 100
  bool is_kept_alive = true;       // the connection may have another request after this one
  std::optional<HttpFault> fault;  // then nothing else is set
};

// Reads a head that HeadScanner found. nullopt for a target that is not a path or a URL.
std::optional<HttpRequest> read_head(std::string_view head);

BodyFraming framing_of(const HttpRequest& request);

}  // namespace weft
