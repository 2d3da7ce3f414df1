#pragma once

// The launches to be timed: their kernels, sizes and memory, and the bytes that each must move.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "apps/device_check/device_memory.h"
#include "apps/device_check/target.h"
#include "kernels/launch_shape.h"

namespace weft::device_check {

// The size of a launch's computation. For heads the columns are those of all query heads.
struct TimedSize {
  std::uint32_t rows, columns;
  double target_share = 0;  // target as a share of the copy rate; 0: no target
};

// The memory that the kernels of one launch read and write. Each buffer has the size that the largest user needs. All
// numbers except scales are bf16.
struct TimedBuffers {
  void* x;              // [rows, 2 * columns]
  void *other, *pages;  // [rows, columns]; KV pages
  void* weight;         // [columns]
  void* angles;         // [rows, kTimedHeadDim]: cosines, then sines
  void *middle, *output;
  void *scales, *given;     // f32
  std::int64_t* numbers;    // [rows]: 0, 1, 2 and so on
  std::int64_t* scattered;  // [rows]: distinct row indices of [2 * rows, columns], far apart in memory
  std::int32_t* batch;      // query starts [sequences + 1], lengths [sequences], block table [sequences, pages]
  float* partials;          // partial sums of attention, kMostPartialBytes
};

// Heads as in Llama-3-8B: four query heads for each KV head.
inline constexpr std::uint32_t kTimedHeadDim = 128, kQueriesOfKv = 4, kPageTokens = 16;

class Launcher {
 public:
  Launcher(Target& target, cuda::Stream stream) : target_(target), stream_(stream) {}
  // Throws DeviceError if the code has no such kernel.
  template <class Arguments>
  void operator()(const std::string& kernel, const LaunchShape& shape, const Arguments& arguments) {
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
  double bytes_of_element;  // bytes to move for each element of rows x columns
  TimedLaunch launch;
  std::uint32_t decode_tokens = 0;  // each row is a sequence of this many tokens; 0: all rows are one prompt
  bool in_graph = true;
};

// Returns all subjects in the order of the table.
const std::vector<TimedSubject>& timed_subjects();

// Returns filled memory for one launch of the subject.
TimedBuffers add_buffers(DeviceMemory& memory, const TimedSubject& subject, TimedSize size);

}  // namespace weft::device_check
