// Any bytes are a file of torch.save whose tensors lie within it, or a UserError; the same bytes as a pickle are one,
// or a UserError.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "base/error.h"
#include "io/pickle.h"
#include "io/pytorch_file.h"

namespace {

using namespace weft;

void read_file(std::span<const std::byte> bytes) {
  try {
    for (const StoredTensor& tensor : parse_pytorch_file(bytes, "fuzz")) {
      const auto size = static_cast<std::int64_t>(bytes.size());
      if (tensor.offset < 0 || tensor.bytes < 0 || tensor.offset > size || tensor.bytes > size - tensor.offset)
        std::abort();
    }
  } catch (const UserError&) {
  }
}

void read_pickle(std::span<const std::byte> bytes) {
  try {
    const Pickle pickle = Pickle::parse(bytes, "fuzz");
    for (const PickleValue& value : pickle.values)
      for (const PickleIndex item : value.items)
        if (item >= pickle.values.size()) std::abort();
  } catch (const UserError&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  read_file(bytes);
  read_pickle(bytes);
  return 0;
}
