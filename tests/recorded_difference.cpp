#include "tests/recorded_difference.h"

#include <bit>
#include <cmath>
#include <cstring>

#include <fmt/core.h>

#include "base/error.h"
#include "tensor/convert.h"

namespace weft {
namespace {

using Json = nlohmann::ordered_json;

// The number of representable numbers between two; a large count if one is infinite and the other is not.
double ulps(DType dtype, const std::byte* a, const std::byte* b, std::int64_t index) {
  const float x = load_float(dtype, a, index), y = load_float(dtype, b, index);
  if (x == y) return 0;
  if (std::isinf(x) || std::isinf(y)) return INFINITY;
  const int dropped = dtype == DType::f32 ? 0 : 16;  // bf16 is the upper half of f32
  auto ordered = [&](const std::byte* row) {
    std::int64_t bits = 0;
    if (dtype == DType::f16) {
      std::uint16_t half;
      std::memcpy(&half, row + index * 2, 2);
      bits = half & 0x7fff;
      return half & 0x8000 ? -bits : bits;
    }
    const auto word = std::bit_cast<std::uint32_t>(load_float(dtype, row, index));
    bits = (word & 0x7fffffff) >> dropped;
    return word & 0x80000000 ? -bits : bits;
  };
  return std::abs(static_cast<double>(ordered(a) - ordered(b)));
}

bool is_code(DType dtype) { return dtype == DType::f8e4m3 || dtype == DType::i8; }

// The rank of a code among the codes of its dtype, by value; both zeros have the same.
int place_of_code(DType dtype, const std::byte* row, std::int64_t index) {
  const int code = std::to_integer<int>(row[index]);
  if (dtype == DType::i8) return static_cast<std::int8_t>(code);
  return code & 0x80 ? -(code & 0x7f) : code & 0x7f;
}

// The scales of a case's codes: the computed ones, and the factor between them and the wanted ones.
struct Scales {
  Tensor wanted;
  Tensor came;
  std::int64_t group = 0;  // columns of a row that share one; 0: all
  double most = 1;         // the factor that is tolerated

  double value(const Tensor& tensor, std::int64_t at) const {
    if (tensor.meta.dtype == DType::u8) return std::ldexp(1.0, std::to_integer<int>(tensor.data()[at]) - 127);
    return load_double(tensor.meta.dtype, tensor.data(), at);
  }
  double factor(std::int64_t at) const {
    const double x = value(wanted, at), y = value(came, at);
    return x == y || (std::isnan(x) && std::isnan(y)) ? 1 : y / x;
  }
  // The scale of an element of codes with rows of `width`.
  std::int64_t of_element(std::int64_t element, std::int64_t width) const {
    const std::int64_t group_width = group > 0 ? group : width;
    const std::int64_t groups = (width + group_width - 1) / group_width;
    return element / width * groups + element % width / group_width;
  }
};

// As `max_code_distance` and `scale_factor` or `scale_rtol` of tolerance `codes` define. Under another scale within the
// tolerated factor, a code is compared with the one that the wanted scale would have given.
class CodeComparison {
 public:
  CodeComparison(const RecordedTensors& wanted, const std::vector<Tensor>& came, const Json& entry)
      : tolerance_(entry.at("tolerance")), distance_(tolerance_.at("max_code_distance").get<int>()) {
    const Json& attributes = entry.at("attributes");
    scales_.most = tolerance_.value("scale_factor", 1.0);
    if (attributes.contains("group_size")) scales_.group = attributes.at("group_size").get<std::int64_t>();
    if (attributes.contains("block")) scales_.group = attributes.at("block").get<std::int64_t>();
    if (attributes.contains("group_shape"))
      scales_.group = std::max<std::int64_t>(0, attributes.at("group_shape")[1].get<std::int64_t>());
    for (std::size_t i = 0; i < wanted.size(); ++i)
      if (wanted[i].first == "scale") {
        scales_.wanted = wanted[i].second;
        scales_.came = contiguous(came[i]);
      }
  }

  bool close(const Tensor& wanted, const Tensor& came, std::int64_t element, bool is_scale) const {
    const DType dtype = wanted.meta.dtype;
    const double x = load_double(dtype, wanted.data(), element), y = load_double(dtype, came.data(), element);
    if (is_scale && scales_.most > 1) {
      const double factor = scales_.factor(element);
      return factor <= scales_.most && factor >= 1 / scales_.most;
    }
    if (is_code(dtype)) return std::abs(place_as_wanted(came, element) - place(wanted, element)) <= distance_;
    return is_floating(dtype) && std::abs(x - y) <= tolerance_.value("scale_rtol", 0.0) * std::abs(x);
  }

 private:
  static int place(const Tensor& codes, std::int64_t element) {
    return place_of_code(codes.meta.dtype, codes.data(), element);
  }

  int place_as_wanted(const Tensor& came, std::int64_t element) const {
    if (scales_.most <= 1 || !scales_.wanted.defined()) return place(came, element);
    const std::int64_t width = came.meta.shape.back().number();
    const double factor = scales_.factor(scales_.of_element(element, width));
    if (factor == 1) return place(came, element);
    const double value = load_double(came.meta.dtype, came.data(), element) * factor;
    std::byte code;
    store_double(came.meta.dtype, &code, 0, value);
    return place_of_code(came.meta.dtype, &code, 0);
  }

  const Json& tolerance_;
  int distance_;
  Scales scales_;
};

// Whether elements are stored as in the record; dims with at most one index are ignored.
std::string stride_difference(const Tensor& came, const Json& facts) {
  const Shape strides = came.meta.full_strides();
  if (element_count(came.meta.shape) == Dim(0)) return "";
  for (std::size_t i = 0; i < strides.size(); ++i)
    if (came.meta.shape[i].number() > 1 && strides[i].number() != facts.at("strides")[i].get<std::int64_t>())
      return fmt::format("is laid out as {}, not with strides {}", came.meta.text(), facts.at("strides").dump());
  return "";
}

class Comparison {
 public:
  Comparison(const RecordedTensors& wanted, const std::vector<Tensor>& came, const Json& entry, const Json& reasons)
      : tolerance_(entry.at("tolerance")), kind_(tolerance_.at("kind").get<std::string>()) {
    if (kind_ == "codes") codes_.emplace(wanted, came, entry);
    if (kind_ != "exact" && kind_ != "close" && kind_ != "codes") throw NotKnownYet();
    most_ulps_ = tolerance_.value("ulp_of_output_dtype", 0.0);
    // A sum within rtol, then one rounding: if the dtype has few digits, that is the tolerance.
    const std::string reason =
        tolerance_.contains("why") ? reasons.at(tolerance_.at("why").get<std::size_t>()).get<std::string>() : "";
    one_rounding_ = reason.find("one rounding to the output dtype (1 ulp)") != std::string::npos;
  }

  RecordedProblem run(const Tensor& wanted, const Tensor& came, bool is_scale) const {
    if (wanted.meta.dtype != came.meta.dtype || wanted.meta.shape != came.meta.shape)
      return {fmt::format("is {}, not {}", came.meta.text(), wanted.meta.text())};
    const Tensor packed = contiguous(came);
    const DType dtype = wanted.meta.dtype;
    const std::int64_t count = element_count(wanted.meta.shape).number(), width = bytes_of(dtype, 1);
    RecordedProblem problem;
    for (std::int64_t i = 0; i < count; ++i) {
      if (std::memcmp(wanted.data() + i * width, packed.data() + i * width, static_cast<std::size_t>(width)) == 0)
        continue;
      const double x = load_double(dtype, wanted.data(), i), y = load_double(dtype, packed.data(), i);
      if (std::isnan(x) && std::isnan(y)) continue;
      if (kind_ == "close" && close(wanted, packed, i)) continue;
      if (codes_ && codes_->close(wanted, packed, i, is_scale)) continue;
      if (++problem.elements == 1) problem.text = fmt::format("element {} is {} instead of {}", i, y, x);
    }
    return problem;
  }

 private:
  bool close(const Tensor& wanted, const Tensor& came, std::int64_t element) const {
    const DType dtype = wanted.meta.dtype;
    const double x = load_double(dtype, wanted.data(), element), y = load_double(dtype, came.data(), element);
    const bool few_digits = dtype == DType::bf16 || dtype == DType::f16;
    const double most = one_rounding_ && few_digits ? std::max(1.0, most_ulps_) : most_ulps_;
    return ulps(dtype, wanted.data(), came.data(), element) <= most ||
           std::abs(x - y) <= tolerance_.value("atol", 0.0) + tolerance_.value("rtol", 0.0) * std::abs(x);
  }

  const Json& tolerance_;
  std::string kind_;
  std::optional<CodeComparison> codes_;
  double most_ulps_ = 0;
  bool one_rounding_ = false;
};

}  // namespace

RecordedProblem recorded_difference(const RecordedTensors& wanted, const std::vector<Tensor>& came, const Json& entry,
                                    const Json& reasons) {
  CHECK(came.size() >= wanted.size(), "{} gives {} results", entry.at("op").get<std::string>(), came.size());
  RecordedProblem whole;
  const auto add = [&](const std::string& name, const std::string& text) {
    if (whole.text.empty() && !text.empty()) whole.text = name + ": " + text;
  };
  const Comparison comparison(wanted, came, entry, reasons);
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const bool is_scale = wanted[i].first == "scale";
    const RecordedProblem problem = comparison.run(wanted[i].second, came[i], is_scale);
    add(wanted[i].first, problem.text);
    whole.elements += problem.elements;
    if (is_scale) add("scale", stride_difference(came[i], entry.at("outputs").at("scale")));
  }
  return whole;
}

}  // namespace weft
