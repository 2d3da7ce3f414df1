#include "compiler/replay_settings.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "options/effective_options.h"
#include "runtime/cuda/stream_device.h"

namespace weft {

ReplaySettings replay_settings(const Context& context) {
  return {
      .check = context.options.check_replay,
      .first_time_work = context.first_time_work.get(),
      .device = context.stream_device.get(),
      .timeline = context.timeline.get(),
      .on_launch_graph = [&log = context.log](const std::string& line) { log.say("replay", Log::Detail::some, line); }};
}

void check_host_reads(const Context& context, const std::string& who, const std::string& remedy) {
  const cuda::StreamDevice* const device = context.stream_device.get();
  USER_CHECK(device == nullptr || device->facts().host_reads_memory,
             "[{}] runs ops one by one on the host, which cannot read the memory of {}: {}", who,
             device_text(context.device.id), remedy);
}

LaunchGraphSettings launch_graph_settings(const Options& options, std::int64_t max_tokens, bool is_padded) {
  const Options settled = effective_options(options).options;
  LaunchGraphSettings settings{.mode = parse_replay_mode(settled.cudagraph_mode),
                               .sizes = settled.cudagraph_capture_sizes,
                               .max_num_seqs = settled.max_num_seqs};
  const bool is_asked = options.requested.contains("cc.cudagraph_capture_sizes") ||
                        options.requested.contains("cc.max_cudagraph_capture_size");
  if (!is_asked && !is_padded) settings.sizes.push_back(max_tokens);
  if (is_padded)
    for (const std::string& size : settled.compile_sizes)
      settings.compile_sizes.push_back(human_integer(size, "cc.compile_sizes"));
  std::erase_if(settings.sizes, [&](std::int64_t size) { return size > max_tokens; });
  return settings;
}

ReplayMode replay_mode(const Options& options) {
  return mixed_mode(parse_replay_mode(effective_options(options).options.cudagraph_mode));
}

}  // namespace weft
