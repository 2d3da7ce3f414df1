#include "tests/plugin/workshop.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include <fmt/core.h>

namespace weft {
namespace {

void run_command(const std::string& command) {
  if (std::system(command.c_str()) != 0) throw std::runtime_error("failed: " + command);
}

constexpr const char* kEntry = R"(
static weft_status bring(const weft_host* host, weft_registry* registry, weft_message* message) {{
  (void)host; (void)registry; (void)message;
  {}
}}
#ifdef __cplusplus
extern "C"
#endif
const weft_plugin* weft_plugin_entry(void) {{
  static const weft_plugin plugin = {{WEFT_PLUGIN_ABI_VERSION, "{}", "0.1", bring}};
  return &plugin;
}}
)";

constexpr const char* kRmsNorm = R"(
#include <math.h>
#include <stdlib.h>
#include <string.h>
static weft_status supports(const weft_request* request, void* state, weft_message* message) {{
  (void)state;
  if (request->operands[0].dtype == WEFT_F32 && request->operands[0].rank == 2 &&
      (request->operands[1].kind == WEFT_ABSENT || request->operands[1].dtype == WEFT_F32)) return WEFT_OK;
  WEFT_SAY(message, "wants %s", "f32");
  return WEFT_REFUSED;
}}
static weft_status run(const weft_call* call, void* state, weft_message* message) {{
  float* x = (float*)call->operands[0].data;
  float* weight = (float*)call->operands[1].data;
  float* y = (float*)call->results[0].data;
  const int64_t rows = call->results[0].size[0], columns = call->results[0].size[1];
  double epsilon = 0;
  call->host->attribute_real(call->attributes, "epsilon", &epsilon);
  (void)state; (void)message; (void)x; (void)weight; (void)y; (void)rows; (void)columns;
  {}
}}
static void normalize(const float* x, const float* weight, float* y, int64_t rows, int64_t columns, double epsilon) {{
  for (int64_t r = 0; r < rows; ++r) {{
    double sum = 0;
    for (int64_t i = 0; i < columns; ++i) sum += (double)x[r * columns + i] * x[r * columns + i];
    const float scale = (float)(1 / sqrt(sum / (double)columns + epsilon));
    for (int64_t i = 0; i < columns; ++i)
      y[r * columns + i] = x[r * columns + i] * scale * (weight ? weight[i] : 1.0f);
  }}
}}
)";

constexpr const char* kBringRmsNorm = R"(
  weft_kernel kernel;
  memset(&kernel, 0, sizeof kernel);
  kernel.op = "rms_norm";
  kernel.provider = "trial";
  kernel.schema = "rms_norm(Tensor x, Tensor? weight, float epsilon, int? variance_size=None) -> Tensor";
  kernel.flags = WEFT_BATCH_INVARIANT;
  kernel.supports = supports;
  kernel.run = run;
  return host->add_kernel(registry, &kernel);
)";

}  // namespace

Workshop::Workshop() {
  std::filesystem::create_directories(folder_ / "prefix/include/weft");
  std::filesystem::copy_file(std::string(WEFT_SOURCE_ROOT) + "/include/weft/weft_plugin.h",
                             folder_ / "prefix/include/weft/weft_plugin.h");
}

std::string Workshop::example(const std::string& name) const {
  const std::string path = folder_ / ("lib" + name + ".so");
  if (!std::filesystem::exists(path))
    run_command(
        fmt::format("make -s -C {}/examples/{} PREFIX={} OUT={}", WEFT_SOURCE_ROOT, name, folder_ / "prefix", path));
  return path;
}

std::string Workshop::library(const std::string& name, const std::string& source, bool plus_plus) const {
  const std::string path = folder_ / ("lib" + name + ".so"), text = folder_ / (name + (plus_plus ? ".cpp" : ".c"));
  if (std::filesystem::exists(path)) return path;
  std::ofstream(text) << source;
  run_command(fmt::format("{} -Wall -Werror -O1 -fPIC -shared -I{}/include -o {} {} -lm",
                          plus_plus ? "c++ -std=c++17" : "cc -std=c11 -pedantic", folder_ / "prefix", path, text));
  return path;
}

std::string Workshop::plugin(const std::string& name, const std::string& before, const std::string& bring,
                             bool plus_plus) const {
  return library(name, "#include <weft/weft_plugin.h>\n" + before + fmt::format(kEntry, bring, name), plus_plus);
}

std::string Workshop::rms_norm(const std::string& name, const std::string& body, bool plus_plus) const {
  const std::string declared = "static void normalize(const float*, const float*, float*, int64_t, int64_t, double);\n";
  const std::string used = "(void)&normalize; " + body;
  return plugin(name, declared + (plus_plus ? "#include <stdexcept>\n" : "") + fmt::format(kRmsNorm, used),
                kBringRmsNorm, plus_plus);
}

const Workshop& workshop() {
  static const Workshop shared;
  return shared;
}

}  // namespace weft
