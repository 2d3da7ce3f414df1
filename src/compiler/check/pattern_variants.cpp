#include "compiler/check/pattern_variants.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <set>

#include "base/error.h"
#include "compiler/check/tensor_difference.h"
#include "ir/pattern_value.h"
#include "ir/rank_groups.h"
#include "tensor/convert.h"

namespace weft {
namespace {

constexpr DType kDTypes[] = {DType::f32, DType::bf16,   DType::f16,    DType::f64,        DType::i32,   DType::i64,
                             DType::i8,  DType::u8,     DType::i16,    DType::u16,        DType::u32,   DType::boolean,
                             DType::i4,  DType::f8e4m3, DType::f8e5m2, DType::f8e4m3fnuz, DType::f4e2m1};
constexpr double kAttributeReals[] = {0, -0.0, 1, -1, 0.5, -2.5, 3, 0x1p24 + 1, 1e30, 1e-30};
constexpr int kAttributeIntegers[] = {0, 1, -1, 2, 3, 7, 64, 128};

bool is_index_operand(const Op& op, std::size_t operand) {
  const std::string& name = op.schema.parameters[std::min(operand, op.schema.tensor_count() - 1)].name;
  return std::any_of(op.samples.begin(), op.samples.end(), [&](const Sample& sample) {
    return std::any_of(sample.tensors.begin(), sample.tensors.end(),
                       [&](const SampleTensor& tensor) { return tensor.name == name && tensor.fill == Fill::indices; });
  });
}

void collect_numbers(const Attribute& value, std::vector<double>& numbers) {
  if (const auto* list = std::get_if<AttributeList>(&value.storage()))
    for (const Attribute& element : *list) collect_numbers(element, numbers);
  if (const auto number = number_of(value); number && std::isfinite(*number)) numbers.push_back(*number);
}

bool has_kind(const PatternInstance& instance, MetaKind kind) {
  return std::any_of(instance.values.begin(), instance.values.end(),
                     [&](const Tensor& tensor) { return tensor.defined() && tensor.meta.kind == kind; });
}

bool has_ranks(const Pattern& pattern) {
  return std::any_of(pattern.before.nodes.begin(), pattern.before.nodes.end(),
                     [](const PatternNode& node) { return is_over_ranks(*node.op); });
}

class VariantSearch {
 public:
  VariantSearch(const Pattern& pattern, const PatternInstance& instance, const OpTable& ops)
      : pattern_(pattern), instance_(instance), ops_(ops), is_index_(index_wildcards(pattern)) {
    for (const Wildcard& wildcard : pattern.wildcards)
      if (wildcard.type)
        for (const std::string& name : wildcard.type->readable()) of_types_.insert(name);
  }

  std::vector<PatternInstance> run() && {
    change_dtypes();
    // Indices into pages, and the ranks' shares of the rows, have a meaning only with the sizes of their sample.
    if (has_kind(instance_, MetaKind::kv) || has_kind(instance_, MetaKind::batch) || has_ranks(pattern_))
      return std::move(found_);
    change_sizes();
    change_ranks();
    change_attributes();
    return std::move(found_);
  }

 private:
  using Retyped = std::function<Meta(std::size_t, const Meta&)>;

  void change_dtypes() {
    std::set<DType> known;
    for (std::size_t i = 0; i < instance_.values.size(); ++i)
      if (const Tensor& tensor = instance_.values[i];
          tensor.defined() && tensor.meta.is_tensor() && !is_index_[i] && !is_block(tensor.meta.dtype))
        known.insert(tensor.meta.dtype);
    for (const DType from : known)
      for (const DType to : kDTypes) {
        if (to == from) continue;
        add([&](std::size_t i, const Meta& meta) {
          return meta.dtype == from && !is_index_[i] ? Meta::tensor(to, meta.shape) : meta;
        });
      }
  }

  void change_sizes() {
    const bool has_indices = std::find(is_index_.begin(), is_index_.end(), true) != is_index_.end();
    std::set<std::int64_t> known;
    for (const Tensor& tensor : instance_.values)
      if (tensor.defined() && tensor.meta.is_tensor())
        for (const Dim& dim : tensor.meta.shape) known.insert(dim.number());
    for (const std::int64_t from : known)
      for (const std::int64_t to : std::set<std::int64_t>{0, 1, 2, 3, 7, from + 1, 2 * from}) {
        if (to == from || (to == 0 && has_indices)) continue;
        const Retyped resized = [&](std::size_t, const Meta& meta) {
          Shape shape = meta.shape;
          std::replace(shape.begin(), shape.end(), Dim(from), Dim(to));
          return Meta::tensor(meta.dtype, shape);
        };
        add(resized);
        // A number that equals the size may be meant to follow it.
        PatternInstance follows = instance_;
        for (std::size_t i = 0; i < pattern_.wildcards.size(); ++i)
          if (std::optional<Attribute>& bound = follows.bound.attributes[i];
              bound && pattern_.wildcards[i].kind == WildcardKind::integer && *bound == Attribute(from))
            bound = Attribute(to);
        if (follows.bound.attributes != instance_.bound.attributes) add(resized, follows);
      }
  }

  void change_ranks() {
    std::size_t rank = 0;
    for (const Tensor& tensor : instance_.values)
      if (tensor.defined() && tensor.meta.is_tensor()) rank = std::max(rank, tensor.meta.rank());
    add([&](std::size_t, const Meta& meta) {
      Shape shape = meta.shape;
      if (rank > 0 && shape.size() == rank) shape.insert(shape.begin(), Dim(2));
      return Meta::tensor(meta.dtype, shape);
    });
    add([&](std::size_t, const Meta& meta) {
      Shape shape = meta.shape;
      if (rank > 1 && shape.size() == rank) shape.erase(shape.begin());
      return Meta::tensor(meta.dtype, shape);
    });
  }

  void change_attributes() {
    for (std::size_t i = 0; i < pattern_.wildcards.size(); ++i) {
      const Wildcard& wildcard = pattern_.wildcards[i];
      if (!instance_.bound.attributes[i] || of_types_.contains(wildcard.name)) continue;
      for (const Attribute& value : values_for(wildcard)) {
        if (value == *instance_.bound.attributes[i]) continue;
        PatternInstance changed = instance_;
        changed.bound.attributes[i] = value;
        add([](std::size_t, const Meta& meta) { return meta; }, changed);
      }
    }
  }

  static std::vector<Attribute> values_for(const Wildcard& wildcard) {
    std::vector<Attribute> values;
    if (wildcard.kind == WildcardKind::real)
      for (const double value : kAttributeReals) values.emplace_back(value);
    if (wildcard.kind == WildcardKind::integer)
      for (const int value : kAttributeIntegers) values.emplace_back(value);
    if (wildcard.kind == WildcardKind::boolean)
      for (const bool value : {false, true}) values.emplace_back(value);
    if (wildcard.kind == WildcardKind::dtype)
      for (const DType value : kDTypes) values.emplace_back(value);
    for (const Condition& condition : wildcard.conditions)
      for (const Attribute& operand : condition.operands) {
        values.push_back(operand);
        const auto number = number_of(operand);
        if (!number || wildcard.kind == WildcardKind::dtype) continue;
        for (const double way : {-std::numeric_limits<double>::infinity(), std::numeric_limits<double>::infinity()})
          if (wildcard.kind == WildcardKind::real) values.emplace_back(std::nextafter(*number, way));
        for (const int step : {-1, 1})
          if (wildcard.kind == WildcardKind::integer) values.emplace_back(static_cast<std::int64_t>(*number) + step);
      }
    std::erase_if(values, [&](const Attribute& value) {
      return !std::all_of(wildcard.conditions.begin(), wildcard.conditions.end(),
                          [&](const Condition& condition) { return holds(condition, value); });
    });
    return values;
  }

  void add(const Retyped& retyped) { add(retyped, instance_); }

  void add(const Retyped& retyped, PatternInstance changed) {
    try {
      if (retype(retyped, changed)) found_.push_back(std::move(changed));
    } catch (const UserError&) {
      // A type does not exist, or an op does not accept these types and attributes together.
    }
  }

  // Returns whether the pattern's header accepts the types. UserError if an op does not.
  bool retype(const Retyped& retyped, PatternInstance& changed) const {
    bool is_resized = false;
    for (std::size_t i = 0; i < changed.values.size(); ++i) {
      Tensor& tensor = changed.values[i];
      if (!tensor.defined() || !tensor.meta.is_tensor()) continue;
      const Meta meta = retyped(i, tensor.meta);
      if (meta == tensor.meta) continue;
      if (is_block(meta.dtype) || meta.rank() > static_cast<std::size_t>(kMaxRank)) return false;
      is_resized = is_resized || meta.shape != tensor.meta.shape;
      tensor = repeated(tensor, meta);
    }
    if (is_resized) keep_indices_inside(changed);
    for (const std::string& name : of_types_)
      changed.bound.attributes[static_cast<std::size_t>(pattern_.index_of(name))].reset();
    for (std::size_t i = 0; i < changed.values.size(); ++i)
      if (pattern_.wildcards[i].kind == WildcardKind::value &&
          !bind_type(pattern_, pattern_.wildcards[i], changed.values[i], changed.bound))
        return false;
    graph_of(pattern_, changed, ops_);
    return true;
  }

  // Indices refer to a dim of another value, which may be shorter now.
  void keep_indices_inside(PatternInstance& changed) const {
    std::int64_t least = std::numeric_limits<std::int64_t>::max();
    for (std::size_t i = 0; i < changed.values.size(); ++i)
      if (const Tensor& tensor = changed.values[i]; tensor.defined() && tensor.meta.is_tensor() && !is_index_[i])
        for (const Dim& dim : tensor.meta.shape) least = std::min(least, std::max<std::int64_t>(dim.number(), 1));
    for (std::size_t i = 0; i < changed.values.size(); ++i) {
      Tensor& tensor = changed.values[i];
      if (!is_index_[i] || !tensor.defined() || !tensor.meta.is_tensor()) continue;
      tensor = copy_of(tensor);
      for (std::int64_t at = 0; at < element_count(tensor.meta.shape).number(); ++at)
        store_integer(tensor.meta.dtype, tensor.data(), at, load_integer(tensor.meta.dtype, tensor.data(), at) % least);
    }
  }

  const Pattern& pattern_;
  const PatternInstance& instance_;
  const OpTable& ops_;
  const std::vector<bool> is_index_;
  std::set<std::string> of_types_;  // wildcards that the types of values bind
  std::vector<PatternInstance> found_;
};

}  // namespace

std::vector<bool> index_wildcards(const Pattern& pattern) {
  std::vector<bool> is_index(pattern.wildcards.size());
  for (const PatternBody* body : {&pattern.before, &pattern.after}) {
    std::vector<bool> gives_index(body->nodes.size());
    for (std::size_t at = body->nodes.size(); at-- > 0;) {
      const PatternNode& node = body->nodes[at];
      for (std::size_t i = 0; i < node.operands.size(); ++i) {
        if (!gives_index[at] && !is_index_operand(*node.op, i)) continue;
        const PatternOperand& operand = node.operands[i];
        if (operand.wildcard >= 0) is_index[static_cast<std::size_t>(operand.wildcard)] = true;
        if (operand.node >= 0) gives_index[static_cast<std::size_t>(operand.node)] = true;
      }
    }
  }
  return is_index;
}

std::vector<double> numbers_of(const Pattern& pattern) {
  std::vector<double> numbers;
  for (const PatternBody* body : {&pattern.before, &pattern.after})
    for (const PatternNode& node : body->nodes)
      for (const auto& [key, value] : node.attributes.entries()) collect_numbers(value, numbers);
  for (const Wildcard& wildcard : pattern.wildcards)
    for (const Condition& condition : wildcard.conditions)
      for (const Attribute& operand : condition.operands) collect_numbers(operand, numbers);
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  return numbers;
}

std::vector<PatternInstance> pattern_variants(const Pattern& pattern, const PatternInstance& instance,
                                              const OpTable& ops) {
  return VariantSearch(pattern, instance, ops).run();
}

}  // namespace weft
