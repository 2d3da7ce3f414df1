#include "codegen/row_text.h"

#include <array>
#include <cmath>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "codegen/emit.h"

namespace weft {
namespace {

std::string number_text(double number, bool is_wide = false) {
  if (std::isnan(number)) return "__builtin_nanf(\"\")";
  if (std::isinf(number)) return number < 0 ? "-__builtin_inff()" : "__builtin_inff()";
  std::string text = is_wide ? fmt::format("{:.17g}", number) : fmt::format("{:.9g}", number);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return is_wide ? text : text + "f";
}

std::string_view element_text(DType dtype) {
  if (dtype == DType::f32) return "float";
  if (dtype == DType::i64) return "std::int64_t";
  if (dtype == DType::i32) return "std::int32_t";
  return dtype_info(dtype).block_bytes == 2 ? "std::uint16_t" : "std::uint8_t";
}

// The Builder of codegen/emit.h that writes C++.
class TextBuilder {
 public:
  struct Value {
    std::string text;
    bool is_vector = false;
  };
  struct Index {
    std::string base;  // "" for a constant index
    std::int64_t number = 0;
  };
  using Variable = std::string;
  static constexpr bool kTakesShortWays = false;

  explicit TextBuilder(int lanes) : lanes_(lanes) {}
  std::string take() { return std::move(text_); }

  int lanes() const { return lanes_; }

  void begin(const RowProgram& program) {
    program_ = &program;
    line("extern \"C\" void {}(void* const* buffers, std::int64_t row_begin, std::int64_t row_end, std::int64_t) {{",
         program.name());
    ++depth_;
    line("using namespace weft::row_vectors;");
    if (!program.slots.empty()) line("float* scratch = static_cast<float*>(buffers[{}]);", program.buffers.size());
    open("for (std::int64_t row = row_begin; row < row_end; ++row) {{");
    for (std::size_t i = 0; i < program.buffers.size(); ++i) {
      const RowBuffer& buffer = program.buffers[i];
      const std::string type = fmt::format("{}{}", buffer.is_output ? "" : "const ", element_text(buffer.dtype));
      const int parts = program.tuning.parts;
      const std::string row = buffer.numbers >= 0 ? fmt::format("*b{}", buffer.numbers)
                              : parts == 1        ? "row"
                                                  : fmt::format("row / {}", parts);
      const std::int64_t unit = buffer.elements_of_unit();
      std::string place = fmt::format("{} * {}", row, buffer.row_stride / unit);
      if (buffer.begin > 0) place += fmt::format(" + {}", buffer.begin);
      if (parts > 1) place += fmt::format(" + row % {} * {}", parts, buffer.part_stride / unit);
      line("{0}* b{1} = static_cast<{0}*>(buffers[{1}]) + {2};", type, i, place);
    }
  }
  void end() {
    close();
    close();
  }
  Index begin_columns(std::int64_t first, std::int64_t last, std::int64_t step) {
    open("for (std::int64_t column = {}; column < {}; column += {}) {{", first, last, step);
    return {"column", 0};
  }
  void end_columns() { close(); }
  Index at(std::int64_t column) const { return {"", column}; }

  Value constant(double number, bool is_wide) { return {number_text(number, is_wide), false}; }
  Value splat(const Value& one) { return {fmt::format("splat({})", one.text), true}; }
  Value splat_halves(const Value& first, const Value& second) {
    return named(true, "splat_halves({}, {})", first.text, second.text);
  }
  Value unary(RowOp op, const Value& a) {
    if (op == RowOp::neg) return named(a.is_vector, "-{}", a.text);
    return named(a.is_vector, "{}({})", row_op_text(op), a.text);
  }
  Value binary(RowOp op, const Value& a, const Value& b) {
    constexpr std::string_view kSigns[] = {"+", "-", "*", "/"};
    if (op >= RowOp::add && op <= RowOp::div)
      return named(a.is_vector || b.is_vector, "{} {} {}", a.text,
                   kSigns[static_cast<int>(op) - static_cast<int>(RowOp::add)], b.text);
    return named(a.is_vector, "{}({}, {})", row_op_text(op), a.text, like(a, b).text);
  }
  Value ternary(RowOp op, const Value& a, const Value& b, const Value& c) {
    return named(a.is_vector, "{}({}, {}, {})", row_op_text(op), a.text, like(a, b).text, like(a, c).text);
  }
  Value replace_zero(const Value& a, float number, const Value& b) {
    return named(a.is_vector, "replace_zero({}, {}, {})", a.text,
                 like(a, constant(static_cast<double>(number), false)).text, b.text);
  }
  Value select_at_most(const Value& a, float number, const Value& b, const Value& c) {
    return named(a.is_vector, "select_at_most({}, {}, {}, {})", a.text,
                 like(a, constant(static_cast<double>(number), false)).text, b.text, c.text);
  }
  Value encode(DType dtype, const Value& floats) {
    return named(floats.is_vector, "to_{}({})", dtype_text(dtype), floats.text);
  }
  Value encode_plain(DType dtype, const Value& floats) {
    if (dtype == DType::f8e4m3 && !floats.is_vector) return encode(dtype, floats);
    return named(floats.is_vector, "to_plain_{}({})", dtype_text(dtype), floats.text);
  }
  Value rounded_f8e4m3(const Value& floats) { return named(true, "rounded_f8e4m3({})", floats.text); }
  Value decode(DType dtype, const Value& codes) {
    return named(codes.is_vector, "from_{}({})", dtype_text(dtype), codes.text);
  }

  Value load(int buffer, const Index& index, std::int64_t offset, int count) {
    const RowPlacement& placement = program_->buffers[static_cast<std::size_t>(buffer)].placement;
    const std::string from = fmt::format("b{} + {}", buffer, place_text(placement, index, offset, 0));
    if (placement.stride != 1) return named(true, "load_every({}, {}, {})", from, placement.stride, count);
    return named(true, "load({}{})", from, count_text(count));
  }
  void store(const RowStore& store, const Index& index, std::int64_t offset, const Value& codes, int count) {
    const std::string to = stored_text(store, index, offset);
    if (program_->buffers[static_cast<std::size_t>(store.buffer)].dtype == DType::f4e2m1)
      return line("store_nibbles({}, {}, {});", to, codes.text, count);
    if (store.placement.stride != 1)
      return line("store_every({}, {}, {}, {});", to, store.placement.stride, codes.text, count);
    line("store({}, {}{});", to, codes.text, count_text(count));
  }
  void store_four(const RowStore& store, const Index& index, std::int64_t offset, const std::array<Value, 4>& codes) {
    for (std::size_t i = 0; i < codes.size(); ++i)
      this->store(store, index, offset + static_cast<std::int64_t>(i) * lanes_, codes[i], lanes_);
  }
  void store_pairs(const RowStore& store, const Index& index, std::int64_t offset, const Value& first,
                   const Value& second, int count) {
    if (program_->buffers[static_cast<std::size_t>(store.buffer)].dtype == DType::f4e2m1)
      return line("store_pairs_of_nibbles({}, {}, {});", stored_text(store, index, offset), first.text, second.text);
    line("store_pairs({}, {}, {}, {});", stored_text(store, index, offset), first.text, second.text, count);
  }
  void store_two_pairs(const RowStore& store, const Index& index, std::int64_t offset,
                       const std::array<Value, 4>& codes) {
    store_pairs(store, index, offset, codes[0], codes[1], lanes_);
    store_pairs(store, index, offset + 2 * lanes_, codes[2], codes[3], lanes_);
  }
  std::pair<Value, Value> load_pairs(int buffer, const Index& index, std::int64_t offset) {
    const RowPlacement& placement = program_->buffers[static_cast<std::size_t>(buffer)].placement;
    const std::string from = fmt::format("b{} + {}", buffer, place_text(placement, index, offset, 0));
    const Value even = named(true, "load_every({}, 2, {})", from, lanes_);
    return {even, named(true, "load_every({} + 1, 2, {})", from, lanes_)};
  }
  std::pair<Value, Value> joined_pairs(const Value& even, const Value& odd) {
    const Value first = named(true, "joined_pairs({}, {}, 0)", even.text, odd.text);
    return {first, named(true, "joined_pairs({}, {}, {})", even.text, odd.text, lanes_)};
  }
  void prefetch_ahead(int buffer, const Index& index, std::int64_t ahead, std::int64_t offset) {
    const RowBuffer& at = program_->buffers[static_cast<std::size_t>(buffer)];
    const std::int64_t gap = at.row_stride - at.placement.of(program_->columns);
    const std::string place = place_text(at.placement, index, ahead + offset, 0);
    if (gap == 0) return line("__builtin_prefetch(b{} + {});", buffer, place);
    line("__builtin_prefetch(b{} + {} + ({} >= {} ? {} : 0));", buffer, place, sum_text(index, ahead),
         program_->columns, gap);
  }
  void prefetch_next(int buffer, const Index& index, std::int64_t divisor, std::int64_t offset) {
    const RowBuffer& at = program_->buffers[static_cast<std::size_t>(buffer)];
    const Index place = divisor == 1 ? index : Index{divided(index, 0, divisor), 0};
    line("__builtin_prefetch(b{} + {});", buffer, place_text(at.placement, place, offset, at.row_stride));
  }
  void prefetch_store(const RowStore& store, const Index& index, std::int64_t offset) {
    line("__builtin_prefetch({});", stored_text(store, index, offset));
  }
  Value load_one(int buffer, const Index& index, std::int64_t offset, std::int64_t divisor) {
    return named(false, "b{}[{}]", buffer, divided(index, offset, divisor));
  }
  void store_one(int buffer, const Value& code) { line("b{}[0] = {};", buffer, code.text); }
  Value load_slot(int slot, const Index& index, std::int64_t offset) {
    return named(true, "load(scratch + {})", sum_text(index, offset + slot_begin(slot)));
  }
  void store_slot(int slot, const Index& index, std::int64_t offset, const Value& vector) {
    line("store(scratch + {}, {});", sum_text(index, offset + slot_begin(slot)), vector.text);
  }
  Value load_one_of_slot(int slot, const Index& index, std::int64_t offset, std::int64_t divisor) {
    return named(false, "scratch[{} + {}]", slot_begin(slot), divided(index, offset, divisor));
  }
  void store_one_of_slot(int slot, const Index& index, std::int64_t offset, std::int64_t divisor, const Value& value) {
    line("scratch[{} + {}] = {};", slot_begin(slot), divided(index, offset, divisor), value.text);
  }

  Variable variable(const Value& start) {
    const std::string name = fmt::format("p{}", next_++);
    line("Floats {} = {};", name, start.text);
    return name;
  }
  Value get(const Variable& variable) { return {variable, true}; }
  void set(const Variable& variable, const Value& value) { line("{} = {};", variable, value.text); }
  Value first_lanes(const Value& vector, int count, float rest) {
    return named(true, "first_lanes({}, {}, {})", vector.text, count, number_text(rest));
  }
  Value sum(const std::vector<Value>& vectors) { return named(false, "sum_of({})", joined(vectors)); }
  Value larger(const Value& a, const Value& b) { return named(a.is_vector, "larger({}, {})", a.text, b.text); }
  Value largest(const std::vector<Value>& vectors) { return named(false, "largest_of({})", joined(vectors)); }
  Value signed_larger(const Value& a, const Value& b) { return binary(RowOp::maximum, a, b); }
  Value signed_largest(const std::vector<Value>& vectors) {
    return named(false, "signed_largest_of({})", joined(vectors));
  }

 private:
  template <class... Arguments>
  void line(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    text_ += std::string(static_cast<std::size_t>(2 * depth_), ' ') +
             fmt::format(format, std::forward<Arguments>(arguments)...) + "\n";
  }
  template <class... Arguments>
  void open(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    line(format, std::forward<Arguments>(arguments)...);
    ++depth_;
  }
  void close() {
    --depth_;
    line("}}");
  }
  template <class... Arguments>
  Value named(bool is_vector, fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    const std::string name = fmt::format("t{}", next_++);
    line("const auto {} = {};", name, fmt::format(format, std::forward<Arguments>(arguments)...));
    return {name, is_vector};
  }

  std::int64_t slot_begin(int slot) const { return program_->slots[static_cast<std::size_t>(slot)]; }
  Value like(const Value& other, const Value& value) {
    return other.is_vector && !value.is_vector ? splat(value) : value;
  }
  static std::string sum_text(const Index& index, std::int64_t offset) {
    const std::int64_t number = index.number + offset;
    if (index.base.empty()) return std::to_string(number);
    return number == 0 ? index.base : fmt::format("{} + {}", index.base, number);
  }
  static std::string divided(const Index& index, std::int64_t offset, std::int64_t divisor) {
    return divisor == 1 ? sum_text(index, offset) : fmt::format("({}) / {}", sum_text(index, offset), divisor);
  }
  static std::string place_text(const RowPlacement& placement, const Index& index, std::int64_t offset,
                                std::int64_t begin) {
    const std::string column = sum_text(index, offset);
    const std::string every = placement.stride == 1 ? "" : fmt::format(" * {}", placement.stride);
    std::string text = every.empty() ? column : fmt::format("({}){}", column, every);
    if (placement.run > 0)
      text = fmt::format("({0}) / {1} * {2} + ({0}) % {1}{3}", column, placement.run, placement.run_stride, every);
    return begin == 0 ? text : fmt::format("{} + {}", text, begin);
  }
  std::string stored_text(const RowStore& store, const Index& index, std::int64_t offset) const {
    const std::string place = place_text(store.placement, index, offset, store.offset);
    const std::int64_t unit = program_->buffers[static_cast<std::size_t>(store.buffer)].elements_of_unit();
    return unit == 1 ? fmt::format("b{} + {}", store.buffer, place)
                     : fmt::format("b{} + ({}) / {}", store.buffer, place, unit);
  }
  std::string count_text(int count) const { return count < lanes_ ? fmt::format(", {}", count) : ""; }
  static std::string joined(const std::vector<Value>& values) {
    std::vector<std::string> texts;
    for (const Value& value : values) texts.push_back(value.text);
    return fmt::format("{}", fmt::join(texts, ", "));
  }

  int lanes_;
  const RowProgram* program_ = nullptr;
  std::string text_;
  int depth_ = 0;
  int next_ = 0;
};

}  // namespace

std::string row_text_prologue(int lanes) {
  return fmt::format("#define WEFT_LANES {}\n#include \"codegen/vector_math.h\"\n", lanes);
}

std::string row_text(const RowProgram& program, int lanes) {
  TextBuilder builder(lanes);
  RowEmitter<TextBuilder>(program, builder).run();
  return builder.take();
}

}  // namespace weft
