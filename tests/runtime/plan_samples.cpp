#include "tests/runtime/plan_samples.h"

#include <cmath>
#include <limits>

#include "tensor/float_bits.h"

namespace weft {
namespace {

// Reads any list of numbers as choices, again and a little differently past its end.
class Choices {
 public:
  explicit Choices(const std::vector<int>& numbers) : numbers_(numbers) {}

  // In [0, count).
  int below(int count) {
    if (numbers_.empty()) return 0;
    const std::size_t round = next_ / numbers_.size();
    const std::size_t number = static_cast<unsigned>(numbers_[next_++ % numbers_.size()]) + round;
    return static_cast<int>(number % static_cast<unsigned>(count));
  }
  bool yes() { return below(2) == 1; }
  std::string name(const std::string& of) {
    const int number = below(9);
    return number == 8 ? "" : of + (number == 7 ? std::string("\0\xff\"", 3) : std::to_string(number));
  }
  std::int64_t number() {
    constexpr std::int64_t kNumbers[] = {0, 1, -1, 16, 4096, INT64_MAX, INT64_MIN};
    return kNumbers[below(7)];
  }
  std::int64_t size() { return below(3) == 0 ? 0 : below(1 << 20) * std::int64_t{64}; }

  Dim symbol() { return Dim::symbol("s" + std::to_string(below(3))); }
  // a*s + b and its alignments and divisions, at most two deep.
  Dim dim(int depth = 0) {
    const int kind = below(depth < 2 ? 8 : 3);
    const std::int64_t k = 1 + below(64);
    if (kind == 0) return below(4096);
    if (kind == 1) return symbol();
    if (kind == 2) return symbol() * Dim(k) + Dim(below(99) - 49);
    if (kind == 3) return align(dim(depth + 1), k);
    if (kind == 4) return ceildiv(dim(depth + 1), k);
    if (kind == 5) return floordiv(dim(depth + 1), k);
    if (kind == 6) return dim(depth + 1) * symbol();
    return dim(depth + 1) - dim(depth + 1);
  }

  DType dtype(int count) { return static_cast<DType>(below(count)); }

  Meta meta() {
    Meta meta;
    switch (below(8)) {
      case 0:
        meta = Meta::pages({dtype(10), 1 + below(32), 1 + below(8), 1 + below(128)});
        break;
      case 1:
        meta = Meta::batch();
        break;
      case 2:
        meta.kind = yes() ? MetaKind::integer : MetaKind::real;
        break;
      case 3:
        meta = Meta::tensor(yes() ? DType::q4_1 : DType::q8_0, {symbol(), 32 * below(99)});
        break;
      default:
        meta = tensor();
    }
    if (below(4) == 0) meta.device = {DeviceType::fake_cuda, below(8)};
    return meta;
  }

  double real() {
    constexpr double kReals[] = {0.0, -0.0, 1e-05, -1.5, INFINITY, NAN, 5e-324, 1.7976931348623157e308};
    return kReals[below(8)];
  }

  Attribute attribute(int depth = 0) {
    AttributeList list;
    switch (below(depth < 3 ? 8 : 7)) {
      case 0:
        return {};
      case 1:
        return yes();
      case 2:
        return yes() ? dim() : Dim(number());
      case 3:
        return real();
      case 4:
        return name("text ");
      case 5:
        return dtype(21);
      case 6:
        return EnumWord{"word" + std::to_string(below(3))};
      default:
        for (int i = below(4); i > 0; --i) list.push_back(attribute(depth + 1));
        return list;
    }
  }

 private:
  Meta tensor() {
    Shape shape, strides;
    for (int i = below(kMaxRank + 1); i > 0; --i) {
      shape.push_back(rank_dim());
      strides.push_back(rank_dim());
    }
    Meta meta = yes() ? Meta::strided(dtype(10), shape, strides) : Meta::tensor(dtype(10), shape);
    if (below(3) == 0) meta.packed = "panel" + std::to_string(below(3));
    return meta;
  }
  // Not a negative number.
  Dim rank_dim() {
    const Dim dim = this->dim();
    return dim.is_number() ? Dim(std::abs(dim.number())) : dim;
  }

  const std::vector<int>& numbers_;
  std::size_t next_ = 0;
};

PlanSlot some_slot(Choices& choices, int steps, std::int64_t arena_bytes) {
  PlanSlot slot{.kind = static_cast<SlotKind>(choices.below(4)), .name = choices.name("x"), .meta = choices.meta()};
  if (slot.kind == SlotKind::param) slot.key = choices.name("model.layers.weight.");
  if (slot.kind == SlotKind::scalar) {
    slot.meta = Meta::tensor(DType::f32, {});
    slot.scalar = static_cast<float>(choices.real());
  }
  slot.donated = choices.yes();
  slot.bytes = choices.dim();
  slot.offset = arena_bytes == 0 ? 0 : choices.size() % arena_bytes;
  slot.last_step = choices.below(steps + 2) - 1;
  slot.first_step = choices.below(slot.last_step + 2) - 1;
  return slot;
}

PlanView some_view(Choices& choices, std::size_t slots, bool may_be_absent) {
  if (slots == 0 || (may_be_absent && choices.below(6) == 0)) return {};
  return {.slot = choices.below(static_cast<int>(slots)),
          .version = choices.below(5),
          .byte_offset = choices.dim(),
          .meta = choices.meta()};
}

std::string view_difference(const PlanView& a, const PlanView& b) {
  if (a.slot != b.slot) return "slot";
  if (a.version != b.version) return "version";
  if (!(a.byte_offset == b.byte_offset)) return "byte offset";
  return a.meta == b.meta ? "" : "type";
}

std::string slot_difference(const PlanSlot& a, const PlanSlot& b) {
  if (a.kind != b.kind) return "kind";
  if (a.name != b.name || a.key != b.key) return "name";
  if (!(a.meta == b.meta)) return "type";
  if (a.donated != b.donated) return "donation";
  if (bits_of_float(a.scalar) != bits_of_float(b.scalar)) return "scalar";
  if (!(a.bytes == b.bytes) || a.offset != b.offset) return "place";
  return a.first_step == b.first_step && a.last_step == b.last_step ? "" : "lifetime";
}

template <class T, class Difference>
std::string list_difference(const char* name, const std::vector<T>& a, const std::vector<T>& b, Difference difference) {
  if (a.size() != b.size()) return fmt::format("{} {}s instead of {}", b.size(), name, a.size());
  for (std::size_t i = 0; i < a.size(); ++i)
    if (const std::string text = difference(a[i], b[i]); !text.empty()) return fmt::format("{} {}: {}", name, i, text);
  return "";
}

std::string step_difference(const PlanStep& a, const PlanStep& b) {
  if (a.op != b.op) return "op";
  if (a.kernel != b.kernel) return "kernel";
  if (!(a.attributes == b.attributes)) return "attributes";
  if (!(a.scratch_bytes == b.scratch_bytes) || a.scratch_offset != b.scratch_offset) return "scratch";
  if (a.piece != b.piece || a.layer != b.layer || a.is_splitting != b.is_splitting) return "origin";
  if (const std::string text = list_difference("operand", a.operands, b.operands, view_difference); !text.empty())
    return text;
  return list_difference("result", a.results, b.results, view_difference);
}

}  // namespace

const Kernel* NamedKernels::find(const std::string& op, const std::string& provider) {
  return &kernels_.try_emplace({op, provider}, Kernel{.op = op, .provider = provider}).first->second;
}

KernelLookup NamedKernels::lookup() {
  return [this](const std::string& op, const std::string& provider) { return find(op, provider); };
}

Plan plan_of_every_part(NamedKernels& kernels) {
  const Dim rows = Dim::symbol("s0");
  const Meta x = Meta::tensor(DType::f16, {rows, 64});
  const Meta kv = Meta::pages({DType::f8e4m3, 16, 3, 64});
  const Meta column = Meta::strided(DType::f16, {rows * Dim(2) + Dim(1), 16}, {64, 1});
  Meta weight = Meta::tensor(DType::q4_1, {64, 64}), far = Meta::tensor(DType::i64, {});
  weight.packed = "q4x32";
  far.device = {DeviceType::cuda, 3};
  Plan plan{.name = "forward",
            .slots = {{.kind = SlotKind::input, .name = "x", .meta = x, .donated = true},
                      {.kind = SlotKind::input, .name = "kv", .meta = kv, .donated = true},
                      {.kind = SlotKind::input, .name = "batch", .meta = Meta::batch()},
                      {.kind = SlotKind::param, .name = "w", .key = "model.norm.weight", .meta = weight},
                      {.kind = SlotKind::input, .name = "far", .meta = far},
                      {.meta = x, .bytes = x.bytes(), .offset = 8192, .first_step = 0, .last_step = 2},
                      {.kind = SlotKind::scalar, .meta = Meta::tensor(DType::f32, {}), .scalar = 1e-05f}},
            .inputs = {0, 3, 1, 2, 4}};
  plan.bounds = {{"s0", {1, 64}}, {"s1", {0, INT64_MAX}}};
  plan.arena_bytes = 32768;
  plan.unshared_bytes = 65536;
  const AttributeList list = {1, rows, {}, AttributeList{EnumWord{"tanh"}, -0.0}};
  plan.steps.push_back({.op = "rms_norm",
                        .kernel = kernels.find("rms_norm", "cpu"),
                        .attributes = {{"epsilon", 1e-05},
                                       {"is_neox_style", true},
                                       {"group_size", align(rows, 4)},
                                       {"name", "a \"b\"\n"},
                                       {"dtype", DType::bf16},
                                       {"layout", EnumWord{"column_major"}},
                                       {"shape", list},
                                       {"limit", std::numeric_limits<double>::quiet_NaN()},
                                       {"bias", {}}},
                        .operands = {{.slot = 0, .meta = x}, {}, {.slot = 3, .meta = weight}},
                        .results = {{.slot = 5, .meta = x}},
                        .scratch_bytes = ceildiv(rows, 4) * Dim(64),
                        .scratch_offset = 16384,
                        .piece = "piece_0",
                        .layer = "0"});
  plan.steps.push_back({.op = "rows_0123456789abcdef",
                        .kernel = kernels.find("rows_0123456789abcdef", "native"),
                        .operands = {{.slot = 5, .byte_offset = rows * Dim(4) + Dim(16), .meta = column},
                                     {.slot = 1, .meta = kv},
                                     {.slot = 2, .meta = Meta::batch()},
                                     {.slot = 4, .meta = far},
                                     {.slot = 6, .meta = Meta::tensor(DType::f32, {})}},
                        .results = {{.slot = 5, .version = 1, .meta = x}, {.slot = 1, .version = 1, .meta = kv}},
                        .piece = "piece_0",
                        .is_splitting = true});
  plan.results = {{.slot = 5, .version = 1, .meta = x}, {.slot = 1, .version = 1, .meta = kv}};
  return plan;
}

Plan plan_of_numbers(const std::vector<int>& numbers, NamedKernels& kernels) {
  Choices choices(numbers);
  Plan plan{.name = choices.name("plan")};
  for (int i = choices.below(3); i > 0; --i)
    plan.bounds["s" + std::to_string(i)] = {choices.number(), choices.number()};
  const int slots = choices.below(8), steps = choices.below(8);
  plan.arena_bytes = choices.size();
  plan.unshared_bytes = choices.size();
  for (int i = 0; i < slots; ++i) {
    plan.slots.push_back(some_slot(choices, steps, plan.arena_bytes));
    if (plan.slots.back().kind == SlotKind::input || plan.slots.back().kind == SlotKind::param)
      plan.inputs.insert(plan.inputs.begin(), i);
  }
  for (int i = 0; i < steps; ++i) {
    const std::string op = choices.name("op");
    PlanStep step{.op = op, .kernel = kernels.find(choices.yes() ? op : choices.name("other"), choices.name("cpu"))};
    for (int k = choices.below(4); k > 0; --k) step.attributes.set(choices.name("a"), choices.attribute());
    for (int k = choices.below(4); k > 0; --k) step.operands.push_back(some_view(choices, plan.slots.size(), true));
    for (int k = choices.below(3); k > 0 && slots > 0; --k)
      step.results.push_back(some_view(choices, plan.slots.size(), false));
    step.scratch_offset = plan.arena_bytes == 0 ? 0 : choices.size() % plan.arena_bytes;
    step.scratch_bytes = choices.dim();
    if (step.scratch_bytes.is_number())
      step.scratch_bytes = std::min(step.scratch_bytes.number(), plan.arena_bytes - step.scratch_offset);
    step.piece = choices.name("piece_");
    step.layer = choices.name("");
    step.is_splitting = choices.yes();
    plan.steps.push_back(std::move(step));
  }
  for (int k = choices.below(3); k > 0 && slots > 0; --k)
    plan.results.push_back(some_view(choices, plan.slots.size(), false));
  return plan;
}

std::string plan_difference(const Plan& a, const Plan& b) {
  if (a.name != b.name) return "name";
  if (a.bounds != b.bounds) return "bounds";
  if (a.inputs != b.inputs) return "inputs";
  if (a.arena_bytes != b.arena_bytes || a.unshared_bytes != b.unshared_bytes) return "arena";
  if (const std::string text = list_difference("slot", a.slots, b.slots, slot_difference); !text.empty()) return text;
  if (const std::string text = list_difference("step", a.steps, b.steps, step_difference); !text.empty()) return text;
  return list_difference("result", a.results, b.results, view_difference);
}

}  // namespace weft
