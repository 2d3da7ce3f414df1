#pragma once

// An op: its meaning, separate from the kernels that compute it. One definition is the fallback, the shape rule, the
// oracle of tests and the documentation.
//
//   OP(rms_norm) {
//     op.schema("rms_norm(Tensor x, Tensor? weight, float epsilon, int? variance_size=None) -> Tensor");
//     op.means([](Evaluator&, const Values& v, const Attributes& a) { ...; return Values{...}; });
//     op.sample({{"x", {3, 64}}, {"weight", {64}}}, {{"epsilon", 1e-6}});
//   }
//
// An op has a meaning in smaller ops, or it is one of the few dozen primitives and has a shape rule and a reference
// kernel.

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <unordered_map>
#include <vector>

#include "ir/sample.h"
#include "ir/value.h"
#include "tensor/quant_key.h"
#include "tensor/schema.h"

namespace weft {

// The types and attributes of a call: metas in schema order, nullopt for an absent optional tensor.
struct OpRequest {
  std::span<const std::optional<Meta>> operands;
  const Attributes& attributes;

  // The operand's meta; InternalError when absent.
  const Meta& operand(std::size_t index) const;
  bool has(std::size_t index) const { return index < operands.size() && operands[index].has_value(); }
};

// `result` may reuse the storage of `argument`. Both are indices.
struct Donation {
  int argument = 0;
  int result = 0;
};

// An op that reads of `table` only the rows that the elements of `indices` name. Both are indices of operands.
struct Gather {
  int table = 0;
  int indices = 0;
};

struct Tolerance {
  double absolute = 0;
  double relative = 0;
};

// A scheme of quantization that an op computes, given these attributes.
struct QuantScheme {
  QuantKey key;
  NamedAttributes attributes;
};

struct Op {
  std::string name;
  Schema schema;
  bool allow_inplace = false;  // may be called with `maybe_inplace`
  std::vector<Donation> donates;
  int rows_of = 0;              // the operand whose dim 0 is the row count; -1 when the op has no rows
  bool is_view = false;         // result 0 aliases operand 0; the op costs nothing
  bool is_commutative = false;  // in its first two operands
  bool is_allocation = false;   // returns new memory with undefined contents
  int cost = 1;                 // of a primitive: instructions for a vector of elements (tensor/arithmetic_cost.h)
  std::optional<Gather> gathers;
  std::string splits_as = {};  // an op that this one contains: where that op splits the graph, so does this one
  std::function<std::vector<Meta>(const OpRequest&)> infer;
  std::function<Values(Evaluator&, const Values&, const Attributes&)> meaning;
  std::function<Dim(const Meta& operand, const Attributes&)> view_offset;  // of views; in elements
  std::function<bool(const Attributes&)> exact_for;                        // see is_exact(); none: the op rounds
  std::vector<Sample> samples;
  std::map<DType, Tolerance> tolerances;
  // The schemes of an op that quantizes its first operand. It returns codes, and also scales unless they are static.
  std::vector<QuantScheme> schemes;

  bool is_primitive() const { return !meaning; }
  // Whether a call rounds nothing on the way to its result: elements are moved, chosen or negated, scaled by a power of
  // two, or converted where that is what the op is for. There is one right result, whichever kernel computes it.
  bool is_exact(const Attributes& attributes) const { return exact_for && exact_for(attributes); }
  // The op's own tolerance for results of a dtype, else that of the table in spec A.13, else exact.
  Tolerance tolerance(DType dtype) const;
};

// Builds one Op. Each mistake is an InternalError that names the op.
class OpDefinition {
 public:
  OpDefinition& schema(const char* text);
  // The typed C++ function that users call; its parameters must agree with the schema.
  template <class Function>
  OpDefinition& function(Function* function);
  void check_function(const std::vector<ParameterType>& types) const;
  // For primitives: `infer` checks the arguments (UserError, `[op] x must be .., but is ..`) and returns the result
  // types.
  OpDefinition& gives(std::function<std::vector<Meta>(const OpRequest&)> infer);
  OpDefinition& gives_like(const char* parameter);
  // For composites: the meaning, from which result types are inferred. `checks` may refuse arguments before that.
  OpDefinition& means(std::function<Values(Evaluator&, const Values&, const Attributes&)> meaning);
  OpDefinition& checks(std::function<void(const OpRequest&)> checks);
  OpDefinition& donates(const char* parameter, int result);
  OpDefinition& allow_inplace();
  OpDefinition& rows_of(const char* parameter);  // nullptr: no rows
  OpDefinition& view(std::function<Dim(const Meta&, const Attributes&)> offset);
  OpDefinition& commutative();
  OpDefinition& allocation();
  OpDefinition& costs(int instructions);  // Op::cost, when it differs from the cost of an addition
  // The row indices in the operand `indices` select rows of the operand `table`.
  OpDefinition& gathers(const char* table, const char* indices);
  // Op::is_exact() for all attributes, or for those for which `when` is true.
  OpDefinition& exact();
  OpDefinition& exact(std::function<bool(const Attributes&)> when);
  OpDefinition& splits_as(std::string op);
  OpDefinition& sample(std::vector<SampleTensor> tensors, NamedAttributes attributes = {});
  OpDefinition& tolerance(DType dtype, Tolerance tolerance);
  OpDefinition& quantizes(QuantKey key, NamedAttributes attributes = {});

  // The finished op; InternalError when it has no schema, or neither or both of meaning and shape rule, or no sample.
  Op finish(const std::string& file_stem) &&;

 private:
  Op op_;
  std::function<void(const OpRequest&)> checks_;
  bool rows_set_ = false;
};

class OpTable {
 public:
  OpTable() = default;
  OpTable(OpTable&&) = default;
  OpTable& operator=(OpTable&&) = default;

  // InternalError when the name is taken or is not [a-z_][a-z0-9_]*.
  void add(Op op);
  const Op* find(std::string_view name) const;
  // UserError with the nearest known name when absent.
  const Op& at(std::string_view name) const;
  // Sorted by name.
  const std::map<std::string, Op, std::less<>>& all() const { return ops_; }

 private:
  std::map<std::string, Op, std::less<>> ops_;
  // The same ops in a hash table. The keys view names in ops_, whose nodes keep their address when the table is moved.
  std::unordered_map<std::string_view, const Op*> by_name_;
};

// The attributes of a call in schema order: `given` by name, defaults for the rest. UserError on an unknown name, a
// missing one without a default, or a value of a type other than the schema's.
Attributes complete_attributes(const Schema& schema, const NamedAttributes& given);

// The number of elements that a call with these attributes gathers of a table: one row for each index, or one slice
// along the attribute `dim`.
Dim gathered_elements(const Meta& table, const Meta& indices, const Attributes& attributes);

// Result types of a call; UserError when the arguments do not fit.
std::vector<Meta> infer_results(const Op& op, const OpTable& ops, std::span<const std::optional<Meta>> operands,
                                const Attributes& attributes);

// Calls an op on Values: finds their home, completes the attributes, checks the operands, and lets the home evaluate
// the call. Mixing Values of different homes is a UserError. `home` is needed only when no operand is a tensor.
Values call(const char* op, const Values& operands, const NamedAttributes& attributes, bool maybe_inplace = false,
            Evaluator* home = nullptr);
// The results of a call of a typed op function, to be used at once. Results that the home already had stored still
// belong to the home.
class Results {
 public:
  explicit Results(const Values& known) : known_(&known) {}
  explicit Results(Values&& made) : made_(std::move(made)) {}

  Value operator[](std::size_t index) && { return known_ != nullptr ? (*known_)[index] : std::move(made_[index]); }
  operator Values() && { return known_ != nullptr ? *known_ : std::move(made_); }               // NOLINT: implicit
  operator std::pair<Value, Value>() && { return {std::move(*this)[0], std::move(*this)[1]}; }  // NOLINT: implicit
  operator std::tuple<Value, Value, Value>() && {                                               // NOLINT: implicit
    return {std::move(*this)[0], std::move(*this)[1], std::move(*this)[2]};
  }

 private:
  const Values* known_ = nullptr;
  Values made_;
};
// The same for a caller at `site`: a UserError names `site` instead of a line inside an op's meaning.
Results call(CallSite site, Literal op, const Operands& operands, const GivenAttributes& attributes,
             bool maybe_inplace = false, Evaluator* home = nullptr);

// One row for each file of src/ops/, generated by the build.
struct OpEntry {
  const char* name;
  void (*define)(OpDefinition&);
};
std::span<const OpEntry> op_table();

// The finished ops of op_table().
OpTable make_op_table();

// --- implementation of OpDefinition::function ---

template <class T>
struct ParameterTypeOf;
template <>
struct ParameterTypeOf<Value> {
  static constexpr ParameterType type = ParameterType::tensor;
};
template <>
struct ParameterTypeOf<Values> {
  static constexpr ParameterType type = ParameterType::tensor_list;
};
template <>
struct ParameterTypeOf<Scalar> {
  static constexpr ParameterType type = ParameterType::real;
};
template <>
struct ParameterTypeOf<double> {
  static constexpr ParameterType type = ParameterType::real;
};
template <>
struct ParameterTypeOf<std::int64_t> {
  static constexpr ParameterType type = ParameterType::integer;
};
template <>
struct ParameterTypeOf<Dim> {
  static constexpr ParameterType type = ParameterType::integer;
};
template <>
struct ParameterTypeOf<bool> {
  static constexpr ParameterType type = ParameterType::boolean;
};
template <>
struct ParameterTypeOf<std::string_view> {
  static constexpr ParameterType type = ParameterType::string;
};
template <>
struct ParameterTypeOf<DType> {
  static constexpr ParameterType type = ParameterType::dtype;
};
template <>
struct ParameterTypeOf<Shape> {
  static constexpr ParameterType type = ParameterType::integer_list;
};
template <>
struct ParameterTypeOf<std::vector<double>> {
  static constexpr ParameterType type = ParameterType::real_list;
};
template <class T>
struct ParameterTypeOf<std::optional<T>> : ParameterTypeOf<T> {};

template <class Result, class... Parameters>
void check_typed_function(OpDefinition& op, Result (*)(Parameters...)) {
  std::vector<ParameterType> types;
  auto add = [&]<class T>(std::type_identity<T>) {
    if constexpr (!std::is_same_v<T, Evaluator&> && !std::is_same_v<T, CallSite>)
      types.push_back(ParameterTypeOf<std::remove_cvref_t<T>>::type);
  };
  (add(std::type_identity<Parameters>{}), ...);
  op.check_function(types);
}

template <class Function>
OpDefinition& OpDefinition::function(Function* function) {
  check_typed_function(*this, function);
  return *this;
}

}  // namespace weft

// Defines the op of src/ops/<name>.cpp.
#define OP(name)                           \
  namespace weft {                         \
  void define_op_##name(OpDefinition& op); \
  }                                        \
  void weft::define_op_##name(OpDefinition& op)
