// Options from JSON: a bad text is a UserError, and what was accepted reads back the same from its printed values.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/error.h"
#include "options/effective_options.h"
#include "options/options.h"
#include "options/options_text.h"

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

weft::Options reread(const weft::Options& options) {
  weft::Options again;
  for (const weft::OptionRow& row : weft::option_table()) {
    weft::set_option(again, row.name, weft::value_text(options, row), "again");
  }
  return again;
}

void check(std::string_view json, std::string_view group) {
  weft::Options options;
  const weft::Options untouched = options;
  try {
    weft::apply_json(options, json, "fuzz", group);
  } catch (const weft::UserError&) {
    require(options == untouched);
    return;
  }
  weft::Options again = reread(options);
  again.requested = options.requested;
  require(again == options);

  weft::EffectiveOptions effective;
  try {
    effective = weft::effective_options(options);
  } catch (const weft::UserError&) {  // what contradicts itself
    return;
  }
  require(weft::effective_options(effective.options).options == effective.options);
  require(!weft::options_json(effective.options).empty() && !weft::options_text(effective.options).empty());
  weft::options_without_effect(effective.options);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view json(reinterpret_cast<const char*>(data), size);
  for (const std::string_view group : {"", "cc", "ir-op-priority"}) check(json, group);
  return 0;
}
