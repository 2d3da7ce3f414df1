#include "codegen/build_row_program.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include <fmt/core.h>

#include "codegen/row_shape.h"
#include "codegen/simplify_rows.h"
#include "codegen/taken_rows.h"
#include "ir/alias.h"

namespace weft {
namespace {

// Vectors have at most so many lanes: groups and runs of whole vectors never share one.
constexpr std::int64_t kLargestVector = 16;
constexpr std::int64_t kLargestGroup = 256;

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

class RowProgramBuilder {
 public:
  explicit RowProgramBuilder(std::span<const Node* const> nodes) : nodes_(nodes) {
    region_.nodes.assign(nodes.begin(), nodes.end());
    members_.insert(nodes.begin(), nodes.end());
  }

  RowRegion run() {
    measure();
    for (const Node* node : nodes_) {
      try {
        at_hand_ = node;
        if (node->name == "concat") {
          put_together(*node);
        } else {
          values_[node->result()] = build(*node);
        }
      } catch (NoRowProgram& no) {
        throw NoRowProgram{fmt::format("[{}] {}", node->name, no.reason)};
      }
    }
    add_outputs();
    simplify_rows(program());
    program().finish();
    return std::move(region_);
  }

 private:
  RowProgram& program() { return region_.program; }
  const RowValue& value_at(int id) { return program().values[static_cast<std::size_t>(id)]; }

  // Rows, columns and groups of the whole.
  void measure() {
    rows_ = Dim(1);
    for (const Node* node : nodes_)
      if (const Meta& meta = node->result()->meta; !is_single(meta)) rows_ = meta.shape[0];
    for (const Node* node : nodes_) {
      const bool is_put_together = node->name == "concat";
      const Meta& widest = is_put_together ? node->operands[0]->meta : node->result()->meta;
      program().columns = std::max(program().columns, columns_of(widest));
      if (is_reduction(*node)) program().columns = std::max(program().columns, columns_of(node->operands[0]->meta));
    }
    for (const Node* node : nodes_) {
      if (!is_reduction(*node)) continue;
      const std::int64_t extent = last_extent(node->operands[0]->meta);
      if (columns_of(node->operands[0]->meta) != program().columns || extent == program().columns) continue;
      if (program().group != 0 && program().group != extent)
        refuse("[{}] has groups of {} among groups of {}", node->name, extent, program().group);
      if (extent % kLargestVector != 0 || extent > kLargestGroup)
        refuse("[{}] has groups of {}, wanted whole vectors of {} up to {}", node->name, extent, kLargestVector,
               kLargestGroup);
      program().group = extent;
    }
  }

  static bool is_reduction(const Node& node) { return node.name == "sum" || node.name == "amax"; }

  // By the shape alone.
  RowDomain domain_of(const Meta& meta) {
    if (is_single(meta) && !(rows_ == Dim(1) && meta.rank() > 0)) return RowDomain::constant;
    if (meta.rank() == 0 || !(meta.shape[0] == rows_)) refuse("{} has other rows than [{}]", meta.text(), rows_.text());
    const std::int64_t columns = columns_of(meta);
    if (columns == 1) return RowDomain::row;
    if (columns == program().columns) return RowDomain::element;
    if (program().group != 0 && columns == program().columns / program().group) return RowDomain::group;
    refuse("{} has {} columns among {}", meta.text(), columns, program().columns);
  }

  // The value of a member that an operand is, through views; null when it comes from outside.
  const GraphValue* member_of(const GraphValue* operand) {
    bool is_part = false;
    const GraphValue* value = operand;
    while (value->producer != nullptr && value->producer->op != nullptr && value->producer->op->is_view) {
      is_part = is_part || value->producer->name != "reshape";
      value = value->producer->operands[0];
    }
    if (value->producer == nullptr || members_.count(value->producer) == 0) return nullptr;
    if (is_part) refuse("{} is a part of a value of the same function", operand->name);
    if (parts_.count(value) != 0) refuse("{} is put together in the same function", operand->name);
    return value;
  }

  int add(RowValue value) { return program().add(value); }
  int add_constant(double number) { return add({.op = RowOp::constant, .number = number}); }
  // Buffers, into which a number is lifted, hold f32.
  int add_constant(const Node& node, const char* attribute, bool is_wide = false) {
    const auto parameter = static_cast<std::size_t>(node.op->schema.parameter_index(attribute));
    return add({.op = RowOp::constant,
                .number = is_wide ? node.attributes.at(attribute).real() : number_of(node, attribute),
                .is_wide = is_wide,
                .is_liftable = !is_wide && node.op->schema.parameters[parameter].is_liftable});
  }
  int add_unary(RowOp op, int a) { return add({.op = op, .a = a}); }
  int add_binary(RowOp op, int a, int b) { return add({.op = op, .a = a, .b = b}); }

  // The operand's value where the node computes a value of type `to`.
  int operand(const GraphValue* operand, const Meta& to) {
    if (rows_taken_by(*operand, at_hand_) != nullptr) return load(*operand, to);
    if (const GraphValue* member = member_of(operand)) return member_operand(*operand, *member, to);
    return load(*operand, to);
  }

  int member_operand(const GraphValue& operand, const GraphValue& member, const Meta& to) {
    const RowDomain own = domain_of(member.meta), wanted = domain_of(to);
    const Shape& shape = operand.meta.shape;
    const bool same = own == wanted && shape == to.shape;
    const bool of_row = own == RowDomain::row && shape.size() == to.rank() && shape[0] == rows_;
    const bool of_group = own == RowDomain::group && wanted == RowDomain::element && shape.size() == to.rank() &&
                          shape.back() == Dim(1) && last_extent(to) == program().group &&
                          std::equal(shape.begin(), shape.end() - 1, to.shape.begin());
    if (!same && !of_row && !of_group && own != RowDomain::constant)
      refuse("{} is spread over {}", operand.meta.text(), to.text());
    return values_.at(&member);
  }

  // A result that is nobody's value: each operand is stored where it belongs in it.
  void put_together(const Node& node) {
    const Meta& meta = node.result()->meta;
    const std::int64_t dim = node.attributes.at("dim").integer();
    if (dim != -1 && dim != static_cast<std::int64_t>(meta.rank()) - 1) refuse("puts dim {} together", dim);
    if (!meta.is_contiguous() || !is_row_dtype(meta.dtype)) refuse("gives {}", meta.text());
    const std::int64_t width = last_extent(meta);
    std::vector<RowStore> parts;
    std::int64_t offset = 0;
    for (const GraphValue* part : node.operands) {
      if (domain_of(part->meta) != RowDomain::element || part->meta.dtype != meta.dtype)
        refuse("puts {} into {}", part->meta.text(), meta.text());
      RowStore store{.value = operand(part, part->meta), .offset = offset};
      const std::int64_t extent = last_extent(part->meta);
      offset += extent;
      if (extent == 1) {
        store.placement.stride = width;
      } else if (extent != program().columns) {
        set_runs(store.placement, extent, width);
      }
      parts.push_back(store);
    }
    parts_[node.result()] = std::move(parts);
  }

  int load(const GraphValue& from, const Meta& to) {
    const Meta& meta = from.meta;
    if (!meta.is_tensor() || !meta.packed.empty() || !is_row_dtype(meta.dtype)) refuse("reads {}", meta.text());
    RowDomain domain = domain_of(to);
    RowBuffer buffer{.dtype = meta.dtype};
    std::vector<ColumnDim> dims;
    buffer.row_stride = lie_of(meta, to, dims);
    const GraphValue* source = &from;
    if (const Node* taking = rows_taken_by(from, at_hand_)) source = take_rows(*taking, from, buffer);
    const auto is = [&](std::size_t i, std::int64_t stride) { return dims[i].stride == stride; };
    if (dims.empty() || (dims.size() == 1 && is(0, 0))) {
      domain = buffer.row_stride == 0 ? RowDomain::constant : RowDomain::row;
    } else if (domain == RowDomain::element && dims.size() == 2 && is(0, 1) && is(1, 0) &&
               dims[1].extent == program().group) {
      domain = RowDomain::group;
    } else if (domain == RowDomain::element && dims.size() <= 2 && !is(dims.size() - 1, 0)) {
      buffer.placement.stride = dims.back().stride;
      if (dims.size() == 2) set_runs(buffer.placement, dims[1].extent, dims[0].stride);
    } else if (dims.size() != 1 || !is(0, 1)) {
      refuse("reads {} in columns that lie in no order of rows", meta.text());
    }
    Loaded& loaded = loaded_[static_cast<std::size_t>(input(*source, domain, buffer))];
    if (loaded.value < 0)
      loaded.value = add({.op = RowOp::load, .domain = domain, .buffer = static_cast<int>(&loaded - loaded_.data())});
    return loaded.value;
  }

  // The number of the buffer through which `from` is read.
  int input(const GraphValue& from, RowDomain domain, const RowBuffer& buffer) {
    const auto same = [&](const Loaded& loaded) {
      return loaded.from == &from && loaded.domain == domain && loaded.buffer == buffer;
    };
    const auto known = std::find_if(loaded_.begin(), loaded_.end(), same);
    if (known != loaded_.end()) return static_cast<int>(known - loaded_.begin());
    if (program().buffers.size() == kMostRowBuffers) refuse("reads more than {} tensors", kMostRowBuffers);
    program().buffers.push_back(buffer);
    region_.inputs.push_back(&from);
    loaded_.push_back({&from, domain, buffer, -1});
    return static_cast<int>(loaded_.size()) - 1;
  }

  // Makes a buffer of what `taking` takes, with the stride of a row of `from`, one of the table. Gives the table.
  const GraphValue* take_rows(const Node& taking, const GraphValue& from, RowBuffer& buffer) {
    const GraphValue *table = taking.operands[0], *numbers = taking.operands[1];
    const Dim begin = storage_offset(&from);
    if (buffer.row_stride != columns_of(taking.result()->meta) || !begin.is_number())
      refuse("reads {} of rows that are taken from a table", from.meta.text());
    for (const GraphValue* given : {table, numbers})
      if (storage_root(given)->producer != nullptr && members_.count(storage_root(given)->producer) != 0)
        refuse("{} is taken from, and made, in the same function", given->name);
    buffer.numbers = input(*numbers, RowDomain::row, {.dtype = numbers->meta.dtype, .row_stride = 1});
    buffer.taken_from = table->meta.shape[0].number();
    buffer.begin = begin.number();
    return table;
  }

  // Vectors are to lie within runs.
  void set_runs(RowPlacement& placement, std::int64_t run, std::int64_t run_stride) {
    if (run % kLargestVector != 0) refuse("has columns in runs of {}, wanted whole vectors of {}", run, kLargestVector);
    placement.run = run;
    placement.run_stride = run_stride;
  }

  // As it reads once it was in memory.
  int rounded(int value, DType dtype) {
    if (value_at(value).is_wide && dtype == DType::f64) return value;
    if (!is_row_result_dtype(dtype) || value_at(value).is_wide) refuse("gives {}", dtype_text(dtype));
    return dtype == DType::f32 ? value : add({.op = RowOp::convert, .a = value, .dtype = dtype});
  }

  int build(const Node& node) {
    const Meta& meta = node.result()->meta;
    domain_of(meta);
    if (!meta.is_contiguous()) refuse("gives {}", meta.text());
    if (is_reduction(node)) return rounded(build_reduction(node), meta.dtype);
    if (takes_whole_rows(node)) return load(*node.result(), meta);
    std::vector<int> operands;
    for (const GraphValue* given : node.operands) operands.push_back(operand(given, meta));
    return rounded(build_pointwise(node, operands), meta.dtype);
  }

  int build_pointwise(const Node& node, const std::vector<int>& operands) {
    const Attributes& attributes = node.attributes;
    const int a = operands[0];
    const bool is_wide = value_at(a).is_wide;
    if (node.name == "cast") return cast(a, node.result()->meta.dtype);
    const auto sign = kBinaryOps.find(node.name);
    const bool is_sum_or_product = (sign != kBinaryOps.end() && sign->second <= RowOp::div) ||
                                   kScalarOps.count(node.name) != 0 || node.name == "neg";
    if (is_wide && !is_sum_or_product) refuse("is computed in f64");
    if (const auto op = kUnaryOps.find(node.name); op != kUnaryOps.end()) return add_unary(op->second, a);
    if (const auto op = kBinaryOps.find(node.name); op != kBinaryOps.end())
      return add_binary(op->second, a, operands[1]);
    if (const auto op = kScalarOps.find(node.name); op != kScalarOps.end())
      return add_binary(op->second, a, add_constant(node, "value", is_wide));
    if (node.name == "rsqrt") return add_binary(RowOp::div, add_constant(1), add_unary(RowOp::sqrt, a));
    if (node.name == "round_to_power_of_two")
      return add_unary(attributes.at("rounding").word() == "up" ? RowOp::power_of_two_up : RowOp::power_of_two_down, a);
    if (node.name == "replace_nan") return add({.op = RowOp::replace_nan, .a = a, .number = number_of(node, "value")});
    if (node.name == "where_at_most")
      return add({.op = RowOp::select_at_most,
                  .a = a,
                  .b = operands[1],
                  .c = operands[2],
                  .number = number_of(node, "bound")});
    if (node.name == "clamp") {
      int value = a;
      if (!attributes.at("min").is_none()) value = add_binary(RowOp::at_least, value, add_constant(node, "min"));
      if (!attributes.at("max").is_none()) value = add_binary(RowOp::at_most, value, add_constant(node, "max"));
      return value;
    }
    if (node.name == "reciprocal") {
      const int value = add_binary(RowOp::div, add_constant(1), a);
      if (attributes.at("of_zero").is_none()) return value;
      return add({.op = RowOp::replace_zero, .a = a, .b = value, .number = number_of(node, "of_zero")});
    }
    refuse("{} is no op of rows", node.name);
  }

  static double number_of(const Node& node, const char* attribute) {
    return static_cast<double>(static_cast<float>(node.attributes.at(attribute).real()));
  }

  // What is rounded to the dtype where the graph has it in memory.
  int cast(int value, DType dtype) {
    const bool is_wide = value_at(value).is_wide;
    if (dtype == DType::f64) return is_wide ? value : add_unary(RowOp::widen, value);
    return is_wide && dtype == DType::f32 ? add_unary(RowOp::narrow, value) : value;
  }

  int build_reduction(const Node& node) {
    const Meta& meta = node.operands[0]->meta;
    const std::int64_t dim = node.attributes.at("dim").integer();
    if (dim != -1 && dim != static_cast<std::int64_t>(meta.rank()) - 1) refuse("reduces dim {}", dim);
    if (meta.rank() < 2 || columns_of(meta) != program().columns)
      refuse("reduces {} among rows of {} columns", meta.text(), program().columns);
    const bool whole = last_extent(meta) == program().columns;
    const int value = operand(node.operands[0], meta);
    if (value_at(value).is_wide) refuse("is computed in f64");
    if (node.name == "sum") return add_unary(whole ? RowOp::row_sum : RowOp::group_sum, value);
    if (has_no_sign(value)) return add_unary(whole ? RowOp::row_max : RowOp::group_max, value);
    if (!whole) refuse("is the largest in groups of values that have signs");
    return add_binary(RowOp::add, add_unary(RowOp::row_signed_max, value), add_constant(0));
  }

  bool has_no_sign(int id) {
    const RowValue& value = value_at(id);
    if (value.op == RowOp::convert) return has_no_sign(value.a);
    if (value.op == RowOp::replace_nan) return has_no_sign(value.a) && !std::signbit(value.number);
    return value.op == RowOp::abs;
  }

  // Whether a value, or a view of it, is read by anybody else.
  bool is_used_outside(const GraphValue& value) const {
    return std::any_of(value.uses.begin(), value.uses.end(), [&](const Use& use) {
      if (members_.count(use.node) != 0) return false;
      const bool is_view = use.node->op != nullptr && use.node->op->is_view;
      return !is_view || is_used_outside(*use.node->result());
    });
  }

  void add_outputs() {
    for (const Node* node : nodes_) {
      const GraphValue* value = node->result();
      if (!is_used_outside(*value)) continue;
      const auto parts = parts_.find(value);
      const RowDomain domain = parts != parts_.end() ? RowDomain::element : domain_of(value->meta);
      if (value->meta.dtype == DType::f64) refuse("[{}] gives f64", node->name);
      const std::int64_t elements = dtype_info(value->meta.dtype).block_elements;
      if (elements > 1 && (domain != RowDomain::element || program().columns % elements != 0))
        refuse("[{}] gives {}, whose rows share bytes", node->name, value->meta.text());
      // Every row would write it.
      if (domain == RowDomain::constant) refuse("[{}] is one number for all rows that others use", node->name);
      if (program().buffers.size() == kMostRowBuffers) refuse("reads and gives more than {} tensors", kMostRowBuffers);
      const int buffer = static_cast<int>(program().buffers.size());
      program().buffers.push_back(
          {.dtype = value->meta.dtype, .is_output = true, .row_stride = columns_of(value->meta)});
      if (parts == parts_.end()) {
        program().stores.push_back({buffer, values_.at(value), domain});
      } else {
        for (RowStore& part : parts->second) {
          part.buffer = buffer;
          program().stores.push_back(part);
        }
      }
      region_.outputs.push_back(value);
    }
    if (region_.outputs.empty()) refuse("[{}] is used by nobody", nodes_.front()->name);
  }

  struct Loaded {
    const GraphValue* from;
    RowDomain domain;
    RowBuffer buffer;
    int value;  // -1: row numbers, which are no value
  };

  std::span<const Node* const> nodes_;
  std::set<const Node*> members_;
  const Node* at_hand_ = nullptr;
  Dim rows_;
  RowRegion region_;
  std::map<const GraphValue*, int> values_;                   // of members
  std::map<const GraphValue*, std::vector<RowStore>> parts_;  // of members that are put together
  std::vector<Loaded> loaded_;                                // by buffer
};

bool computes(const Node& node) {
  return node.kind == NodeKind::op && node.op != nullptr && node.op->is_primitive() && !node.op->is_view &&
         !node.op->is_allocation && node.results.size() == 1 && !node.operands.empty() &&
         std::find(node.operands.begin(), node.operands.end(), nullptr) == node.operands.end();
}

}  // namespace

bool is_row_node(const Node& primitive) {
  const Node* const nodes[] = {&primitive};
  std::string reason;
  return computes(primitive) && build_row_program(nodes, reason);
}

bool is_row_candidate(const Node& node) { return node.provider == "native" && computes(node); }

std::optional<RowRegion> build_row_program(std::span<const Node* const> nodes, std::string& reason) {
  try {
    return RowProgramBuilder(nodes).run();
  } catch (const NoRowProgram& no) {
    reason = no.reason;
    return std::nullopt;
  }
}

}  // namespace weft
