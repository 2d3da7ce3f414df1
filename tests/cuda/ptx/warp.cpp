#include "tests/cuda/ptx/warp.h"

#include <algorithm>
#include <bit>

#include "base/error.h"
#include "emulator/checks.h"

namespace weft::ptx {
namespace {

std::uint64_t value_of(Special special, const BlockState& block, std::uint32_t warp, std::uint32_t lane) {
  const LaunchShape& shape = block.launch.shape;
  switch (special) {
    case Special::thread:
      return warp * 32 + lane;
    case Special::threads:
      return shape.threads;
    case Special::block:
      return block.block;
    case Special::blocks:
      return shape.blocks;
    case Special::block_row:
      return block.block_row;
    case Special::block_rows:
      return shape.block_rows;
    case Special::lane:
      return lane;
    case Special::zero:
      return 0;
    case Special::one:
      return 1;
  }
  return 0;
}

}  // namespace

Warp::Warp(BlockState& block, std::uint32_t number) : block_(block), program_(block.launch.program), number_(number) {
  const std::uint32_t threads = std::min(block.launch.shape.threads - number * 32, 32u);
  existing_ = running_ = threads == 32 ? 0xffffffffu : (1u << threads) - 1;
  values_.resize((program_.registers + program_.presets.size()) * 32);
  std::uint32_t slot = program_.registers;
  for (const Preset& preset : program_.presets) {
    std::uint64_t* lanes = values(slot++);
    for (std::uint32_t lane = 0; lane < 32; ++lane)
      lanes[lane] = preset.special ? value_of(*preset.special, block, number, lane) : preset.bits;
  }
  if (program_.local_bytes != 0) local_.assign(threads, Scratch(program_.local_bytes));
}

bool Warp::choose_lanes() {
  if (running_ == 0) {
    if (gathering_ != 0) {
      const auto lane = static_cast<std::uint32_t>(std::countr_zero(gathering_));
      current_ = next_[lane];
      fault(lane, "waits for lanes that never come");
    }
    return false;
  }
  place_ = limit_ = static_cast<std::uint32_t>(program_.code.size());
  for (std::uint32_t left = running_; left != 0; left &= left - 1)
    place_ = std::min(place_, next_[static_cast<std::size_t>(std::countr_zero(left))]);
  active_ = 0;
  for (std::uint32_t left = running_; left != 0; left &= left - 1) {
    const int lane = std::countr_zero(left);
    const std::uint32_t next = next_[static_cast<std::size_t>(lane)];
    if (next == place_) {
      active_ |= 1u << lane;
    } else {
      limit_ = std::min(limit_, next);
    }
  }
  has_parted_ = false;
  return true;
}

void Warp::part() {
  for (std::uint32_t left = active_; left != 0; left &= left - 1)
    next_[static_cast<std::size_t>(std::countr_zero(left))] = place_;
  has_parted_ = true;
}

void Warp::run() {
  while (choose_lanes()) {
    while (!has_parted_ && place_ < limit_) {
      const Instruction& one = program_.code[place_];
      std::uint32_t lanes = active_;
      if (one.guard >= 0) {
        const std::uint64_t* guard = values(static_cast<std::uint32_t>(one.guard));
        for (std::uint32_t left = active_; left != 0; left &= left - 1) {
          const int lane = std::countr_zero(left);
          if ((guard[lane] & 1) == (one.guard_is_negated ? 1u : 0u)) lanes &= ~(1u << lane);
        }
      }
      current_ = place_++;
      if (block_.launch.instructions_left-- == 0)
        fault(static_cast<std::uint32_t>(std::countr_zero(active_)), "is run too long: the launch does not end");
      if (lanes != 0) one.execute(*this, one, lanes);
    }
    if (place_ >= program_.code.size() && !has_parted_)
      fault(static_cast<std::uint32_t>(std::countr_zero(active_)), "is the last one, and no return follows");
    if (!has_parted_) part();
  }
}

void Warp::release_barrier() {
  running_ |= at_barrier_;
  at_barrier_ = 0;
}

void Warp::jump(std::uint32_t lanes, std::uint32_t target) {
  if (lanes == active_) {
    place_ = target;
    if (active_ != running_) part();
    return;
  }
  part();
  for (std::uint32_t left = lanes; left != 0; left &= left - 1)
    next_[static_cast<std::size_t>(std::countr_zero(left))] = target;
}

void Warp::end(std::uint32_t lanes) {
  part();
  running_ &= ~lanes;
}

void Warp::wait_for_block(std::uint32_t lanes) {
  part();
  running_ &= ~lanes;
  at_barrier_ |= lanes;
}

std::uint32_t Warp::gather(std::uint32_t lanes, std::uint32_t wanted) {
  wanted &= existing_;
  const auto first = static_cast<std::uint32_t>(std::countr_zero(lanes));
  if ((lanes & ~wanted) != 0)
    fault(static_cast<std::uint32_t>(std::countr_zero(lanes & ~wanted)), "has a mask without the lane itself");
  std::uint32_t here = lanes;
  for (std::uint32_t left = gathering_; left != 0; left &= left - 1)
    if (const int lane = std::countr_zero(left); next_[static_cast<std::size_t>(lane)] == current_) here |= 1u << lane;
  if ((wanted & ~here) == 0) {
    if (wanted == lanes) return wanted;
    part();
    for (std::uint32_t left = wanted & ~lanes; left != 0; left &= left - 1)
      next_[static_cast<std::size_t>(std::countr_zero(left))] = place_;
    gathering_ &= ~wanted;
    running_ |= wanted;
    return wanted;
  }
  const std::uint32_t ended = wanted & ~(running_ | at_barrier_ | gathering_);
  if (ended != 0) fault(first, fmt::format("waits for lane {}, which has ended", std::countr_zero(ended)));
  part();
  for (std::uint32_t left = lanes; left != 0; left &= left - 1)
    next_[static_cast<std::size_t>(std::countr_zero(left))] = current_;
  running_ &= ~lanes;
  gathering_ |= lanes;
  return 0;
}

std::byte* Warp::scratch_access(std::uint32_t lane, Scratch& scratch, const char* name, std::uint64_t address,
                                std::uint64_t bytes, bool writes) {
  const std::uint64_t size = scratch.bytes.size();
  if (address > size || bytes > size - address)
    fault(lane, fmt::format("{} byte {} of {} bytes of {} memory", writes ? "writes" : "reads", address, size, name));
  for (std::uint64_t i = address; i < address + bytes; ++i) {
    if (!writes && !scratch.is_written[i] && cuda::is_checked(cuda::EmulatorCheck::shared))
      fault(lane, fmt::format("reads byte {} of {} memory, which no thread wrote", i, name));
    scratch.is_written[i] = true;
  }
  return scratch.bytes.data() + address;
}

std::byte* Warp::access(std::uint32_t lane, Space space, std::uint64_t address, std::uint64_t bytes, bool writes) {
  if (address % bytes != 0) fault(lane, fmt::format("touches {} bytes at {:#x}, no multiple of them", bytes, address));
  if (space == Space::generic) {
    space = Space::global;
    for (const auto& [window, of] : {std::pair{kSharedWindow, Space::shared},
                                     {kLocalWindow, Space::local},
                                     {kParameterWindow, Space::parameter}}) {
      if (address < window || address - window >= kWindowBytes) continue;
      space = of;
      address -= window;
      break;
    }
  }
  switch (space) {
    case Space::shared:
      return scratch_access(lane, block_.shared, "shared", address, bytes, writes);
    case Space::local:
      if (local_.empty()) fault(lane, "touches local memory and has none");
      return scratch_access(lane, local_[lane], "local", address, bytes, writes);
    case Space::parameter:
      if (writes || address > program_.argument_bytes || bytes > program_.argument_bytes - address)
        fault(lane, fmt::format("{} byte {} of {} bytes of arguments", writes ? "writes" : "reads", address,
                                program_.argument_bytes));
      // Read alone.
      return const_cast<std::byte*>(block_.launch.arguments) + address;
    default:
      break;
  }
  auto* at = reinterpret_cast<std::byte*>(address);
  const LaunchShape& shape = block_.launch.shape;
  const std::uint32_t thread = (block_.block_row * shape.blocks + block_.block) * shape.threads + number_ * 32 + lane;
  cuda::MemoryMap& memory = block_.launch.memory;
  const std::string problem = writes ? memory.note_writing(at, bytes, thread) : memory.note_reading(at, bytes, thread);
  if (!problem.empty()) fault(lane, problem);
  return at;
}

void Warp::fault(std::uint32_t lane, const std::string& what) const {
  const Instruction& one = program_.code[current_];
  fail_device("[{}] block ({}, {}), thread {}, line {} of the PTX: {} {}", program_.name, block_.block,
              block_.block_row, number_ * 32 + lane, one.line, one.text, what);
}

}  // namespace weft::ptx
