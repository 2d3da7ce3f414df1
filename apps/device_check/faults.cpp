#include "apps/device_check/faults.h"

#include <algorithm>

#include <fmt/core.h>

#include "apps/device_check/fault.h"
#include "base/error.h"
#include "kernels/cuda/code/device_code.h"
#include "kernels/cuda/lib/group_launch.h"
#include "kernels/cuda/lib/group_rules.h"
#include "kernels/cuda/lib/silu_and_mul_per_block_quant.h"
#include "kernels/launch_queue.h"
#include "runtime/cuda/current_guard.h"
#include "runtime/cuda/driver_library.h"

namespace weft::device_check {

using namespace cuda;

namespace {

constexpr const char* kSimpleKernel = "per_token_group_quant_f32_i8_128";
constexpr std::uint32_t kRows = 4, kColumns = 256, kGroups = kColumns / 128;

// Rows of one number, quantized: what a device that works does, and one that fails does not.
struct SimpleWork {
  explicit SimpleWork(Target& target) : target(target), stream(target.stream()) {
    Driver& driver = target.driver();
    x = driver.allocate(stream, (kRows * kColumns + 1) * sizeof(float));
    codes = driver.allocate(stream, kRows * kColumns);
    scales = driver.allocate(stream, kRows * kGroups * sizeof(float));
    driver.copy(stream, x, numbers.data(), numbers.size() * sizeof(float));
  }
  ~SimpleWork() {
    try {
      for (void* address : {x, codes, scales}) target.driver().release(stream, address);
      target.driver().synchronize(stream);
    } catch (const DeviceError&) {  // the device failed: it is gone already
    }
  }
  SimpleWork(const SimpleWork&) = delete;
  SimpleWork& operator=(const SimpleWork&) = delete;

  // `offset`: bytes that are added to the address of x.
  void launch(Stream on, std::uintptr_t offset = 0) {
    PerTokenGroupQuantArguments arguments{.x = static_cast<const std::byte*>(x) + offset,
                                          .codes = codes,
                                          .places = {static_cast<float*>(scales), kGroups, 1},
                                          .rows = kRows,
                                          .columns = kColumns};
    const LaunchShape shape =
        plan_groups(kSimpleKernel, {.rows = kRows, .groups = kGroups}, arguments.places, arguments.order);
    target.driver().launch(on, function(), {.blocks = {shape.blocks, 1, 1}, .threads = {shape.threads, 1, 1}},
                           arguments);
  }
  Function function() {
    const std::optional<Function> found = target.find(kSimpleKernel, sizeof(PerTokenGroupQuantArguments));
    if (!found) fail_device("[device check] the code has no kernel {}", kSimpleKernel);
    return *found;
  }
  // "" or what is wrong with the codes, which are all the largest one.
  std::string problem() {
    std::vector<std::int8_t> came(kRows * kColumns);
    target.driver().copy(stream, came.data(), codes, came.size());
    target.driver().synchronize(stream);
    const auto wrong = std::count_if(came.begin(), came.end(), [](std::int8_t code) { return code != 127; });
    return wrong == 0 ? "" : fmt::format("{} of {} codes are wrong afterwards", wrong, came.size());
  }

  Target& target;
  Stream stream;
  std::vector<float> numbers = std::vector<float>(kRows * kColumns, 1.0f);
  void *x = nullptr, *codes = nullptr, *scales = nullptr;
};

// What a call's input is refused for, as by its queue; the device is not asked.
void refuse_input(Target& target, const std::function<void()>& check) {
  named_by(
      [&] { return fmt::format("[{}] silu_and_mul_per_block_quant", target.driver().device_name(target.device())); },
      check);
}

void plan(Target& target, std::uintptr_t offset, std::uint32_t rows, std::uint32_t columns) {
  alignas(16) static std::byte memory[32];
  SiluAndMulPerBlockQuantArguments arguments{.x = memory + offset,
                                             .codes = memory,
                                             .places = {reinterpret_cast<float*>(memory), 1, 1},
                                             .rows = rows,
                                             .columns = columns};
  refuse_input(target, [&] { SiluAndMulPerBlockQuant{}.plan(arguments); });
}

// Where no kernel takes the arguments.
void refuse(Target& target, const Verdict& verdict) {
  refuse_input(target, [&] {
    if (!verdict) throw UserError(verdict.reason());
  });
}

// Launches what `capture` queues as a graph, and waits for it.
void run_captured(Target& target, const std::function<void(Stream)>& capture) {
  Driver& driver = target.driver();
  const Stream stream = target.stream();
  CaptureScope scope(driver, stream);
  capture(stream);
  const Owner<GraphObject> graph = scope.end();
  const Owner<ExecutableObject> executable(driver, driver.instantiate(*graph));
  driver.launch(stream, *executable);
  driver.synchronize(stream);
}

std::vector<Fault> faults_of_input() {
  return {
      {"misaligned pointer", {"x must be at a multiple of 16"}, [](Target& target) { plan(target, 2, 1, 128); }},
      {"group that does not divide",
       {"whole groups of 128", "192 columns"},
       [](Target& target) { plan(target, 0, 1, 192); }},
      {"zero rows",
       {"x must have 1 to 2^31 - 1 rows and columns", "has 0 and 128"},
       [](Target& target) { plan(target, 0, 0, 128); }},
      {"wrong dtype",
       {"bf16, f16 or f32, but is of f64"},
       [](Target& target) {
         refuse_input(target, [] { static_cast<void>(SiluAndMulPerBlockQuant{.x = DType::f64}.kernel_name()); });
       }},
      {"layout with gaps",
       {"x is bf16[4, 256]{512, 1}", "contiguous matrices are supported"},
       [](Target& target) {
         refuse(target, float_matrix(Meta::strided(DType::bf16, {4, 256}, {512, 1}), "x"));
       }},
      {"columns before rows",
       {"x is bf16[4, 256]{1, 4}", "contiguous matrices are supported"},
       [](Target& target) {
         refuse(target, float_matrix(Meta::strided(DType::bf16, {4, 256}, {1, 4}), "x"));
       }},
      {"dtype of codes as input",
       {"x is of i8", "bf16, f16 and f32 are supported"},
       [](Target& target) {
         refuse(target, float_matrix(Meta::tensor(DType::i8, {4, 256}), "x"));
       }},
      {"driver too old",
       {"must be for CUDA 12.0 or newer", "11.4"},
       [](Target&) {
         // The one entry point that says so: an old driver lacks others.
         static constexpr auto kOld = [](int* version) {
           *version = 11040;
           return Status::success;
         };
         Status (*const old)(int*) = kOld;
         std::string problem;
         open_cuda(
             [old](const char* symbol) {
               return std::string(symbol) == "cuDriverGetVersion" ? reinterpret_cast<void*>(old) : nullptr;
             },
             problem);
         throw DeviceError(problem);
       }},
      {"no driver",
       {"libcuda_of_nowhere.so was not found"},
       [](Target&) {
         std::string problem;
         open_cuda(problem, "libcuda_of_nowhere.so");
         throw DeviceError(problem);
       }},
  };
}

std::vector<Fault> faults_of_code() {
  return {
      {"no code for the architecture",
       {"no device code for sm_52"},
       [](Target&) {
         if (const Verdict verdict = has_device_code(52); !verdict) throw DeviceError(verdict.reason());
       }},
      {"image of another architecture",
       {"cuModuleLoadData", "NO_BINARY_FOR_GPU"},
       [](Target& target) {
         std::string missing;
         const auto code = target.foreign_code(missing);
         if (code) target.driver().load_module(target.device(), *code);
       }},
      {"no image",
       {"cuModuleLoadData", "INVALID"},
       [](Target& target) {
         const std::vector<std::byte> nonsense(64, std::byte{7});
         target.driver().load_module(target.device(), nonsense);
       }},
      {"kernel with other arguments",
       {"cuModuleGetFunction", kSimpleKernel},
       [](Target& target) { target.find(kSimpleKernel, 8); }},
      {"argument in the host's memory",
       {"[launch] argument 1 must be in a device's memory, but is in the host's"},
       [](Target& target) {
         const SimpleWork work(target);
         const void* const arguments[] = {work.codes, work.numbers.data()};
         const CurrentGuard guard(target.driver(), arguments);
       }},
      {"launch on a destroyed stream",
       {"cuLaunchKernel", "stream was destroyed"},
       [](Target& target) {
         SimpleWork work(target);
         const Stream other = target.driver().create_stream(target.device());
         target.driver().destroy(other);
         work.launch(other);
       }},
      {"launch of no block",
       {"cuLaunchKernel", "INVALID_VALUE"},
       [](Target& target) {
         SimpleWork work(target);
         target.driver().launch(work.stream, work.function(), {.blocks = {0, 1, 1}, .threads = {128, 1, 1}},
                                PerTokenGroupQuantArguments{});
       }},
  };
}

std::vector<Fault> faults_of_memory_and_capture() {
  const auto too_much = [](Target& target) { return 2 * target.driver().memory(target.device()).total; };
  return {
      {"out of memory",
       {"cuMemAllocAsync", "OUT_OF_MEMORY", "asked", "bytes free of"},
       [=](Target& target) { target.driver().allocate(target.stream(), too_much(target)); }},
      {"out of memory in a capture",
       {"OUT_OF_MEMORY", "bytes free of"},
       [=](Target& target) {
         const std::size_t bytes = too_much(target);
         run_captured(target, [&](Stream stream) {
           void* address = target.driver().allocate(stream, bytes);
           target.driver().fill(stream, address, 1, bytes);
           target.driver().release(stream, address);
         });
       }},
      {"launch that is refused in a capture",
       {"cuLaunchKernel", "INVALID_VALUE"},
       [](Target& target) {
         SimpleWork work(target);
         const Function function = work.function();
         run_captured(target, [&](Stream stream) {
           target.driver().launch(stream, function, {.threads = {100000, 1, 1}}, PerTokenGroupQuantArguments{});
         });
       }},
      {"waiting in a capture",
       {"cuStreamSynchronize", "STREAM_CAPTURE"},
       [](Target& target) { run_captured(target, [&](Stream stream) { target.driver().synchronize(stream); }); }},
  };
}

Fault fault_of(KernelFault kind) {
  if (kind == KernelFault::launched)
    return {"kernel that fails", {"cuStreamSynchronize"}, [](Target& target) {
              SimpleWork work(target);
              work.launch(work.stream, 4);
              target.driver().synchronize(work.stream);
            }};
  return {"kernel that fails in a captured graph", {"cuStreamSynchronize"}, [](Target& target) {
            SimpleWork work(target);
            static_cast<void>(work.function());  // no code is loaded in a capture
            run_captured(target, [&](Stream stream) { work.launch(stream, 4); });
          }};
}

CheckedCase provoke(Target& target, const Fault& fault) {
  CheckedCase result{.name = fault.name, .outcome = Outcome::failed, .text = "no error was reported"};
  try {
    fault.provoke(target);
    return result;
  } catch (const Error& error) {
    result.text = error.what();
  }
  result.outcome = Outcome::passed;
  for (const std::string& part : fault.says) {
    if (result.text.find(part) != std::string::npos) continue;
    result.outcome = Outcome::failed;
    result.text = fmt::format("does not say \"{}\": {}", part, result.text);
    break;
  }
  return result;
}

// "" or why the device does not compute.
std::string problem_afterwards(Target& target) {
  try {
    SimpleWork work(target);
    work.launch(work.stream);
    return work.problem();
  } catch (const Error& error) {
    return fmt::format("afterwards: {}", error.what());
  }
}

CheckedCase check_fault(Target& target, const Fault& fault) {
  CheckedCase result = provoke(target, fault);
  const std::string problem = problem_afterwards(target);
  if (problem.empty()) return result;
  result.outcome = Outcome::failed;
  result.text += "; " + problem;
  return result;
}

// "" where the device computes after the fault or says what to do. What it says is added to `text`.
std::string problem_after_kernel_fault(Target& target, std::string& text) {
  if (target.lost().empty()) return "the device does not count as broken";
  const std::string lost = target.mend();
  if (lost.empty()) return problem_afterwards(target);
  text += "; " + lost;
  return lost.find("start the process again") == std::string::npos ? "the refusal does not say what to do" : "";
}

}  // namespace

std::vector<CheckedCase> check_faults(Target& target) {
  std::vector<CheckedCase> results;
  std::string missing;
  const bool has_foreign_code = target.foreign_code(missing).has_value();
  for (const auto& faults : {faults_of_input(), faults_of_code(), faults_of_nvrtc(), faults_of_memory_and_capture()}) {
    for (const Fault& fault : faults) {
      const bool wants_file = std::string_view(fault.name) == "image of another architecture" && !has_foreign_code;
      results.push_back(wants_file ? CheckedCase{fault.name, Outcome::not_run, "there is no " + missing}
                                   : check_fault(target, fault));
    }
  }
  return results;
}

CheckedCase check_kernel_fault(Target& target, KernelFault kind) {
  const Fault fault = fault_of(kind);
  if (const std::string lost = target.lost(); !lost.empty()) return {fault.name, Outcome::not_run, lost};
  CheckedCase result = provoke(target, fault);
  const std::string problem = problem_after_kernel_fault(target, result.text);
  if (problem.empty()) return result;
  result.outcome = Outcome::failed;
  result.text += "; " + problem;
  return result;
}

}  // namespace weft::device_check
