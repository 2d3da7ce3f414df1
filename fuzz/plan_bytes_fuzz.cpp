// Any bytes, as an artifact or the compile cache may hold them in the place of Plans, name objects or are refused: none
// is loaded. Apart and joined again they are the same objects and the same bytes.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "base/error.h"
#include "compiler/store/plan_bytes.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weft;
  const std::span<const std::byte> bytes = std::as_bytes(std::span(data, size));
  try {
    objects_named(bytes);
  } catch (const UserError&) {
  }
  try {
    const PlanBytes apart = parted(bytes);
    const PlanBytes again = parted(joined(apart));
    if (again.bytes != apart.bytes || again.objects != apart.objects) std::abort();
  } catch (const UserError&) {
  }
  return 0;
}
