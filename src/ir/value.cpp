#include "ir/value.h"

#include "base/error.h"
#include "ir/graph.h"

namespace weft {

Value Value::traced(Evaluator& home, GraphValue* graph_value) {
  Value value;
  value.home_ = &home;
  value.meta_ = &graph_value->meta;
  value.traced_ = graph_value;
  return value;
}

Value Value::concrete(Evaluator& home, Tensor tensor) {
  Value value;
  value.home_ = &home;
  value.tensor_ = std::make_shared<const Tensor>(std::move(tensor));
  value.meta_ = &value.tensor_->meta;
  return value;
}

Value Value::of_meta(Evaluator& home, Meta meta) {
  Tensor tensor;
  tensor.meta = std::move(meta);
  return concrete(home, std::move(tensor));
}

Value Value::of_pattern(Evaluator& home, int number) {
  Value value;
  value.home_ = &home;
  value.number_ = number;
  return value;
}

Evaluator& Value::refuse_home() const { CHECK(false, "an absent value has no home"); }

const Meta& Value::refuse_meta() const {
  CHECK(!present(), "a value of a pattern has no type before a match");
  CHECK(false, "an absent value has no type");
}

const Tensor& Value::tensor() const {
  CHECK(has_data(), "a value of type {} holds no data", present() ? meta().text() : "none");
  return *tensor_;
}

const Dim& Value::dim(int axis) const {
  const Shape& shape = meta().shape;
  const int index = axis < 0 ? axis + static_cast<int>(shape.size()) : axis;
  CHECK(index >= 0 && index < static_cast<int>(shape.size()), "axis {} of {}", axis, meta().text());
  return shape[static_cast<std::size_t>(index)];
}

Values Operands::copies() const {
  Values copies;
  copies.reserve(size());
  for (std::size_t i = 0; i < size(); ++i) copies.push_back((*this)[i]);
  return copies;
}

NamedAttributes GivenAttributes::named() const {
  NamedAttributes all;
  all.reserve(size());
  for (const GivenAttribute& given : *this) all.emplace_back(given.name.text(), given.value.attribute());
  return all;
}

Attributes Evaluator::complete(const Op& op, const NamedAttributes& given) const {
  return complete_attributes(op.schema, given);
}

Value Evaluator::value(Tensor tensor) {
  CHECK(false, "a tensor of type {} cannot enter here: it has no name", tensor.meta.text());
}

Tensor Evaluator::read(const Value& value, const Reading& reading) {
  USER_CHECK(value.has_data(), "[{}] wanted a value with data, but {} is known by its type alone here", reading.what,
             value.meta().text());
  return value.tensor();
}

bool Evaluator::decide(const DimCondition& condition, const Reading& reading) {
  const Truth truth = condition.truth({});
  USER_CHECK(truth != Truth::unknown, "[{}] wanted one answer for all sizes, but {} depends on them", reading.what,
             condition.text());
  return truth == Truth::yes;
}

std::int64_t Evaluator::settle(const Dim& size, const Reading& reading) {
  USER_CHECK(size.is_number(), "[{}] wanted a number, but the size is {}, which every run has its own of", reading.what,
             size.text());
  return size.number();
}

}  // namespace weft
