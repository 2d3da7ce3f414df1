#include "tensor/amx.h"

#include <cerrno>
#include <system_error>

#include <fmt/core.h>
#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace weft {
namespace {

#if defined(__x86_64__) && defined(__linux__)

bool has_bit(unsigned word, int bit) { return (word >> bit & 1) != 0; }

bool system_saves_tiles() {
  constexpr std::uint32_t kTileState = 3u << 17;  // configuration and data
  std::uint32_t low = 0, high = 0;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (low & kTileState) == kTileState;
}

bool has_wide_tiles() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid_count(0x1d, 1, &a, &b, &c, &d) == 0) return false;
  return a >> 16 == 1024 && (b & 0xffff) == 64 && b >> 16 >= 8 && (c & 0xffff) >= 16;
}

int request_permission() {
  constexpr long kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr long kTileData = 18;
  return ::syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0 ? 0 : errno;
}

AmxFacts read_facts() {
  AmxFacts facts;
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0) return facts;
  facts.is_virtual = has_bit(c, 31);
  facts.saves_tiles = has_bit(c, 27) && system_saves_tiles();
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) return facts;
  facts.bf16 = has_bit(d, 22);
  facts.tile = has_bit(d, 24);
  facts.i8 = has_bit(d, 25);
  facts.wide_tiles = facts.tile && has_wide_tiles();
  if (facts.tile && facts.saves_tiles) facts.permission_error = request_permission();
  return facts;
}

#else

AmxFacts read_facts() { return {}; }

#endif

}  // namespace

std::string amx_problem(const AmxFacts& facts) {
  if (!facts.tile && !facts.bf16 && !facts.i8)
    return facts.is_virtual ? "the processor has none, or the hypervisor hides it" : "the processor has none";
  if (!facts.tile || !facts.bf16 || !facts.i8)
    return fmt::format("the processor has no {} of it", !facts.tile ? "tiles" : !facts.bf16 ? "bf16" : "i8");
  if (!facts.wide_tiles) return "its tiles are smaller than 16 rows of 64 bytes";
  if (!facts.saves_tiles) return "the operating system does not save tiles";
  if (facts.permission_error != 0)
    return fmt::format("the operating system refused permission: {}",
                       std::generic_category().message(facts.permission_error));
  return "";
}

const AmxFacts& host_amx() {
  static const AmxFacts facts = read_facts();
  return facts;
}

}  // namespace weft
