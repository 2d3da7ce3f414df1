#include <cstring>
#include <string_view>

#include "apps/device_check/fault.h"
#include "base/error.h"
#include "runtime/cuda/nvrtc.h"

namespace weft::device_check {

using namespace cuda;

namespace {

// An NVRTC that knows its version and for what it compiles, and no more.
template <int kMajor, int kMinor, int kArchitecture>
FindSymbol nvrtc_stand_in() {
  return [](const char* symbol) {
    static constexpr auto kVersion = [](int* major, int* minor) {
      *major = kMajor;
      *minor = kMinor;
      return NvrtcStatus::success;
    };
    static constexpr auto kCount = [](int* count) {
      *count = 1;
      return NvrtcStatus::success;
    };
    static constexpr auto kArchitectures = [](int* architectures) {
      architectures[0] = kArchitecture;
      return NvrtcStatus::success;
    };
    static constexpr auto kOther = [] {};
    using Pairs = NvrtcStatus(int*, int*);
    using Numbers = NvrtcStatus(int*);
    const std::string_view name(symbol);
    if (name == "nvrtcVersion") return reinterpret_cast<void*>(static_cast<Pairs*>(kVersion));
    if (name == "nvrtcGetNumSupportedArchs") return reinterpret_cast<void*>(static_cast<Numbers*>(kCount));
    if (name == "nvrtcGetSupportedArchs") return reinterpret_cast<void*>(static_cast<Numbers*>(kArchitectures));
    return reinterpret_cast<void*>(static_cast<void (*)()>(kOther));
  };
}

void open_nvrtc(const std::vector<std::string>& places) {
  std::string problem;
  if (Nvrtc::open(places, problem) == nullptr) throw DeviceError(problem);
}

}  // namespace

std::vector<Fault> faults_of_nvrtc() {
  return {
      {"no NVRTC",
       {"libnvrtc of CUDA 12.0 or newer was not found", "looked for libnvrtc_of_nowhere.so.13"},
       [](Target&) { open_nvrtc({"libnvrtc_of_nowhere.so.13"}); }},
      {"another library in NVRTC's place", {"libc.so.6 has no nvrtc"}, [](Target&) { open_nvrtc({"libc.so.6"}); }},
      {"NVRTC too old",
       {"libnvrtc.so.11.2 is of CUDA 11.8"},
       [](Target&) {
         std::string problem;
         Nvrtc::open(nvrtc_stand_in<11, 8, 90>(), "libnvrtc.so.11.2", problem);
         throw DeviceError(problem);
       }},
      {"NVRTC without the architecture",
       {"is wanted for sm_", "NVRTC 12.0 compiles for sm_52"},
       [](Target& target) {
         std::string problem;
         const auto compiler = Nvrtc::open(nvrtc_stand_in<12, 0, 52>(), "libnvrtc.so.12", problem);
         if (compiler == nullptr) throw DeviceError(problem);
         compiler->compile({.name = "empty.cu"}, target.driver().facts(target.device()).compute_capability,
                           NvrtcCode::ptx);
       }},
      {"PTX of a newer NVRTC than the driver's",
       {"cuModuleLoadData", "PTX"},
       [](Target& target) {
         constexpr std::string_view kText =
             ".version 99.0\n.target sm_52\n.address_size 64\n.visible .entry nothing() { ret; }\n";
         std::vector<std::byte> image(kText.size() + 1);  // which a zero ends
         std::memcpy(image.data(), kText.data(), kText.size());
         target.driver().load_module(target.device(), image);
       }},
  };
}

}  // namespace weft::device_check
