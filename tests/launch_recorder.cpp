#include "tests/launch_recorder.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "base/error.h"
#include "builtin/context.h"
#include "compiler/run/eager.h"
#include "compiler/run/interpret.h"
#include "compiler/run/run_kernel.h"
#include "compiler/run/sample_call.h"
#include "emulator/approximation.h"
#include "emulator/emulator.h"
#include "kernels/cuda/code/kernel_table.h"
#include "kernels/cuda/lib/mathematics.h"
#include "kernels/cuda/lib/run_call.h"
#include "kernels/launch_queue.h"
#include "tests/recorded_family.h"

namespace weft {

namespace {

constexpr std::byte kNotWritten{0xa5};

std::vector<std::byte> bytes_now(const cuda::MemoryMap::Area& area) { return {area.begin, area.begin + area.bytes}; }

// Runs a call's launches in the emulator and records them.
class RecordingQueue : public LaunchQueue {
 public:
  RecordingQueue(const KernelCall& call, const std::string& name, std::vector<device_check::RecordedLaunch>& launches)
      : call_(call), name_(name), launches_(launches), memory_(cuda::memory_of(call)) {
    for (const cuda::MemoryMap::Area& area : memory_.areas())
      if (area.bytes > 0) areas_.push_back(area);
    for (const cuda::MemoryMap::Area& area : areas_)
      if (area.may_write && !is_operand(area)) std::fill_n(const_cast<std::byte*>(area.begin), area.bytes, kNotWritten);
  }

  std::string device() const override { return "the recorder"; }
  void launch(const std::string& kernel, const LaunchShape& shape, std::span<const std::byte> arguments) override {
    device_check::RecordedLaunch recorded{
        .name = name_, .kernel = kernel, .input = call_.operands[0].dtype, .shape = shape};
    recorded.bytes.assign(arguments.begin(), arguments.end());
    for (const cuda::MemoryMap::Area& area : areas_)
      recorded.buffers.push_back({area.name, dtype_of(area), bytes_now(area), {}});
    take_addresses(recorded);
    const auto run = [&] {
      cuda::Emulator({.order = cuda::ThreadOrder::random})
          .run(cuda::emulated_kernel(kernel), shape, arguments.data(), memory_);
    };
    run();
    for (std::size_t i = 0; i < areas_.size(); ++i)
      if (areas_[i].may_write) recorded.buffers[i].wanted = bytes_now(areas_[i]);
    recorded.is_approximate = is_moved(recorded, run);
    launches_.push_back(std::move(recorded));
  }
  void run_on_host(const std::string& name, std::function<void()>) override { CHECK(false, "[{}] is no launch", name); }

 private:
  bool is_operand(const cuda::MemoryMap::Area& area) const {
    return std::any_of(call_.operands.begin(), call_.operands.end(),
                       [&](const TensorView& operand) { return operand.data == area.begin; });
  }
  // Scratch memory has f32; memory without a type is compared byte by byte.
  DType dtype_of(const cuda::MemoryMap::Area& area) const {
    for (const auto& views : {call_.results, call_.operands})
      for (const TensorView& view : views)
        if (view.kind != MetaKind::batch && view.data == area.begin) return view.dtype;
    return area.name == "scratch" && area.bytes % sizeof(float) == 0 ? DType::f32 : DType::u8;
  }
  // Whether the errors of the device's approximate functions, within their bounds, change the result. Leaves memory
  // unchanged.
  bool is_moved(const device_check::RecordedLaunch& recorded, const std::function<void()>& run) {
    const auto restore = [&](auto bytes_of) {
      for (std::size_t i = 0; i < areas_.size(); ++i)
        if (areas_[i].may_write) {
          const std::vector<std::byte>& bytes = bytes_of(recorded.buffers[i]);
          std::copy(bytes.begin(), bytes.end(), const_cast<std::byte*>(areas_[i].begin));
        }
    };
    restore([](const device_check::RecordedBuffer& buffer) -> const auto& { return buffer.before; });
    cuda::current_approximation = cuda::Approximation::scattered;
    run();
    cuda::current_approximation = cuda::Approximation::exact;
    bool moved = false;
    for (std::size_t i = 0; i < areas_.size(); ++i)
      moved |= areas_[i].may_write && bytes_now(areas_[i]) != recorded.buffers[i].wanted;
    restore([](const device_check::RecordedBuffer& buffer) -> const auto& { return buffer.wanted; });
    return moved;
  }
  // Eight bytes with an address inside the call's memory are a pointer: no other argument is so large.
  void take_addresses(device_check::RecordedLaunch& recorded) const {
    for (std::size_t place = 0; place + 8 <= recorded.bytes.size(); place += 8) {
      std::uint64_t value = 0;
      std::memcpy(&value, recorded.bytes.data() + place, sizeof value);
      for (std::size_t i = 0; i < areas_.size(); ++i) {
        const std::uint64_t offset = value - reinterpret_cast<std::uintptr_t>(areas_[i].begin);
        if (offset >= areas_[i].bytes) continue;
        recorded.pointers.push_back({static_cast<std::uint32_t>(place), static_cast<std::uint32_t>(i), offset});
        std::memset(recorded.bytes.data() + place, 0, sizeof value);
        break;
      }
    }
  }

  const KernelCall& call_;
  const std::string& name_;
  std::vector<device_check::RecordedLaunch>& launches_;
  cuda::MemoryMap memory_;
  std::vector<cuda::MemoryMap::Area> areas_;
};

// The kernel of a provider, null if it has none for the op; for cuda the one with reference math if there are two
// forms.
const Kernel* recorded_kernel(const Context& context, const std::string& op, const std::string& provider) {
  using namespace cuda;
  const Kernel* reference = provider == provider_of(Mathematics::device)
                                ? context.kernels.find(op, provider_of(Mathematics::reference))
                                : nullptr;
  return reference != nullptr ? reference : context.kernels.find(op, provider);
}

std::shared_ptr<Context> fake_context() {
  Options options;
  options.device = "fake-cuda";
  options.threads = 2;
  return make_context(std::move(options));
}

template <class T>
void append(std::vector<T>& all, const std::vector<T>& more) {
  all.insert(all.end(), more.begin(), more.end());
}

// A kernel is approximate if one of its launches is: others may have numbers that cannot be moved.
std::vector<device_check::RecordedLaunch> with_kinds(std::vector<device_check::RecordedLaunch> launches) {
  std::set<std::string> approximate;
  for (const device_check::RecordedLaunch& launch : launches)
    if (launch.is_approximate) approximate.insert(launch.kernel);
  for (device_check::RecordedLaunch& launch : launches) launch.is_approximate = approximate.contains(launch.kernel);
  return launches;
}

// Whether the sample has groups; they then have that size.
bool set_groups(Sample& sample, std::int64_t group) {
  bool has_groups = false;
  for (auto& [name, value] : sample.attributes) {
    if (name != "group_size") continue;
    value = Attribute(group);
    has_groups = true;
  }
  return has_groups;
}

// The sample itself; if it has groups, also with other group sizes that divide its columns (gated ops have twice the
// columns); for norms, rows of more columns than a block processes at once.
std::vector<Sample> forms_of(const Op& op, const Sample& sample) {
  std::vector<Sample> forms = {sample};
  const std::int64_t width = sample.tensors[0].shape.empty() ? 0 : sample.tensors[0].shape.back();
  const auto add_groups = [&](const Sample& of, std::int64_t columns) {
    for (const std::int64_t group : {64, 128})
      if (Sample form = of; columns % (2 * group) == 0 && set_groups(form, group)) forms.push_back(form);
  };
  add_groups(sample, width);
  if (op.name.find("rms_norm") == std::string::npos || op.name.find("rope") != std::string::npos) return forms;
  constexpr std::int64_t kColumns = 2304;
  Sample wide = sample;
  for (SampleTensor& tensor : wide.tensors)
    if (!tensor.shape.empty() && tensor.shape.back() == width) tensor.shape.back() = kColumns;
  if (set_groups(wide, 64)) {
    add_groups(wide, kColumns);
  } else {
    forms.push_back(wide);
  }
  return forms;
}

void record_sample(const Context& context, const std::string& provider, const Op& op, const SampleCall& call,
                   LaunchRecorder& recorder) {
  const Kernel& kernel = *recorded_kernel(context, op.name, provider);
  const std::vector<Meta> results = infer_results(op, context.ops, metas_of(call.operands), call.attributes);
  if (!kernel.supports({metas_of(call.operands), results, call.attributes, {1, 4096}})) return;
  recorder.begin("sample of " + call.text);
  Interpreter interpreter(context);
  const Values operands = values_of(interpreter, call.operands);
  const std::vector<Tensor> came = run_kernel(op, kernel, operands, call.attributes, results, false, *context.threads);
  const Values wanted = weft::call(op.name.c_str(), operands, call.attributes.entries(), false, &interpreter);
  const bool is_exact = op.name != "attention";  // which leaves the order of its sums free
  for (std::size_t i = 0; i < came.size(); ++i) {
    const Tolerance tolerance = is_exact ? Tolerance{} : op.tolerance(came[i].meta.dtype);
    const std::string text = difference(wanted[i].tensor(), came[i], tolerance, is_exact);
    CHECK(text.empty(), "[{}] result {} of provider {}: {}", call.text, i, provider, text);
  }
}

}  // namespace

LaunchRecorder::LaunchRecorder(Context& context, const std::string& provider) {
  for (const std::string& op : context.kernels.ops()) {
    const Kernel* found = recorded_kernel(context, op, provider);
    if (found == nullptr) continue;
    context.priorities.set(op, {found->provider});
    auto& kernel = const_cast<Kernel&>(*found);
    kernel.run = [this, run = kernel.run](const KernelCall& call) {
      const std::string name = calls_++ == 0 ? name_ : fmt::format("{}, call {}", name_, calls_);
      RecordingQueue queue(call, name, launches_);
      KernelCall queued = call;
      queued.queue = &queue;
      run(queued);
    };
  }
}

void LaunchRecorder::begin(std::string name) {
  name_ = std::move(name);
  calls_ = 0;
}

std::vector<device_check::RecordedLaunch> record_family(const std::string& folder, const std::string& family) {
  const RecordedFamily recorded(folder, family);
  std::vector<device_check::RecordedLaunch> launches;
  for (const char* provider : {"cuda", "cuda_tree"}) {
    const auto context = fake_context();
    LaunchRecorder recorder(*context, provider);
    EagerEvaluator home(*context, kRecordedRange);
    for (const auto& entry : recorded.cases()) {
      recorder.begin(fmt::format("{}/{}", family, entry.at("case").get<std::string>()));
      try {
        const RecordedCall call = recorded.call_of(entry);
        const RecordedProblem problem = recorded.problem_of(entry, call, run_recorded(call, home));
        CHECK(recorder.calls() == 0 || problem.text.empty(), "[{}] {}: {}", provider, call.name, problem.text);
      } catch (const NotKnownYet&) {
      }
    }
    append(launches, recorder.launches());
  }
  return with_kinds(std::move(launches));
}

std::vector<device_check::RecordedLaunch> record_samples() {
  std::vector<device_check::RecordedLaunch> launches;
  for (const char* provider : {"cuda", "cuda_mma"}) {
    const auto context = fake_context();
    LaunchRecorder recorder(*context, provider);
    for (const std::string& name : context->kernels.ops()) {
      if (recorded_kernel(*context, name, provider) == nullptr) continue;
      const Op& op = context->ops.at(name);
      for (const Sample& sample : op.samples)
        for (const Sample& form : forms_of(op, sample))
          for (const SampleCall& call : sample_calls(op, form)) record_sample(*context, provider, op, call, recorder);
    }
    append(launches, recorder.launches());
  }
  return with_kinds(std::move(launches));
}

}  // namespace weft
