#include "builtin/context.h"

#include <algorithm>
#include <iostream>

#include "base/error.h"
#include "base/text.h"
#include "compiler/pipeline.h"
#include "compiler/tuning_database.h"
#include "plugin/plugin.h"

namespace weft {
namespace {

// Default priorities, one row for each device; the same for eager and compiled mode. `native` always comes last.
std::vector<std::string> default_priorities(DeviceType device) {
  switch (device) {
    case DeviceType::cpu:
      return {"cpu"};
    case DeviceType::cuda:
    case DeviceType::fake_cuda:
      return {"cuda"};
  }
  return {};
}

// The file that defines a kernel is where it comes from.
void add_built_in_kernels(KernelRegistry& registry) {
  for (const KernelEntry& entry : kernel_table()) {
    registry.set_origin(fmt::format("src/kernels/{}/{}.cpp", entry.provider, entry.file));
    entry.define(registry);
  }
}

std::vector<std::string> names_of(std::span<const PassRow> passes) {
  std::vector<std::string> names;
  for (const PassRow& pass : passes) names.push_back(pass.name);
  return names;
}

}  // namespace

std::shared_ptr<Context> make_context(Options options, Registrations registrations) {
  auto context = std::make_shared<Context>();
  const DeviceId device = device_from_text(options.device);
  USER_CHECK(device.type == DeviceType::cpu, "[--device] {} has no kernels in this program; cpu has", options.device);
  const std::string ceiling = options.cpu_features == "host" ? "" : options.cpu_features;
  context->device = describe_cpu(ceiling, static_cast<int>(options.threads));
  for (const std::string& path : options.plugin) registrations.append(load_plugin(path).registrations);
  context->ops = make_op_table();
  add_ops(context->ops, registrations);
  add_built_in_kernels(context->kernels);
  add_kernels(context->kernels, context->ops, registrations, options.batch_invariant);
  check_kernels(context->kernels, context->ops);
  context->kernels.prepare(context->device);
  context->priorities = PriorityLists(default_priorities(device.type));
  add_priorities(context->priorities, context->kernels, context->ops, registrations);
  for (const auto& [op, providers] : options.ir_op_priority) {
    context->check_priority(op, providers);
    context->priorities.set(op, providers);
  }
  if (!options.tuned.empty())
    apply_tuning(read_tuning(options.tuned, fingerprint_of(context->device)), context->ops, context->priorities);
  context->log = Log(options.logs, std::cerr);
  context->passes = checked_passes(registrations, names_of(pipeline_passes()));
  parse_patterns(registrations, context->ops);
  context->threads = std::make_unique<ThreadPool>(context->device.threads);
  context->options = std::move(options);
  return context;
}

}  // namespace weft
