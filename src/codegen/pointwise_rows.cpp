#include "codegen/pointwise_rows.h"

#include <map>
#include <string>

#include "codegen/row_shape.h"

namespace weft {
namespace {

const std::map<std::string, RowOp, std::less<>> kUnaryOps = {
    {"neg", RowOp::neg},     {"abs", RowOp::abs},     {"exp", RowOp::exp},
    {"tanh", RowOp::tanh},   {"erf", RowOp::erf},     {"sqrt", RowOp::sqrt},
    {"round", RowOp::round}, {"trunc", RowOp::trunc}, {"sigmoid", RowOp::sigmoid},
};
const std::map<std::string, RowOp, std::less<>> kBinaryOps = {
    {"add", RowOp::add}, {"sub", RowOp::sub},         {"mul", RowOp::mul},
    {"div", RowOp::div}, {"maximum", RowOp::maximum}, {"minimum", RowOp::minimum},
};
const std::map<std::string, RowOp, std::less<>> kScalarOps = {
    {"add_scalar", RowOp::add},
    {"mul_scalar", RowOp::mul},
    {"div_scalar", RowOp::div},
};

double number_of(const Node& node, const char* attribute) {
  return static_cast<double>(static_cast<float>(node.attributes.at(attribute).real()));
}

// Only f32 numbers are liftable, because the buffers that lifted numbers are stored in hold f32.
int add_constant_of(RowProgram& program, const Node& node, const char* attribute, bool is_wide = false) {
  const auto parameter = static_cast<std::size_t>(node.op->schema.parameter_index(attribute));
  return program.add({.op = RowOp::constant,
                      .number = is_wide ? node.attributes.at(attribute).real() : number_of(node, attribute),
                      .is_wide = is_wide,
                      .is_liftable = !is_wide && node.op->schema.parameters[parameter].is_liftable});
}

// Converts only to and from f64. A value is rounded to other dtypes where the graph stores it in memory.
int add_cast(RowProgram& program, int value, bool is_wide, DType dtype) {
  if (dtype == DType::f64) return is_wide ? value : add_unary(program, RowOp::widen, value);
  return is_wide && dtype == DType::f32 ? add_unary(program, RowOp::narrow, value) : value;
}

int add_clamp(RowProgram& program, const Node& node, int value) {
  if (!node.attributes.at("min").is_none())
    value = add_binary(program, RowOp::at_least, value, add_constant_of(program, node, "min"));
  if (!node.attributes.at("max").is_none())
    value = add_binary(program, RowOp::at_most, value, add_constant_of(program, node, "max"));
  return value;
}

int add_reciprocal(RowProgram& program, const Node& node, int a) {
  const int value = add_binary(program, RowOp::div, add_constant(program, 1), a);
  if (node.attributes.at("of_zero").is_none()) return value;
  return program.add({.op = RowOp::replace_zero, .a = a, .b = value, .number = number_of(node, "of_zero")});
}

}  // namespace

int add_constant(RowProgram& program, double number) { return program.add({.op = RowOp::constant, .number = number}); }
int add_unary(RowProgram& program, RowOp op, int a) { return program.add({.op = op, .a = a}); }
int add_binary(RowProgram& program, RowOp op, int a, int b) { return program.add({.op = op, .a = a, .b = b}); }

int add_pointwise(RowProgram& program, const Node& node, const std::vector<int>& operands) {
  const int a = operands[0];
  const bool is_wide = program.values[static_cast<std::size_t>(a)].is_wide;
  if (node.name == "cast") return add_cast(program, a, is_wide, node.result()->meta.dtype);
  const auto sign = kBinaryOps.find(node.name);
  const bool is_sum_or_product = (sign != kBinaryOps.end() && sign->second <= RowOp::div) ||
                                 kScalarOps.count(node.name) != 0 || node.name == "neg";
  if (is_wide && !is_sum_or_product) refuse("is computed in f64");
  if (const auto op = kUnaryOps.find(node.name); op != kUnaryOps.end()) return add_unary(program, op->second, a);
  if (const auto op = kBinaryOps.find(node.name); op != kBinaryOps.end())
    return add_binary(program, op->second, a, operands[1]);
  if (const auto op = kScalarOps.find(node.name); op != kScalarOps.end())
    return add_binary(program, op->second, a, add_constant_of(program, node, "value", is_wide));
  if (node.name == "rsqrt")
    return add_binary(program, RowOp::div, add_constant(program, 1), add_unary(program, RowOp::sqrt, a));
  if (node.name == "round_to_power_of_two") {
    const bool is_up = node.attributes.at("rounding").word() == "up";
    return add_unary(program, is_up ? RowOp::power_of_two_up : RowOp::power_of_two_down, a);
  }
  if (node.name == "replace_nan")
    return program.add({.op = RowOp::replace_nan, .a = a, .number = number_of(node, "value")});
  if (node.name == "where_at_most")
    return program.add(
        {.op = RowOp::select_at_most, .a = a, .b = operands[1], .c = operands[2], .number = number_of(node, "bound")});
  if (node.name == "clamp") return add_clamp(program, node, a);
  if (node.name == "reciprocal") return add_reciprocal(program, node, a);
  refuse("{} is not an op of rows", node.name);
}

}  // namespace weft
