#include "tensor/dtype.h"

#include <array>

#include "base/error.h"

namespace weft {
namespace {

constexpr std::array kInfo = {
#define WEFT_DTYPE(name, text, kind, block_elements, block_bytes) \
  DTypeInfo{text, DTypeKind::kind, block_elements, block_bytes},
#include "tensor/dtype.def"
#undef WEFT_DTYPE
};

}  // namespace

const DTypeInfo& dtype_info(DType dtype) { return kInfo[static_cast<std::size_t>(dtype)]; }

std::string_view dtype_text(DType dtype) { return dtype_info(dtype).text; }

std::optional<DType> dtype_from_text(std::string_view text) {
  for (std::size_t i = 0; i < kInfo.size(); ++i)
    if (kInfo[i].text == text) return static_cast<DType>(i);
  return std::nullopt;
}

std::int64_t bytes_of(DType dtype, std::int64_t elements) {
  const DTypeInfo& info = dtype_info(dtype);
  USER_CHECK(elements >= 0, "[{}] wanted a count of elements, but got {}", info.text, elements);
  USER_CHECK(elements % info.block_elements == 0, "[{}] is stored in blocks of {} elements, but {} were asked for",
             info.text, info.block_elements, elements);
  std::int64_t bytes = 0;
  USER_CHECK(!__builtin_mul_overflow(elements / info.block_elements, info.block_bytes, &bytes),
             "[{}] {} elements are more bytes than 64 bits count", info.text, elements);
  return bytes;
}

}  // namespace weft
