#include "codegen/build_row_program.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

#include <fmt/core.h>

#include "codegen/pointwise_rows.h"
#include "codegen/row_inputs.h"
#include "codegen/row_shape.h"
#include "codegen/simplify_rows.h"
#include "codegen/taken_rows.h"
#include "ir/alias.h"

namespace weft {
namespace {

// The largest number of lanes of a vector. Groups and runs are multiples of it, so no vector contains parts of two.
constexpr std::int64_t kLargestVector = 16;
constexpr std::int64_t kLargestGroup = 256;

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
          values_[node->result()] = build_halves(*node);
        }
      } catch (NoRowProgram& no) {
        throw NoRowProgram{fmt::format("[{}] {}", node->name, no.reason)};
      }
    }
    inputs_.find_neighbours();
    add_outputs();
    simplify_rows(program());
    program().finish();
    return std::move(region_);
  }

 private:
  RowProgram& program() { return region_.program; }
  const RowValue& value_at(int id) { return program().values[static_cast<std::size_t>(id)]; }

  // Sets the rows, columns and groups of the program, and whether values are split into halves.
  void measure() {
    find_halves();
    rows_ = Dim(1);
    for (const Node* node : nodes_)
      if (const Meta& meta = node->result()->meta; !is_single(meta)) rows_ = meta.shape[0];
    for (const Node* node : nodes_) {
      const bool is_put_together = node->name == "concat";
      const Meta& widest = is_put_together ? node->operands[0]->meta : node->result()->meta;
      program().columns = std::max(program().columns, columns_of(widest));
      if (is_reduction(*node)) program().columns = std::max(program().columns, columns_of(node->operands[0]->meta));
    }
    measure_groups();
    if (half_ == 0) return;
    if (program().group != 0 && program().group != 2 * half_)
      refuse("reads halves of {} among groups of {}", half_, program().group);
    if (program().columns % (2 * half_) != 0 || half_ % kLargestVector != 0)
      refuse("reads halves of {} of {} columns, wanted whole vectors of {}", half_, program().columns, kLargestVector);
    program().columns /= 2;
    program().group /= 2;
  }

  void measure_groups() {
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

  // If a node reads the two halves of a member's groups or rows, as a rotary embedding does with heads, the program has
  // half as many columns. Each value of the full width then becomes two values: one for the first halves, one for the
  // second halves.
  void find_halves() {
    for (const Node* node : nodes_)
      for (const GraphValue* operand : node->operands) {
        const GraphValue* whole = storage_root(operand);
        if (whole->producer == nullptr || members_.count(whole->producer) == 0) continue;
        if (2 * columns_of(operand->meta) != columns_of(whole->meta)) continue;
        const std::int64_t half = last_extent(operand->meta);
        if (half_ != 0 && half_ != half) refuse("reads halves of {} and of {}", half_, half);
        half_ = half;
      }
  }
  bool is_in_halves(const Meta& meta) { return half_ != 0 && columns_of(meta) == 2 * program().columns; }

  // Returns which half of a member's groups or rows a view reads: 0 or 1.
  std::size_t half_read(const GraphValue& view, const Meta& to) {
    std::vector<ColumnDim> dims, halves{{2 * program().columns, 1}};
    const bool is_of_rows = lie_of(view.meta, to, dims) == 2 * program().columns;
    halve_columns(halves, half_, 0);
    const Dim begin = storage_offset(&view);
    if (!is_of_rows || dims != halves || !(begin == Dim(0) || begin == Dim(half_)))
      refuse("{} is a part of a value of the same function", view.name);
    return begin == Dim(0) ? 0 : 1;
  }

  // The domain follows from the shape alone.
  RowDomain domain_of(const Meta& meta) {
    if (is_single(meta) && !(rows_ == Dim(1) && meta.rank() > 0)) return RowDomain::constant;
    if (meta.rank() == 0 || !(meta.shape[0] == rows_)) refuse("{} has other rows than [{}]", meta.text(), rows_.text());
    if (is_in_halves(meta)) return RowDomain::element;
    const std::int64_t columns = columns_of(meta);
    if (columns == 1) return RowDomain::row;
    if (columns == program().columns) return RowDomain::element;
    if (program().group != 0 && columns == program().columns / program().group) return RowDomain::group;
    refuse("{} has {} columns among {}", meta.text(), columns, program().columns);
  }

  // Returns the member's value that an operand is or views; null if the operand comes from outside.
  const GraphValue* member_of(const GraphValue* operand) {
    bool is_part = false;
    const GraphValue* value = operand;
    while (value->producer != nullptr && value->producer->op != nullptr && value->producer->op->is_view) {
      is_part = is_part || value->producer->name != "reshape";
      value = value->producer->operands[0];
    }
    if (value->producer == nullptr || members_.count(value->producer) == 0) return nullptr;
    const bool is_half = is_in_halves(value->meta) && !is_in_halves(operand->meta);
    if (is_part && !is_half) refuse("{} is a part of a value of the same function", operand->name);
    if (parts_.count(value) != 0) refuse("{} is put together in the same function", operand->name);
    return value;
  }

  int add(RowValue value) { return program().add(value); }

  // Returns the operand's value for a node that computes a result like `to`.
  int operand(const GraphValue* operand, const Meta& to) {
    if (rows_taken_by(*operand, at_hand_) != nullptr) return load(*operand, to);
    if (const GraphValue* member = member_of(operand)) return member_operand(*operand, *member, to);
    return load(*operand, to);
  }

  int member_operand(const GraphValue& operand, const GraphValue& member, const Meta& to) {
    if (is_in_halves(member.meta) && !is_in_halves(operand.meta)) return values_.at(&member)[half_read(operand, to)];
    const RowDomain own = domain_of(member.meta), wanted = domain_of(to);
    const Shape& shape = operand.meta.shape;
    const std::int64_t group = is_in_halves(to) ? 2 * program().group : program().group;
    const bool same = own == wanted && shape == to.shape;
    const bool of_row = own == RowDomain::row && shape.size() == to.rank() && shape[0] == rows_;
    const bool of_group = own == RowDomain::group && wanted == RowDomain::element && shape.size() == to.rank() &&
                          shape.back() == Dim(1) && last_extent(to) == group &&
                          std::equal(shape.begin(), shape.end() - 1, to.shape.begin());
    if (!same && !of_row && !of_group && own != RowDomain::constant)
      refuse("{} is spread over {}", operand.meta.text(), to.text());
    return values_.at(&member)[at_hand_half_];
  }

  // A concat result is no value of the program: each operand is stored at its own offset in the result.
  void put_together(const Node& node) {
    const Meta& meta = node.result()->meta;
    const std::int64_t dim = node.attributes.at("dim").integer();
    if (dim != -1 && dim != static_cast<std::int64_t>(meta.rank()) - 1) refuse("puts dim {} together", dim);
    if (!meta.is_contiguous() || !is_row_dtype(meta.dtype)) refuse("gives {}", meta.text());
    const std::int64_t width = last_extent(meta);
    std::vector<RowStore> parts;
    std::int64_t offset = 0;
    for (const GraphValue* part : node.operands) {
      if (domain_of(part->meta) != RowDomain::element || is_in_halves(part->meta) || part->meta.dtype != meta.dtype)
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
    if (is_in_halves(to)) buffer.begin = halve_columns(dims, half_, at_hand_half_);
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
      refuse("reads {} in columns that are in no order of rows", meta.text());
    }
    return inputs_.load(*source, domain, buffer);
  }

  // Makes `buffer` a gather of the rows that `taking` selects from its table. A row of `from` must have the stride of a
  // row of the table. Returns the table.
  const GraphValue* take_rows(const Node& taking, const GraphValue& from, RowBuffer& buffer) {
    const GraphValue *table = taking.operands[0], *numbers = taking.operands[1];
    const Dim begin = storage_offset(&from);
    if (buffer.row_stride != columns_of(taking.result()->meta) || !begin.is_number())
      refuse("reads {} of rows that are taken from a table", from.meta.text());
    for (const GraphValue* given : {table, numbers})
      if (storage_root(given)->producer != nullptr && members_.count(storage_root(given)->producer) != 0)
        refuse("{} is taken from, and made, in the same function", given->name);
    buffer.numbers = inputs_.buffer_of(*numbers, RowDomain::row, {.dtype = numbers->meta.dtype, .row_stride = 1});
    buffer.taken_from = table->meta.shape[0].number();
    buffer.begin += begin.number();
    return table;
  }

  // A run must consist of whole vectors, so that no vector crosses the end of a run.
  void set_runs(RowPlacement& placement, std::int64_t run, std::int64_t run_stride) {
    if (run % kLargestVector != 0) refuse("has columns in runs of {}, wanted whole vectors of {}", run, kLargestVector);
    placement.run = run;
    placement.run_stride = run_stride;
  }

  // Rounds a value to its dtype, as a store to memory and a load do.
  int rounded(int value, DType dtype) {
    if (value_at(value).is_wide && dtype == DType::f64) return value;
    if (!is_row_result_dtype(dtype) || value_at(value).is_wide) refuse("gives {}", dtype_text(dtype));
    return dtype == DType::f32 ? value : add({.op = RowOp::convert, .a = value, .dtype = dtype});
  }

  // Returns the value for the first halves and that for the second halves; without halves, the same value twice.
  std::array<int, 2> build_halves(const Node& node) {
    at_hand_half_ = 0;
    std::array<int, 2> made{};
    made[0] = made[1] = build(node);
    if (!is_in_halves(node.result()->meta)) return made;
    at_hand_half_ = 1;
    made[1] = build(node);
    at_hand_half_ = 0;
    return made;
  }

  int build(const Node& node) {
    const Meta& meta = node.result()->meta;
    domain_of(meta);
    if (!meta.is_contiguous()) refuse("gives {}", meta.text());
    if (is_reduction(node)) return rounded(build_reduction(node), meta.dtype);
    if (takes_whole_rows(node)) return load(*node.result(), meta);
    std::vector<int> operands;
    for (const GraphValue* given : node.operands) operands.push_back(operand(given, meta));
    return rounded(add_pointwise(program(), node, operands), meta.dtype);
  }

  int build_reduction(const Node& node) {
    const Meta& meta = node.operands[0]->meta;
    const std::int64_t dim = node.attributes.at("dim").integer();
    if (dim != -1 && dim != static_cast<std::int64_t>(meta.rank()) - 1) refuse("reduces dim {}", dim);
    if (meta.rank() >= 2 && is_in_halves(meta)) return build_sum_of_halves(node);
    if (meta.rank() < 2 || columns_of(meta) != program().columns)
      refuse("reduces {} among rows of {} columns", meta.text(), program().columns);
    const bool whole = last_extent(meta) == program().columns;
    if (!whole && last_extent(meta) != program().group)
      refuse("reduces {} among groups of {}", meta.text(), program().group);
    const int value = operand(node.operands[0], meta);
    if (value_at(value).is_wide) refuse("is computed in f64");
    if (node.name == "sum") return add_unary(program(), whole ? RowOp::row_sum : RowOp::group_sum, value);
    if (has_no_sign(value)) return add_unary(program(), whole ? RowOp::row_max : RowOp::group_max, value);
    if (!whole) refuse("is the largest in groups of values that have signs");
    const int largest = add_unary(program(), RowOp::row_signed_max, value);
    return add_binary(program(), RowOp::add, largest, add_constant(program(), 0));
  }

  int build_sum_of_halves(const Node& node) {
    const Meta& meta = node.operands[0]->meta;
    if (node.name != "sum" || program().group == 0 || last_extent(meta) != 2 * program().group)
      refuse("is made of {} in halves of {}", meta.text(), half_);
    const int first = operand(node.operands[0], meta);
    at_hand_half_ = 1;
    const int second = operand(node.operands[0], meta);
    at_hand_half_ = 0;
    if (value_at(first).is_wide) refuse("is computed in f64");
    return add_binary(program(), RowOp::group_sum_of_halves, first, second);
  }

  bool has_no_sign(int id) {
    const RowValue& value = value_at(id);
    if (value.op == RowOp::convert) return has_no_sign(value.a);
    if (value.op == RowOp::replace_nan) return has_no_sign(value.a) && !std::signbit(value.number);
    return value.op == RowOp::abs;
  }

  // Whether a node that is no member uses a value or a view of it.
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
      // Otherwise every row would write it.
      if (domain == RowDomain::constant) refuse("[{}] is one number for all rows that others use", node->name);
      if (program().buffers.size() == kMostRowBuffers) refuse("reads and gives more than {} tensors", kMostRowBuffers);
      const int buffer = static_cast<int>(program().buffers.size());
      program().buffers.push_back(
          {.dtype = value->meta.dtype, .is_output = true, .row_stride = columns_of(value->meta)});
      if (parts == parts_.end() && is_in_halves(value->meta)) {
        for (const std::size_t half : {0, 1}) {
          RowStore store{buffer, values_.at(value)[half], domain, static_cast<std::int64_t>(half) * half_};
          if (half_ != program().columns) set_runs(store.placement, half_, 2 * half_);
          program().stores.push_back(store);
        }
      } else if (parts == parts_.end()) {
        program().stores.push_back({buffer, values_.at(value)[0], domain});
      } else {
        for (RowStore& part : parts->second) {
          part.buffer = buffer;
          program().stores.push_back(part);
        }
      }
      region_.outputs.push_back(value);
    }
    if (region_.outputs.empty()) refuse("[{}] is not used", nodes_.front()->name);
  }

  std::span<const Node* const> nodes_;
  std::set<const Node*> members_;
  const Node* at_hand_ = nullptr;
  Dim rows_;
  std::int64_t half_ = 0;         // columns of a half (find_halves); 0: no halves
  std::size_t at_hand_half_ = 0;  // the half that is built at the moment: 0 or 1
  RowRegion region_;
  std::map<const GraphValue*, std::array<int, 2>> values_;    // by member; two different values only if it is in halves
  std::map<const GraphValue*, std::vector<RowStore>> parts_;  // by member that is a concat
  RowInputs inputs_{region_};
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
