#pragma once

// What the options of a Context say of its replays.

#include "compiler/context.h"
#include "runtime/capture_dispatcher.h"
#include "runtime/replay.h"

namespace weft {

// On the Context's device, where it has one.
ReplaySettings replay_settings(const Context& context);

// UserError, `[who] runs ops one by one on the host, .. : remedy`, where that cannot read the memory of the Context's
// device: kernels of the device would then run in the emulator, and nobody would know.
void check_host_reads(const Context& context, const std::string& who,
                      const std::string& remedy = "leave it out, or take --device cpu");

// Which captures a model of at most `max_tokens` rows a step has. A launch list serves every token count, so where no
// sizes were asked for, steps up to max_tokens are captured; but `is_padded`, where each size has a capture of its own
// and a step between two takes the next: then a size that is compiled exactly must be one (UserError).
CaptureSettings capture_settings(const Options& options, std::int64_t max_tokens, bool is_padded = false);

// The mode of a run that knows no requests, such as one of a graph that somebody wrote: that of mixed batches.
ReplayMode replay_mode(const Options& options);

// Whether captures are made before ready.
inline bool captures_before_ready(const Options& options) { return options.capture == "ready"; }

}  // namespace weft
