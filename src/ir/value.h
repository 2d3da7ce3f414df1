#pragma once

// A Value is what ops take and give. It is either concrete (a tensor), traced (a value of a graph under construction),
// known by its meta alone, or one of a pattern, which has no type before a match. Which of these, and so what an op
// call does with it, is decided by its home Evaluator: a Trace appends nodes, the eager evaluator runs kernels, the
// interpreter runs meanings, the meta evaluator infers types. Code over Values never branches on the mode.

#include <initializer_list>
#include <memory>
#include <source_location>
#include <span>
#include <vector>

#include "tensor/attribute.h"
#include "tensor/dim_condition.h"
#include "tensor/tensor.h"

namespace weft {

class OpTable;
struct Op;
struct GraphValue;
class Evaluator;

class Value {
 public:
  Value() = default;  // none: an absent optional tensor
  static Value traced(Evaluator& home, GraphValue* value);
  static Value concrete(Evaluator& home, Tensor tensor);
  static Value of_meta(Evaluator& home, Meta meta);
  // `number` means something to `home` alone.
  static Value of_pattern(Evaluator& home, int number);

  bool present() const { return home_ != nullptr; }
  // Of a value that is present: under another home, which knows it too.
  void set_home(Evaluator& home) { home_ = &home; }
  // InternalError when absent; the meta also when this is a value of a pattern.
  Evaluator& home() const { return home_ != nullptr ? *home_ : refuse_home(); }
  const Meta& meta() const { return meta_ != nullptr ? *meta_ : refuse_meta(); }
  // Null unless traced.
  GraphValue* graph_value() const { return traced_; }
  // -1 unless of a pattern.
  int pattern_number() const { return number_; }
  bool has_data() const { return tensor_ != nullptr && tensor_->defined(); }
  // InternalError unless concrete.
  const Tensor& tensor() const;

  // Shorthands on the meta, for ranked tensors. A negative axis counts from the end.
  const Dim& dim(int axis) const;
  int rank() const { return static_cast<int>(meta().shape.size()); }
  DType dtype() const { return meta().dtype; }

 private:
  [[noreturn]] Evaluator& refuse_home() const;
  [[noreturn]] const Meta& refuse_meta() const;

  Evaluator* home_ = nullptr;
  const Meta* meta_ = nullptr;  // the graph value's, or the tensor's; null where there is none
  GraphValue* traced_ = nullptr;
  int number_ = -1;
  std::shared_ptr<const Tensor> tensor_;  // without memory where the type is all that is known
};

using Values = std::vector<Value>;

// Where somebody asks for what only a run knows.
struct Reading {
  const char* what = "";  // "item()"
  std::source_location where;
};

// Where a typed op function is called: its last argument, which callers leave to the default, so that errors name their
// line.
using CallSite = std::source_location;

// What a typed op function hands on, looked at where it stands: nothing is copied unless somebody keeps it. For the
// length of the call.
class Operands {
 public:
  struct Place {
    const Value* value;
    Place(const Value& standing) : value(&standing) {}  // NOLINT: where it stands is all that is handed on
  };

  Operands(std::initializer_list<Place> places) : places_(places.begin(), places.size()) {}
  Operands(const Values& values) : values_(values) {}  // NOLINT: any row of Values are operands

  std::size_t size() const { return places_.size() + values_.size(); }
  const Value& operator[](std::size_t index) const { return places_.empty() ? values_[index] : *places_[index].value; }
  Values copies() const;  // that stay

 private:
  std::span<const Place> places_;  // or, in a row:
  std::span<const Value> values_;
};
class GivenAttributes : public std::span<const GivenAttribute> {
 public:
  GivenAttributes(std::initializer_list<GivenAttribute> given) : span(given.begin(), given.size()) {}
  template <std::size_t kCount>
  GivenAttributes(const std::array<GivenAttribute, kCount>& given) : span(given) {}  // NOLINT: as above

  NamedAttributes named() const;  // copies that stay
};

// What runs a call of an op on Values of its own.
class Evaluator {
 public:
  explicit Evaluator(const OpTable& ops) : ops_(ops) {}
  virtual ~Evaluator() = default;
  Evaluator(const Evaluator&) = delete;
  Evaluator& operator=(const Evaluator&) = delete;

  const OpTable& ops() const { return ops_; }
  // The attributes of a call in schema order with every default, as complete_attributes in ir/op.h gives them.
  virtual Attributes complete(const Op& op, const NamedAttributes& given) const;
  // What the call of a typed op function gives, where it is known without a look at the op: a function that does again
  // what it did. Null where it is not. It stays as long as the home's run.
  virtual const Values* repeated(Literal /*op*/, const Operands& /*operands*/, const GivenAttributes& /*given*/,
                                 bool /*maybe_inplace*/) {
    return nullptr;
  }
  // Told before a call of a typed op function where that stands, for those that keep it.
  virtual void called_from(const CallSite& /*site*/) {}
  // One call, checked and completed by `call` in ir/op.h: operands in schema order (absent optional ones are none),
  // every attribute present. `maybe_inplace` gives the op's donated arguments away.
  virtual Values evaluate(const Op& op, const Values& operands, const Attributes& attributes, bool maybe_inplace) = 0;

  // A tensor as a value of this home. InternalError where values have no data, or enter by name alone.
  virtual Value value(Tensor tensor);
  // What a value of this home holds. UserError where values have no data.
  virtual Tensor read(const Value& value, const Reading& reading);
  // Whether a condition on sizes holds. UserError where that depends on the run, as no run is known here.
  virtual bool decide(const DimCondition& condition, const Reading& reading);
  // The number that a size is in this run. UserError where no run is known.
  virtual std::int64_t settle(const Dim& size, const Reading& reading);

 private:
  const OpTable& ops_;
};

// A floating attribute as typed op functions take it: a number now; a pattern may put a wildcard in its place. What is
// no number is looked at where it stands.
struct Scalar {
  AttributeView value;
  Scalar(double number) : value(number) {}  // NOLINT: a number is a Scalar
  explicit Scalar(const Attribute& attribute) : value(attribute) {}
  explicit Scalar(Attribute&&) = delete;
};

// A typed op function of one tensor, to choose among.
using UnaryFunction = Value (*)(const Value&, CallSite);

// The tag argument that gives arguments away: fused_add_rms_norm(maybe_inplace, x, residual, weight, epsilon).
struct MaybeInplace {};
inline constexpr MaybeInplace maybe_inplace{};

}  // namespace weft
