#pragma once

// cc.custom_ops: vLLM's switch between a layer's own kernel and its plain form, which the compiler compiles. Weft has
// priorities for this, so the switch is translated. It is about layers alone: linears, attention and the KV cache have
// no switch.

#include <string>
#include <vector>

#include "options/options.h"

namespace weft {

// UserError unless each word is `all`, `none`, `+layer` or `-layer` with a name of a layer of vLLM. `all` and `none`
// may be there once, and no layer may have both signs.
void check_custom_ops(const Words& words);

// The ops that layers of vLLM are here, in the order of the layers.
std::vector<std::string> layer_ops();

// Translates cc.custom_ops into ir-op-priority and clears it. A layer is off with `-layer`, and with `none` unless
// `+layer` is there too; the ops of such layers get the priorities `fused,native`. Without `all` and `none`, `none`
// holds where graphs are compiled, as in vLLM. Requested priorities stay. Returns notes for the user: the new spelling,
// and the layers that have no op here.
std::vector<std::string> translate_custom_ops(Options& options);

}  // namespace weft
