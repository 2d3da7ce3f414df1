#pragma once

// Launches of CUDA kernels that were recorded where the whole program is, for a machine that has a GPU and little else:
// what each kernel was given, and what it gave in the emulator with the project's own mathematics. Plain bytes, little
// endian: a magic word, the number of launches, then each launch with its buffers; long stretches of one byte are
// stored as their length.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "kernels/launch_shape.h"
#include "tensor/dtype.h"

namespace weft::device_check {

struct RecordedBuffer {
  std::string name;               // operand 0, result 1
  DType dtype = DType::f32;       // of its elements
  std::vector<std::byte> before;  // when the launch begins
  std::vector<std::byte> wanted;  // when it ended, as many bytes; empty for what is only read
};

// Where an argument holds an address: `offset` bytes behind the beginning of a buffer.
struct RecordedPointer {
  std::uint32_t place = 0;   // in the arguments
  std::uint32_t buffer = 0;  // by number
  std::uint64_t offset = 0;
};

struct RecordedLaunch {
  std::string name;          // of the call, for messages
  std::string kernel;        // with house mathematics, where there are two
  DType input = DType::f32;  // of what it computes on: bf16, f16 or f32
  LaunchShape shape;
  // It uses the device's approximate functions, which the emulator has exactly.
  bool is_approximate = false;
  std::vector<std::byte> bytes;  // of the arguments, addresses 0
  std::vector<RecordedPointer> pointers;
  std::vector<RecordedBuffer> buffers;
};

std::vector<std::byte> pack_launches(std::span<const RecordedLaunch> launches);
// UserError, naming the place, for bytes that pack_launches would not write.
std::vector<RecordedLaunch> unpack_launches(std::span<const std::byte> packed);

}  // namespace weft::device_check
