#include "builtin/context.h"

#include <algorithm>
#include <iostream>

#include <fmt/ranges.h>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "builtin/cuda_device.h"
#include "builtin/default_priorities.h"
#include "compiler/check/batch_invariance.h"
#include "compiler/check/pattern_check.h"
#include "compiler/pipeline.h"
#include "compiler/splitting_ops.h"
#include "compiler/tune/tuning_database.h"
#include "compiler/warnings.h"
#include "kernels/provider.h"
#include "options/custom_ops.h"
#include "options/options_text.h"
#include "passes/pattern_pass.h"
#include "plugin/plugin.h"

namespace weft {
namespace {

constexpr std::size_t kMaxPatternBytes = 64u << 20;

// The origin of a built-in kernel is the source file that defines it.
void add_built_in_kernels(KernelRegistry& registry) {
  for (const KernelEntry& entry : kernel_table()) {
    registry.set_origin(origin_of_file(entry.provider, entry.file));
    registry.set_launches(std::string_view(entry.provider).starts_with("cuda"));
    entry.define(registry);
  }
}

std::vector<std::string> names_of(std::span<const PassRow> passes) {
  std::vector<std::string> names;
  for (const PassRow& pass : passes) names.push_back(pass.name);
  return names;
}

void check_pass_names(const Context& context, const std::vector<std::string>& names, const char* option) {
  const std::vector<std::string> known = names_of(passes_of(context));
  for (const std::string& name : names)
    USER_CHECK(name == "all" || std::find(known.begin(), known.end(), name) != known.end(), "[{}] {} is not a pass{}",
               option, quote(name), suggestion_or_all(name, known));
}

// UserError if the pattern's name is taken, or if it changes results.
void add_pattern(Context& context, ParsedPattern parsed, std::vector<std::string>* notes) {
  auto& [pattern, origin, is_trusted] = parsed;
  for (const FusionPattern& known : context.patterns)
    USER_CHECK(known.pattern.name != pattern.name, "[pattern] {} is there already, as a pattern of the program ({})",
               pattern.name, origin);
  if (!is_trusted) {
    const PatternCheck check = check_pattern(pattern, context, false);
    USER_CHECK(check.failure.empty(), "[pattern] {} does not hold: {} ({})", pattern.name, check.failure, origin);
    if (notes != nullptr) notes->push_back(fmt::format("pattern {} ({}): {}", pattern.name, origin, check.text()));
  }
  context.patterns.push_back({kCustomFusion, std::move(pattern)});
}

// If the user has no folder for the cache, the cache is disabled.
void open_cache(Context& context) {
  if (context.options.disable_compile_cache) return;
  try {
    context.cache = std::make_unique<CompileCache>(CompileCacheSettings{
        .root = default_cache_root(process_environment(), context.options.cache_root), .warn = current_warning_sink()});
  } catch (const UserError& error) {
    context.cache = std::make_unique<CompileCache>();
    current_warning_sink()(fmt::format("the compile cache is off, so every start compiles: {}", error.what()));
  }
}

}  // namespace

std::shared_ptr<Context> make_context(Options options, Registrations registrations, std::optional<CpuFeatures> target,
                                      std::vector<std::string>* notes) {
  auto context = std::make_shared<Context>();
  const DeviceId device = device_from_text(options.device);
  std::optional<Gpu> gpu;
  if (device.type == DeviceType::cuda) gpu = open_gpu(device);
  const std::string ceiling = options.cpu_features == "host" ? "" : options.cpu_features;
  context->device = describe_cpu(ceiling, static_cast<int>(options.threads));
  if (target) context->device.features = *target;
  context->device.id = device;
  if (device.type == DeviceType::fake_cuda) describe_fake_cuda(context->device, {});
  if (gpu) describe_gpu(context->device, *gpu);
  for (const std::string& path : options.patterns) {
    Registrations file("--patterns " + path);
    file.register_patterns(read_file(path, kMaxPatternBytes));
    registrations.append(std::move(file));
  }
  for (const std::string& path : options.plugin) registrations.append(load_plugin(path).registrations);
  context->ops = make_op_table();
  add_ops(context->ops, registrations);
  options.splitting_ops = resolve_splitting_ops(options.splitting_ops, context->ops);
  add_built_in_kernels(context->kernels);
  add_kernels(context->kernels, context->ops, registrations, options.batch_invariant);
  check_kernels(context->kernels, context->ops);
  context->kernels.prepare(context->device);
  context->priorities = default_priorities(device.type);
  add_priorities(context->priorities, context->kernels, context->ops, registrations);
  for (const auto& [op, providers] : options.ir_op_priority) {
    context->check_priority(op, providers);
    context->priorities.set(op, providers);
  }
  USER_CHECK(
      options.tuned.empty() || device.type == DeviceType::cpu,
      "[--tuned] {} was measured by the host's clock, which does not measure what {} does later: wanted --device cpu",
      options.tuned, device_text(device));
  if (!options.tuned.empty())
    apply_tuning(read_tuning(options.tuned, fingerprint_of(context->device)), context->ops, context->priorities);
  context->log = Log(options.logs, std::cerr);
  if (!options.trace.empty()) context->timeline = std::make_shared<Timeline>(options.trace, current_warning_sink());
  context->passes = checked_passes(registrations, names_of(pipeline_passes()));
  context->patterns = make_pattern_table(context->ops, context->device.fp8);
  context->threads = std::make_unique<ThreadPool>(context->device.threads);
  if (device.type == DeviceType::fake_cuda) put_on_fake_cuda(*context, {}, {});
  if (gpu) put_on_gpu(*context, std::move(*gpu));
  for (ParsedPattern& parsed : parse_patterns(registrations, context->ops))
    add_pattern(*context, std::move(parsed), notes);
  rewrite_limits(context->patterns, options);  // UserError for an invalid limit
  context->options = std::move(options);
  return context;
}

OpenedContext open_context(Options requested, std::optional<CpuFeatures> target) {
  OpenedContext opened;
  for (std::string& note : translate_custom_ops(requested)) opened.notes.push_back(std::move(note));
  if (const Words missing = splitting_ops_without_counterpart(requested.splitting_ops); !missing.empty())
    opened.notes.push_back(fmt::format("[cc.splitting_ops] no model here has {}: no effect", fmt::join(missing, ", ")));
  if (const std::string spelling = translate_autotuning(requested); !spelling.empty())
    opened.notes.push_back("autotuning in -cc.inductor_compile_config is spelled " + spelling);
  EffectiveOptions effective = effective_options(requested);
  opened.differences = std::move(effective.differences);
  for (const OptionDifference& difference : opened.differences) {
    // options_without_effect() below reports these.
    if (!reason_without_effect(effective.options, *find_option(difference.option)).empty()) continue;
    opened.notes.push_back(difference.text());
  }
  for (std::string& sentence : options_without_effect(effective.options)) opened.notes.push_back(std::move(sentence));
  opened.context = make_context(std::move(effective.options), Registrations(), target, &opened.notes);
  open_cache(*opened.context);
  check_pass_names(*opened.context, opened.context->options.print_ir_after, "--print-ir-after");
  check_pass_names(*opened.context, opened.context->options.skip_pass, "--skip-pass");
  for (std::string& sentence : switched_off_by_batch_invariance(*opened.context))
    opened.notes.push_back(std::move(sentence));
  return opened;
}

}  // namespace weft
