// The text of a row program, which names its function and is the key of its code. It contains every field of every
// value, buffer and store, except what finish() derives. The fields are destructured by name, so a new field does not
// compile here until it is assigned to one of the two sets.

#include <iostream>

#include <gtest/gtest.h>

#include "codegen/row_program.h"
#include "codegen/row_tuning.h"
#include "tests/codegen/random_rows.h"
#include "tests/field_changes.h"

namespace weft::row_program_text_test {

constexpr int kDomains = static_cast<int>(RowDomain::element) + 1;
constexpr int kOps = static_cast<int>(RowOp::group_max) + 1;

bool has_number(const RowValue& value) {
  return value.op == RowOp::constant || value.op == RowOp::select_at_most || value.op == RowOp::replace_nan ||
         value.op == RowOp::replace_zero;
}

void change_placement(FieldChanges& changes, const std::string& of, RowPlacement& placement) {
  auto& [stride, run, run_stride] = placement;
  changes.number(of + "stride", stride);
  changes.set(of + "run", run, run + 16);
  if (run > 0) changes.number(of + "run_stride", run_stride);
}

void change_buffer(FieldChanges& changes, RowBuffer& buffer) {
  auto& [dtype, is_output, row_stride, part_stride, placement, numbers, taken_from, begin, interleaved_with, over] =
      buffer;
  changes.choice("buffer.dtype", dtype, kDTypeCount);
  changes.flag("buffer.is_output", is_output);
  changes.number("buffer.row_stride", row_stride);
  changes.number("buffer.part_stride", part_stride);
  change_placement(changes, "buffer.placement.", placement);
  changes.number("buffer.numbers", numbers);
  if (numbers >= 0) changes.number("buffer.taken_from", taken_from);
  changes.number("buffer.begin", begin);
  changes.set("buffer.begin before the table", begin, -1);
  changes.number("buffer.interleaved_with", interleaved_with);
  changes.number("buffer.over", over);
}

// Of operands and similar fields only those that the op has; `unread` is for fields that must not be in the text.
void change_value(FieldChanges& changes, FieldChanges& unread, RowValue& value) {
  auto& [op, domain, a, b, c, number, is_wide, is_liftable, dtype, is_plain, buffer, level, needs_group, cost, slot] =
      value;
  changes.choice("value.op", op, kOps);
  changes.choice("value.domain", domain, kDomains);
  for (int* operand : {&a, &b, &c})
    if (*operand >= 0) changes.number("value.operand", *operand);
  if (op == RowOp::load) changes.number("value.buffer", buffer);
  if (op == RowOp::convert) changes.choice("value.dtype", dtype, kDTypeCount);
  if (op == RowOp::convert) changes.flag("value.is_plain", is_plain);
  if (has_number(value)) changes.flag("value.is_wide", is_wide);
  if (has_number(value) && is_wide)
    for (const double other : other_numbers(number)) changes.set("value.number, wide", number, other);
  if (has_number(value) && !is_wide)
    for (const float other : other_numbers(static_cast<float>(number))) changes.set("value.number", number, other);
  changes.number("value.slot", slot);
  unread.flag("value.is_liftable", is_liftable);
  for (int* made : {&level, &cost}) unread.number("what finish() sets of a value", *made);
  unread.flag("value.needs_group", needs_group);
}

void change_store(FieldChanges& changes, RowStore& store) {
  auto& [buffer, value, domain, offset, placement] = store;
  changes.number("store.buffer", buffer);
  changes.choice("store.domain", domain, kDomains);
  changes.number("store.offset", offset);
  changes.set("store.offset before the row", offset, -1);
  change_placement(changes, "store.placement.", placement);
  changes.set("store.value", value, value == 0 ? 1 : value - 1);
}

void change_program(FieldChanges& changes, FieldChanges& unread, RowProgram& program) {
  auto& [columns, group, buffers, values, stores, tuning, levels, in_pairs, slots, scratch_floats] = program;
  changes.number("columns", columns);
  changes.number("group", group);
  for (RowBuffer& buffer : buffers) change_buffer(changes, buffer);
  changes.list("buffers", buffers, RowBuffer());
  for (RowValue& value : values) change_value(changes, unread, value);
  std::vector<RowValue> more = values;
  more.emplace_back();
  changes.set("one more value", values, more);
  for (RowStore& store : stores) change_store(changes, store);
  changes.list("stores", stores, RowStore());
  auto& [unroll, parts, chunks] = tuning;
  changes.number("tuning.unroll", unroll);
  changes.number("tuning.parts", parts);
  unread.number("tuning.chunks", chunks);
  unread.number("levels", levels);
  unread.flag("in_pairs", in_pairs);
  unread.list("slots", slots, std::int64_t{0});
  unread.number("scratch_floats", scratch_floats);
}

std::vector<RowProgram> programs() {
  std::mt19937 random(11);
  std::vector<RowProgram> made;
  for (int i = 0; i < 120; ++i) {
    const RowProgram program = random_rows(random, i % 4 == 0);
    made.push_back(program);
    for (const RowTuning& tuning : {RowTuning{.unroll = 2}, RowTuning{.parts = 2}})
      if (const auto tuned = tuned_program(program, tuning)) made.push_back(*tuned);
  }
  return made;
}

TEST(RowProgramText, DiffersWithEveryField) {
  int tried = 0;
  for (RowProgram& program : programs()) {
    const std::string text = program.text(), name = program.name(), kernel_name = program.kernel_name();
    FieldChanges changes([&](const std::string& what) {
      EXPECT_NE(program.text(), text) << what;
      EXPECT_NE(program.name(), name) << what;
    });
    FieldChanges unread([&](const std::string& what) {
      EXPECT_EQ(program.text(), text) << what;
      EXPECT_EQ(program.kernel_name() != kernel_name, what == "tuning.chunks") << what;
    });
    change_program(changes, unread, program);
    ASSERT_EQ(program.text(), text) << "a field was not put back";
    if (HasFailure()) break;
    tried += changes.count();
  }
  std::cout << "count: " << tried << " fields\n";
  EXPECT_GT(tried, 10'000);
}

// Fields that are not in the text follow from those that are.
TEST(RowProgramText, StandsForWhatFinishSets) {
  for (const RowProgram& program : programs()) {
    if (program.tuning.parts > 1) continue;  // cut after it was finished
    RowProgram again;
    again.columns = program.columns;
    again.group = program.group;
    again.tuning = program.tuning;
    again.buffers = program.buffers;
    for (RowBuffer& buffer : again.buffers) buffer.over = -1;
    for (const RowValue& value : program.values)
      again.values.push_back({.op = value.op,
                              .domain = value.domain,
                              .a = value.a,
                              .b = value.b,
                              .c = value.c,
                              .number = value.number,
                              .is_wide = value.is_wide,
                              .is_liftable = !value.is_liftable,
                              .dtype = value.dtype,
                              .is_plain = value.is_plain,
                              .buffer = value.buffer});
    again.stores = program.stores;
    again.finish();
    EXPECT_EQ(again.text(), program.text());
    EXPECT_EQ(again.levels, program.levels);
    EXPECT_EQ(again.in_pairs, program.in_pairs);
    EXPECT_EQ(again.slots, program.slots);
    EXPECT_EQ(again.scratch_floats, program.scratch_floats);
    for (std::size_t i = 0; i < program.values.size(); ++i) {
      EXPECT_EQ(again.values[i].level, program.values[i].level);
      EXPECT_EQ(again.values[i].needs_group, program.values[i].needs_group);
      EXPECT_EQ(again.values[i].cost, program.values[i].cost);
    }
  }
}

}  // namespace weft::row_program_text_test
