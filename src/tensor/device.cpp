#include "tensor/device.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <string_view>

#include <sched.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "base/error.h"
#include "tensor/amx.h"

namespace weft {
namespace {

constexpr int kMaxThreads = 1024;

constexpr std::array<std::string_view, 6> kFeatureNames = {"baseline", "avx2", "avx512", "vnni", "bf16", "amx"};

struct DeviceName {
  std::string_view text;
  DeviceType type;
};
constexpr std::array kDeviceNames = {DeviceName{"cpu", DeviceType::cpu}, DeviceName{"cuda", DeviceType::cuda},
                                     DeviceName{"fake-cuda", DeviceType::fake_cuda}};

// The builtins also check the operating system: a level counts only if the system saves its registers.
CpuFeatures host_features() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
  if (!avx2) return CpuFeatures::baseline;
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  if (!avx512) return CpuFeatures::avx2;
  if (!__builtin_cpu_supports("avx512vnni")) return CpuFeatures::avx512;
  if (!__builtin_cpu_supports("avx512bf16")) return CpuFeatures::avx512_vnni;
  return amx_problem(host_amx()).empty() ? CpuFeatures::amx : CpuFeatures::avx512_bf16;
#else
  return CpuFeatures::baseline;
#endif
}

// vdpbf16ps takes as long as four fused multiply-adds on Intel's processors, and as long as one on AMD's.
bool has_fast_bf16_dots() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx512bf16") && __builtin_cpu_is("amd");
#else
  return false;
#endif
}

std::string processor_name() {
#if defined(__x86_64__)
  // The brand string is 48 bytes in leaves 0x80000002 to 0x80000004.
  constexpr unsigned kFirstLeaf = 0x80000002u;
  std::array<char, 49> brand = {};
  std::array<unsigned, 4> part = {};
  for (unsigned i = 0; i < 3; ++i) {
    if (!__get_cpuid(kFirstLeaf + i, &part[0], &part[1], &part[2], &part[3])) return "x86-64";
    std::memcpy(brand.data() + i * sizeof part, part.data(), sizeof part);
  }
  const std::string name(brand.data());
  const std::size_t first = name.find_first_not_of(' ');
  if (first == std::string::npos) return "x86-64";
  return name.substr(first, name.find_last_not_of(' ') - first + 1);
#else
  return "unknown";
#endif
}

int available_processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return std::clamp(CPU_COUNT(&set), 1, kMaxThreads);
}

std::string why_no_amx() {
  const std::string problem = amx_problem(host_amx());
  return problem.empty() ? "the processor lacks AVX-512 or its dots of bf16" : problem;
}

}  // namespace

std::string device_text(DeviceId id) {
  const std::string name(kDeviceNames[static_cast<std::size_t>(id.type)].text);
  return id.type == DeviceType::cpu ? name : name + ":" + std::to_string(id.index);
}

DeviceId device_from_text(const std::string& text) {
  for (const DeviceName& row : kDeviceNames) {
    if (text == row.text) return {row.type, 0};
    if (row.type == DeviceType::cpu || !text.starts_with(std::string(row.text) + ":")) continue;
    const char* first = text.data() + row.text.size() + 1;
    const char* last = text.data() + text.size();
    std::uint8_t index = 0;
    const auto [end, error] = std::from_chars(first, last, index);
    if (error == std::errc() && end == last) return {row.type, index};
  }
  fail_user("[device] must be cpu, cuda, cuda:N, fake-cuda or fake-cuda:N, but is '{}'", text);
}

std::string cpu_features_text(CpuFeatures features) {
  return std::string(kFeatureNames[static_cast<std::size_t>(features)]);
}

CpuFeatures cpu_features_from_text(const std::string& text, const std::string& what) {
  const auto found = std::find(kFeatureNames.begin(), kFeatureNames.end(), text);
  USER_CHECK(found != kFeatureNames.end(), "[{}] must be one of baseline, avx2, avx512, vnni, bf16, amx, but is '{}'",
             what, text);
  return static_cast<CpuFeatures>(found - kFeatureNames.begin());
}

DeviceDescription describe_cpu(const std::string& ceiling, int threads) {
  USER_CHECK(threads >= 0 && threads <= kMaxThreads,
             "[threads] must be in [1, {}], or 0 for one per processor, but is {}", kMaxThreads, threads);
  DeviceDescription description;
  description.name = processor_name();
  description.host = host_features();
  description.features = description.host;
  if (description.host < CpuFeatures::amx) description.amx_problem = why_no_amx();
  description.fast_bf16_dots = has_fast_bf16_dots();
  if (!ceiling.empty())
    description.features = std::min(description.host, cpu_features_from_text(ceiling, "WEFT_CPU_FEATURES"));
  description.threads = threads == 0 ? available_processors() : threads;
  return description;
}

}  // namespace weft
