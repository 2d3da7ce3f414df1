// The 16 instances of vLLM's silu_and_mul_per_block_quant: two input types, two code types, two groups and two layouts
// of scales. A graph that spells each out is one kernel of the processor and one of a device, with the bits of the
// parts.

#include <gtest/gtest.h>

#include "builtin/context.h"
#include "tests/cuda/compiled_layer.h"
#include "tests/cuda/cuda_context.h"
#include "tests/test_context.h"

namespace weft::published_instances_test {

struct Instance {
  const char* x;
  const char* codes;  // fp8 or int8
  int group;
  const char* layout;
};

std::vector<Instance> instances() {
  std::vector<Instance> all;
  for (const char* x : {"f16", "bf16"})
    for (const char* codes : {"fp8", "int8"})
      for (const int group : {64, 128})
        for (const char* layout : {"", ", column_major_scales=true"}) all.push_back({x, codes, group, layout});
  return all;
}

// The published kernel has no least magnitude, a least scale, and for fp8 an upper bound of the scale. It keeps the
// activation in f32 (is_wide); a graph that rounds it in between is of the same family.
std::string written_out(const Instance& instance, bool is_wide) {
  const bool is_fp8 = instance.codes == std::string("fp8");
  const char* rule = is_fp8 ? "minimum_scale=4.359654e-06, scale_ub_of=scale" : "minimum_scale=1.1920929e-07";
  const std::string type = is_wide ? "f32" : instance.x;
  return fmt::format(R"(graph g(%x: {}[s0, 768], %bound: f32[1]) stage=traced {{
  %w = cast(%x, dtype={})
  %gate = slice(%w, dim=-1, start=0, end=384)
  %up = slice(%w, dim=-1, start=384, end=768)
  %active = silu(%gate)
  %y = mul(%active, %up)
  %q, %s = per_token_group_quant_{}(%y{}, group_size={}, eps=0.0, {}{})
  return %q, %s
}}
)",
                     instance.x, type, instance.codes, is_fp8 ? ", %bound" : "", instance.group, rule, instance.layout);
}

// Kernels alone, or the parts as they are written.
std::shared_ptr<Context> host_context(bool fuses) {
  Options options;
  options.backend = "eager";
  options.threads = 2;
  options.fuse_act_quant = fuses;
  return make_context(std::move(options));
}

std::vector<std::string> kernels_of(const Plan& plan) {
  std::vector<std::string> kernels;
  for (const PlanStep& step : plan.steps) kernels.push_back(step.op + "@" + step.kernel->provider);
  return kernels;
}

TEST(PublishedInstances, AreOneKernelOnTheProcessorAndOnADevice) {
  const auto host = host_context(true), parts = host_context(false), device = cuda_context();
  ASSERT_EQ(instances().size(), 16u);
  for (const Instance& instance : instances())
    for (const bool is_wide : {true, false}) {
      const std::string text = written_out(instance, is_wide);
      SCOPED_TRACE(text);
      CompiledLayer by_parts(parts, text), on_host(host, text), on_device(device, text);
      const std::string op = std::string("silu_and_mul_per_token_group_quant_") + instance.codes;
      EXPECT_EQ(kernels_of(on_host.plan()), std::vector{op + "@cpu"});
      EXPECT_EQ(kernels_of(on_device.plan()), std::vector{op + "@cuda_reference"});
      EXPECT_GE(by_parts.plan().steps.size(), 2u);
      for (const int rows : {1, 5}) {
        const std::vector<std::string> wanted = by_parts.run(rows);
        EXPECT_EQ(on_host.run(rows), wanted) << rows << " rows";
        EXPECT_EQ(on_device.run(rows), wanted) << rows << " rows";
      }
    }
}

}  // namespace weft::published_instances_test
