#pragma once

// A graph compiled for the host or for a fake device whose images the PTX interpreter executes, and its results.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "builtin/cuda_device.h"
#include "compiler/context.h"
#include "runtime/cuda/nvrtc.h"
#include "runtime/replay.h"

namespace weft {

// A Context for a device by name. Generated code is used for the same ops, so that host and device compute the same
// things in the same way.
std::shared_ptr<Context> context_of(const std::string& device);

inline std::vector<std::string> nvrtc_of_this_machine() { return cuda::nvrtc_places(process_environment()); }
inline const std::vector<std::string> kNoNvrtc = {"/nowhere/libnvrtc.so.13"};

// A Context of a fake device.
std::shared_ptr<Context> device_context(std::uint64_t seed = 1,
                                        const std::vector<std::string>& nvrtc = nvrtc_of_this_machine(),
                                        int capability = 90);

// The results of the steps, in order.
std::vector<const Kernel*> generated_kernels(const Plan& plan, const Context& context);

// A graph's Plan, and its results on a Context's device, or on the host without one.
class CompiledLayer {
 public:
  static constexpr int kMostRows = 6;

  CompiledLayer(std::shared_ptr<Context> context, const std::string& graph);

  const Plan& plan() const { return *plan_; }
  Context& context() const { return *context_; }

  // The bytes of each result.
  std::vector<std::string> run(int rows, ReplayMode mode = ReplayMode::full);

 private:
  std::shared_ptr<Context> context_;
  std::shared_ptr<Graph> graph_;
  std::shared_ptr<const Plan> plan_;
  std::unique_ptr<Replay> replay_;
};

}  // namespace weft
