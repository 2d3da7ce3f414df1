#pragma once

// An executable kernel: instructions with their functions and the offsets of their operands.

#include "tests/cuda/ptx/kernel_text.h"

namespace weft::ptx {

class Warp;
struct Instruction;
// Executes an instruction for the lanes of the mask.
using Execute = void (*)(Warp& warp, const Instruction& one, std::uint32_t lanes);
using LaneFunction = void (*)();  // of one lane's values; `execute` knows its type

struct Access {
  Space space = Space::generic;
  std::uint8_t bytes = 0;  // of an element
  std::uint8_t count = 1;  // of elements
  bool is_signed = false;  // shorter than its register, it is extended so
};

struct Instruction {
  Execute execute = nullptr;
  LaneFunction function = nullptr;
  // Slots: a slot is a register, a constant or a special register.
  std::vector<std::uint32_t> to, from;
  std::int32_t guard = -1;  // slot, or none
  bool guard_is_negated = false;
  Access access;
  std::int64_t offset = 0;   // of the address
  std::uint32_t target = 0;  // of a branch
  int line = 0;
  std::string_view text;
};

enum class Special : std::uint8_t {
  thread,  // %tid.x
  threads,
  block,
  blocks,
  block_row,
  block_rows,
  lane,
  zero,  // the other coordinates
  one,   // and their extents
};

// Values in slots after the registers. `special` counts where it is set.
struct Preset {
  std::uint64_t bits = 0;
  std::optional<Special> special;
};

struct Program {
  std::string name;
  std::uint64_t argument_bytes = 0, shared_bytes = 0, local_bytes = 0;
  std::uint32_t most_threads = 1024;
  std::uint32_t registers = 0;
  std::vector<Preset> presets;
  std::vector<Instruction> code;
};

// Throws UserError with `module`, line and text for an unknown instruction or form of it. The result refers to the
// kernel's text.
Program decode(const KernelText& kernel, const std::string& module);

}  // namespace weft::ptx
