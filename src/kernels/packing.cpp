#include "kernels/packing.h"

#include <algorithm>
#include <vector>

#include "base/error.h"

namespace weft {
namespace {

// Bytes that are packed at a time, so that only a small part of a weight is in memory twice.
constexpr std::int64_t kPartBytes = 2 << 20;

std::int64_t rows_of(const Meta& plain) {
  std::int64_t rows = 1;
  for (std::size_t i = 0; i + 1 < plain.rank(); ++i) rows *= plain.shape[i].number();
  return rows;
}

// The type of all parts joined into one weight; of a single part, which may be a stack, its own.
Meta joined_meta(std::span<const Tensor> parts) {
  CHECK(!parts.empty(), "there is nothing to pack");
  Meta plain = parts[0].meta;
  for (std::size_t i = 1; i < parts.size(); ++i) {
    CHECK(plain.rank() == 2 && parts[i].meta.rank() == 2, "{} cannot be packed with {}", parts[i].meta.text(),
          plain.text());
    plain.shape[0] = plain.shape[0] + parts[i].meta.shape[0];
  }
  return plain;
}

// Returns the addresses of the rows of parts. Their number may be large: a stack has a part for each expert.
class RowAddresses {
 public:
  RowAddresses(std::span<const Tensor> parts, const Meta& plain)
      : parts_(parts), row_bytes_(bytes_of(plain.dtype, plain.shape.back().number())) {
    std::int64_t rows = 0;
    for (const Tensor& part : parts) {
      CHECK(part.meta.rank() >= 2 && part.meta.packed.empty() && part.meta.is_contiguous() &&
                part.meta.dtype == plain.dtype && part.meta.shape.back() == plain.shape.back(),
            "{} cannot be packed with {}", part.meta.text(), plain.text());
      ends_.push_back(rows += rows_of(part.meta));
    }
    CHECK(rows == rows_of(plain), "{} rows cannot be packed as {}", rows, plain.text());
  }

  const std::byte* of(std::int64_t row) const {
    const auto end = std::upper_bound(ends_.begin(), ends_.end(), row);
    CHECK(end != ends_.end(), "there is no row {} after the last", row);
    const std::int64_t first = end == ends_.begin() ? 0 : *(end - 1);
    return parts_[static_cast<std::size_t>(end - ends_.begin())].data() + (row - first) * row_bytes_;
  }

 private:
  std::span<const Tensor> parts_;
  std::int64_t row_bytes_;
  std::vector<std::int64_t> ends_;  // for each part, the number of rows up to its end
};

}  // namespace

Tensor pack_weight(const Packing& packing, std::span<const Tensor> parts, ThreadPool& threads,
                   const std::function<void()>& after_part, std::shared_ptr<Storage> into) {
  return pack_weight(packing, joined_meta(parts), parts, threads, after_part, std::move(into));
}

Tensor pack_weight(const Packing& packing, const Meta& plain, std::span<const Tensor> parts, ThreadPool& threads,
                   const std::function<void()>& after_part, std::shared_ptr<Storage> into) {
  const RowAddresses addresses(parts, plain);
  const auto row = [&](std::int64_t index) { return addresses.of(index); };
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
