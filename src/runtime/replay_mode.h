#pragma once

// How a forward pass is captured and replayed, in vLLM's terms (cudagraph_mode). A mode covers two kinds of batches:
// decode, where all sequences have the same number of rows, and mixed. Two of the modes are pairs, which treat the two
// kinds differently. The other three are simple: a single run is in one of them.

#include <cstdint>
#include <string>
#include <string_view>

namespace weft {

enum class ReplayMode : std::uint8_t {
  none,                // nothing is captured: every step is resolved when it runs
  piecewise,           // one list for each call of a piece; the ops that the graph was cut at run uncaptured
  full,                // one list for the whole forward
  full_decode_only,    // full, none
  full_and_piecewise,  // full, piecewise
};

// Takes vLLM's spelling in either case: NONE, PIECEWISE, FULL, FULL_DECODE_ONLY, FULL_AND_PIECEWISE. UserError for
// anything else.
ReplayMode parse_replay_mode(std::string_view text);
std::string_view replay_mode_text(ReplayMode mode);

// Whether a single run can be in it: none, piecewise, full.
constexpr bool is_simple(ReplayMode mode) { return mode <= ReplayMode::full; }
// Whether decode batches are treated differently from mixed ones.
constexpr bool is_pair(ReplayMode mode) { return !is_simple(mode); }

// The simple mode of one kind of batch.
ReplayMode decode_mode(ReplayMode mode);
ReplayMode mixed_mode(ReplayMode mode);

// Whether at least one kind of batch is in `simple`; InternalError when `simple` is a pair.
bool has_mode(ReplayMode mode, ReplayMode simple);
bool has_full(ReplayMode mode);
bool requires_piecewise(ReplayMode mode);
// The larger of the two kinds' modes: full over piecewise over none.
ReplayMode max_mode(ReplayMode mode);
// The mode to use for a graph that is not split.
ReplayMode without_piecewise(ReplayMode mode);

}  // namespace weft
