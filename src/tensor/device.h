#pragma once

// Where a tensor lives, and what the machine there can do. The description is read once, when a Context is made, and
// passed down; nothing asks the processor or the environment later.

#include <cstdint>
#include <string>

#include "tensor/dtype.h"

namespace weft {

enum class DeviceType : std::uint8_t { cpu, cuda, fake_cuda };

struct DeviceId {
  DeviceType type = DeviceType::cpu;
  int index = 0;
  bool operator==(const DeviceId&) const = default;
};

std::string device_text(DeviceId id);                // cpu, cuda:0, fake-cuda:0
DeviceId device_from_text(const std::string& text);  // UserError on anything else

// An ordered ceiling: each level has all that the levels before it have.
enum class CpuFeatures : std::uint8_t { baseline, avx2, avx512, avx512_vnni, avx512_bf16 };

std::string cpu_features_text(CpuFeatures features);  // baseline avx2 avx512 vnni bf16

struct DeviceDescription {
  DeviceId id;
  std::string name;                              // the processor's own name
  CpuFeatures host = CpuFeatures::baseline;      // the highest level this host has
  CpuFeatures features = CpuFeatures::baseline;  // the level in use: min(host, ceiling); above it nothing may run
  int threads = 1;                               // worker threads, the caller included
  DType fp8 = DType::f8e4m3;                     // the 8-bit float that it wants: f8e4m3 or f8e4m3fnuz
  int compute_capability = 0;                    // of a GPU, real or fake: 90 for 9.0
  int multiprocessors = 0;                       // of a GPU, real or fake
  int cublaslt = 0;                              // the version of its cuBLASLt: 120903 for 12.9.3; 0 for none
};

// UserError, which begins with [what], for another word than cpu_features_text gives.
CpuFeatures cpu_features_from_text(const std::string& text, const std::string& what);

// Reads the host's features and applies the ceiling WEFT_CPU_FEATURES=baseline|avx2|avx512|vnni|bf16 given as text
// ("" for none); UserError for another word. `threads` 0 means one per available processor.
DeviceDescription describe_cpu(const std::string& ceiling, int threads);

}  // namespace weft
