// Any bytes are the head of a request, or a fault, and it does not matter in how many parts they arrive.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "server/http_head.h"

namespace {

using namespace weft;

struct Scanned {
  std::size_t end = 0;
  int status = 0;
  bool operator==(const Scanned&) const = default;
};

Scanned scanned(std::string_view bytes, std::size_t at_once) {
  HeadScanner scanner(1000, 20);
  for (std::size_t size = std::min(at_once, bytes.size());; size = std::min(size + at_once, bytes.size())) {
    const auto end = scanner.scan(bytes.substr(0, size));
    if (scanner.fault()) return {0, scanner.fault()->status};
    if (end) return {*end, 0};
    if (size == bytes.size()) return {};
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const Scanned whole = scanned(bytes, bytes.size() + 1);
  for (const std::size_t at_once : {1, 2, 7})
    if (scanned(bytes, at_once) != whole) std::abort();
  if (whole.end == 0) return 0;
  if (const auto request = read_head(bytes.substr(0, whole.end))) {
    const BodyFraming framing = framing_of(*request);
    if (!framing.fault && framing.is_chunked && framing.length != 0) std::abort();
  }
  return 0;
}
