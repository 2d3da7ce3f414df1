#pragma once

// CUDA kernel launches that were recorded on a machine with the whole program, to be repeated on a machine with a GPU
// and little else. A record holds the kernel's inputs and its results in the emulator with the reference math. The
// format is plain little-endian bytes: a magic word, the number of launches, then each launch with its buffers. Long
// runs of the same byte are stored as their length.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "kernels/launch_shape.h"
#include "tensor/dtype.h"

namespace weft::device_check {

struct RecordedBuffer {
  std::string name;               // such as operand 0, result 1
  DType dtype = DType::f32;       // of its elements
  std::vector<std::byte> before;  // contents when the launch begins
  std::vector<std::byte> wanted;  // contents when it ended, of the same size; empty if the buffer is only read
};

// An address within the arguments: `offset` bytes after the beginning of a buffer.
struct RecordedPointer {
  std::uint32_t place = 0;   // byte offset in the arguments
  std::uint32_t buffer = 0;  // index in `buffers`
  std::uint64_t offset = 0;
};

struct RecordedLaunch {
  std::string name;          // of the call, for messages
  std::string kernel;        // the variant with the reference math if there are two
  DType input = DType::f32;  // dtype that it computes on: bf16, f16 or f32
  LaunchShape shape;
  // Whether it uses the device's approximate functions, which are exact in the emulator.
  bool is_approximate = false;
  std::vector<std::byte> bytes;  // the arguments, with addresses set to 0
  std::vector<RecordedPointer> pointers;
  std::vector<RecordedBuffer> buffers;
};

std::vector<std::byte> pack_launches(std::span<const RecordedLaunch> launches);
// Throws a UserError that names the byte offset if pack_launches would not write these bytes.
std::vector<RecordedLaunch> unpack_launches(std::span<const std::byte> packed);

}  // namespace weft::device_check
