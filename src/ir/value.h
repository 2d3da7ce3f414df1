#pragma once

// A Value is an operand or result of an op. It is concrete (a tensor), traced (a value of a graph under construction),
// a meta without data, or a value of a pattern, which has no type before a match. Its home Evaluator decides which of
// these it is, and what an op call does with it: a Trace appends nodes, the eager evaluator runs kernels, the
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
  Value() = default;  // an absent optional tensor
  static Value traced(Evaluator& home, GraphValue* value);
  static Value concrete(Evaluator& home, Tensor tensor);
  static Value of_meta(Evaluator& home, Meta meta);
  // Only `home` interprets `number`.
  static Value of_pattern(Evaluator& home, int number);

  bool present() const { return home_ != nullptr; }
  // Moves a present value to another home, which must know this value too.
  void set_home(Evaluator& home) { home_ = &home; }
  // InternalError when the value is absent, and for meta() also when it belongs to a pattern.
  Evaluator& home() const { return home_ != nullptr ? *home_ : refuse_home(); }
  const Meta& meta() const { return meta_ != nullptr ? *meta_ : refuse_meta(); }
  // Null unless traced.
  GraphValue* graph_value() const { return traced_; }
  // -1 unless the value belongs to a pattern.
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
  const Meta* meta_ = nullptr;  // of the graph value or of the tensor; null when there is none
  GraphValue* traced_ = nullptr;
  int number_ = -1;
  std::shared_ptr<const Tensor> tensor_;  // without memory when only the meta is known
};

using Values = std::vector<Value>;

// A request for a fact that only a run knows: the call and its source location.
struct Reading {
  const char* what = "";  // "item()"
  std::source_location where;
};

// The source location of a call of a typed op function. It is the last argument, and callers leave it to its default,
// so that errors name the caller's line.
using CallSite = std::source_location;

// The operands that a typed op function passes on. It points to the caller's Values and copies none, so it is valid
// only during the call.
class Operands {
 public:
  struct OperandRef {
    const Value* value;
    OperandRef(const Value& standing) : value(&standing) {}  // NOLINT: implicit, as only the address is kept
  };

  Operands(std::initializer_list<OperandRef> refs) : refs_(refs.begin(), refs.size()) {}
  Operands(const Values& values) : values_(values) {}  // NOLINT: implicit, as Values are operands

  std::size_t size() const { return refs_.size() + values_.size(); }
  const Value& operator[](std::size_t index) const { return refs_.empty() ? values_[index] : *refs_[index].value; }
  Values copies() const;  // which outlive the call

 private:
  std::span<const OperandRef> refs_;  // empty when the operands are a vector, values_
  std::span<const Value> values_;
};
class GivenAttributes : public std::span<const GivenAttribute> {
 public:
  GivenAttributes(std::initializer_list<GivenAttribute> given) : span(given.begin(), given.size()) {}
  template <std::size_t kCount>
  GivenAttributes(const std::array<GivenAttribute, kCount>& given) : span(given) {}  // NOLINT: implicit, as above

  NamedAttributes named() const;  // copies, which outlive the call
};

// Evaluates calls of ops on the Values whose home it is.
class Evaluator {
 public:
  explicit Evaluator(const OpTable& ops) : ops_(ops) {}
  virtual ~Evaluator() = default;
  Evaluator(const Evaluator&) = delete;
  Evaluator& operator=(const Evaluator&) = delete;

  const OpTable& ops() const { return ops_; }
  // The attributes of a call in schema order with every default, as complete_attributes in ir/op.h returns them.
  virtual Attributes complete(const Op& op, const NamedAttributes& given) const;
  // The stored results of a call of a typed op function, when the call repeats the recorded one and the op need not be
  // looked up; else null. They are valid as long as the home's run.
  virtual const Values* repeated(Literal /*op*/, const Operands& /*operands*/, const GivenAttributes& /*given*/,
                                 bool /*maybe_inplace*/) {
    return nullptr;
  }
  // Called before each call of a typed op function, with its source location. Evaluators that need it override this.
  virtual void called_from(const CallSite& /*site*/) {}
  // Evaluates one call, which `call` in ir/op.h has checked and completed: operands are in schema order (absent
  // optional ones are empty Values) and each attribute is present. `maybe_inplace` donates the arguments that the op
  // may reuse.
  virtual Values evaluate(const Op& op, const Values& operands, const Attributes& attributes, bool maybe_inplace) = 0;

  // Makes a tensor a value of this home. InternalError when the home's values have no data, or only named inputs are
  // allowed.
  virtual Value value(Tensor tensor);
  // Returns the tensor of a value of this home. UserError when the home's values have no data.
  virtual Tensor read(const Value& value, const Reading& reading);
  // Whether a condition on sizes holds. UserError when that depends on the run, because this class knows no run.
  virtual bool decide(const DimCondition& condition, const Reading& reading);
  // The value of a size in this run. UserError when no run is known.
  virtual std::int64_t settle(const Dim& size, const Reading& reading);

 private:
  const OpTable& ops_;
};

// A floating attribute as typed op functions take it: a number, or in a pattern a wildcard. A wildcard is not copied:
// the Scalar points to the Attribute.
struct Scalar {
  AttributeView value;
  Scalar(double number) : value(number) {}  // NOLINT: implicit, as a number is a Scalar
  explicit Scalar(const Attribute& attribute) : value(attribute) {}
  explicit Scalar(Attribute&&) = delete;
};

// A typed op function of one tensor, for code that selects one.
using UnaryFunction = Value (*)(const Value&, CallSite);

// The tag argument that donates arguments: fused_add_rms_norm(maybe_inplace, x, residual, weight, epsilon).
struct MaybeInplace {};
inline constexpr MaybeInplace maybe_inplace{};

}  // namespace weft
