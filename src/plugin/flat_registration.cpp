#include "plugin/flat_registration.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "ir/parse.h"
#include "ir/print.h"
#include "ir/verify.h"
#include "plugin/flat_types.h"
#include "plugin/text_pass.h"
#include "tensor/attribute_parser.h"

namespace weft {
namespace {

std::string text_of(const char* text) { return text == nullptr ? "" : text; }

// ---- Ops ----

// "epsilon=1e-06, rounding=nearest"
NamedAttributes parse_attribute_list(const std::string& text, const std::string& op) {
  NamedAttributes attributes;
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t equals = text.find('=', at);
    USER_CHECK(equals != std::string::npos, "[{}] attributes of a sample must be name=value, but are {}", op,
               quote(text));
    std::string name(trim(std::string_view(text).substr(at, equals - at)));
    at = equals + 1;
    Attribute value = parse_attribute(text, at);
    attributes.emplace_back(std::move(name), std::move(value));
    at = text.find_first_not_of(' ', at);
    if (at == std::string::npos) break;
    USER_CHECK(text[at] == ',', "[{}] attributes of a sample must be separated by commas, but are {}", op, quote(text));
    ++at;
  }
  return attributes;
}

SampleTensor sample_tensor(const weft_sample_tensor& tensor, const std::string& op) {
  const std::string name = text_of(tensor.name);
  USER_CHECK(tensor.rank >= 0 && tensor.rank <= kMaxRank, "[{}] a sample's {} has {} dims, of at most {}", op, name,
             tensor.rank, kMaxRank);
  const std::optional<DType> dtype = dtype_of_flat(tensor.dtype);
  USER_CHECK(dtype || tensor.dtype == WEFT_DTYPE_UNDER_TEST, "[{}] a sample's {} has dtype {}, which does not exist",
             op, name, tensor.dtype);
  USER_CHECK(tensor.fill >= WEFT_FILL_NORMAL && tensor.fill <= WEFT_FILL_ZERO,
             "[{}] a sample's {} has fill {}, which does not exist", op, name, tensor.fill);
  static constexpr Fill kFills[] = {Fill::normal, Fill::positive, Fill::indices, Fill::codes, Fill::zero};
  const std::vector<std::int64_t> size(tensor.size, tensor.size + tensor.rank);
  for (std::int64_t extent : size)
    USER_CHECK(extent >= 0 && extent <= 1 << 20, "[{}] a sample's {} has a size of {}", op, name, extent);
  return {name, size, dtype, kFills[tensor.fill], tensor.limit};
}

// A copy of the parts of a weft_op that are needed after its registration.
struct FlatOp {
  std::string schema, rows_of, origin;
  bool has_rows_of = false, allow_inplace = false;
  std::vector<std::pair<std::string, int>> donations;
  std::vector<Sample> samples;
  decltype(weft_op::infer) infer = nullptr;
  void* state = nullptr;
};

std::vector<Meta> infer_flat(const FlatOp& op, const Schema& schema, const OpRequest& request) {
  FlatTypes operands;
  for (const std::optional<Meta>& operand : request.operands) operands.add(operand ? &*operand : nullptr);
  const weft_attributes attributes{&request.attributes};
  const weft_request flat{.host = &flat_host(),
                          .operand_count = operands.count(),
                          .operands = operands.data(),
                          .result_count = 0,
                          .results = nullptr,
                          .attributes = &attributes,
                          .least_rows = 0,
                          .most_rows = 0};
  weft_results results{.operands = request.operands, .types = {}, .error = ""};
  results.types.resize(schema.results.size());
  const std::string what = fmt::format("[{}] the shape rule", schema.name);
  const std::optional<std::string> refusal = call_plugin(what, op.origin, [&](weft_message* message) {
    const weft_status status = op.infer(&flat, &results, op.state, message);
    return results.error.empty() ? status : WEFT_OK;
  });
  USER_CHECK(results.error.empty(), "{} is wrong: {} ({})", what, results.error, op.origin);
  USER_CHECK(!refusal, "{} refuses: {} ({})", what, *refusal, op.origin);
  std::vector<Meta> types;
  for (std::size_t i = 0; i < results.types.size(); ++i) {
    USER_CHECK(results.types[i], "{} gives no type for result {} ({})", what, i, op.origin);
    types.push_back(*results.types[i]);
  }
  return types;
}

void define_flat_op(const FlatOp& flat, OpDefinition& op) {
  op.schema(flat.schema.c_str());
  if (flat.has_rows_of) op.rows_of(flat.rows_of.empty() ? nullptr : flat.rows_of.c_str());
  if (flat.allow_inplace) op.allow_inplace();
  for (const auto& [argument, result] : flat.donations) op.donates(argument.c_str(), result);
  op.gives([flat, schema = parse_schema(flat.schema)](const OpRequest& request) {
    return infer_flat(flat, schema, request);
  });
  for (const Sample& sample : flat.samples) op.sample(sample.tensors, sample.attributes);
}

// ---- Kernels ----

// A copy of the parts of a weft_kernel that are needed after its registration.
struct FlatKernel {
  std::string name, origin;  // name: "[rms_norm@mine]"
  std::uint32_t flags = 0;
  decltype(weft_kernel::supported) supported = nullptr;
  decltype(weft_kernel::supports) supports = nullptr;
  decltype(weft_kernel::run) run = nullptr;
  void* state = nullptr;
};

Verdict verdict_of(std::optional<std::string> refusal) {
  return refusal ? Verdict::no(std::move(*refusal)) : Verdict::yes();
}

Verdict supported_flat(const FlatKernel& kernel, const DeviceDescription& device) {
  if (kernel.supported == nullptr) return Verdict::yes();
  const std::string kind = device.id.type == DeviceType::cpu ? "cpu" : device_text(device.id);
  const std::string features = cpu_features_text(device.features);
  const weft_device flat{
      .kind = kind.c_str(), .name = device.name.c_str(), .features = features.c_str(), .threads = device.threads};
  return verdict_of(call_plugin(kernel.name + " supported", kernel.origin,
                                [&](weft_message* message) { return kernel.supported(&flat, kernel.state, message); }));
}

Verdict supports_flat(const FlatKernel& kernel, const KernelRequest& request) {
  FlatTypes operands, results;
  for (const std::optional<Meta>& operand : request.operands) {
    if (operand && !operand->packed.empty() && (kernel.flags & WEFT_TAKES_PACKED) == 0)
      return Verdict::no("does not take packed weights");
    if (operand && operand->is_tensor() && !operand->is_contiguous() && (kernel.flags & WEFT_TAKES_STRIDES) == 0)
      return Verdict::no("does not take strided operands");
    operands.add(operand ? &*operand : nullptr);
  }
  if (kernel.supports == nullptr) return Verdict::yes();
  for (const Meta& result : request.results) results.add(&result);
  const weft_attributes attributes{&request.attributes};
  const weft_request flat{.host = &flat_host(),
                          .operand_count = operands.count(),
                          .operands = operands.data(),
                          .result_count = results.count(),
                          .results = results.data(),
                          .attributes = &attributes,
                          .least_rows = request.range.lo,
                          .most_rows = request.range.hi};
  return verdict_of(call_plugin(kernel.name + " supports", kernel.origin,
                                [&](weft_message* message) { return kernel.supports(&flat, kernel.state, message); }));
}

void run_flat(const FlatKernel& kernel, const KernelCall& call) {
  const FlatTensors operands(call.operands), results(call.results);
  const weft_attributes attributes{&call.attributes};
  const weft_threads threads{.pool = &call.threads, .error = ""};
  const weft_call flat{.host = &flat_host(),
                       .operand_count = operands.count(),
                       .operands = operands.data(),
                       .result_count = results.count(),
                       .results = results.data(),
                       .attributes = &attributes,
                       .threads = &threads};
  const std::optional<std::string> refusal =
      call_plugin(kernel.name + " run", kernel.origin, [&](weft_message* message) {
        const weft_status status = kernel.run(&flat, kernel.state, message);
        if (!threads.error.empty()) throw std::runtime_error(threads.error);
        return status;
      });
  USER_CHECK(!refusal, "{} run refuses a call that it supports: {} ({})", kernel.name, *refusal, kernel.origin);
}

}  // namespace

void register_flat_op(weft_registry& registry, const weft_op& op) {
  FlatOp flat;
  flat.schema = text_of(op.schema);
  flat.origin = registry.origin;
  const Schema schema = parse_schema(flat.schema);
  USER_CHECK(op.infer != nullptr, "[{}] has neither a meaning nor a shape rule", schema.name);
  flat.has_rows_of = op.rows_of != nullptr;
  flat.rows_of = text_of(op.rows_of);
  flat.allow_inplace = op.allow_inplace != 0;
  for (std::int32_t i = 0; i < op.donation_count; ++i)
    flat.donations.emplace_back(text_of(op.donations[i].argument), op.donations[i].result);
  for (std::int32_t i = 0; i < op.sample_count; ++i) {
    Sample sample;
    for (std::int32_t k = 0; k < op.samples[i].tensor_count; ++k)
      sample.tensors.push_back(sample_tensor(op.samples[i].tensors[k], schema.name));
    sample.attributes = parse_attribute_list(text_of(op.samples[i].attributes), schema.name);
    flat.samples.push_back(std::move(sample));
  }
  flat.infer = op.infer;
  flat.state = op.state;
  registry.registrations.register_op(schema.name,
                                     [flat](OpDefinition& definition) { define_flat_op(flat, definition); });
}

void register_flat_kernel(weft_registry& registry, const weft_kernel& kernel) {
  FlatKernel flat;
  const std::string op = text_of(kernel.op), provider = text_of(kernel.provider);
  flat.name = fmt::format("[{}@{}]", op, provider);
  flat.origin = registry.origin;
  flat.flags = kernel.flags;
  flat.supported = kernel.supported;
  flat.supports = kernel.supports;
  flat.run = kernel.run;
  flat.state = kernel.state;
  USER_CHECK(flat.run != nullptr, "{} has no function `run`", flat.name);
  USER_CHECK(kernel.schema != nullptr, "{} does not state the schema that it is for", flat.name);
  constexpr std::uint32_t kKnown = WEFT_BATCH_INVARIANT | WEFT_MAY_BE_CAPTURED | WEFT_TAKES_STRIDES | WEFT_TAKES_PACKED;
  USER_CHECK((kernel.flags & ~kKnown) == 0, "{} has unknown flags: {:#x}", flat.name, kernel.flags & ~kKnown);
  KernelTraits traits;
  traits.schema = kernel.schema;
  traits.rows = {std::max<std::int64_t>(kernel.least_rows, 1),
                 kernel.most_rows == 0 ? Kernel().rows.hi : kernel.most_rows};
  const Schema schema = parse_schema(traits.schema);
  for (std::int32_t i = 0; i < kernel.write_count; ++i) {
    const std::string argument = text_of(kernel.writes[i]);
    const int index = schema.parameter_index(argument);
    USER_CHECK(index >= 0, "{} writes over {}, but its schema is {}", flat.name, quote(argument), schema.text());
    traits.writes.push_back(index);
  }
  traits.batch_invariant = (kernel.flags & WEFT_BATCH_INVARIANT) != 0;
  traits.launch_graph = (kernel.flags & WEFT_MAY_BE_CAPTURED) != 0 ? LaunchGraphClass::always : LaunchGraphClass::never;
  traits.note = text_of(kernel.note);
  traits.supported = [flat](const DeviceDescription& device) { return supported_flat(flat, device); };
  traits.supports = [flat](const KernelRequest& request) { return supports_flat(flat, request); };
  registry.registrations.register_impl(
      op, provider, [flat](const KernelCall& call) { run_flat(flat, call); }, std::move(traits));
}

void register_flat_pass(weft_registry& registry, const weft_pass& pass) {
  const std::string name = text_of(pass.name);
  const std::optional<Stage> stage = stage_from_text(text_of(pass.stage));
  USER_CHECK(stage, "[{}] a pass runs at stage traced, pure, lowered or split, but this one at {}", name,
             quote(text_of(pass.stage)));
  USER_CHECK(pass.run != nullptr, "[{}] has no function `run`", name);
  const std::string what = fmt::format("[{}] the pass", name);
  registry.registrations.register_pass(
      name, *stage,
      [what, origin = registry.origin, run = pass.run, state = pass.state](Graph& graph, PassContext& context) {
        const std::string before = display(graph);
        weft_text changed;
        const std::optional<std::string> refusal = call_plugin(what, origin, [&](weft_message* message) {
          return run(&flat_host(), before.c_str(), &changed, state, message);
        });
        USER_CHECK(!refusal, "{} refuses: {} ({})", what, *refusal, origin);
        if (changed.value) replace_by_text(graph, *changed.value, context.ops, fmt::format("{} ({})", what, origin));
        return PassResult{.counts = {{"changed", changed.value ? 1 : 0}}};
      });
}

}  // namespace weft
