#pragma once

// The rows of experts and the panels of a stack of weights, for kernels in which each row has the weight of its expert.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "kernels/cpu/lib/panel_weight.h"
#include "kernels/kernel.h"
#include "parallel/thread_pool.h"

namespace weft::cpu {

// Adjacent rows of one expert.
struct ExpertRows {
  std::int64_t expert, first, count;
};
// Bytes of scratch for each row: a part has one row at least.
constexpr std::int64_t kExpertRowBytes = sizeof(ExpertRows);

// Whether the kernels read these experts and this bias.
Verdict experts_verdict(const Meta& experts, const std::optional<Meta>& bias);

// Divides the rows into parts of equal experts of at most `limit` rows. Returns the number of parts. UserError with the
// name of the op when an expert is not one of the stack.
std::int64_t find_expert_rows(std::string_view op, const TensorView& experts, std::int64_t expert_count,
                              std::int64_t limit, ExpertRows* parts);

// The bias of one panel of an expert, as f32; columns of padding have none.
void widen_expert_bias(const TensorView& bias, std::int64_t expert, std::int64_t panel, float* to);

// What the kernels of one call share.
struct ExpertCall {
  std::string_view op;
  const TensorView &weight, &experts, &bias;
  std::int64_t row_limit;  // of one call of the body
  std::byte* parts;        // kExpertRowBytes for each row
  std::byte* slots;        // panel_bytes for each thread; not used if the weight is packed
};

// Calls body(panel, index, rows, bias) for each panel of each expert that has rows and for each block of its rows. A
// plain weight's panels are packed once for all adjacent rows of an expert.
template <class Body>
void for_each_expert_panel(const ExpertCall& call, ThreadPool& threads, const Body& body) {
  const std::int64_t rows = call.experts.size[0], panels = panel_count(call.weight.size[1]);
  const PanelWeight first = panel_weight(call.weight, 0);
  const std::int64_t bytes = panel_bytes(first.kind, first.depth);
  auto* const parts = reinterpret_cast<ExpertRows*>(call.parts);
  const std::int64_t count =
      find_expert_rows(call.op, call.experts, call.weight.size[0], first.packed ? call.row_limit : rows, parts);
  threads.run(count * panels, [&](std::int64_t chunk, int thread) {
    const ExpertRows& part = parts[chunk / panels];
    const std::int64_t index = chunk % panels;
    const PanelWeight own = panel_weight(call.weight, part.expert);
    const std::byte* panel =
        own.packed ? own.data + index * bytes : packed_panel(own, index, call.slots + thread * bytes);
    float bias[kPanelColumns];
    if (call.bias.present()) widen_expert_bias(call.bias, part.expert, index, bias);
    for (std::int64_t done = 0; done < part.count; done += call.row_limit)
      body(panel, index, RowBlock{part.first + done, std::min(call.row_limit, part.count - done)},
           call.bias.present() ? bias : nullptr);
  });
}

}  // namespace weft::cpu
