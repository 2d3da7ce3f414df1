// The packings of the CPU's linear family: panels of 32 columns (lib/panel.h). A unit of work is one panel. A stack of
// weights is packed as the panels of one weight after those of another.

#include <fmt/core.h>

#include "kernels/cpu/lib/panel_weight.h"
#include "kernels/registry.h"

namespace weft::cpu {
namespace {

Packing panels(std::string_view name) {
  Packing packing;
  packing.name = name;
  packing.provider = "cpu";
  packing.accepts = [name](const Meta& plain, const DeviceDescription& device) {
    if (device.id.type == DeviceType::cuda) return Verdict::no("panels are for the CPU");
    if (!plain.packed.empty()) return Verdict::no("already packed");
    Verdict weight = weight_verdict(plain);
    if (!weight) return weight;
    const std::string_view own = packing_name(plain.dtype);
    if (own.empty()) return Verdict::no(fmt::format("{} is never packed", dtype_text(plain.dtype)));
    return own == name ? Verdict::yes() : Verdict::no(fmt::format("{} is packed as {}", dtype_text(plain.dtype), own));
  };
  packing.bytes = [](const Meta& plain) {
    const StackShape shape = stack_shape(plain);
    return shape.count * panel_count(shape.columns) * panel_bytes(*panel_kind(plain.dtype), shape.depth);
  };
  packing.units = [](const Meta& plain) {
    const StackShape shape = stack_shape(plain);
    return shape.count * panel_count(shape.columns);
  };
  packing.pack = [](const Meta& plain, const RowAddress& row, std::byte* packed, std::int64_t unit) {
    const StackShape shape = stack_shape(plain);
    const std::int64_t panels = panel_count(shape.columns), first_row = unit / panels * shape.columns;
    pack_panel(
        plain.dtype, shape.columns, shape.depth, [&](std::int64_t index) { return row(first_row + index); },
        unit % panels, packed + unit * panel_bytes(*panel_kind(plain.dtype), shape.depth));
  };
  return packing;
}

}  // namespace
}  // namespace weft::cpu

KERNELS(cpu, packing) {
  for (const std::string_view name : cpu::packing_names()) registry.add(cpu::panels(name));
}
