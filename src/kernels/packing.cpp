#include "kernels/packing.h"

#include <algorithm>

#include "base/error.h"

namespace weft {
namespace {

// Bytes that are packed at a time, so that only a small part of a weight is in memory twice.
constexpr std::int64_t kPartBytes = 2 << 20;

// The type of all parts joined into one weight.
Meta joined_meta(std::span<const Tensor> parts) {
  CHECK(!parts.empty(), "there is nothing to pack");
  Meta plain = parts[0].meta;
  for (const Tensor& part : parts) {
    CHECK(part.meta.rank() == 2 && part.meta.packed.empty() && part.meta.is_contiguous() &&
              part.meta.dtype == plain.dtype && part.meta.shape[1] == plain.shape[1],
          "{} cannot be packed with {}", part.meta.text(), plain.text());
    if (&part != parts.data()) plain.shape[0] = plain.shape[0] + part.meta.shape[0];
  }
  return plain;
}

const std::byte* row_address(std::span<const Tensor> parts, std::int64_t row_bytes, std::int64_t row) {
  for (const Tensor& part : parts) {
    const std::int64_t rows = part.meta.shape[0].number();
    if (row < rows) return part.data() + row * row_bytes;
    row -= rows;
  }
  CHECK(false, "there is no row {} after the last", row);
  return nullptr;
}

}  // namespace

Tensor pack_weight(const Packing& packing, std::span<const Tensor> parts, ThreadPool& threads,
                   const std::function<void()>& after_part, std::shared_ptr<Storage> into) {
  const Meta plain = joined_meta(parts);
  const std::int64_t row_bytes = bytes_of(plain.dtype, plain.shape[1].number());
  const auto row = [&](std::int64_t index) { return row_address(parts, row_bytes, index); };
  return pack_rows(
      packing, plain, [&]() -> RowOfWeight { return row; }, threads, after_part, std::move(into));
}

Tensor pack_rows(const Packing& packing, const Meta& plain, const std::function<RowOfWeight()>& rows_of_unit,
                 ThreadPool& threads, const std::function<void()>& after_part, std::shared_ptr<Storage> into) {
  const std::int64_t wanted = packing.bytes(plain);
  CHECK(into == nullptr || into->bytes() == wanted, "{} takes {} bytes packed, not {}", plain.text(), wanted,
        into == nullptr ? 0 : into->bytes());
  Tensor packed{.meta = plain, .storage = into == nullptr ? Storage::allocate(wanted) : std::move(into)};
  packed.meta.packed = packing.name;
  const std::int64_t units = packing.units(plain);
  const std::int64_t bytes = std::max<std::int64_t>(packed.storage->bytes(), 1);
  const std::int64_t at_once = std::max<std::int64_t>(units * kPartBytes / bytes, 16);
  for (std::int64_t first = 0; first < units; first += at_once) {
    threads.run(std::min(at_once, units - first),
                [&](std::int64_t unit, int) { packing.pack(plain, rows_of_unit(), packed.data(), first + unit); });
    if (after_part) after_part();
  }
  return packed;
}

Verdict none_is_packed(const KernelRequest& request) {
  for (const auto& operand : request.operands)
    if (operand && !operand->packed.empty()) return Verdict::no("reads plain tensors, not " + operand->text());
  return Verdict::yes();
}

}  // namespace weft
