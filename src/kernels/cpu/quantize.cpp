// Quantization of rows to int8, fp8 and fp4, by group, by row or with given scales. Parallel over rows; a group is read
// twice, the second time from the caches.

#include "kernels/cpu/lib/quantizing_epilogue.h"
#include "kernels/registry.h"

KERNELS(cpu, quantize) {
  for (const weft::cpu::QuantizingEpilogue& epilogue : weft::cpu::quantizing_epilogues())
    registry.add(weft::cpu::quantizing_kernel(epilogue));
}
