#include "tests/test_context.h"

#include <algorithm>
#include <cstdlib>

#include <fmt/format.h>

#include "base/error.h"
#include "builtin/context.h"
#include "compiler/pipeline.h"

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
  std::vector<std::string> levels;
  const CpuFeatures host = describe_cpu("", 1).host;
  for (int level = 0; level <= static_cast<int>(host); ++level)
    levels.push_back(cpu_features_text(static_cast<CpuFeatures>(level)));
  return levels;
}

std::string dump_prefix(const std::string& pass) {
  const std::span<const PassRow> passes = pipeline_passes();
  const auto row = std::find_if(passes.begin(), passes.end(), [&](const PassRow& one) { return one.name == pass; });
  CHECK(row != passes.end(), "the pipeline has no pass {}", pass);
  return fmt::format("{:02}-{}.", row - passes.begin() + 1, pass);
}

}  // namespace weft
