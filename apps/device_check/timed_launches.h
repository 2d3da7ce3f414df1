#pragma once

// The launches that are timed: which kernels at which sizes, in which memory, and the bytes that each must move.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "apps/device_check/device_memory.h"
#include "apps/device_check/target.h"
#include "kernels/cuda/lib/launch.h"

namespace weft::device_check {

// Of what a launch computes; of heads the columns are those of all query heads.
struct TimedSize {
  std::uint32_t rows, columns;
  double target_share = 0;  // of the copy rate, that it is to reach; 0: none is set
};

// What the kernels of one launch read and write. Each is as large as the largest of them needs; all numbers are bf16
// but for scales.
struct TimedBuffers {
  void* x;              // [rows, 2 * columns]
  void *other, *pages;  // [rows, columns]; KV pages
  void* weight;         // [columns]
  void* angles;         // [rows, kTimedHeadDim]: cosines, then sines
  void *middle, *output;
  void *scales, *given;     // f32
  std::int64_t* numbers;    // [rows]: 0, 1, 2 and so on
  std::int64_t* scattered;  // [rows]: numbers of rows of [2 * rows, columns] that lie far apart, each once
  std::int32_t* batch;      // query starts [sequences + 1], lengths [sequences], block table [sequences, pages]
  float* partials;          // of attention, kMostPartialBytes
};

// Heads as in Llama-3-8B: four queries to a KV head.
inline constexpr std::uint32_t kTimedHeadDim = 128, kQueriesOfKv = 4, kPageTokens = 16;

class Launcher {
 public:
  Launcher(Target& target, cuda::Stream stream) : target_(target), stream_(stream) {}
  // DeviceError where the code has no such kernel.
  template <class Arguments>
  void operator()(const std::string& kernel, const cuda::LaunchShape& shape, const Arguments& arguments) {
    target_.driver().launch(stream_, function(kernel, sizeof arguments),
                            {.blocks = {shape.blocks, shape.block_rows, 1}, .threads = {shape.threads, 1, 1}},
                            arguments);
  }
  int multiprocessors() const { return target_.driver().facts(target_.device()).multiprocessors; }

 private:
  cuda::Function function(const std::string& kernel, std::size_t argument_bytes);

  Target& target_;
  cuda::Stream stream_;
};

using TimedLaunch = std::function<void(Launcher&, const TimedBuffers&, TimedSize)>;

struct TimedSubject {
  std::string what;
  std::vector<TimedSize> sizes;
  double bytes_of_element;  // that must be moved for an element of rows x columns
  TimedLaunch launch;
  std::uint32_t decode_tokens = 0;  // where each row is a sequence of so many tokens; 0: all rows are one prompt
  bool in_graph = true;
};

// All, in the order of the table.
const std::vector<TimedSubject>& timed_subjects();

// Memory for one launch of the subject, filled.
TimedBuffers add_buffers(DeviceMemory& memory, const TimedSubject& subject, TimedSize size);

}  // namespace weft::device_check
