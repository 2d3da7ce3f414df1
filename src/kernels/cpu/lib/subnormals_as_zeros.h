#pragma once

// Subnormal operands and results of vector instructions as zeros, for one scope of one thread.

#include <xmmintrin.h>

namespace weft::cpu {
namespace {

class SubnormalsAsZeros {
 public:
  SubnormalsAsZeros() : before_(_mm_getcsr()) { _mm_setcsr(before_ | kDenormalsAreZero | kFlushToZero); }
  ~SubnormalsAsZeros() { _mm_setcsr(before_); }
  SubnormalsAsZeros(const SubnormalsAsZeros&) = delete;
  SubnormalsAsZeros& operator=(const SubnormalsAsZeros&) = delete;

 private:
  static constexpr unsigned kDenormalsAreZero = 0x40, kFlushToZero = 0x8000;
  unsigned before_;
};

}  // namespace
}  // namespace weft::cpu
