// Any bytes are a safetensors file whose tensors fill it, or a UserError; the same bytes as text are an index, or a
// UserError.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string_view>

#include "base/error.h"
#include "io/safetensors.h"

namespace {

using namespace weft;

void read_file(std::span<const std::byte> bytes) {
  try {
    const auto file = Safetensors::parse(bytes, "fuzz");
    if (file.tensors.empty()) return;
    auto end = file.tensors.front().offset;
    for (const auto& tensor : file.tensors) {
      if (tensor.offset != end) std::abort();
      end += tensor.bytes;
    }
    if (end != static_cast<std::int64_t>(bytes.size())) std::abort();
  } catch (const UserError&) {
  }
}

void read_index(std::string_view text) {
  try {
    for (const auto& [tensor, name] : parse_safetensors_index(text, "fuzz"))
      if (name.find('/') != std::string::npos) std::abort();
  } catch (const UserError&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  read_file(std::as_bytes(std::span(data, size)));
  read_index(std::string_view(reinterpret_cast<const char*>(data), size));
  return 0;
}
