#pragma once

// The device of a tensor, and the features of the machine. The description is read once, when a Context is made, and
// passed on; no other code asks the processor or the environment.

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

// Ordered levels: each one includes all earlier ones.
enum class CpuFeatures : std::uint8_t { baseline, avx2, avx512, avx512_vnni, avx512_bf16, amx };

std::string cpu_features_text(CpuFeatures features);  // baseline avx2 avx512 vnni bf16 amx

struct DeviceDescription {
  DeviceId id;
  std::string name;                              // the processor's own name
  CpuFeatures host = CpuFeatures::baseline;      // the highest level this host has
  CpuFeatures features = CpuFeatures::baseline;  // the level in use: min(host, ceiling); no code above it may run
  std::string amx_problem;                       // why host is below amx; "" if it is not
  // Whether the instruction for dots of bf16 is at least as fast as fused multiply-adds. Where it is not, products of
  // bf16 have the order of AMX on each level from avx2 on.
  bool fast_bf16_dots = false;
  int threads = 1;             // worker threads, the caller included
  DType fp8 = DType::f8e4m3;   // the 8-bit float of the device: f8e4m3 or f8e4m3fnuz
  int compute_capability = 0;  // of a GPU, real or fake: 90 for 9.0
  int multiprocessors = 0;     // of a GPU, real or fake
  int cublaslt = 0;            // the version of its cuBLASLt: 120903 for 12.9.3; 0 for none
};

// Throws UserError, with [what] at its beginning, unless cpu_features_text returns this word.
CpuFeatures cpu_features_from_text(const std::string& text, const std::string& what);

// Reads the host's features and applies the ceiling WEFT_CPU_FEATURES=baseline|avx2|avx512|vnni|bf16|amx given as
// text ("" for none); UserError for another word. `threads` 0 means one per available processor.
DeviceDescription describe_cpu(const std::string& ceiling, int threads);

}  // namespace weft
