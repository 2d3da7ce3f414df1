#include "compiler/check/edge_values.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>

#include "compiler/check/tensor_difference.h"
#include "tensor/convert.h"
#include "tensor/float4.h"
#include "tensor/same_elements.h"

namespace weft {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

constexpr double kChiefNumbers[] = {0.0,    -0.0,   1,          -1,   0.5,   2.5,       3,          127.5,
                                    -128.5, 0x1p24, 0x1p24 + 2, 1e20, 1e-20, kInfinity, -kInfinity, kNan};

// Ties and limits of roundings to the other dtypes, where exp ends, and where squares overflow and underflow.
constexpr double kNumbers[] = {-0.5,
                               0.25,
                               0.75,
                               1.5,
                               -2.5,
                               3.5,
                               -3,
                               2,
                               5,
                               6,
                               7,
                               0.1,
                               1.0 / 3,
                               0.7,
                               -0.7,
                               127,
                               128,
                               -127,
                               -128,
                               129,
                               255,
                               255.5,
                               256,
                               240,
                               448,
                               464,
                               480,
                               -448,
                               32767,
                               32768,
                               -32769,
                               65504,
                               65519,
                               65520,
                               -65520,
                               65535,
                               65536,
                               0x1p24 - 1,
                               0x1p24 + 1,
                               -0x1p24,
                               0x1p31,
                               -0x1p31,
                               0x1p31 - 128,
                               0x1p32,
                               0x1p53,
                               0x1p53 + 1,
                               0x1p63,
                               -0x1p63,
                               1 + 0x1p-8,
                               1 + 0x1.8p-7,
                               1 + 0x1p-11,
                               1 + 0x1.8p-10,
                               1 - 0x1p-9,
                               1 - 0x1p-12,
                               1 + 0x1p-24,
                               1 + 0x1.8p-23,
                               57344,
                               61440,
                               0x1p-9,
                               0x1p-10,
                               0x1.8p-9,
                               0x1p-14,
                               0x1p-24,
                               0x1p-25,
                               0x1p-126,
                               0x1p-133,
                               0x1p-134,
                               20,
                               -20,
                               88.7,
                               89,
                               -87.4,
                               -104,
                               104,
                               710,
                               -746,
                               1.9e19,
                               -1.9e19,
                               1e30,
                               -1e30,
                               1e-30,
                               -1e-9};

constexpr std::int64_t kChiefIntegers[] = {0,
                                           1,
                                           -1,
                                           2,
                                           127,
                                           -128,
                                           255,
                                           0x1'000'001,
                                           std::numeric_limits<std::int32_t>::max(),
                                           std::numeric_limits<std::int32_t>::min(),
                                           std::numeric_limits<std::int64_t>::max(),
                                           std::numeric_limits<std::int64_t>::min()};
constexpr std::int64_t kIntegers[] = {3,
                                      -2,
                                      7,
                                      8,
                                      -8,
                                      -9,
                                      128,
                                      -127,
                                      -129,
                                      256,
                                      32767,
                                      32768,
                                      -32768,
                                      -32769,
                                      65535,
                                      65536,
                                      0xff'ffff,
                                      0x100'0000,
                                      -0x100'0001,
                                      0xffff'ffff,
                                      0x1'0000'0000,
                                      0x20'0000'0000'0000,
                                      0x20'0000'0000'0001};

void store_bits(DType dtype, std::byte* row, std::int64_t element, std::uint64_t bits) {
  if (element_width(dtype) == 4)
    return store_nibble(reinterpret_cast<std::uint8_t*>(row), element, static_cast<std::uint8_t>(bits & 0xf));
  const auto size = static_cast<std::size_t>(bytes_of(dtype, 1));
  std::memcpy(row + element * static_cast<std::int64_t>(size), &bits, size);
}

template <class T, class Store>
std::uint64_t bits_of(DType dtype, T value, Store store) {
  std::byte element[8] = {};
  store(dtype, element, 0, value);
  return element_bits(dtype, element, 0);
}

// Collects bit patterns, each once, and which of them are chief.
class BitList {
 public:
  explicit BitList(DType dtype) : dtype_(dtype) {}

  void add(std::uint64_t bits, bool is_chief) {
    const std::int64_t width = element_width(dtype_);
    if (width < 64) bits &= (std::uint64_t{1} << width) - 1;
    const auto [at, is_new] = index_.emplace(bits, static_cast<std::int64_t>(bits_.size()));
    if (is_new) bits_.push_back(bits);
    if (is_chief && std::find(chief_.begin(), chief_.end(), at->second) == chief_.end()) chief_.push_back(at->second);
  }

  void add_number(double value, bool is_chief) { add(bits_of(dtype_, value, store_double), is_chief); }
  void add_integer(std::int64_t value, bool is_chief) { add(bits_of(dtype_, value, store_integer), is_chief); }

  // The number that is nearest to this one in the dtype, and both its neighbours.
  void add_near(double value) {
    const std::uint64_t bits = bits_of(dtype_, value, store_double);
    add(bits, true);
    if (dtype_ == DType::boolean) return;
    add(bits + 1, true);
    add(bits - 1, true);
  }

  const std::vector<std::uint64_t>& bits() const { return bits_; }
  const std::vector<std::int64_t>& chief() const { return chief_; }

 private:
  DType dtype_;
  std::map<std::uint64_t, std::int64_t> index_;
  std::vector<std::uint64_t> bits_;
  std::vector<std::int64_t> chief_;
};

// Both signs of: the largest number, the least normal, the largest and the least subnormal, and the neighbours of 1.
void add_ends(BitList& list, DType dtype) {
  const int mantissa = dtype == DType::f64 ? 52 : dtype == DType::f32 ? 23 : dtype == DType::f16 ? 10 : 7;
  const std::uint64_t least_normal = std::uint64_t{1} << mantissa,
                      sign = std::uint64_t{1} << (element_width(dtype) - 1);
  const std::uint64_t infinity = bits_of(dtype, kInfinity, store_double), one = bits_of(dtype, 1.0, store_double);
  for (const std::uint64_t minus : {std::uint64_t{0}, sign}) {
    for (const std::uint64_t bits : {infinity - 1, least_normal, std::uint64_t{1}}) list.add(bits | minus, true);
    for (const std::uint64_t bits : {infinity - 2, infinity - least_normal, least_normal - 1, least_normal + 1,
                                     least_normal / 2, std::uint64_t{2}, std::uint64_t{3}, one + 1, one - 1})
      list.add(bits | minus, false);
  }
}

BitList edge_bits_of(DType dtype, std::span<const double> more) {
  BitList list(dtype);
  const bool is_float = is_floating(dtype), is_small = element_width(dtype) <= 8;
  if (dtype == DType::boolean) {
    for (const int value : {0, 1}) list.add_integer(value, true);
    return list;
  }
  for (const double value : kChiefNumbers)
    if (is_float) list.add_number(value, true);
  for (const std::int64_t value : kChiefIntegers)
    if (!is_float) list.add_integer(value, true);
  for (const double value : more) list.add_near(value);
  if (is_small) {
    for (std::uint64_t code = 0; code < std::uint64_t{1} << element_width(dtype); ++code) list.add(code, false);
  } else if (is_float) {
    add_ends(list, dtype);
    for (const double value : kNumbers) list.add_number(value, false);
  } else {
    for (const std::int64_t value : kIntegers) list.add_integer(value, false);
  }
  return list;
}

std::int64_t width_of(const Tensor& tensor) {
  return tensor.meta.is_tensor() && tensor.meta.rank() > 0
             ? std::max<std::int64_t>(tensor.meta.shape.back().number(), 1)
             : 1;
}

std::int64_t rounds_for(std::int64_t edges, std::int64_t at_once) {
  return at_once <= 0 ? 1 : (edges + at_once - 1) / at_once;
}

}  // namespace

const char* const kEdgesText =
    "0 and -0, 1 and -1 with their neighbours, halves and other ties of rounding, numbers from 2^24 on, the largest, "
    "the least normal and subnormal numbers, infinities, NaN, equal and opposite pairs, the pattern's own numbers; of "
    "integers, the ends of each width";

DType element_dtype(const Tensor& tensor) {
  return tensor.meta.kind == MetaKind::kv ? tensor.meta.kv.dtype : tensor.meta.dtype;
}

std::int64_t stored_elements(const Tensor& tensor) {
  if (tensor.meta.kind == MetaKind::kv) return tensor.view().size[0] * kv_page_elements(tensor.meta.kv);
  return element_count(tensor.meta.shape).number();
}

bool has_edges(DType dtype) { return !is_block(dtype); }

EdgeValues::EdgeValues(DType dtype, std::span<const double> more) {
  const BitList list = edge_bits_of(dtype, more);
  const auto count = static_cast<std::int64_t>(list.bits().size());
  all_ = Tensor::empty(Meta::tensor(dtype, {Dim(count + count % 2)}));
  for (std::int64_t i = 0; i < count; ++i) {
    store_bits(dtype, all_.data(), i, list.bits()[static_cast<std::size_t>(i)]);
    each_.push_back(i);
  }
  chief_ = list.chief();
  double largest = 0;
  for (const std::int64_t i : each_)
    if (const double value = std::abs(load_double(dtype, all_.data(), i)); std::isfinite(value))
      largest = std::max(largest, value);
  const double least_normal = dtype == DType::f64 ? 0x1p-1022 : dtype == DType::f16 ? 0x1p-14 : 0x1p-126;
  for (const std::int64_t i : each_) {
    const double value = std::abs(load_double(dtype, all_.data(), i));
    if (is_floating(dtype) && element_width(dtype) > 8 && value > 0 && value <= 2 * least_normal) tiny_.push_back(i);
    if (value == 0 || (value >= 0x1p-6 && value <= 256 && std::trunc(value * 8) == value * 8)) moderate_.push_back(i);
    if (value >= std::min(0x1p24, largest / 64) && std::isfinite(value)) large_.push_back(i);
  }
}

std::int64_t EdgeValues::count() const { return static_cast<std::int64_t>(each_.size()); }

double EdgeValues::largest_tiny() const {
  double largest = tiny_.empty() ? 1 : 0;
  for (const std::int64_t i : tiny_) largest = std::max(largest, std::abs(load_double(dtype(), all_.data(), i)));
  return largest;
}

const std::vector<std::int64_t>& EdgeValues::list(EdgeFill fill) const {
  switch (fill) {
    case EdgeFill::pairs:
    case EdgeFill::equal:
    case EdgeFill::in_sample:
      return chief_;
    case EdgeFill::tiny:
      return tiny_.empty() ? each_ : tiny_;
    case EdgeFill::moderate:
      return moderate_.empty() ? each_ : moderate_;
    case EdgeFill::large:
      return large_.empty() ? each_ : large_;
    default:
      return each_;
  }
}

std::int64_t EdgeValues::rounds(EdgeFill fill, const Tensor& like, std::int64_t tensors) const {
  const auto edges = static_cast<std::int64_t>(list(fill).size());
  const std::int64_t elements = stored_elements(like), rows = elements / width_of(like);
  switch (fill) {
    case EdgeFill::each:
    case EdgeFill::opposite:
      return rounds_for(edges, elements);
    case EdgeFill::pairs:
      return tensors < 2 ? 0 : rounds_for(edges * edges, elements);
    case EdgeFill::equal:
      return rounds_for(edges, rows);
    case EdgeFill::in_sample:
      return tensors * rounds_for(edges, rows);
    default:
      return 1;
  }
}

Tensor EdgeValues::filled(const Tensor& sample, EdgeFill fill, std::int64_t round, std::int64_t index,
                          std::int64_t tensors) const {
  const Tensor tensor = copy_of(sample);
  if (fill == EdgeFill::sample || (fill == EdgeFill::in_sample && round % tensors != index)) return tensor;
  const std::vector<std::int64_t>& edges = list(fill);
  const auto size = static_cast<std::int64_t>(edges.size());
  const std::int64_t count = stored_elements(tensor), width = width_of(tensor), rows = count / width;
  const std::uint64_t sign =
      is_floating(dtype()) && dtype() != DType::f8e8m0 ? std::uint64_t{1} << (element_width(dtype()) - 1) : 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t row = i / width, column = i % width, at = i + round * count;
    std::int64_t edge = at + 17 * index;
    if (fill == EdgeFill::pairs) edge = index == 0 ? at : at / size + (index - 1) * (1 + at % 13);
    if (fill == EdgeFill::opposite) edge = tensors == 1 ? at / 2 : at;
    if (fill == EdgeFill::equal) edge = row + round * rows;
    if (fill == EdgeFill::in_sample) edge = row + round / tensors * rows;
    if (fill == EdgeFill::in_sample && column != (row * 5 + round * 3) % width) continue;
    std::uint64_t bits = element_bits(dtype(), all_.data(), edges[static_cast<std::size_t>(edge % size)]);
    if (fill == EdgeFill::opposite && (tensors == 1 ? i : index) % 2 == 1) bits ^= sign;
    store_bits(dtype(), tensor.data(), i, bits);
  }
  return tensor;
}

}  // namespace weft
