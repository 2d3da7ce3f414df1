#include "runtime/replay_mode.h"

#include <algorithm>
#include <array>
#include <vector>

#include "base/error.h"
#include "base/text.h"

namespace weft {
namespace {

struct ModeRow {
  std::string_view text;
  ReplayMode decode;
  ReplayMode mixed;
};

// In the order of ReplayMode.
constexpr std::array<ModeRow, 5> kModes = {{
    {"NONE", ReplayMode::none, ReplayMode::none},
    {"PIECEWISE", ReplayMode::piecewise, ReplayMode::piecewise},
    {"FULL", ReplayMode::full, ReplayMode::full},
    {"FULL_DECODE_ONLY", ReplayMode::full, ReplayMode::none},
    {"FULL_AND_PIECEWISE", ReplayMode::full, ReplayMode::piecewise},
}};

const ModeRow& row_of(ReplayMode mode) { return kModes.at(static_cast<std::size_t>(mode)); }

}  // namespace

ReplayMode parse_replay_mode(std::string_view text) {
  const std::string wanted = to_lower_ascii(text);
  std::vector<std::string> names;
  for (std::size_t i = 0; i < kModes.size(); ++i) {
    names.emplace_back(kModes[i].text);
    if (to_lower_ascii(kModes[i].text) == wanted) return static_cast<ReplayMode>(i);
  }
  fail_user("[cc.cudagraph_mode] wanted NONE, PIECEWISE, FULL, FULL_DECODE_ONLY or FULL_AND_PIECEWISE, but is {}{}",
            quote(text), suggestion(text, names));
}

std::string_view replay_mode_text(ReplayMode mode) { return row_of(mode).text; }

ReplayMode decode_mode(ReplayMode mode) { return row_of(mode).decode; }
ReplayMode mixed_mode(ReplayMode mode) { return row_of(mode).mixed; }

bool has_mode(ReplayMode mode, ReplayMode simple) {
  CHECK(is_simple(simple), "{} is a pair of modes", replay_mode_text(simple));
  return decode_mode(mode) == simple || mixed_mode(mode) == simple;
}

bool has_full(ReplayMode mode) { return has_mode(mode, ReplayMode::full); }
bool requires_piecewise(ReplayMode mode) { return has_mode(mode, ReplayMode::piecewise); }
ReplayMode max_mode(ReplayMode mode) { return std::max(decode_mode(mode), mixed_mode(mode)); }

ReplayMode without_piecewise(ReplayMode mode) {
  if (mode == ReplayMode::piecewise) return ReplayMode::none;
  return mode == ReplayMode::full_and_piecewise ? ReplayMode::full_decode_only : mode;
}

}  // namespace weft
