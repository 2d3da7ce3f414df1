#include "ir/op.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "ir/meaning.h"
#include "ir/meta_evaluator.h"
#include "ir/op_products.h"
#include "ir/shape_rules.h"

namespace weft {
namespace {

// vLLM's table of absolute and relative tolerances per dtype (spec A.13).
const std::map<DType, Tolerance>& default_tolerances() {
  static const std::map<DType, Tolerance> kTable = {
      {DType::f64, {1e-8, 1e-8}},    {DType::f32, {1e-5, 1.3e-6}},  {DType::f16, {1e-3, 1e-3}},
      {DType::bf16, {1e-3, 1.6e-2}}, {DType::f8e4m3, {1e-1, 1e-1}}, {DType::f8e5m2, {2e-1, 2e-1}},
      {DType::f4e2m1, {3e-1, 3e-1}}, {DType::i8, {1, 0}},
  };
  return kTable;
}

bool is_name(std::string_view text) {
  auto letter = [](char c) { return (c >= 'a' && c <= 'z') || c == '_'; };
  return !text.empty() && letter(text[0]) &&
         std::all_of(text.begin(), text.end(), [&](char c) { return letter(c) || (c >= '0' && c <= '9'); });
}

}  // namespace

const Meta& OpRequest::operand(std::size_t index) const {
  CHECK(has(index), "operand {} of the call is absent", index);
  return *operands[index];
}

Tolerance Op::tolerance(DType dtype) const {
  if (auto own = tolerances.find(dtype); own != tolerances.end()) return own->second;
  const auto& table = default_tolerances();
  auto found = table.find(dtype);
  return found == table.end() ? Tolerance{} : found->second;
}

OpDefinition& OpDefinition::schema(const char* text) {
  op_.schema = parse_schema(text);
  op_.name = op_.schema.name;
  return *this;
}

void OpDefinition::check_function(const std::vector<ParameterType>& types) const {
  CHECK(types.size() == op_.schema.parameters.size(), "[{}] the C++ function takes {} arguments, the schema {}",
        op_.name, types.size(), op_.schema.parameters.size());
  for (std::size_t i = 0; i < types.size(); ++i)
    CHECK(types[i] == op_.schema.parameters[i].type,
          "[{}] argument {} of the C++ function is of another type than in {}", op_.name, op_.schema.parameters[i].name,
          op_.schema.text());
}

OpDefinition& OpDefinition::gives(std::function<std::vector<Meta>(const OpRequest&)> infer) {
  op_.infer = std::move(infer);
  return *this;
}

OpDefinition& OpDefinition::gives_like(const char* parameter) {
  const int index = op_.schema.parameter_index(parameter);
  CHECK(index >= 0, "[{}] has no parameter {}", op_.name, parameter);
  return gives([index](const OpRequest& request) {
    const Meta& like = request.operand(static_cast<std::size_t>(index));
    return std::vector<Meta>{Meta::tensor(like.dtype, like.shape)};
  });
}

OpDefinition& OpDefinition::means(std::function<Values(Evaluator&, const Values&, const Attributes&)> meaning) {
  op_.meaning = std::move(meaning);
  return *this;
}

OpDefinition& OpDefinition::checks(std::function<void(const OpRequest&)> checks) {
  checks_ = std::move(checks);
  return *this;
}

OpDefinition& OpDefinition::donates(const char* parameter, int result) {
  const int index = op_.schema.parameter_index(parameter);
  CHECK(index >= 0, "[{}] has no parameter {}", op_.name, parameter);
  op_.donates.push_back({index, result});
  return *this;
}

OpDefinition& OpDefinition::allow_inplace() {
  op_.allow_inplace = true;
  return *this;
}

OpDefinition& OpDefinition::rows_of(const char* parameter) {
  rows_set_ = true;
  op_.rows_of = parameter == nullptr ? -1 : op_.schema.parameter_index(parameter);
  CHECK(parameter == nullptr || op_.rows_of >= 0, "[{}] has no parameter {}", op_.name, parameter);
  return *this;
}

OpDefinition& OpDefinition::view(std::function<Dim(const Meta&, const Attributes&)> offset) {
  op_.is_view = true;
  op_.view_offset = std::move(offset);
  return *this;
}

OpDefinition& OpDefinition::commutative() {
  op_.is_commutative = true;
  return *this;
}

OpDefinition& OpDefinition::allocation() {
  op_.is_allocation = true;
  return *this;
}

OpDefinition& OpDefinition::costs(int instructions) {
  op_.cost = instructions;
  return *this;
}

OpDefinition& OpDefinition::gathers(const char* table, const char* indices) {
  op_.gathers = {.table = op_.schema.parameter_index(table), .indices = op_.schema.parameter_index(indices)};
  CHECK(op_.gathers->table >= 0 && op_.gathers->indices >= 0, "[{}] has no parameter {} or {}", op_.name, table,
        indices);
  return *this;
}

OpDefinition& OpDefinition::exact() {
  return exact([](const Attributes&) { return true; });
}

OpDefinition& OpDefinition::exact(std::function<bool(const Attributes&)> when) {
  op_.exact_for = std::move(when);
  return *this;
}

OpDefinition& OpDefinition::splits_as(std::string op) {
  op_.splits_as = std::move(op);
  return *this;
}

OpDefinition& OpDefinition::sample(std::vector<SampleTensor> tensors, NamedAttributes attributes) {
  for (const SampleTensor& tensor : tensors)
    CHECK(op_.schema.parameter_index(tensor.name) >= 0 || tensor.name.find('.') != std::string::npos,
          "[{}] a sample names {}, which the schema lacks", op_.name, tensor.name);
  op_.samples.push_back({std::move(tensors), std::move(attributes)});
  return *this;
}

OpDefinition& OpDefinition::tolerance(DType dtype, Tolerance tolerance) {
  op_.tolerances[dtype] = tolerance;
  return *this;
}

OpDefinition& OpDefinition::quantizes(QuantKey key, NamedAttributes attributes) {
  op_.schemes.push_back({std::move(key), std::move(attributes)});
  return *this;
}

Op OpDefinition::finish(const std::string& file_stem) && {
  CHECK(op_.name == file_stem, "[{}] is defined as {}", op_.name, file_stem);
  CHECK(!op_.samples.empty(), "[{}] has no sample", op_.name);
  CHECK(!op_.allow_inplace || !op_.donates.empty(), "[{}] allows in-place calls but donates nothing", op_.name);
  CHECK(op_.meaning == nullptr || op_.infer == nullptr, "[{}] states both a meaning and a shape rule", op_.name);
  CHECK(op_.meaning == nullptr || op_.cost == 1, "[{}] states a cost as well as a meaning", op_.name);
  CHECK(op_.meaning != nullptr || op_.infer != nullptr, "[{}] states neither a meaning nor a shape rule", op_.name);
  if (!rows_set_ && op_.schema.tensor_count() == 0) op_.rows_of = -1;
  if (checks_) {
    auto infer = op_.infer;
    CHECK(infer == nullptr, "[{}] a shape rule holds its own checks", op_.name);
    op_.infer = [checks = std::move(checks_)](const OpRequest& request) {
      checks(request);
      return std::vector<Meta>{};
    };
  }
  return std::move(op_);
}

void OpTable::add(Op op) {
  CHECK(is_name(op.name), "Op name '{}' is invalid: it must match [a-z_][a-z0-9_]*", op.name);
  std::string name = op.name;
  const auto [entry, added] = ops_.emplace(name, std::move(op));
  CHECK(added, "op {} is already registered", name);
  by_name_.emplace(entry->first, &entry->second);
}

const Op* OpTable::find(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : found->second;
}

const Op& OpTable::at(std::string_view name) const {
  const Op* op = find(name);
  if (op != nullptr) return *op;
  std::vector<std::string> names;
  for (const auto& [known, unused] : ops_) names.push_back(known);
  fail_user("[{}] is not an op of this program{}", name, suggestion(name, names));
}

Dim gathered_elements(const Meta& table, const Meta& indices, const Attributes& attributes) {
  const Attribute* dim = attributes.find("dim");
  const auto axis = static_cast<std::size_t>(dim == nullptr ? 0 : checked_axis(dim->integer(), table, "gather"));
  Shape slice = table.shape;
  slice[axis] = 1;
  return element_count(indices.shape) * element_count(slice);
}

Attributes complete_attributes(const Schema& schema, const NamedAttributes& given) {
  Attributes complete;
  for (std::size_t i = schema.tensor_count(); i < schema.parameters.size(); ++i) {
    const Parameter& parameter = schema.parameters[i];
    auto found =
        std::find_if(given.begin(), given.end(), [&](const auto& entry) { return entry.first == parameter.name; });
    if (found == given.end()) {
      USER_CHECK(parameter.default_value.has_value(), "[{}] attribute {} must be given; the signature is {}",
                 schema.name, parameter.name, schema.text());
      complete.set(parameter.name, *parameter.default_value);
      continue;
    }
    complete.set(parameter.name, conform(found->second, parameter, schema.name));
  }
  for (const auto& [name, value] : given) {
    const int index = schema.parameter_index(name);
    USER_CHECK(index >= static_cast<int>(schema.tensor_count()), "[{}] has no attribute {}; its signature is {}",
               schema.name, name, schema.text());
  }
  return complete;
}

std::vector<Meta> infer_results(const Op& op, const OpTable& ops, std::span<const std::optional<Meta>> operands,
                                const Attributes& attributes) {
  const OpRequest request{operands, attributes};
  // Lists of ints, such as shapes, may hold symbols; a single int must be a number.
  for (const Parameter& parameter : op.schema.parameters)
    if (parameter.type == ParameterType::integer)
      if (const Attribute* given = attributes.find(parameter.name); given != nullptr && !given->is_none())
        USER_CHECK(given->dim().is_number(), "[{}] {} must be a number, but is {}", op.name, parameter.name,
                   given->text());
  if (op.is_primitive()) return op.infer(request);
  if (op.infer) op.infer(request);  // checks only
  MetaEvaluator evaluator(ops);
  Values values;
  for (const std::optional<Meta>& meta : operands) values.push_back(meta ? Value::of_meta(evaluator, *meta) : Value());
  std::vector<Meta> results;
  for (const Value& value : run_meaning(op, evaluator, values, attributes)) results.push_back(value.meta());
  return results;
}

namespace {

// Returns the evaluator that the call's Values belong to, or `home` when the call has no operands.
Evaluator& home_of(const char* name, const Values& operands, Evaluator* home) {
  for (const Value& operand : operands) {
    if (!operand.present()) continue;
    if (home == nullptr) home = &operand.home();
    USER_CHECK(
        home == &operand.home(),
        "[{}] wanted values of one home, but was given values of two: what is traced takes a tensor from outside "
        "by home().value(tensor)",
        name);
  }
  USER_CHECK(home != nullptr || operands.empty(), "[{}] must be called with a tensor, but was given only empty Values",
             name);
  CHECK(home != nullptr, "[{}] was called without any value and without an evaluator", name);
  return *home;
}

Values call_at(Evaluator& home, const char* name, const Values& operands, const NamedAttributes& attributes,
               bool inplace) {
  const Op& op = home.ops().at(name);
  const std::vector<Parameter>& parameters = op.schema.parameters;
  const std::size_t tensors = op.schema.tensor_count();
  const bool variadic = tensors > 0 && parameters[tensors - 1].type == ParameterType::tensor_list;
  CHECK(variadic ? operands.size() >= tensors : operands.size() == tensors, "[{}] takes {} tensors, but was given {}",
        name, tensors, operands.size());
  for (std::size_t i = 0; i < operands.size(); ++i)
    USER_CHECK(operands[i].present() || parameters[std::min(i, tensors - 1)].optional, "[{}] {} must be given", name,
               parameters[std::min(i, tensors - 1)].name);
  CHECK(!inplace || op.allow_inplace, "[{}] has no maybe_inplace form", name);
  return home.evaluate(op, operands, home.complete(op, attributes), inplace);
}

}  // namespace

Values call(const char* name, const Values& operands, const NamedAttributes& attributes, bool inplace,
            Evaluator* home) {
  Evaluator& found = home_of(name, operands, home);
  found.called_from({});
  return call_at(found, name, operands, attributes, inplace);
}

Results call(CallSite site, Literal name, const Operands& operands, const GivenAttributes& attributes, bool inplace,
             Evaluator* home) {
  std::size_t first = 0;
  while (first < operands.size() && !operands[first].present()) ++first;
  try {
    if (first < operands.size())
      if (const Values* known = operands[first].home().repeated(name, operands, attributes, inplace))
        return Results(*known);
    const Values given = operands.copies();
    Evaluator& found = home_of(name.text(), given, home);
    found.called_from(site);
    return Results(call_at(found, name.text(), given, attributes.named(), inplace));
  } catch (UserError& error) {
    error.set_place(site);
    throw;
  }
}

void add_op(OpTable& ops, const std::string& name, const std::function<void(OpDefinition&)>& define) {
  OpDefinition definition;
  define(definition);
  ops.add(std::move(definition).finish(name));
}

OpTable make_op_table() {
  OpTable table;
  for (const OpEntry& entry : op_table()) add_op(table, entry.name, entry.define);
  for (const OpProductEntry& entry : op_product_table()) entry.define(table);
  return table;
}

}  // namespace weft
