// Loads and stores of one element or a vector, and words made of halves.

#include "tests/cuda/ptx/operations.h"

namespace weft::ptx {
namespace {

void load(Warp& warp, const Instruction& one, std::uint32_t lanes) {
  const Access& access = one.access;
  const std::uint64_t* address = warp.values(one.from[0]);
  for (std::uint32_t left = lanes; left != 0; left &= left - 1) {
    const auto lane = static_cast<std::uint32_t>(std::countr_zero(left));
    const std::byte* from = warp.access(lane, access.space, address[lane] + static_cast<std::uint64_t>(one.offset),
                                        std::uint64_t{access.bytes} * access.count, false);
    for (std::size_t i = 0; i < one.to.size(); ++i) {
      std::uint64_t bits = 0;
      std::memcpy(&bits, from + i * access.bytes, access.bytes);
      const int unused = 64 - 8 * access.bytes;
      if (access.is_signed) bits = static_cast<std::uint64_t>(static_cast<std::int64_t>(bits << unused) >> unused);
      warp.values(one.to[i])[lane] = bits;
    }
  }
}

void store(Warp& warp, const Instruction& one, std::uint32_t lanes) {
  const Access& access = one.access;
  const std::uint64_t* address = warp.values(one.from[0]);
  for (std::uint32_t left = lanes; left != 0; left &= left - 1) {
    const auto lane = static_cast<std::uint32_t>(std::countr_zero(left));
    std::byte* to = warp.access(lane, access.space, address[lane] + static_cast<std::uint64_t>(one.offset),
                                std::uint64_t{access.bytes} * access.count, true);
    for (std::size_t i = 1; i < one.from.size(); ++i)
      std::memcpy(to + (i - 1) * access.bytes, warp.values(one.from[i]) + lane, access.bytes);
  }
}

struct Type {
  const char* name;
  char letter;  // of its register
  std::uint8_t bytes;
  bool is_signed;
};
constexpr Type kTypes[] = {{"b8", 'B', 1, false},  {"u8", 'B', 1, false},  {"s8", 'B', 1, true},
                           {"b16", 'H', 2, false}, {"u16", 'H', 2, false}, {"s16", 'H', 2, true},
                           {"b32", 'W', 4, false}, {"u32", 'W', 4, false}, {"s32", 'W', 4, true},
                           {"f32", 'w', 4, false}, {"b64", 'D', 8, false}, {"u64", 'D', 8, false},
                           {"s64", 'D', 8, true},  {"f64", 'd', 8, false}};

void add_accesses(Operations& table, const std::string& verb, Space space, bool loads) {
  for (const Type& type : kTypes) {
    for (const std::uint8_t count : {1, 2, 4}) {
      if (type.bytes * count > 16) continue;
      const std::string letters(count, type.letter);
      const std::string value = count == 1 ? letters : "{" + letters + "}";
      const std::string width = count == 1 ? "." : count == 2 ? ".v2." : ".v4.";
      table[verb + width + type.name].push_back({loads ? value + ":a" : ":a" + value,
                                                 loads ? &load : &store,
                                                 nullptr,
                                                 {space, type.bytes, count, type.is_signed}});
    }
  }
}

// One word of several registers, the first in the lowest bits; and back.
void pack(Warp& warp, const Instruction& one, std::uint32_t lanes) {
  const auto bits = static_cast<int>(one.access.bytes) * 8;
  for (std::uint32_t left = lanes; left != 0; left &= left - 1) {
    const int lane = std::countr_zero(left);
    std::uint64_t word = 0;
    for (std::size_t i = one.from.size(); i-- > 0;)
      word = word << bits | (warp.values(one.from[i])[lane] & ((std::uint64_t{1} << bits) - 1));
    warp.values(one.to[0])[lane] = word;
  }
}
void unpack(Warp& warp, const Instruction& one, std::uint32_t lanes) {
  const auto bits = static_cast<int>(one.access.bytes) * 8;
  for (std::uint32_t left = lanes; left != 0; left &= left - 1) {
    const int lane = std::countr_zero(left);
    std::uint64_t word = warp.values(one.from[0])[lane];
    for (const std::uint32_t to : one.to) {
      warp.values(to)[lane] = word & ((std::uint64_t{1} << bits) - 1);
      word >>= bits;
    }
  }
}

}  // namespace

void add_memory_operations(Operations& table) {
  const auto readable = [&](const std::string& name, Space space) { add_accesses(table, "ld" + name, space, true); };
  const auto writable = [&](const std::string& name, Space space) { add_accesses(table, "st" + name, space, false); };
  readable(".param", Space::parameter);
  readable("", Space::generic);
  writable("", Space::generic);
  for (const auto& [name, space] :
       {std::pair{".global", Space::global}, {".shared", Space::shared}, {".local", Space::local}}) {
    readable(name, space);
    writable(name, space);
  }
  for (const char* hint : {".nc", ".nc.L1::no_allocate", ".L1::no_allocate"})
    readable(std::string(".global") + hint, Space::global);

  for (const char* mov : {"mov.b32", "mov.u32"}) {
    table[mov].push_back({"w:{hh}", &pack, nullptr, {.bytes = 2}});
    table[mov].push_back({"{hh}:w", &unpack, nullptr, {.bytes = 2}});
  }
  table["mov.b64"].push_back({"d:{ww}", &pack, nullptr, {.bytes = 4}});
  table["mov.b64"].push_back({"{ww}:d", &unpack, nullptr, {.bytes = 4}});
  table["mov.b64"].push_back({"d:{hhhh}", &pack, nullptr, {.bytes = 2}});
  table["mov.b64"].push_back({"{hhhh}:d", &unpack, nullptr, {.bytes = 2}});
  // Addresses of variables.
  const LaneFunction copy = reinterpret_cast<LaneFunction>(+[](std::uint64_t x) { return x; });
  for (const char* mov : {"mov.b64", "mov.u64"})
    table[mov].push_back({"d:v", &run_lanes<std::uint64_t, std::uint64_t>, copy, {}});
  for (const char* mov : {"mov.b32", "mov.u32"})
    table[mov].push_back({"w:v", &run_lanes<std::uint64_t, std::uint64_t>, copy, {}});
}

}  // namespace weft::ptx
