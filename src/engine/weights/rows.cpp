// The part of Weights that reads weights with codes row by row, so that no copy of a weight is in memory next to the
// one that is loaded.

#include <algorithm>
#include <map>
#include <utility>

#include "base/error.h"
#include "engine/compile/builders.h"
#include "io/quantized_weight.h"
#include "nn/model_weight.h"
#include "tensor/convert.h"

namespace weft {
namespace {

constexpr std::int64_t kRowsAtOnce = 32;  // read at a time

std::string format_text(const QuantizationConfig& config) {
  const auto dtype = [&] { return std::string(dtype_text(config.codes)); };
  switch (config.scheme) {
    case QuantizationScheme::scaled:
      return dtype();
    case QuantizationScheme::block:
      return fmt::format("{} in blocks of {}x{}", dtype(), config.block_rows, config.block_columns);
    case QuantizationScheme::nvfp4:
      return "NVFP4";
    case QuantizationScheme::grouped:
      return fmt::format("{} bits in groups", config.groups.bits);
    case QuantizationScheme::mxfp4:
      return "MXFP4";
  }
  return "";
}

// The rows of several weights, one after another, as far as they were asked for. One thread uses it.
class MergedRows {
 public:
  explicit MergedRows(const std::vector<WeightRows>& parts) : parts_(parts) {
    for (const WeightRows& part : parts) ends_.push_back(rows_ += part.meta.shape[0].number());
  }

  const std::byte* row(std::int64_t index) {
    const auto part = static_cast<std::size_t>(std::upper_bound(ends_.begin(), ends_.end(), index) - ends_.begin());
    CHECK(part < parts_.size(), "there is no row {} among {}", index, rows_);
    const Meta& meta = parts_[part].meta;
    const std::int64_t rows = meta.shape[0].number(), own = index - (ends_[part] - rows);
    const std::int64_t row_bytes = bytes_of(meta.dtype, meta.shape[1].number());
    const std::int64_t first = own / kRowsAtOnce * kRowsAtOnce;
    std::vector<std::byte>& read = read_[{part, first}];
    if (read.empty()) {
      const std::int64_t count = std::min(kRowsAtOnce, rows - first);
      read.resize(static_cast<std::size_t>(count * row_bytes));
      parts_[part].read(first, count, read.data());
    }
    return read.data() + (own - first) * row_bytes;
  }

 private:
  const std::vector<WeightRows>& parts_;
  std::vector<std::int64_t> ends_;  // for each part, the number of rows up to its end
  std::int64_t rows_ = 0;
  std::map<std::pair<std::size_t, std::int64_t>, std::vector<std::byte>> read_;  // by part and first row
};

}  // namespace

// Of codes that fill no blocks. vLLM, too, multiplies such weights in the dtype of the model.
DType Weights::dtype_of_numbers() const { return facts_.is_exact() ? DType::f32 : facts_.dtype; }

// Blocks of MXFP4 are rearranged as a whole. The table of an embedding may have grouped codes.
bool Weights::is_made_of_rows(const std::string& key, WeightRole role) const {
  const std::string first = is_name_of_experts(key) ? name_of_expert(key, 0) : key;
  if (role == WeightRole::codes) return is_grouped(first);
  return role == WeightRole::linear && is_quantized(first) && !is_mxfp4(first);
}

// The rows in this dtype. An expert may have numbers where others have codes.
WeightRows Weights::rows_of(const std::string& key, DType dtype) const {
  if (is_quantized(key)) return weight_rows(checkpoint_, config_of_codes(key), key, dtype);
  const Tensor tensor = checkpoint_.tensor(key);
  const std::int64_t columns = tensor.meta.shape[1].number();
  return {Meta::tensor(dtype, tensor.meta.shape),
          [tensor, dtype, columns](std::int64_t first, std::int64_t count, std::byte* rows) {
            convert_row(tensor.meta.dtype, tensor.data() + bytes_of(tensor.meta.dtype, first * columns), dtype, rows,
                        count * columns);
          }};
}

Tensor Weights::all_rows(const WeightRows& rows) const {
  Tensor result = Tensor::empty(rows.meta);
  const std::int64_t count = rows.meta.shape[0].number();
  const std::int64_t row_bytes = bytes_of(rows.meta.dtype, rows.meta.shape[1].number());
  context_.threads->run((count + kRowsAtOnce - 1) / kRowsAtOnce, [&](std::int64_t chunk, int) {
    const std::int64_t first = chunk * kRowsAtOnce;
    rows.read(first, std::min(kRowsAtOnce, count - first), result.data() + first * row_bytes);
  });
  return result;
}

std::vector<std::string> Weights::expansions(const std::vector<TracedParam>& params) const {
  std::string first_name;
  DType dtype = DType::f32;
  std::int64_t weights = 0, bytes = 0, bytes_of_codes = 0;
  for (const auto& [name, keys, role] : params) {
    if (facts_.is_exact() || is_on_gpu() || keys.empty() || !is_made_of_rows(keys[0], role)) continue;
    const Meta plain = plain_meta(keys, role);
    if (is_block(plain.dtype)) continue;
    if (weights == 0) {
      first_name = keys[0];
      dtype = plain.dtype;
    }
    bytes += plain.bytes().number();
    for (const std::string& key : keys) {
      const std::int64_t count = is_name_of_experts(key) ? stack_size(key) : 1;
      weights += count;
      const std::string first = is_name_of_experts(key) ? name_of_expert(key, 0) : key;
      bytes_of_codes += count * checkpoint_.tensor(stored_name(first)).meta.bytes().number();
    }
  }
  if (weights == 0) return {};
  return {fmt::format("[{}] {} weights of {} are stored as {}, {} the first: {} bytes in place of {}",
                      checkpoint_.path(), weights, format_text(config_of_codes(first_name)), dtype_text(dtype),
                      first_name, bytes, bytes_of_codes)};
}

// Panels are written from the codes of the file. Layouts in which a row is spread over all pages are read many times,
// so the pages are dropped at the end.
Tensor Weights::pack_of_rows(const Packing& packing, const std::vector<std::string>& keys, const Meta& plain) {
  std::vector<WeightRows> parts;
  const std::int64_t experts = is_name_of_experts(keys[0]) ? plain.shape[0].number() : 0;
  for (std::int64_t expert = 0; expert < experts; ++expert)
    for (const std::string& key : keys) parts.push_back(rows_of(name_of_expert(key, expert), plain.dtype));
  if (experts == 0)
    for (const std::string& key : keys) parts.push_back(rows_of(key, plain.dtype));
  const auto rows_of_unit = [&]() -> RowOfWeight {
    return [rows = std::make_shared<MergedRows>(parts)](std::int64_t index) { return rows->row(index); };
  };
  Tensor packed = pack_rows(packing, plain, rows_of_unit, *context_.threads, nullptr, room(packing.bytes(plain)));
  for (const std::string& key : keys) drop_pages(key);
  return packed;
}

}  // namespace weft
