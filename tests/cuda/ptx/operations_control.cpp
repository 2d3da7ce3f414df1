// Branches, ends, barriers, and collective operations of a warp.

#include <algorithm>

#include "base/error.h"
#include "tests/cuda/ptx/operations.h"

namespace weft::ptx {
namespace {

std::uint32_t first_of(std::uint32_t lanes) { return static_cast<std::uint32_t>(std::countr_zero(lanes)); }

// The mask in slot `slot`, which all lanes must agree on.
std::uint32_t mask_of(Warp& warp, std::uint32_t slot, std::uint32_t lanes) {
  const std::uint64_t* masks = warp.values(slot);
  const std::uint64_t mask = masks[first_of(lanes)];
  for (std::uint32_t left = lanes; left != 0; left &= left - 1)
    if (const std::uint32_t lane = first_of(left); masks[lane] != mask)
      warp.fault(lane, fmt::format("has mask {:#x} beside {:#x} of another lane", masks[lane], mask));
  return static_cast<std::uint32_t>(mask);
}

enum class Shuffle : std::uint8_t { up, down, butterfly, index };

// shfl.sync.MODE.b32 to|found, from, b, c, mask: c has the last lane of a segment and, from bit 8 on, the bits of a
// lane's index that select its segment.
template <Shuffle mode>
void shuffle(Warp& warp, const Instruction& one, std::uint32_t lanes) {
  lanes = warp.gather(lanes, mask_of(warp, one.from[3], lanes));
  std::array<std::uint64_t, 32> given;
  std::copy_n(warp.values(one.from[0]), 32, given.begin());
  for (std::uint32_t left = lanes; left != 0; left &= left - 1) {
    const std::uint32_t lane = first_of(left);
    const auto b = static_cast<std::uint32_t>(warp.values(one.from[1])[lane] & 31);
    const std::uint64_t c = warp.values(one.from[2])[lane];
    const auto clamp = static_cast<std::uint32_t>(c & 31), segment = static_cast<std::uint32_t>(c >> 8 & 31);
    const std::uint32_t least = lane & segment, most = (lane & segment) | (clamp & ~segment);
    std::uint32_t source = lane;
    bool is_within = false;
    switch (mode) {
      case Shuffle::up:
        source = lane - b;
        is_within = static_cast<std::int32_t>(source) >= static_cast<std::int32_t>(most);
        break;
      case Shuffle::down:
        source = lane + b;
        is_within = source <= most;
        break;
      case Shuffle::butterfly:
        source = lane ^ b;
        is_within = source <= most;
        break;
      case Shuffle::index:
        source = least | (b & ~segment);
        is_within = source <= most;
        break;
    }
    if (!is_within) source = lane;
    if ((lanes >> source & 1) == 0) warp.fault(lane, fmt::format("reads lane {}, which takes no part", source));
    warp.values(one.to[0])[lane] = given[source];
    if (one.to.size() == 2) warp.values(one.to[1])[lane] = is_within ? 1 : 0;
  }
}

std::uint32_t ballot(Warp& warp, std::uint32_t slot, std::uint32_t lanes) {
  std::uint32_t found = 0;
  const std::uint64_t* values = warp.values(slot);
  for (std::uint32_t left = lanes; left != 0; left &= left - 1)
    if ((values[first_of(left)] & 1) != 0) found |= left & (~left + 1);
  return found;
}

enum class Vote : std::uint8_t { all, any, equal, ballot };

template <Vote kind>
void vote(Warp& warp, const Instruction& one, std::uint32_t lanes) {
  lanes = warp.gather(lanes, mask_of(warp, one.from[1], lanes));
  if (lanes == 0) return;
  const std::uint32_t yes = ballot(warp, one.from[0], lanes);
  const std::uint32_t result = kind == Vote::all     ? (yes == lanes ? 1 : 0)
                               : kind == Vote::any   ? (yes != 0 ? 1 : 0)
                               : kind == Vote::equal ? (yes == 0 || yes == lanes ? 1 : 0)
                                                     : yes;
  for (std::uint32_t left = lanes; left != 0; left &= left - 1) warp.values(one.to[0])[first_of(left)] = result;
}

// redux.sync.max.u32 to, from, mask: the largest of the lanes' values.
void largest_of_lanes(Warp& warp, const Instruction& one, std::uint32_t lanes) {
  lanes = warp.gather(lanes, mask_of(warp, one.from[1], lanes));
  std::uint64_t largest = 0;
  for (std::uint32_t left = lanes; left != 0; left &= left - 1)
    largest = std::max(largest, warp.values(one.from[0])[first_of(left)]);
  for (std::uint32_t left = lanes; left != 0; left &= left - 1) warp.values(one.to[0])[first_of(left)] = largest;
}

void add_shuffle(Operations& table, const std::string& mode, Execute execute) {
  table["shfl.sync." + mode + ".b32"] = {{"w|p:wwww", execute, nullptr, {}}, {"w:wwww", execute, nullptr, {}}};
}

}  // namespace

void add_control_operations(Operations& table) {
  const Execute branch = [](Warp& warp, const Instruction& one, std::uint32_t lanes) { warp.jump(lanes, one.target); };
  table["bra"].push_back({":l", branch, nullptr, {}});
  table["bra.uni"].push_back({":l", branch, nullptr, {}});
  const Execute end = [](Warp& warp, const Instruction&, std::uint32_t lanes) { warp.end(lanes); };
  table["ret"].push_back({":", end, nullptr, {}});
  table["exit"].push_back({":", end, nullptr, {}});
  const Execute trap = [](Warp& warp, const Instruction&, std::uint32_t lanes) {
    warp.fault(first_of(lanes), "stops the launch");
  };
  table["trap"].push_back({":", trap, nullptr, {}});
  // Barrier 0, of the whole block: the only one that device code here has.
  const Execute barrier = [](Warp& warp, const Instruction&, std::uint32_t lanes) { warp.wait_for_block(lanes); };
  table["bar.sync"].push_back({":0", barrier, nullptr, {}});
  table["barrier.sync"].push_back({":0", barrier, nullptr, {}});
  // Lanes at a barrier. Writes are visible to all lanes at once here.
  const Execute meet = [](Warp& warp, const Instruction& one, std::uint32_t lanes) {
    warp.gather(lanes, mask_of(warp, one.from[0], lanes));
  };
  table["bar.warp.sync"].push_back({":w", meet, nullptr, {}});
  add_shuffle(table, "up", &shuffle<Shuffle::up>);
  add_shuffle(table, "down", &shuffle<Shuffle::down>);
  add_shuffle(table, "bfly", &shuffle<Shuffle::butterfly>);
  add_shuffle(table, "idx", &shuffle<Shuffle::index>);
  table["redux.sync.max.u32"].push_back({"w:ww", &largest_of_lanes, nullptr, {}});
  table["vote.sync.all.pred"].push_back({"p:pw", &vote<Vote::all>, nullptr, {}});
  table["vote.sync.any.pred"].push_back({"p:pw", &vote<Vote::any>, nullptr, {}});
  table["vote.sync.uni.pred"].push_back({"p:pw", &vote<Vote::equal>, nullptr, {}});
  table["vote.sync.ballot.b32"].push_back({"w:pw", &vote<Vote::ballot>, nullptr, {}});
}

}  // namespace weft::ptx
