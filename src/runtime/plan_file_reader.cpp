#include <algorithm>
#include <bit>
#include <limits>
#include <optional>
#include <utility>

#include "base/byte_stream.h"
#include "runtime/plan_file.h"
#include "runtime/plan_file_form.h"

namespace weft {
namespace {

// The memory that a file may take: bytes per byte of the file (real Plans take about 8), and bytes for any file, since
// one long name counts in a short file.
constexpr std::size_t kMostExpansion = 64, kLeastMemory = 1 << 20;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

class PlanReader {
 public:
  PlanReader(std::span<const std::byte> bytes, const KernelLookup& find_kernel)
      : in_(bytes), find_kernel_(find_kernel), memory_left_(kLeastMemory + kMostExpansion * bytes.size()) {}

  Plan run() {
    read_header();
    read_tables();
    Plan plan;
    plan.name = text();
    plan.bounds = bounds();
    plan.slots = list<PlanSlot>([&] { return slot(); });
    slot_count_ = static_cast<int>(plan.slots.size());
    plan.inputs = list<int>([&] { return number_in(0, slot_count_ - 1, "a slot"); });
    plan.steps = list<PlanStep>([&] { return step(); });
    plan.results = list<PlanView>([&] { return view(0); });
    plan.arena_bytes = size();
    plan.unshared_bytes = size();
    USER_CHECK(in_.left() == 0, "{} bytes follow the end", in_.left());
    check(plan);
    return plan;
  }

 private:
  void read_header() {
    const std::span<const std::byte> mark = in_.raw(kPlanFileMark.size());
    USER_CHECK(std::string_view(reinterpret_cast<const char*>(mark.data()), mark.size()) == kPlanFileMark,
               "the bytes do not begin with '{}'", kPlanFileMark);
    const auto version = in_.number<std::uint32_t>();
    USER_CHECK(version == kPlanFileVersion, "wanted version {}, but the bytes are of version {}", kPlanFileVersion,
               version);
  }

  void read_tables() {
    strings_ = list<std::string>([&] {
      const std::string_view text = in_.text();
      take_memory(text.size());
      return std::string(text);
    });
    dims_ = list<Dim>([&] { return dim_of_entry(text()); });
    types_ = list<Meta>([&] {
      const std::string type = text();
      return type_of_entry(type, text());
    });
    kernels_ = list<const Kernel*>([&] {
      const std::string op = text(), provider = text();
      const Kernel* kernel = find_kernel_(op, provider);
      USER_CHECK(kernel != nullptr, "it wants the kernel {}@{}, which is not here", op, provider);
      return kernel;
    });
  }

  void take_memory(std::size_t bytes) {
    USER_CHECK(bytes <= memory_left_, "at byte {} it wants {} bytes more than it may", in_.position(),
               bytes - memory_left_);
    memory_left_ -= bytes;
  }

  template <class T, class Read>
  std::vector<T> list(Read&& read) {
    const std::size_t count = in_.count();
    take_memory(count * sizeof(T));
    std::vector<T> elements;
    elements.reserve(count);
    for (std::size_t i = 0; i < count; ++i) elements.push_back(read());
    return elements;
  }

  template <class T>
  const T& entry(const std::vector<T>& table) {
    const auto number = in_.number<std::uint32_t>();
    USER_CHECK(number < table.size(), "byte {} means entry {} of a table of {}", in_.position() - sizeof number, number,
               table.size());
    return table[number];
  }

  int number_in(int lo, int hi, const char* what) {
    const auto number = in_.number<std::int32_t>();
    USER_CHECK(number >= lo && number <= hi, "byte {} must be {} in [{}, {}], but is {}",
               in_.position() - sizeof number, what, lo, hi, number);
    return number;
  }

  std::int64_t size() {
    const auto size = in_.number<std::int64_t>();
    USER_CHECK(size >= 0, "byte {} must be a size, but is {}", in_.position() - sizeof size, size);
    return size;
  }

  template <class Enum>
  Enum enumerator(Enum last) {
    const auto value = in_.number<std::uint8_t>();
    USER_CHECK(value <= static_cast<std::uint8_t>(last), "byte {} must be at most {}, but is {}", in_.position() - 1,
               static_cast<int>(last), value);
    return static_cast<Enum>(value);
  }

  std::string text() {
    const std::string& text = entry(strings_);
    take_memory(text.size());
    return text;
  }

  Dim dim() { return entry(dims_); }

  Meta type() {
    const Meta& meta = entry(types_);
    take_memory((meta.shape.size() + meta.strides.size()) * sizeof(Dim) + meta.packed.size());
    return meta;
  }

  Bounds bounds() {
    Bounds bounds;
    const std::size_t count = in_.count();
    for (std::size_t i = 0; i < count; ++i) {
      take_memory(sizeof(Bounds::value_type));
      std::string symbol = text();
      USER_CHECK(bounds.empty() || bounds.rbegin()->first < symbol, "the bounds of '{}' are out of order", symbol);
      const auto lo = in_.number<std::int64_t>(), hi = in_.number<std::int64_t>();
      bounds.emplace_hint(bounds.end(), std::move(symbol), Interval{lo, hi});
    }
    return bounds;
  }

  // Braces evaluate from left to right.
  PlanSlot slot() {
    PlanSlot slot{.kind = enumerator(SlotKind::scalar),
                  .name = text(),
                  .key = text(),
                  .meta = type(),
                  .donated = in_.boolean(),
                  .bytes = dim(),
                  .offset = size(),
                  .first_step = number_in(-1, INT32_MAX, "a step"),
                  .last_step = number_in(-1, INT32_MAX, "a step")};
    if (slot.kind == SlotKind::scalar) slot.scalar = std::bit_cast<float>(in_.number<std::uint32_t>());
    return slot;
  }

  PlanStep step() {
    return {.op = text(),
            .kernel = entry(kernels_),
            .attributes = attributes(),
            .operands = list<PlanView>([&] { return view(-1); }),
            .results = list<PlanView>([&] { return view(0); }),
            .scratch_bytes = dim(),
            .scratch_offset = size(),
            .piece = text(),
            .layer = text(),
            .is_splitting = in_.boolean()};
  }

  PlanView view(int least_slot) {
    return {.slot = number_in(least_slot, slot_count_ - 1, "a slot"),
            .version = number_in(0, INT32_MAX, "a version"),
            .byte_offset = dim(),
            .meta = type()};
  }

  Attributes attributes() {
    Attributes attributes;
    const std::size_t count = in_.count();
    USER_CHECK(count <= kMostAttributes, "a step has {} attributes", count);
    take_memory(count * sizeof(NamedAttributes::value_type));
    for (std::size_t i = 0; i < count; ++i) {
      const std::string name = text();
      USER_CHECK(attributes.find(name) == nullptr, "a step has the attribute {} twice", name);
      attributes.set(name, attribute(0));
    }
    return attributes;
  }

  Attribute attribute(int depth) {
    switch (enumerator(AttributeTag::list)) {
      case AttributeTag::none:
        return {};
      case AttributeTag::boolean:
        return in_.boolean();
      case AttributeTag::dim:
        return dim();
      case AttributeTag::real:
        return real();
      case AttributeTag::string:
        return text();
      case AttributeTag::dtype:
        return dtype();
      case AttributeTag::word:
        return EnumWord{text()};
      case AttributeTag::list:
        break;
    }
    USER_CHECK(depth < kMostListDepth, "lists nest more than {} deep", kMostListDepth);
    return list<Attribute>([&] { return attribute(depth + 1); });
  }

  // Of all NaN bit patterns, only the one that an Attribute holds is accepted.
  double real() {
    const double value = in_.real();
    USER_CHECK(value == value || std::bit_cast<std::uint64_t>(value) == std::bit_cast<std::uint64_t>(kNan),
               "an attribute is another NaN than text gives");
    return value;
  }

  DType dtype() {
    const std::string name = text();
    const std::optional<DType> dtype = dtype_from_text(name);
    USER_CHECK(dtype.has_value(), "'{}' is not a dtype", name);
    return *dtype;
  }

  // Checks what must hold between the Plan's parts.
  static void check(const Plan& plan) {
    for (const PlanStep& step : plan.steps)
      USER_CHECK(step.scratch_offset <= plan.arena_bytes &&
                     (!step.scratch_bytes.is_number() ||
                      step.scratch_bytes.number() <= plan.arena_bytes - step.scratch_offset),
                 "a step has {} bytes of scratch at {} in an arena of {} bytes", step.scratch_bytes.text(),
                 step.scratch_offset, plan.arena_bytes);
    for (const int input : plan.inputs) {
      const SlotKind kind = plan.slots[static_cast<std::size_t>(input)].kind;
      USER_CHECK(kind == SlotKind::input || kind == SlotKind::param, "an input is slot {}, to which nothing is bound",
                 input);
    }
    for (const PlanSlot& slot : plan.slots) {
      USER_CHECK(slot.kind != SlotKind::scalar || (slot.meta.is_tensor() && slot.meta.rank() == 0 &&
                                                   slot.meta.dtype == DType::f32 && slot.meta.packed.empty()),
                 "a scalar is {}", slot.meta.text());
      USER_CHECK(slot.offset <= plan.arena_bytes, "a slot begins at {} in an arena of {} bytes", slot.offset,
                 plan.arena_bytes);
      // The results are read after the last step, so a slot may live until then.
      USER_CHECK(static_cast<std::size_t>(std::max(slot.last_step, 0)) <= plan.steps.size() &&
                     slot.first_step <= slot.last_step,
                 "a slot lives from step {} to {} of {}", slot.first_step, slot.last_step, plan.steps.size());
    }
  }

  ByteReader in_;
  const KernelLookup& find_kernel_;
  std::size_t memory_left_;  // bytes that the Plan may still take
  std::vector<std::string> strings_;
  std::vector<Dim> dims_;
  std::vector<Meta> types_;
  std::vector<const Kernel*> kernels_;
  int slot_count_ = 0;
};

}  // namespace

Plan plan_from_bytes(std::span<const std::byte> bytes, const KernelLookup& find_kernel) {
  try {
    return PlanReader(bytes, find_kernel).run();
  } catch (const UserError& error) {
    throw PlanFileError(fmt::format("[plan file] {}", error.what()));
  }
}

}  // namespace weft
