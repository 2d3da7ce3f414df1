#pragma once

// How a forward is captured and replayed, in vLLM's words (its cudagraph_mode). A mode says it for two kinds of
// batches: decode, where every sequence has as many rows as the next, and mixed. Two of the modes are pairs that treat
// them differently; the other three are what a single run can be in.

#include <cstdint>
#include <string>
#include <string_view>

namespace weft {

enum class ReplayMode : std::uint8_t {
  none,                // nothing is captured: every step is resolved when it runs
  piecewise,           // one list for each call of a piece; what the graph was cut at runs uncaptured
  full,                // one list for the whole forward
  full_decode_only,    // full, none
  full_and_piecewise,  // full, piecewise
};

// Takes vLLM's spelling in either case: NONE, PIECEWISE, FULL, FULL_DECODE_ONLY, FULL_AND_PIECEWISE. UserError for
// anything else.
ReplayMode parse_replay_mode(std::string_view text);
std::string_view replay_mode_text(ReplayMode mode);

// What runs can be in: none, piecewise, full.
constexpr bool is_simple(ReplayMode mode) { return mode <= ReplayMode::full; }
// Whether decode batches are treated differently from mixed ones.
constexpr bool is_pair(ReplayMode mode) { return !is_simple(mode); }

// Simple modes.
ReplayMode decode_mode(ReplayMode mode);
ReplayMode mixed_mode(ReplayMode mode);

// Whether either kind of batch is in `simple`; InternalError when that is a pair.
bool has_mode(ReplayMode mode, ReplayMode simple);
bool has_full(ReplayMode mode);
bool requires_piecewise(ReplayMode mode);
// The most that either kind of batch is captured: full over piecewise over none.
ReplayMode max_mode(ReplayMode mode);
// The mode for a graph that is in one piece.
ReplayMode without_piecewise(ReplayMode mode);

}  // namespace weft
