#include "tests/test_context.h"

#include <algorithm>
#include <cstdlib>
#include <map>

#include <fmt/format.h>

#include "base/error.h"
#include "builtin/context.h"
#include "compiler/pipeline.h"
#include "tensor/vector_lanes.h"

namespace weft {

std::shared_ptr<Context> test_context(const std::string& cpu_features, int threads) {
  Options options;
  options.cpu_features = cpu_features;
  options.threads = threads;
  return make_context(std::move(options));
}

std::shared_ptr<Context> kernel_context() {
  Options options;
  options.backend = "eager";
  options.threads = 2;
  return make_context(std::move(options));
}

std::vector<std::string> cpu_features_to_try() {
  if (const char* ceiling = std::getenv("WEFT_CPU_FEATURES"))
    return {cpu_features_text(describe_cpu(ceiling, 1).features)};
  const CpuFeatures host = describe_cpu("", 1).host;
#ifdef __SANITIZE_THREAD__
  return {cpu_features_text(host)};
#else
  std::vector<std::string> levels;
  for (int level = 0; level <= static_cast<int>(host); ++level)
    levels.push_back(cpu_features_text(static_cast<CpuFeatures>(level)));
  return levels;
#endif
}

std::vector<std::string> vector_features_to_try() {
  std::map<int, std::string> highest;
  for (const std::string& features : cpu_features_to_try())
    highest[vector_lanes(cpu_features_from_text(features, "a level"))] = features;
  std::vector<std::string> levels;
  for (const auto& [lanes, features] : highest) levels.push_back(features);
  return levels;
}

std::vector<int> thread_counts_to_try() {
#ifdef __SANITIZE_THREAD__
  return {2};
#else
  return {1, 2};
#endif
}

std::string unreached_ceiling() {
  const char* ceiling = std::getenv("WEFT_CPU_FEATURES");
  return ceiling == nullptr || cpu_features_text(describe_cpu(ceiling, 1).features) == ceiling ? "" : ceiling;
}

std::string dump_prefix(const std::string& pass) {
  const std::span<const PassRow> passes = pipeline_passes();
  const auto row = std::find_if(passes.begin(), passes.end(), [&](const PassRow& one) { return one.name == pass; });
  CHECK(row != passes.end(), "the pipeline has no pass {}", pass);
  return fmt::format("{:02}-{}.", row - passes.begin() + 1, pass);
}

}  // namespace weft
