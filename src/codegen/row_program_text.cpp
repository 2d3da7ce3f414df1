// The text of a row program: the key of its code, and what dumps show.

#include <cmath>

#include <fmt/core.h>

#include "base/content_hash.h"
#include "codegen/row_program.h"

namespace weft {
namespace {

std::string_view row_domain_text(RowDomain domain) {
  constexpr std::string_view kTexts[] = {"const", "row", "group", "elem"};
  return kTexts[static_cast<std::size_t>(domain)];
}

std::string placement_text(const RowPlacement& placement) {
  std::string text;
  if (placement.run > 0) text += fmt::format(" runs of {} at {}", placement.run, placement.run_stride);
  if (placement.stride != 1) text += fmt::format(" every {}", placement.stride);
  return text;
}

}  // namespace

std::string RowTuning::text() const {
  const RowTuning standard;
  std::string text;
  if (unroll != standard.unroll) text += fmt::format(" unroll={}", unroll);
  if (parts != standard.parts) text += fmt::format(" parts={}", parts);
  if (chunks != standard.chunks) text += fmt::format(" chunks={}", chunks);
  return text.empty() ? "default" : text.substr(1);
}

std::string RowProgram::text() const {
  std::string text = fmt::format("rows columns={}", columns);
  if (group > 0) text += fmt::format(" group={}", group);
  if (const RowTuning code{.unroll = tuning.unroll, .parts = tuning.parts}; code != RowTuning())
    text += " " + code.text();
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    const RowBuffer& buffer = buffers[i];
    text += fmt::format("\n  buffer {} {} {} row={}", i, buffer.is_output ? "out" : "in", dtype_text(buffer.dtype),
                        buffer.row_stride);
    if (buffer.part_stride != 0) text += fmt::format(" part={}", buffer.part_stride);
    if (buffer.numbers >= 0) text += fmt::format(" by {} of {}", buffer.numbers, buffer.taken_from);
    if (buffer.begin != 0) text += fmt::format(" at {}", buffer.begin);
    text += placement_text(buffer.placement);
    if (buffer.interleaved_with >= 0) text += fmt::format(" interleaved with {}", buffer.interleaved_with);
    if (buffer.over >= 0) text += fmt::format(" over {}", buffer.over);
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    const RowValue& value = values[i];
    text += fmt::format("\n  v{} {} = {}", i, row_domain_text(value.domain), row_op_text(value.op));
    if (value.op == RowOp::load) text += fmt::format(" {}", value.buffer);
    for (int operand : {value.a, value.b, value.c})
      if (operand >= 0) text += fmt::format(" v{}", operand);
    if (value.op == RowOp::convert)
      text += fmt::format(" {}{}", dtype_text(value.dtype), value.is_plain ? " plain" : "");
    const bool has_number = value.op == RowOp::constant || value.op == RowOp::select_at_most ||
                            value.op == RowOp::replace_nan || value.op == RowOp::replace_zero;
    if (has_number)
      text += std::isnan(value.number) ? " nan"
              : value.is_wide          ? fmt::format(" {:.17g} f64", value.number)
                                       : fmt::format(" {:.9g}", value.number);
    if (value.slot >= 0) text += fmt::format(" kept {}", value.slot);
  }
  for (const RowStore& store : stores) {
    text += fmt::format("\n  store {} v{}", store.buffer, store.value);
    if (store.domain != values[static_cast<std::size_t>(store.value)].domain)
      text += fmt::format(" for {}", row_domain_text(store.domain));
    if (store.offset != 0) text += fmt::format(" at {}", store.offset);
    text += placement_text(store.placement);
  }
  return text + "\n";
}

std::string RowProgram::name() const {
  return fmt::format("{}{}", kRowFunctionPrefix, hash_bytes(text()).hex().substr(0, 16));
}

std::string RowProgram::kernel_name() const {
  return tuning.chunks == 0 ? name() : fmt::format("{}.chunks{}", name(), tuning.chunks);
}

}  // namespace weft
