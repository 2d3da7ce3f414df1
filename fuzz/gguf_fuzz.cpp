// Any bytes are a GGUF file that is read in full, together with its model's facts, or a UserError.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "base/error.h"
#include "io/gguf.h"
#include "io/model_config.h"

namespace {

using namespace weft;

template <class Call>
void allow_user_error(Call call) {
  try {
    call();
  } catch (const UserError&) {
  }
}

void read_all(const Gguf& gguf, std::span<const std::byte> file) {
  for (const auto& entry : gguf.entries()) {
    if (gguf.find(entry.key) != &entry.value) std::abort();
    allow_user_error([&] { gguf.find_integer(entry.key); });
    allow_user_error([&] { gguf.find_real(entry.key); });
    allow_user_error([&] { gguf.find_boolean(entry.key); });
    allow_user_error([&] { gguf.find_text(entry.key); });
    allow_user_error([&] { gguf.find_integers(entry.key); });
    allow_user_error([&] { gguf.find_reals(entry.key); });
    allow_user_error([&] { gguf.find_texts(entry.key); });
  }
  unsigned sum = 0;
  for (const auto& tensor : gguf.tensors()) {
    if (gguf.find_tensor(tensor.name) != &tensor) std::abort();
    for (const auto value :
         file.subspan(static_cast<std::size_t>(tensor.offset), static_cast<std::size_t>(tensor.bytes)))
      sum += std::to_integer<unsigned>(value);
  }
  volatile unsigned keep = sum;
  static_cast<void>(keep);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto file = std::as_bytes(std::span(data, size));
  allow_user_error([&] {
    const auto gguf = Gguf::parse(file, "fuzz");
    read_all(gguf, file);
    const auto config = model_config_from_gguf(gguf, {});
    if (config.head_count % config.kv_head_count != 0 || config.rope.rotary_dim > config.head_dim) std::abort();
  });
  return 0;
}
