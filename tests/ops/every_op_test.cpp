// Laws of every op of the table, tested on its samples.

#include <algorithm>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "compiler/check/tensor_difference.h"
#include "compiler/run/interpret.h"
#include "ir/parse.h"
#include "ir/print.h"
#include "ir/trace.h"
#include "ir/verify.h"
#include "tensor/convert.h"
#include "tests/test_context.h"

namespace weft::every_op_test {

class EveryOp : public testing::Test {
 protected:
  static void SetUpTestSuite() { context_ = test_context(); }
  static void TearDownTestSuite() { context_.reset(); }

  template <class Body>
  void for_each_sample(Body&& body) {
    for (const auto& [name, op] : context_->ops.all())
      for (const SampleCall& call : sample_calls(op)) {
        SCOPED_TRACE(call.text);
        body(op, call);
      }
  }

  static std::shared_ptr<Context> context_;
};
std::shared_ptr<Context> EveryOp::context_;

// One node of the op, with an input for every operand.
std::shared_ptr<Graph> graph_of(const Op& op, const std::vector<std::optional<Meta>>& operands,
                                const Attributes& attributes, const OpTable& ops) {
  auto graph = std::make_shared<Graph>("g", Stage::traced);
  std::vector<GraphValue*> values;
  for (const auto& meta : operands) values.push_back(meta ? graph->add_input(*meta) : nullptr);
  Node* node = graph->add_op(op, values, attributes, infer_results(op, ops, operands, attributes));
  std::vector<GraphValue*> results;
  for (const auto& result : node->results) results.push_back(result.get());
  graph->set_results(results);
  return graph;
}

// A value of the parameter's type that differs from `value`.
Attribute changed(const Parameter& parameter, const Attribute& value) {
  switch (parameter.type) {
    case ParameterType::integer:
      return value.is_none() ? Attribute(3) : Attribute(value.dim() + Dim(1));
    case ParameterType::real:
      return value.is_none() ? Attribute(0.5) : Attribute(value.real() + 0.5);
    case ParameterType::boolean:
      return !value.boolean();
    case ParameterType::string:
      return EnumWord{value.is_none() ? "other" : value.word() + "_other"};
    case ParameterType::dtype:
      return value.is_none() || value.dtype() == DType::i32 ? DType::i64 : DType::i32;
    case ParameterType::integer_list:
      return AttributeList{Attribute(7), Attribute(11)};
    default:
      return AttributeList{Attribute(0.125)};
  }
}

TEST_F(EveryOp, IsInTheTableWithSamplesAndCodeThatRunsIt) {
  EXPECT_GE(context_->ops.all().size(), 40u);
  for (const auto& [name, op] : context_->ops.all()) {
    EXPECT_FALSE(op.samples.empty()) << name;
    if (op.is_primitive() && !op.is_view) {
      EXPECT_NE(context_->kernels.find(name, "reference"), nullptr) << name;
    }
    for (const Donation& donation : op.donates) {
      EXPECT_GE(donation.argument, 0) << name;
      EXPECT_LT(static_cast<std::size_t>(donation.argument), op.schema.tensor_count()) << name;
    }
  }
}

TEST_F(EveryOp, InfersTheTypesThatItsMeaningComputes) {
  for_each_sample([&](const Op& op, const SampleCall& call) {
    const std::vector<Meta> inferred = infer_results(op, context_->ops, metas_of(call.operands), call.attributes);
    Interpreter interpreter(*context_);
    const Values results = weft::call(op.name.c_str(), values_of(interpreter, call.operands), call.attributes.entries(),
                                      false, &interpreter);
    ASSERT_EQ(results.size(), inferred.size());
    for (std::size_t i = 0; i < results.size(); ++i) EXPECT_EQ(results[i].meta().text(), inferred[i].text());
    for (const Donation& donation : op.donates)
      EXPECT_EQ(inferred.at(static_cast<std::size_t>(donation.result)).text(),
                call.operands.at(static_cast<std::size_t>(donation.argument)).meta.text());
  });
}

TEST_F(EveryOp, InfersTheSameTypesForASymbolicRowCount) {
  int tried = 0;
  for_each_sample([&](const Op& op, const SampleCall& call) {
    if (op.rows_of < 0 || op.name == "reshape") return;  // a shape given as numbers fixes the rows
    std::vector<std::optional<Meta>> operands = metas_of(call.operands);
    const auto& rows_operand = operands[static_cast<std::size_t>(op.rows_of)];
    if (!rows_operand || !rows_operand->is_tensor() || rows_operand->shape.empty()) return;
    const Dim rows = rows_operand->shape[0];
    if (rows == Dim(1)) return;  // the literal 1 spreads, a symbol does not
    const bool along_rows = call.attributes.find("dim") != nullptr && call.attributes.at("dim") == Attribute(0);
    if (along_rows && op.name != "index_select") return;
    const std::vector<Meta> wanted = infer_results(op, context_->ops, operands, call.attributes);
    for (auto& operand : operands)
      if (operand && operand->is_tensor() && !operand->shape.empty() && operand->shape[0] == rows &&
          operand->is_contiguous())
        operand->shape[0] = Dim::symbol("s0");
    std::vector<Meta> symbolic = infer_results(op, context_->ops, operands, call.attributes);
    ASSERT_EQ(symbolic.size(), wanted.size());
    for (std::size_t i = 0; i < symbolic.size(); ++i) {
      for (Dim& dim : symbolic[i].shape) dim = dim.substitute({{"s0", rows}});
      for (Dim& dim : symbolic[i].strides) dim = dim.substitute({{"s0", rows}});
      EXPECT_EQ(symbolic[i].text(), wanted[i].text());
    }
    ++tried;
  });
  EXPECT_GE(tried, 80);
}

TEST_F(EveryOp, PrintsAndParsesBack) {
  for_each_sample([&](const Op& op, const SampleCall& call) {
    const auto graph = graph_of(op, metas_of(call.operands), call.attributes, context_->ops);
    EXPECT_EQ(find_breach(*graph, context_->ops).value_or(""), "");
    const std::string text = display(*graph);
    const auto parsed = parse_graph(text, context_->ops);
    EXPECT_EQ(display(*parsed), text);
    EXPECT_TRUE(structurally_equal(*parsed, *graph)) << text;
    EXPECT_EQ(parsed->nodes().front()->attributes, call.attributes);
  });
}

TEST_F(EveryOp, HashesEveryAttribute) {
  int tried = 0;
  for_each_sample([&](const Op& op, const SampleCall& call) {
    const auto graph = graph_of(op, metas_of(call.operands), call.attributes, context_->ops);
    const ContentHash before = structural_hash(*graph);
    for (std::size_t i = op.schema.tensor_count(); i < op.schema.parameters.size(); ++i) {
      const Parameter& parameter = op.schema.parameters[i];
      const auto other = graph->clone();
      other->nodes().front()->attributes.set(parameter.name, changed(parameter, call.attributes.at(parameter.name)));
      EXPECT_NE(structural_hash(*other), before) << parameter.name;
      ++tried;
    }
  });
  EXPECT_GE(tried, 100);
}

TEST_F(EveryOp, GivesTheSameForSwappedOperandsWhenItSaysItIsCommutative) {
  for_each_sample([&](const Op& op, const SampleCall& call) {
    if (!op.is_commutative) return;
    Interpreter interpreter(*context_);
    std::vector<Tensor> swapped = call.operands;
    std::swap(swapped[0], swapped[1]);
    const Values a = weft::call(op.name.c_str(), values_of(interpreter, call.operands), call.attributes.entries());
    const Values b = weft::call(op.name.c_str(), values_of(interpreter, swapped), call.attributes.entries());
    EXPECT_EQ(difference(a[0].tensor(), b[0].tensor(), {}, true), "");
  });
}

// The tensor with its elements as f64, where they are of another plain floating dtype.
Tensor widened(const Tensor& tensor) {
  if (!tensor.defined() || !tensor.meta.is_tensor() || !is_floating(tensor.meta.dtype) || is_block(tensor.meta.dtype))
    return tensor;
  const std::vector<double> elements = elements_of(tensor);
  Tensor wide = Tensor::empty(Meta::tensor(DType::f64, tensor.meta.shape));
  for (std::size_t i = 0; i < elements.size(); ++i)
    store_double(DType::f64, wide.data(), static_cast<std::int64_t>(i), elements[i]);
  return wide;
}

// The attributes with real numbers as ops of narrower dtypes read them, which is as f32.
NamedAttributes as_f32(const Schema& schema, NamedAttributes attributes) {
  for (auto& [name, value] : attributes) {
    const Parameter& parameter = schema.parameters[static_cast<std::size_t>(schema.parameter_index(name))];
    if (parameter.type == ParameterType::real && !value.is_none())
      value = Attribute(static_cast<double>(static_cast<float>(value.real())));
  }
  return attributes;
}

// Whether every byte of the results is one of an operand or padding, for ops that refuse f64.
bool moves_bytes(const std::vector<Tensor>& operands, const Values& results) {
  std::set<std::byte> known{std::byte{0}};
  for (const Tensor& operand : operands)
    if (operand.defined()) known.insert(operand.data(), operand.data() + operand.storage->bytes());
  return std::all_of(results.begin(), results.end(), [&](const Value& result) {
    const std::byte* bytes = result.tensor().data();
    return std::all_of(bytes, bytes + result.tensor().storage->bytes(),
                       [&](std::byte byte) { return known.contains(byte); });
  });
}

// Whether the call gives the same numbers in f64, where sums, products and functions keep digits that the sample's
// dtype lacks.
bool keeps_every_digit(const Context& context, const Op& op, const SampleCall& call) {
  Interpreter interpreter(context);
  const auto results_of = [&](const std::vector<Tensor>& operands) {
    return weft::call(op.name.c_str(), values_of(interpreter, operands), as_f32(op.schema, call.attributes.entries()),
                      false, &interpreter);
  };
  const Values results = results_of(call.operands);
  std::vector<Tensor> wide;
  for (const Tensor& operand : call.operands) wide.push_back(widened(operand));
  Values wide_results;
  try {
    wide_results = results_of(wide);
  } catch (const UserError&) {
    return moves_bytes(call.operands, results);
  }
  return std::equal(results.begin(), results.end(), wide_results.begin(), wide_results.end(),
                    [](const Value& a, const Value& b) { return elements_of(a.tensor()) == elements_of(b.tensor()); });
}

TEST_F(EveryOp, RoundsNothingWhenItSaysItIsExact) {
  std::set<std::string> exact, rounding;
  for_each_sample([&](const Op& op, const SampleCall& call) {
    const bool keeps = keeps_every_digit(*context_, op, call);
    if (!keeps) rounding.insert(op.name);
    if (!op.is_exact(call.attributes)) return;
    EXPECT_TRUE(keeps);
    exact.insert(op.name);
  });
  for (const auto& [name, op] : context_->ops.all())
    if (op.exact_for) {
      EXPECT_TRUE(exact.contains(name)) << name << " has no sample that is exact";
    }
  // The comparison sees the last digit of each kind of arithmetic.
  for (const char* name : {"add", "div", "exp", "mul", "mul_scalar", "sum"})
    EXPECT_TRUE(rounding.contains(name)) << name;
}

// The operands with other bytes in each row of the table that the indices do not name; with `all`, in every row.
std::vector<Tensor> with_other_rows(std::vector<Tensor> operands, const Gather& gather, bool all) {
  std::set<double> named;
  for (const double index : elements_of(operands[static_cast<std::size_t>(gather.indices)])) named.insert(index);
  Tensor& table = operands[static_cast<std::size_t>(gather.table)];
  table = copy_of(table);
  const std::int64_t rows = table.meta.shape[0].number();
  const std::int64_t bytes = bytes_of(table.meta.dtype, element_count(table.meta.shape).number() / rows);
  for (std::int64_t row = 0; row < rows; ++row)
    if (all || !named.contains(static_cast<double>(row)))
      std::memset(table.data() + row * bytes, 0x3c, static_cast<std::size_t>(bytes));
  return operands;
}

TEST_F(EveryOp, ReadsOfATableOnlyTheRowsThatItSaysItGathers) {
  std::set<std::string> tried;
  for_each_sample([&](const Op& op, const SampleCall& call) {
    const Attribute* dim = call.attributes.find("dim");
    if (!op.gathers || (dim != nullptr && dim->integer() != 0)) return;
    Interpreter interpreter(*context_);
    const auto results = [&](const std::vector<Tensor>& operands) {
      std::vector<std::vector<double>> all;
      for (const Value& result : weft::call(op.name.c_str(), values_of(interpreter, operands),
                                            call.attributes.entries(), false, &interpreter))
        all.push_back(elements_of(result.tensor()));
      return all;
    };
    const auto wanted = results(call.operands);
    EXPECT_EQ(results(with_other_rows(call.operands, *op.gathers, false)), wanted);
    EXPECT_NE(results(with_other_rows(call.operands, *op.gathers, true)), wanted);
    tried.insert(op.name);
  });
  for (const auto& [name, op] : context_->ops.all()) EXPECT_EQ(tried.contains(name), op.gathers.has_value()) << name;
  EXPECT_GE(tried.size(), 6u);
}

TEST_F(EveryOp, LeavesItsOperandsAloneWhenItsMeaningRuns) {
  for_each_sample([&](const Op& op, const SampleCall& call) {
    std::vector<std::vector<double>> before;
    auto has_elements = [](const Tensor& tensor) {
      return tensor.defined() && (tensor.meta.is_tensor() || tensor.meta.kind == MetaKind::kv);
    };
    for (const Tensor& operand : call.operands)
      before.push_back(has_elements(operand) ? elements_of(operand) : std::vector<double>());
    Interpreter interpreter(*context_);
    weft::call(op.name.c_str(), values_of(interpreter, call.operands), call.attributes.entries(), false, &interpreter);
    for (std::size_t i = 0; i < call.operands.size(); ++i)
      if (has_elements(call.operands[i])) {
        EXPECT_EQ(elements_of(call.operands[i]), before[i]) << "operand " << i;
      }
  });
}

}  // namespace weft::every_op_test
