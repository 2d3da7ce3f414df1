// Quantization of rows to int8, fp8 and fp4, by group, by row or with given scales. Parallel over rows; a group is read
// twice, the second time from the caches.

#include "kernels/cpu/lib/quant_tail.h"
#include "kernels/registry.h"

KERNELS(cpu, quantize) {
  for (const weft::cpu::QuantTail& tail : weft::cpu::quant_tails()) registry.add(weft::cpu::quantizing_kernel(tail));
}
