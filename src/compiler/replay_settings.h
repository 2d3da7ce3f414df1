#pragma once

// The settings of replays that follow from a Context's options.

#include "compiler/context.h"
#include "runtime/launch_graph_dispatcher.h"
#include "runtime/replay.h"

namespace weft {

// Replays run on the Context's device, where it has one.
ReplaySettings replay_settings(const Context& context);

// UserError, `[who] runs ops one by one on the host, .. : remedy`, where the host cannot read the memory of the
// Context's device: kernels of the device would run in the emulator without notice.
void check_host_reads(const Context& context, const std::string& who,
                      const std::string& remedy = "leave it out, or take --device cpu");

// The captures of a model with at most `max_tokens` rows a step. A launch list works for every token count, so where no
// sizes were given, steps up to max_tokens are captured. With `is_padded` each size has its own capture, and a step of
// a size between two is padded to the larger one; a size that is compiled exactly must then be a captured size
// (UserError).
LaunchGraphSettings launch_graph_settings(const Options& options, std::int64_t max_tokens, bool is_padded = false);

// The mode of a run that has no requests, such as that of a hand-written graph: the mode of mixed batches.
ReplayMode replay_mode(const Options& options);

// Whether captures are made before the server is ready.
inline bool captures_before_ready(const Options& options) { return options.capture == "ready"; }

}  // namespace weft
