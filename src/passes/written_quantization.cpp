#include "passes/written_quantization.h"

#include <algorithm>
#include <cmath>

#include <fmt/ranges.h>

#include "ir/print.h"
#include "passes/equal_spellings.h"

namespace weft {
namespace {

constexpr int kMostSteps = 32;  // between a cast and the values

// `seen` has the values that were followed before: a chain of products of a value with itself has 2^steps ways.
const GraphValue* toward_magnitude(const GraphValue* value, int steps, std::set<const GraphValue*>& seen) {
  const Node* node = value == nullptr ? nullptr : value->producer;
  if (node == nullptr || node->op == nullptr || !node->op->is_primitive() || steps == 0) return nullptr;
  if (!seen.insert(value).second) return nullptr;
  if (node->is("amax")) return node->operands[0];
  const bool may_choose = node->is("minimum") || node->is("maximum") || node->is("div") || node->is("mul");
  if (node->operands.size() != 1 && !may_choose) return nullptr;
  for (const GraphValue* operand : node->operands)
    if (toward_magnitude(operand, steps - 1, seen) != nullptr) return operand;
  return nullptr;
}

// The operand of a step of a scale through which a largest magnitude is reached; null when there is none.
const GraphValue* toward_magnitude(const GraphValue* value) {
  std::set<const GraphValue*> seen;
  return toward_magnitude(value, kMostSteps, seen);
}

const GraphValue* without_views(const GraphValue* value) {
  while (value->producer != nullptr && (value->producer->is("reshape") || value->producer->is("cast")))
    value = value->producer->operands[0];
  return value;
}

class Reader {
 public:
  std::optional<WrittenQuantization> read(const Node& cast) {
    found_.codes = &cast;
    const GraphValue* divided = read_codes(cast.operands[0]);
    if (divided == nullptr || !read_scale(inverse_ != nullptr ? inverse_ : found_.scale)) return std::nullopt;
    keep_inner(divided);
    found_.values = without_views(divided);
    const Meta &values = found_.values->meta, &grouped = largest_->operands[0]->meta;
    const auto rank = static_cast<std::int64_t>(grouped.shape.size()), dim = largest_->attributes.at("dim").integer();
    const bool is_along_rows = dim == -1 || dim == rank - 1;
    if (!is_along_rows || values.shape.empty() || !values.shape.back().is_number() || !grouped.shape.back().is_number())
      return std::nullopt;
    found_.group = grouped.shape == values.shape ? -1 : grouped.shape.back().number();
    return std::move(found_);
  }

 private:
  // Returns the values that are divided; null if nothing is.
  const GraphValue* read_codes(const GraphValue* value) {
    for (int i = 0; i < kMostSteps; ++i) {
      const Node* node = value->producer;
      if (node == nullptr || node->op == nullptr || !node->op->is_primitive() || node->operands.empty()) return nullptr;
      found_.inner.insert(node);
      if (node->is("div") && toward_magnitude(node->operands[1]) != nullptr) {
        found_.scale = node->operands[1];
        return node->operands[0];
      }
      if (node->is("mul"))
        for (const std::size_t k : {std::size_t{1}, std::size_t{0}})
          if (toward_magnitude(node->operands[k]) != nullptr)
            return multiplied(node->operands[1 - k], node->operands[k]);
      if (node->operands.size() != 1) return nullptr;
      if (node->is("clamp")) {
        bound(*node);
      } else if (node->is("round") || node->is("trunc")) {
        found_.rounding.push_back(node->name);
      } else if (!node->is("reshape") && !node->is("cast")) {
        found_.other_codes.push_back(node->name);
      }
      value = node->operands[0];
    }
    return nullptr;
  }

  const GraphValue* multiplied(const GraphValue* values, const GraphValue* factor) {
    found_.multiplies_codes = true;
    const GraphValue* view = factor;
    while (view->producer->is("reshape")) {
      found_.inner.insert(view->producer);
      view = view->producer->operands[0];
    }
    if (view->producer->is("reciprocal")) {
      found_.inner.insert(view->producer);
      found_.scale = view->producer->operands[0];
    } else {
      inverse_ = factor;
    }
    return values;
  }

  void bound(const Node& clamp) {
    const Attribute &min = clamp.attributes.at("min"), &max = clamp.attributes.at("max");
    if (!min.is_none()) found_.min = std::max(found_.min.value_or(min.real()), min.real());
    if (!max.is_none()) found_.max = std::min(found_.max.value_or(max.real()), max.real());
  }

  bool read_scale(const GraphValue* value) {
    for (bool is_scale = true; value != nullptr; value = toward_magnitude(value), is_scale = false) {
      const Node* node = value->producer;
      if (node == nullptr) return false;
      if (!is_scale) found_.inner.insert(node);
      if (node->is("amax")) return read_largest(*node);
      if (node->is("div_scalar")) {
        found_.divisors.push_back(node->attributes.at("value").real());
      } else if (node->is("mul_scalar")) {
        found_.factors.push_back(node->attributes.at("value").real());
      } else if (node->is("round_to_power_of_two")) {
        found_.power = node->attributes.at("rounding").word();
      } else if (node->is("minimum")) {
        found_.has_limit = true;
      } else if (!node->is("reshape") && !node->is("cast") &&
                 !(node->is("clamp") && node->attributes.at("max").is_none())) {
        found_.other_scale.push_back(node->name);
      }
    }
    return false;
  }

  bool read_largest(const Node& amax) {
    largest_ = &amax;
    const GraphValue* value = amax.operands[0];
    while (value->producer != nullptr && (value->producer->is("reshape") || value->producer->is("cast") ||
                                          value->producer->is("abs") || value->producer->is("replace_nan"))) {
      found_.has_magnitude = found_.has_magnitude || value->producer->is("abs");
      found_.replaces_nan = found_.replaces_nan || value->producer->is("replace_nan");
      if (!value->producer->is("cast") && !value->producer->is("reshape")) found_.inner.insert(value->producer);
      value = value->producer->operands[0];
    }
    found_.measured = value;
    return true;
  }

  // The views of the values.
  void keep_inner(const GraphValue* value) {
    for (; value->producer != nullptr && value->producer->is("reshape"); value = value->producer->operands[0])
      found_.inner.insert(value->producer);
  }

  WrittenQuantization found_;
  const GraphValue* inverse_ = nullptr;  // a factor of the values that is not the reciprocal of a scale
  const Node* largest_ = nullptr;
};

class Comparison {
 public:
  Comparison(const WrittenQuantization& written, const SchemeRow& row)
      : written_(written), row_(row), steps_(*row.steps) {}

  std::vector<std::string> run() {
    compare_types();
    compare_magnitude();
    compare_scale();
    compare_floor_and_bounds();
    compare_rounding();
    compare_results();
    if (texts_.empty()) compare_readers();
    return std::move(texts_);
  }

 private:
  template <class... Values>
  void add(fmt::format_string<Values...> format, Values&&... values) {
    texts_.push_back(fmt::format(format, std::forward<Values>(values)...));
  }

  bool is_group() const { return row_.key.scale.group.columns > 0; }
  std::int64_t columns() const { return written_.values->meta.shape.back().number(); }

  void compare_types() {
    if (written_.codes->result()->meta.dtype != row_.key.dtype)
      add("codes are {}, wanted {}", dtype_text(written_.codes->result()->meta.dtype), dtype_text(row_.key.dtype));
    if (written_.scale != nullptr && written_.scale->meta.dtype != row_.key.scale.dtype)
      add("scale is computed in {}, wanted {}", dtype_text(written_.scale->meta.dtype),
          dtype_text(row_.key.scale.dtype));
    const DType divided = written_.codes->operands[0]->meta.dtype;
    if (divided != DType::f32) add("codes are computed in {}, wanted f32", dtype_text(divided));
    if (is_group() && columns() % written_.group != 0)
      add("groups have {} columns, wanted a divisor of the row's {}", written_.group, columns());
  }

  void compare_magnitude() {
    if (!written_.has_magnitude) add("scale is of the largest value, wanted the largest magnitude");
    if (written_.replaces_nan != steps_.replaces_nan)
      add("a NaN {}, wanted {}", written_.replaces_nan ? "is replaced in the scale" : "stays in the scale",
          steps_.replaces_nan ? "magnitude 0" : "a NaN");
    if (written_.measured != written_.values)
      add("scale is of %{}, wanted of %{}, which it divides", written_.measured->name, written_.values->name);
  }

  void compare_scale() {
    const std::size_t scalings = written_.divisors.size() + written_.factors.size();
    if (scalings > 1) {
      add("scale is scaled {} times, wanted once", scalings);
    } else if (scalings == 0) {
      add("scale is not divided, wanted a division by {:g}", steps_.limit);
    } else if (!written_.divisors.empty()) {
      if (written_.divisors[0] != steps_.limit)
        add("scale divides by {:g}, wanted {:g}", written_.divisors[0], steps_.limit);
    } else if (!steps_.may_multiply_scale) {
      add("scale multiplies by {:g}, wanted a division by {:g}, which rounds in another way", written_.factors[0],
          steps_.limit);
    } else if (static_cast<float>(written_.factors[0]) != static_cast<float>(1 / steps_.limit)) {
      add("scale multiplies by {:g}, wanted 1 / {:g}", written_.factors[0], steps_.limit);
    }
    if (written_.power && !steps_.may_be_power_of_two) add("scale is rounded to a power of two, wanted as it is");
    if (written_.power && steps_.may_be_power_of_two && *written_.power != "up")
      add("scale is rounded {} to a power of two, wanted up", *written_.power);
    if (written_.has_limit && !steps_.may_limit_scale) add("scale has an upper bound, wanted none");
    if (!written_.other_scale.empty())
      add("scale is computed with {}, wanted amax, clamp and div_scalar alone", fmt::join(written_.other_scale, ", "));
    if (written_.scale == nullptr) {
      add("values are multiplied by a factor, wanted {} scale", steps_.divides_codes ? "a division by the" : "1 /");
    } else if (written_.multiplies_codes && !steps_.may_multiply_codes) {
      add("values are multiplied by 1 / scale, wanted a division by the scale, which rounds in another way");
    } else if (!written_.multiplies_codes && !steps_.divides_codes) {
      add("values are divided by the scale, wanted * (1 / scale), which rounds in another way");
    }
  }

  // spell_alike has removed a clamp that changes nothing, which depends on the floor of the scale.
  void compare_floor_and_bounds() {
    const double floor = written_.scale == nullptr ? 0 : lower_bound(written_.scale);
    if (floor > 0 && !steps_.may_bound_scale) add("scale has a floor of {:g}, wanted none", floor);
    if (written_.min || written_.max) {
      if (written_.min != steps_.min_code || written_.max != steps_.max_code)
        add("codes are clamped to [{}, {}], wanted [{:g}, {:g}]", bound_text(written_.min), bound_text(written_.max),
            steps_.min_code, steps_.max_code);
    } else if (written_.scale == nullptr || written_.multiplies_codes) {
      add("codes are not clamped, wanted [{:g}, {:g}]", steps_.min_code, steps_.max_code);
    } else if (!(floor >= kLeastNormal)) {
      add("scale has no floor of {:g} or more, and codes are not clamped: wanted either, the clamp to [{:g}, {:g}]",
          kLeastNormal, steps_.min_code, steps_.max_code);
    }
  }

  static std::string bound_text(std::optional<double> bound) { return bound ? fmt::format("{:g}", *bound) : "none"; }

  void compare_rounding() {
    if (!written_.other_codes.empty())
      add("codes are computed with {}, wanted a division{} and a clamp alone", fmt::join(written_.other_codes, ", "),
          steps_.rounding.empty() ? "" : ", " + rounding_text());
    const auto is_known = [&](const std::string& op) {
      return std::find(steps_.rounding.begin(), steps_.rounding.end(), op) != steps_.rounding.end();
    };
    // A cast to integers is a truncation.
    const std::vector<std::string> given =
        written_.rounding.empty() && !steps_.rounding.empty() ? std::vector<std::string>{"trunc"} : written_.rounding;
    if (given.size() > 1 || !std::all_of(given.begin(), given.end(), is_known))
      add("codes are rounded by {}, wanted by {}", fmt::join(given, ", "),
          steps_.rounding.empty() ? "the cast alone" : rounding_text());
  }

  std::string rounding_text() const { return fmt::format("{}", fmt::join(steps_.rounding, " or ")); }

  void compare_results() {
    const Shape& shape = written_.values->meta.shape;
    if (!is_group() || written_.scale == nullptr || columns() % written_.group != 0) return;
    if (!is_given_as(written_.codes->result(), shape))
      add("codes are given as {}, wanted {}", shape_text(written_.codes->result()->meta.shape), shape_text(shape));
    Shape scales = shape;
    scales.back() = columns() / written_.group;
    // A copy to another layout after it is no hindrance.
    if (!is_given_as(written_.scale, scales))
      add("scales are given as {}, wanted {}", shape_text(written_.scale->meta.shape), shape_text(scales));
  }

  static bool is_given_as(const GraphValue* value, const Shape& shape) {
    return value->meta.shape == shape || std::any_of(value->uses.begin(), value->uses.end(), [&](const Use& use) {
             return use.node->is("reshape") && use.node->result()->meta.shape == shape;
           });
  }

  void compare_readers() {
    for (const Node* node : written_.inner)
      for (const Use& use : node->result()->uses) {
        const bool is_own = written_.inner.contains(use.node) || use.node == written_.codes ||
                            (written_.scale != nullptr && use.node == written_.scale->producer) ||
                            node->result() == written_.scale;
        const bool is_view_of_values = node->is("reshape") && without_views(node->result()) == written_.values;
        if (!is_own && !is_view_of_values)
          others_.push_back(fmt::format("%{} has another reader", node->result()->name));
      }
    std::sort(others_.begin(), others_.end());
    if (!others_.empty()) texts_.push_back(others_[0]);
  }

  const WrittenQuantization& written_;
  const SchemeRow& row_;
  const QuantSteps& steps_;
  std::vector<std::string> texts_, others_;
};

// The scheme that a quantization is compared with: that of its codes, for groups or for whole rows. For floating codes
// that no scheme has, it is that of another fp8 type.
const SchemeRow* scheme_of(const WrittenQuantization& written, const SchemeTable& schemes) {
  const DType dtype = written.codes->result()->meta.dtype;
  const SchemeRow* other = nullptr;
  for (const SchemeRow& row : schemes.rows()) {
    if (!row.steps || (row.key.scale.group.columns > 0) != (written.group > 0)) continue;
    if (row.key.dtype == dtype) return &row;
    if (other == nullptr && is_floating(dtype) && is_floating(row.key.dtype)) other = &row;
  }
  return other;
}

// Why a quantization with the steps of its scheme is not raised.
std::string other_reason(const WrittenQuantization& written, const SchemeRow& row) {
  if (row.steps->may_bound_scale && written.scale != nullptr && !(lower_bound(written.scale) >= kLeastNormal))
    return "scale has no floor, wanted a clamp from below";
  return "it has the scheme's steps, but in another order or of other types";
}

bool has_bytes(DType dtype) {
  return dtype == DType::i8 || (is_floating(dtype) && has_addresses(dtype) && bytes_of(dtype, 1) == 1);
}

}  // namespace

std::optional<WrittenQuantization> read_quantization(const Node& cast) { return Reader().read(cast); }

std::vector<std::string> differences(const WrittenQuantization& written, const SchemeRow& row) {
  return Comparison(written, row).run();
}

std::vector<PatternReport> near_quantizations(Graph& graph, const OpTable& ops) {
  std::vector<PatternReport> reports;
  std::optional<SchemeTable> schemes;  // few graphs need it
  for (const auto& node : graph.nodes()) {
    if (!node->is("cast") || !has_bytes(node->result()->meta.dtype)) continue;
    const std::optional<WrittenQuantization> written = read_quantization(*node);
    if (!written) continue;
    if (!schemes) {
      schemes.emplace(ops);
      assign_names(graph);
    }
    const SchemeRow* row = scheme_of(*written, *schemes);
    if (row == nullptr) continue;
    const std::vector<std::string> found = differences(*written, *row);
    const std::string text = found.empty() ? other_reason(*written, *row) : fmt::format("{}", fmt::join(found, "; "));
    const std::string& name = node->result()->name;
    const NearMiss miss{name,
                        fmt::format("%{}: {} quantization to {}: {}", name, written->group > 0 ? "group" : "token",
                                    dtype_text(node->result()->meta.dtype), text)};
    const auto known = std::find_if(reports.begin(), reports.end(), [&](const PatternReport& report) {
      return report.pattern == row->quantizer->name;
    });
    if (known == reports.end()) {
      reports.push_back({.pattern = row->quantizer->name, .near_misses = {miss}});
    } else {
      known->near_misses.push_back(miss);
    }
  }
  return reports;
}

}  // namespace weft
