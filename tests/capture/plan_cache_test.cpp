// Plans of compiled functions in the compile cache: another process finds them and computes the same bits; whatever
// changes a Plan is a miss.

#include <filesystem>
#include <functional>

#include <gtest/gtest.h>

#include "builtin/context.h"
#include "include/weft/compile.h"
#include "tests/cache/cache_case.h"
#include "tests/capture/functions.h"

namespace weft::plan_cache_test {

// Two graphs end at the read, one for rows up to 16 and one for more.
Value layer(Value x, Value weight) {
  const Value normed = guard(x, x.dim(0) > 16) ? rms_norm(x, weight, 1e-5) : rms_norm(silu(x), weight, 1e-5);
  return item(amax(amax(abs(normed), 1), 0)) > 0 ? mul(normed, normed) : normed;
}

Options with(const std::string& option, const std::string& value) {
  Options options;
  options.threads = 2;
  set_option(options, option, value, "test");
  return options;
}

struct Setting {
  std::function<Value(Value, Value)> function = layer;
  Options options = with("threads", "2");
  DType dtype = DType::f32;
  std::int64_t width = 8, most_rows = 64;
};

class PlanCache : public ::testing::Test {
 protected:
  struct Outcome {
    std::vector<std::vector<std::byte>> results = {};  // of 4 and of 20 rows
    std::string log = {};
    std::int64_t compiled = 0;  // graphs and functions
    CacheCounters counters = {};
  };

  // As in another process. Each result must have the bits of a plain call.
  Outcome run(const Setting& setting = {}) {
    Eager eager(make_context(setting.options));
    eager.context->cache = files_.open();
    const std::ostringstream& log = eager.log("cache");
    auto compiled = compile(eager.context, setting.function, {.name = "layer"});
    compiled.mark_dynamic(0, 0, {"tokens", 1, setting.most_rows});
    Outcome outcome;
    for (const std::int64_t rows : {4, 20}) {
      const auto sample = [&](std::vector<std::int64_t> shape) {
        return eager.home.value(make_sample_tensor({"x", std::move(shape)}, setting.dtype, 1));
      };
      const Value x = sample({rows, setting.width}), weight = sample({setting.width});
      compiled(x, weight);  // the first call of a function with graph breaks runs op by op
      const Value result = compiled(x, weight);
      EXPECT_TRUE(same_bits(result, setting.function(x, weight))) << rows;
      const Tensor tensor = contiguous(result.tensor());
      outcome.results.emplace_back(tensor.data(), tensor.data() + tensor.meta.bytes().number());
    }
    outcome.log = log.str();
    outcome.compiled = eager.context->first_time_work->counts(FirstTime::compile).before_ready;
    outcome.counters = eager.context->cache->counters();
    return outcome;
  }

  static std::size_t count(const std::string& text, const std::string& part) {
    std::size_t found = 0;
    for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
    return found;
  }

  CacheCase files_;
};

constexpr const char* kFound = "[cache] layer: plans found";
constexpr const char* kCompiled = "[cache] layer: plans compiled";

TEST_F(PlanCache, AnotherProcessFindsThePlansAndComputesTheSameBits) {
  const Outcome first = run(), second = run();
  EXPECT_EQ(count(first.log, kCompiled), 3u) << first.log;
  EXPECT_EQ(count(first.log, kFound), 1u) << "the graph after the read is the same for 4 and 20 rows\n" << first.log;
  EXPECT_EQ(files_.files("plans"), 3u);
  EXPECT_EQ(count(second.log, kFound), 4u) << second.log;
  EXPECT_EQ(count(second.log, "compiled"), 0u) << second.log;
  EXPECT_GE(first.compiled, 3);
  EXPECT_EQ(second.compiled, 0);
  EXPECT_EQ(second.counters.stores, 0);
  EXPECT_EQ(first.results, second.results);
  EXPECT_EQ(files_.warnings, std::vector<std::string>());
}

TEST_F(PlanCache, WhateverChangesAPlanIsAMiss) {
  const auto function = [](Value x, Value weight) { return div(rms_norm(silu(x), weight, 1e-5), x); };
  const auto other_op = [](Value x, Value weight) { return div(rms_norm(sigmoid(x), weight, 1e-5), x); };
  const auto other_number = [](Value x, Value weight) { return div(rms_norm(silu(x), weight, 1e-6), x); };
  const auto other_operands = [](Value x, Value weight) { return div(x, rms_norm(silu(x), weight, 1e-5)); };
  struct Case {
    std::string difference;  // the first factor of the key that differs
    Setting setting;
  };
  for (const auto& [difference, setting] : std::vector<Case>{
           {"op sigmoid: wanted without attributes, found none", {.function = other_op}},
           {"op rms_norm: wanted (epsilon=1e-06), found (epsilon=1e-05)", {.function = other_number}},
           {"graph: ", {.function = other_operands}},
           {"inputs: ", {.function = function, .dtype = DType::f64}},
           {"inputs: ", {.function = function, .width = 16}},
           {"ranges: wanted 1-32, found 1-64", {.function = function, .most_rows = 32}},
           {"device: ", {.function = function, .options = with("threads", "1")}},
           {"--cc.pass_config.fuse_norm_quant: ",
            {.function = function, .options = with("cc.pass_config.fuse_norm_quant", "false")}},
           {"--ir-op-priority: ", {.function = function, .options = with("ir-op-priority.rms_norm", "reference")}}}) {
    std::filesystem::remove_all(files_.root());
    EXPECT_EQ(count(run({.function = function}).log, kCompiled), 1u) << difference;
    EXPECT_EQ(count(run({.function = function}).log, kFound), 1u) << difference;
    const std::string log = run(setting).log;
    EXPECT_EQ(count(log, kCompiled), 1u) << difference << "\n" << log;
    EXPECT_NE(log.find("differs in " + difference), std::string::npos) << difference << "\n" << log;
  }
}

// It is an input of the graph, so its content is no part of a Plan.
TEST_F(PlanCache, ATensorThatTheFunctionSuppliesMayHaveOtherContents) {
  const auto function_with = [](std::uint64_t seed) {
    return [tensor = make_sample_tensor({"t", {8}}, DType::f32, seed)](Value x, Value) {
      return mul(x, x.home().value(tensor));
    };
  };
  const Outcome first = run({.function = function_with(1)}), second = run({.function = function_with(2)});
  EXPECT_EQ(count(second.log, kFound), 1u) << second.log;
  EXPECT_NE(first.results, second.results);
}

TEST_F(PlanCache, DamagedEntriesAreCompiledAgainWithOneWarning) {
  const Outcome first = run();
  for (const auto& file : std::filesystem::directory_iterator(files_.kind_folder("plans"))) {
    std::string damaged = file_text(file.path());
    damaged.back() = static_cast<char>(damaged.back() ^ 1);
    put_text(file.path(), damaged);
  }
  const Outcome second = run();
  EXPECT_EQ(files_.warnings.size(), 1u);
  EXPECT_EQ(count(second.log, kCompiled), 3u) << second.log;
  EXPECT_EQ(second.results, first.results);
  const Outcome third = run();
  EXPECT_EQ(count(third.log, kFound), 4u) << third.log;
  EXPECT_EQ(files_.warnings.size(), 1u);
}

TEST_F(PlanCache, ACompilerUsesTheFolderOfItsOptionsUnlessTheCacheIsOff) {
  const auto function = [](Value x) { return silu(x); };
  const auto compile_with = [&](bool is_off, const CompileOptions& own) {
    Options options;
    options.cache_root = files_.folder().path();
    options.disable_compile_cache = is_off;
    Compiler compiler(options);
    auto compiled = compiler.compile(function, own);
    const Value x = compiler.value({1, 3}, {-1, 0, 1});
    EXPECT_EQ(numbers(compiled(x)), numbers(function(x)));
    EXPECT_EQ(compiled.captured().counts().compiled, 1);
  };
  const auto entries = [&] { return CompileCache({.root = files_.folder() / "compile"}).list().size(); };
  compile_with(true, {});
  EXPECT_TRUE(std::filesystem::is_empty(files_.folder().path()));
  compile_with(false, {});
  const std::size_t once = entries();
  EXPECT_GT(once, 0u);
  compile_with(false, {});
  EXPECT_EQ(entries(), once);
  compile_with(false, {.options = {{"cc.pass_config.fuse_act_quant", "false"}}});
  EXPECT_EQ(entries(), once + 1) << "the options of one function are in its key";
}

}  // namespace weft::plan_cache_test
