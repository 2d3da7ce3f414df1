#include "codegen/cuda_row_text.h"

#include <bit>
#include <set>

#include <fmt/ranges.h>

#include "base/error.h"
#include "codegen/cuda_row_headers.h"

namespace weft {
namespace {

constexpr std::int64_t kMostSharedBytes = 48 * 1024;
// Reductions over the row alternate between two arrays of partial results, so that each needs only one barrier.
constexpr std::int64_t kPartBytes = 2 * 4 * kCudaRowThreads;

constexpr const char* kPrologue = R"(#define WEFT_FUSES_MULTIPLY_ADD
#define __builtin_fabsf fabsf
#define __builtin_fmaf fmaf
#define __builtin_sqrtf sqrtf
#define __builtin_nearbyintf nearbyintf
#define __builtin_truncf truncf
#include "codegen/row_math.h"

namespace weft {

template <int count>
struct RowArguments {
  void* buffers[count];
  long long first_row;
};

constexpr unsigned kWarp = 32, kAllLanes = 0xffffffffu;

// How parts are joined: two of them, and those of a warp's lanes, of which each gets the whole.
struct AddParts {
  float operator()(float a, float b) const { return a + b; }
  float of_lanes(float part) const {
    for (unsigned width = kWarp / 2; width > 0; width /= 2) part += __shfl_xor_sync(kAllLanes, part, width);
    return part;
  }
};
struct LargerPart {
  float operator()(float a, float b) const { return row_larger(a, b); }
  // That of the bit patterns, as row_larger has it.
  float of_lanes(float part) const { return float_of_bits(__reduce_max_sync(kAllLanes, bits_of_float(part))); }
};
struct SignedLargerPart {
  float operator()(float a, float b) const { return row_maximum(a, b); }
  float of_lanes(float part) const {
    for (unsigned width = kWarp / 2; width > 0; width /= 2)
      part = row_maximum(part, __shfl_xor_sync(kAllLanes, part, width));
    return part;
  }
};

// Of all threads' parts, by the tree of reference math, whose first step joins the two warps; every thread gets it.
// `parts` may be written again once all threads have come to another reduction's barrier.
template <class Join>
float joined_parts(float* parts, float part, Join join) {
  static_assert(kReferenceSumLanes == 2 * kWarp);
  const unsigned lane = threadIdx.x % kWarp;
  parts[threadIdx.x] = part;
  __syncthreads();
  return join.of_lanes(join(parts[lane], parts[kWarp + lane]));
}

}  // namespace weft

)";

std::string cuda_number_text(const RowValue& value) {
  if (value.is_wide) return fmt::format("__longlong_as_double({:#x}ll)", std::bit_cast<std::uint64_t>(value.number));
  return fmt::format("weft::float_of_bits({:#x}u)", std::bit_cast<std::uint32_t>(static_cast<float>(value.number)));
}

std::string_view cuda_type_text(DType dtype) {
  if (dtype == DType::f32) return "float";
  if (dtype == DType::i64) return "long long";
  if (dtype == DType::i32) return "int";
  return dtype_info(dtype).block_bytes == 2 ? "unsigned short" : "unsigned char";
}

class CudaRowWriter {
 public:
  explicit CudaRowWriter(const RowProgram& program) : program_(program) {}

  std::string run() {
    begin();
    for (level_ = 0; level_ < program_.levels; ++level_) write_level();
    for (const RowStore& store : program_.stores)
      if (store.domain <= RowDomain::row) line("if (thread == 0) {}", store_text(store, "0"));
    --depth_;
    line("}}");
    return std::move(text_);
  }

 private:
  const RowValue& at(int id) const { return program_.values[static_cast<std::size_t>(id)]; }
  std::int64_t count_of(RowDomain domain) const {
    if (domain == RowDomain::element) return program_.columns;
    return domain == RowDomain::group ? program_.columns / program_.group : 1;
  }

  template <class... Arguments>
  void line(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    text_ += std::string(static_cast<std::size_t>(2 * depth_), ' ') +
             fmt::format(format, std::forward<Arguments>(arguments)...) + "\n";
  }

  void begin() {
    line(
        "extern \"C\" __global__ void __launch_bounds__({}) {}(const __grid_constant__ weft::RowArguments<{}> given) "
        "{{",
        kCudaRowThreads, program_.name(), program_.buffers.size());
    ++depth_;
    line("using namespace weft;");
    line("const long long row = given.first_row + blockIdx.x;");
    line("const long long thread = threadIdx.x;");
    line("__shared__ float parts[2][{}];", kCudaRowThreads);
    std::int64_t floats = 0;
    for (int id = 0; id < static_cast<int>(program_.values.size()); ++id)
      if (is_group_reduction(at(id).op)) {
        line("__shared__ float of_groups_{}[{}];", id, count_of(RowDomain::group));
        floats += count_of(RowDomain::group);
      }
    USER_CHECK(4 * floats + kPartBytes <= kMostSharedBytes,
               "[{}] sums and maxima of groups take {} bytes of shared memory; every device has {}", program_.name(),
               4 * floats, kMostSharedBytes - kPartBytes);
    write_buffers();
  }

  void write_buffers() {
    const int parts = program_.tuning.parts;
    for (std::size_t i = 0; i < program_.buffers.size(); ++i) {
      const RowBuffer& buffer = program_.buffers[i];
      if (buffer.numbers >= 0) line("if (*b{0} < 0 || *b{0} >= {1}) __trap();", buffer.numbers, buffer.taken_from);
      const std::string type = fmt::format("{}{}", buffer.is_output ? "" : "const ", cuda_type_text(buffer.dtype));
      const std::string row = buffer.numbers >= 0 ? fmt::format("static_cast<long long>(*b{})", buffer.numbers)
                              : parts == 1        ? "row"
                                                  : fmt::format("row / {}", parts);
      const std::int64_t unit = buffer.elements_of_unit();
      std::string place = fmt::format("{} * {} + {}", row, buffer.row_stride / unit, buffer.begin);
      if (parts > 1) place += fmt::format(" + row % {} * {}", parts, buffer.part_stride / unit);
      line("{0}* b{1} = static_cast<{0}*>(given.buffers[{1}]) + ({2});", type, i, place);
    }
  }

  static std::string place_text(const RowPlacement& placement, const std::string& column) {
    if (placement.run == 0) return fmt::format("{} * {}", column, placement.stride);
    return fmt::format("{0} / {1} * {2} + {0} % {1} * {3}", column, placement.run, placement.run_stride,
                       placement.stride);
  }

  // The name of a value. Values of groups and elements are defined in each loop that needs them.
  static std::string name(int id) { return fmt::format("v{}", id); }

  std::string store_text(const RowStore& store, const std::string& column) const {
    const DType dtype = program_.buffers[static_cast<std::size_t>(store.buffer)].dtype;
    const std::string value = name(store.value);
    const std::string code = dtype == DType::f32 ? value : fmt::format("encode_{}({})", dtype_text(dtype), value);
    return fmt::format("b{}[{} + {}] = {};", store.buffer, store.offset, place_text(store.placement, column), code);
  }

  std::string load_text(const RowValue& value, const std::string& column) const {
    const RowBuffer& buffer = program_.buffers[static_cast<std::size_t>(value.buffer)];
    const std::string code = fmt::format("b{}[{}]", value.buffer, place_text(buffer.placement, column));
    return buffer.dtype == DType::f32 ? code : fmt::format("decode_{}({})", dtype_text(buffer.dtype), code);
  }

  // A NaN computed by a GPU has all bits set. The plain conversion to bf16 would carry into its sign.
  static std::string_view plain_text(const RowValue& convert) {
    return convert.is_plain && convert.dtype != DType::bf16 ? "plain_" : "";
  }

  // The expression for a value that is no reduction. `column` is the index of the element or group.
  std::string value_text(const RowValue& value, const std::string& column) const {
    const std::string a = name(value.a), b = name(value.b), c = name(value.c);
    constexpr std::string_view kSigns[] = {"+", "-", "*", "/"};
    switch (value.op) {
      case RowOp::load:
        return load_text(value, column);
      case RowOp::constant:
        return cuda_number_text(value);
      case RowOp::add:
      case RowOp::sub:
      case RowOp::mul:
      case RowOp::div:
        return fmt::format("{} {} {}", a, kSigns[static_cast<int>(value.op) - static_cast<int>(RowOp::add)], b);
      case RowOp::neg:
        return "-" + a;
      case RowOp::widen:
        return fmt::format("static_cast<double>({})", a);
      case RowOp::narrow:
        return fmt::format("static_cast<float>({})", a);
      case RowOp::convert:
        if (value.dtype == DType::f32) return a;
        return fmt::format("decode_{0}(encode_{1}{0}({2}))", dtype_text(value.dtype), plain_text(value), a);
      case RowOp::select_at_most:
        return fmt::format("row_select_at_most({}, {}, {}, {})", a, cuda_number_text(value), b, c);
      case RowOp::replace_nan:
        return fmt::format("row_replace_nan({}, {})", a, cuda_number_text(value));
      case RowOp::replace_zero:
        return fmt::format("row_replace_zero({}, {}, {})", a, cuda_number_text(value), b);
      default:
        break;
    }
    std::vector<std::string> operands;
    for (int i = 0; i < row_op_operands(value.op); ++i) operands.push_back(i == 0 ? a : i == 1 ? b : c);
    return fmt::format("row_{}({})", row_op_text(value.op), fmt::join(operands, ", "));
  }

  // Collects the values that a loop must compute for `id`. Their order is that of their ids, so operands come first.
  // Values of the program or the row exist already.
  void need(int id, std::set<int>& needed) const {
    if (id < 0 || at(id).domain <= RowDomain::row || !needed.insert(id).second) return;
    if (is_group_reduction(at(id).op)) return;
    for (const int operand : {at(id).a, at(id).b, at(id).c}) need(operand, needed);
  }
  void compute(const std::vector<int>& wanted, const std::string& column, const std::string& group) {
    std::set<int> needed;
    for (const int id : wanted) need(id, needed);
    for (const int id : needed) {
      const std::string& of = at(id).domain == RowDomain::element ? column : group;
      line("const {} {} = {};", at(id).is_wide ? "double" : "float", name(id),
           is_group_reduction(at(id).op) ? fmt::format("of_groups_{}[{}]", id, group) : value_text(at(id), of));
    }
  }

  void open_columns(const char* name, std::int64_t count) {
    line("for (long long {0} = thread; {0} < {1}; {0} += {2}) {{", name, count, kCudaRowThreads);
    ++depth_;
  }
  void close() {
    --depth_;
    line("}}");
  }

  void write_level() {
    for (int id = 0; id < static_cast<int>(program_.values.size()); ++id)
      if (at(id).domain <= RowDomain::row && at(id).level == level_ && !is_reduction(at(id).op))
        line("const {} {} = {};", at(id).is_wide ? "double" : "float", name(id), value_text(at(id), "0"));
    write_stores(RowDomain::group);
    write_group_reductions();
    write_elements();
  }

  // The stores of this level to buffers whose units (elements_of_unit) hold one element or, with `of_several`, several.
  std::vector<RowStore> stores_of_level(RowDomain domain, bool of_several = false) const {
    std::vector<RowStore> stores;
    for (const RowStore& store : program_.stores) {
      const bool is_of_several = program_.buffers[static_cast<std::size_t>(store.buffer)].elements_of_unit() > 1;
      if (store.domain == domain && at(store.value).level == level_ && is_of_several == of_several)
        stores.push_back(store);
    }
    return stores;
  }

  void write_stores(RowDomain domain) {
    const std::vector<RowStore> stores = stores_of_level(domain);
    if (stores.empty()) return;
    open_columns("group", count_of(domain));
    std::vector<int> wanted;
    for (const RowStore& store : stores) wanted.push_back(store.value);
    compute(wanted, "", "group");
    for (const RowStore& store : stores) line("{}", store_text(store, "group"));
    close();
  }

  // One warp reduces a group. Each lane alternates between two partial results, which are two of the partial sums of
  // the reference math. The barrier makes all results visible before a thread reads one.
  void write_group_reductions() {
    bool has_any = false;
    for (int id = 0; id < static_cast<int>(program_.values.size()); ++id) {
      if (!is_group_reduction(at(id).op) || at(id).level != level_ + 1) continue;
      has_any = true;
      line("for (long long group = thread / kWarp; group < {}; group += {} / kWarp) {{", count_of(RowDomain::group),
           kCudaRowThreads);
      ++depth_;
      const int halves = at(id).op == RowOp::group_sum_of_halves ? 2 : 1;
      line("float part = 0, other = 0;");
      line("for (long long number = thread % kWarp; number < {}; number += kWarp) {{", halves * program_.group);
      ++depth_;
      line("const long long column = group * {} + number{};", program_.group,
           halves > 1 ? fmt::format(" % {}", program_.group) : "");
      line("float term;");
      for (int half = 0; half < halves; ++half) {
        const int of = half == 0 ? at(id).a : at(id).b;
        line("{}{{", halves > 1 ? fmt::format("if (number / {} == {}) ", program_.group, half) : "");
        ++depth_;
        compute({of}, "column", "group");
        line("term = {};", name(of));
        close();
      }
      line("const float joined = {}{{}}(part, term);", join_text(at(id).op));
      line("part = other;");
      line("other = joined;");
      close();
      line("part = {0}{{}}.of_lanes({0}{{}}(part, other));", join_text(at(id).op));
      line("if (thread % kWarp == 0) of_groups_{}[group] = part;", id);
      close();
    }
    if (has_any) line("__syncthreads();");
  }

  // One thread writes both elements of a byte.
  void write_pairs() {
    const std::vector<RowStore> stores = stores_of_level(RowDomain::element, true);
    if (stores.empty()) return;
    open_columns("pair", program_.columns / 2);
    line("unsigned char codes[{}][2];", stores.size());
    line("for (int i = 0; i < 2; ++i) {{");
    ++depth_;
    line("const long long column = 2 * pair + i;");
    if (program_.group > 0) line("const long long group = column / {};", program_.group);
    std::vector<int> wanted;
    for (const RowStore& store : stores) wanted.push_back(store.value);
    compute(wanted, "column", "group");
    for (std::size_t k = 0; k < stores.size(); ++k) line("codes[{}][i] = encode_f4e2m1({});", k, name(stores[k].value));
    close();
    for (std::size_t k = 0; k < stores.size(); ++k)
      line("b{0}[pair] = static_cast<unsigned char>(codes[{1}][0] | codes[{1}][1] << 4);", stores[k].buffer, k);
    close();
  }

  static std::string_view join_text(RowOp reduction) {
    if (is_sum(reduction)) return "AddParts";
    return reduction == RowOp::row_signed_max ? "SignedLargerPart" : "LargerPart";
  }

  void write_elements() {
    write_pairs();
    const std::vector<RowStore> stores = stores_of_level(RowDomain::element);
    std::vector<int> reductions, wanted;
    for (int id = 0; id < static_cast<int>(program_.values.size()); ++id)
      if (is_row_reduction(at(id).op) && at(id).level == level_ + 1) reductions.push_back(id);
    if (stores.empty() && reductions.empty()) return;
    for (const RowStore& store : stores) wanted.push_back(store.value);
    for (const int id : reductions) wanted.push_back(at(id).a);
    for (const int id : reductions)
      line("float part_{} = {};", id, at(id).op == RowOp::row_signed_max ? "float_of_bits(0xff800000u)" : "0");
    open_columns("column", program_.columns);
    if (program_.group > 0) line("const long long group = column / {};", program_.group);
    compute(wanted, "column", "group");
    for (const RowStore& store : stores) line("{}", store_text(store, "column"));
    for (const int id : reductions) {
      const std::string& term = name(at(id).a);
      line("part_{0} = {1}{{}}(part_{0}, {2});", id, join_text(at(id).op), term);
    }
    close();
    for (const int id : reductions)
      line("const float {} = joined_parts(parts[{}], part_{}, {}{{}});", name(id), reductions_++ % 2, id,
           join_text(at(id).op));
  }

  const RowProgram& program_;
  int level_ = 0;
  int reductions_ = 0;  // over the row, written until now
  std::string text_;
  int depth_ = 0;
};

}  // namespace

std::string cuda_row_prologue() { return kPrologue; }

std::vector<std::pair<std::string, std::string>> cuda_row_headers() {
  std::vector<std::pair<std::string, std::string>> headers;
  for (const auto& [name, text] : kCudaRowHeaders) headers.emplace_back(name, text);
  return headers;
}

std::string cuda_row_text(const RowProgram& program) { return CudaRowWriter(program).run(); }

}  // namespace weft
