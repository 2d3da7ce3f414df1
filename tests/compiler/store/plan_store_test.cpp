#include "compiler/store/plan_store.h"

#include <cstdlib>
#include <random>

#include <gtest/gtest.h>

#include "base/byte_stream.h"
#include "builtin/context.h"
#include "codegen/compile_rows.h"
#include "runtime/replay.h"
#include "tests/base/temporary_folder.h"
#include "tests/option_values.h"
#include "tests/small_layer.h"
#include "tests/thrown_message.h"

namespace weft::plan_store_test {

using Change = std::function<void(Context&)>;

class PlanStore : public testing::Test {
 protected:
  std::shared_ptr<Context> open(const Change& change = {}) {
    auto context = test_context();
    context->cache = std::make_unique<CompileCache>(CompileCacheSettings{
        .root = folder_ / "cache", .warn = [this](const std::string& warning) { warnings_.push_back(warning); }});
    if (change) change(*context);
    return context;
  }
  static std::vector<TokenRange> ranges() { return {{1, 4}, {5, 64}}; }
  static std::int64_t compiled(const Context& context) {
    return context.first_time_work->counts(FirstTime::compile).before_ready;
  }
  static CacheKey key_of(const Context& context) { return *plans_key(*small_layer(context), context, ranges(), {}); }
  // Compiled anew, without a cache; nothing if --compile-to stops before there are Plans.
  static std::vector<std::byte> compiled_bytes(const Context& context) {
    const auto traced = small_layer(context);
    const CompiledRanges compiled = compile_ranges(*traced, context, ranges(), pass_runner_options(context.options));
    std::vector<const Plan*> plans;
    for (const auto& plan : compiled.plans) plans.push_back(plan.get());
    if (plans.empty()) return {};
    return store_plans(*traced, context, ranges(), plans).bytes;
  }
  static std::vector<std::vector<std::byte>> results_of(const CompiledRanges& compiled, const Graph& traced,
                                                        const Context& context) {
    std::vector<std::vector<std::byte>> results;
    for (std::size_t range = 0; range < compiled.plans.size(); ++range) {
      const LayerInputs inputs = layer_inputs(traced, range == 0 ? 3 : 7);
      Replay replay(compiled.plans[range], *context.threads);
      for (std::size_t i = 0; i < inputs.tensors.size(); ++i) replay.bind(i, inputs.copy(i));
      replay.run();
      for (std::size_t i = 0; i < compiled.plans[range]->results.size(); ++i) {
        const Tensor result = replay.result(i);
        const std::int64_t count = result.meta.is_tensor() ? result.meta.bytes().number() : result.storage->bytes();
        results.emplace_back(result.data(), result.data() + count);
      }
    }
    return results;
  }

  TemporaryFolder folder_;
  std::vector<std::string> warnings_;
};

TEST_F(PlanStore, GivesWhatWasCompiledWithoutCompiling) {
  const auto first = open();
  const auto traced = small_layer(*first);
  const CompiledRanges compiled_now = find_or_compile(*traced, *first, ranges(), {});
  EXPECT_EQ(compiled_now.records.size(), 2u);
  EXPECT_GE(compiled(*first), 2);
  const auto second = open();
  const CompiledRanges found = find_or_compile(*small_layer(*second), *second, ranges(), {});
  EXPECT_EQ(found.records.size(), 0u);
  EXPECT_EQ(found.ranges, ranges());
  EXPECT_EQ(compiled(*second), 0);
  EXPECT_EQ(second->generated->size(), first->generated->size());
  for (std::size_t i = 0; i < 2; ++i) EXPECT_EQ(plan_text(*found.plans[i]), plan_text(*compiled_now.plans[i]));
  EXPECT_EQ(found.plans[0] == found.plans[1], compiled_now.plans[0] == compiled_now.plans[1]);
  EXPECT_EQ(results_of(found, *traced, *second), results_of(compiled_now, *traced, *first));
  EXPECT_EQ(warnings_, std::vector<std::string>());
}

TEST_F(PlanStore, FindsFunctionsWherePlansAreOthers) {
  if (!can_compile_rows()) GTEST_SKIP() << "libweft_llvm.so was not built";
  const auto first = open();
  find_or_compile(*small_layer(*first), *first, ranges(), {});
  const auto second = open();
  find_or_compile(*small_layer(*second), *second, {{1, 9}}, {});
  EXPECT_EQ(second->first_time_work->counts(FirstTime::load).before_ready,
            static_cast<std::int64_t>(second->generated->size()));
  EXPECT_EQ(compiled(*second), 1);  // the graph; no function
}

// Another value for each row of the options table.
void change(Options& options, const OptionRow& row) {
  std::visit(
      [&](auto member) {
        auto& value = options.*member;
        using Type = std::remove_reference_t<decltype(value)>;
        if constexpr (std::is_same_v<Type, bool>) value = !value;
        if constexpr (std::is_same_v<Type, OptionalFlag>) value = !value.value_or(true);
        if constexpr (std::is_same_v<Type, std::int64_t>) value += 1;
        if constexpr (std::is_same_v<Type, std::string>) value += "x";
        if constexpr (std::is_same_v<Type, Counts>) value.push_back(77);
        if constexpr (std::is_same_v<Type, Words>) value.push_back("x");
        if constexpr (std::is_same_v<Type, Priorities>) value["rms_norm"] = {"reference"};
      },
      row.member);
}

TEST_F(PlanStore, EveryOptionThatChangesCodeIsInTheKeyAndNoOther) {
  const CacheKey key = key_of(*open());
  int code = 0;
  for (const OptionRow& row : option_table()) {
    if (row.name == "tuned") continue;  // by content; below
    const auto context = open([&](Context& changed) { change(changed.options, row); });
    const auto other = plans_key(*small_layer(*context), *context, ranges(), {});
    if (row.effect == OptionEffect::code) {
      ++code;
      EXPECT_TRUE(!other || *other != key) << row.name;
    } else {
      EXPECT_TRUE(!other || *other == key) << row.name;
    }
  }
  EXPECT_GT(code, 20);
}

// The Plans, with their functions, under an option that is declared to change no code.
TEST_F(PlanStore, OptionsThatAreNotInTheKeyChangeNoByteOfThePlans) {
  const auto bytes_with = [&](std::string_view name, const std::string& value) -> std::vector<std::byte> {
    Options options;
    options.threads = 2;
    if (!name.empty()) set_option(options, name, value, "test");
    return compiled_bytes(*make_context(options));
  };
  const std::vector<std::byte> wanted = bytes_with("", "");
  ASSERT_GT(wanted.size(), 1000u);
  EXPECT_NE(bytes_with("ir-op-priority.linear", "reference"), wanted) << "an option that does change code";
  int tried = 0;
  for (const OptionRow& row : option_table()) {
    if (row.effect == OptionEffect::code || row.name == "threads") continue;  // their number is the device's: below
    for (const std::string& value : other_values(row, folder_.path())) {
      testing::internal::CaptureStderr();
      const std::vector<std::byte> came = bytes_with(row.name, value);
      testing::internal::GetCapturedStderr();
      EXPECT_TRUE(came == wanted || (came.empty() && row.name == "compile-to")) << row.name << "=" << value;
      ++tried;
    }
  }
  EXPECT_GT(tried, 20);
}

TEST_F(PlanStore, WhatElseTheCompilerReadsIsInTheKey) {
  const CacheKey key = key_of(*open());
  const std::string tuned = folder_ / "tuned.json", same = folder_ / "same.json", other = folder_ / "other.json";
  for (const auto& [path, text] : {std::pair(tuned, "{}"), {same, "{}"}, {other, "{ }"}})
    EXPECT_EQ(std::system(("printf '" + std::string(text) + "' > " + path).c_str()), 0);
  const auto with = [&](const std::string& path) {
    return key_of(*open([&](Context& context) { context.options.tuned = path; }));
  };
  EXPECT_EQ(with(tuned), with(same));
  EXPECT_NE(with(tuned), with(other));
  EXPECT_NE(with(tuned), key);
  for (const Change& change : {Change([](Context& c) { ++c.device.threads; }),
                               Change([](Context& c) { c.device.features = CpuFeatures::baseline; }),
                               Change([](Context& c) { c.device.fp8 = DType::f8e4m3fnuz; }),
                               Change([](Context& c) { c.priorities.set("linear", {"reference"}); })}) {
    const auto context = open(change);
    EXPECT_NE(key_of(*context), key);
  }
  const auto on_gpu = [&](int capability, int cublaslt) {
    return key_of(*open([&](Context& context) {
      context.device.id = {DeviceType::fake_cuda, 0};
      context.device.compute_capability = capability;
      context.device.cublaslt = cublaslt;
    }));
  };
  EXPECT_EQ(on_gpu(90, 120903), on_gpu(90, 120903));
  EXPECT_NE(on_gpu(90, 120903), on_gpu(100, 120903));
  EXPECT_NE(on_gpu(90, 120903), on_gpu(90, 130000));
  EXPECT_NE(on_gpu(90, 120903), key);
  const auto context = open();
  auto traced = small_layer(*context);
  EXPECT_NE(*plans_key(*traced, *context, std::vector<TokenRange>{{1, 64}}, {}), key);
  traced->bounds["s1"] = {1, 65};
  EXPECT_NE(*plans_key(*traced, *context, ranges(), {}), key);
  traced = small_layer(*context);
  traced->nodes().front()->origin = {{"layer", "7"}};
  EXPECT_NE(*plans_key(*traced, *context, ranges(), {}), key);
}

// The names of a graph, its values and its weights matter only to code that binds them.
TEST_F(PlanStore, ARenamedGraphFindsThePlanAndGivesItItsNames) {
  const auto first = open();
  const auto traced = small_layer(*first);
  const CompiledRanges compiled_now = find_or_compile(*traced, *first, ranges(), {});
  const auto second = open();
  const auto renamed = small_layer(*second);
  renamed->name = "other";
  for (const auto& input : renamed->inputs()) {
    input->name = "renamed_" + input->name;
    if (input->param) input->key = "moved." + input->key;
  }
  for (const auto& node : renamed->nodes())
    for (const auto& result : node->results) result->name = "renamed_" + result->name;
  EXPECT_EQ(*plans_key(*renamed, *second, ranges(), {}), key_of(*first));
  const CompiledRanges found = find_or_compile(*renamed, *second, ranges(), {});
  EXPECT_EQ(compiled(*second), 0);
  for (const auto& plan : found.plans) {
    EXPECT_EQ(plan->name, "other");
    ASSERT_EQ(plan->inputs.size(), renamed->inputs().size());
    for (std::size_t i = 0; i < plan->inputs.size(); ++i) {
      const PlanSlot& slot = plan->slots[static_cast<std::size_t>(plan->inputs[i])];
      EXPECT_EQ(slot.name, renamed->inputs()[i]->name);
      EXPECT_EQ(slot.key, renamed->inputs()[i]->key);
    }
  }
  EXPECT_EQ(results_of(found, *renamed, *second), results_of(compiled_now, *traced, *first));
}

TEST_F(PlanStore, WhatADeviceIsBesidesChangesNoByteOfThePlans) {
  Options options;
  options.threads = 2;
  const std::vector<std::byte> wanted = compiled_bytes(*make_context(options));
  ASSERT_GT(wanted.size(), 1000u);
  const CacheKey key = key_of(*open());
  const std::vector<Change> changes{[](Context& c) { c.device.name = "another one"; },
                                    [](Context& c) { c.device.host = CpuFeatures::baseline; }};
  for (std::size_t i = 0; i < changes.size(); ++i) {
    const auto context = make_context(options);
    changes[i](*context);
    EXPECT_TRUE(compiled_bytes(*context) == wanted) << i;
    EXPECT_EQ(key_of(*open(changes[i])), key) << i;
  }
}

// As they are stored in an artifact.
TEST_F(PlanStore, StoredPlansStandInForTheCompiler) {
  const auto first = open();
  const auto traced = small_layer(*first);
  const CompiledRanges compiled_now = find_or_compile(*traced, *first, ranges(), {});
  std::vector<const Plan*> plans;
  for (const auto& plan : compiled_now.plans) plans.push_back(plan.get());
  PlanSource source{.name = "m.weft", .graphs = {store_plans(*traced, *first, ranges(), plans)}};
  EXPECT_EQ(source.graphs[0].functions.size(), first->generated->size());
  const auto open_over = [&](const PlanSource& plans_of) {
    return open([&](Context& context) { context.stored_plans = std::make_shared<const PlanSource>(plans_of); });
  };
  const auto second = open_over(source);
  const CompiledRanges found = find_or_compile(*small_layer(*second), *second, ranges(), {});
  EXPECT_EQ(compiled(*second), 0);
  for (std::size_t i = 0; i < 2; ++i) EXPECT_EQ(plan_text(*found.plans[i]), plan_text(*compiled_now.plans[i]));
  EXPECT_EQ(results_of(found, *traced, *second), results_of(compiled_now, *traced, *first));
  const auto refusal = [&](const Context& context, std::vector<TokenRange> of, const PassRunnerOptions& options = {}) {
    return message_of([&] { find_or_compile(*small_layer(context), context, std::move(of), options); });
  };
  EXPECT_NE(refusal(*second, {{1, 64}}).find("with ranges \"1-4 5-64\", but here it is \"1-64\""), std::string::npos);
  second->priorities.set("linear", {"reference"});
  EXPECT_NE(refusal(*second, ranges()).find("with priorities"), std::string::npos);
  PassRunnerOptions looking;
  looking.stop_after = Stage::lowered;
  EXPECT_NE(refusal(*open_over(source), ranges(), looking).find("is compiled already"), std::string::npos);
  source.graphs[0].bytes.resize(source.graphs[0].bytes.size() / 2);
  EXPECT_NE(refusal(*open_over(source), ranges()).find("are of no use"), std::string::npos);
  source.graphs.clear();
  EXPECT_NE(refusal(*open_over(source), ranges()).find("has no plans of the graph"), std::string::npos);
  first->options.skip_pass = {"raise"};
  EXPECT_NE(message_of([&] { store_plans(*traced, *first, ranges(), plans); }).find("cannot be kept"),
            std::string::npos);
}

TEST_F(PlanStore, KeepsNothingWhereItCannotSayWhatWasRead) {
  const auto context = open();
  const auto traced = small_layer(*context);
  PassRunnerOptions looking;
  looking.stop_after = Stage::lowered;
  EXPECT_FALSE(plans_key(*traced, *context, ranges(), looking));
  looking = {};
  looking.skip = {"raise"};
  EXPECT_FALSE(plans_key(*traced, *context, ranges(), looking));
  context->options.plugin = {"mine.so"};
  EXPECT_FALSE(plans_key(*traced, *context, ranges(), {}));
  context->options.plugin = {};
  context->cache = std::make_unique<CompileCache>();
  EXPECT_FALSE(plans_key(*traced, *context, ranges(), {}));
}

TEST_F(PlanStore, TheEnvironmentAndTheFolderChangeNothing) {
  const CacheKey key = key_of(*open());
  const auto first = open();
  find_or_compile(*small_layer(*first), *first, ranges(), {});
  std::mt19937 random(5);
  std::vector<std::string> names{"HOME", "LANG", "TZ", "USER", "CXX", "OMP_NUM_THREADS", "PYTHONPATH"};
  for (int i = 0; i < 40; ++i) names.push_back("X" + std::to_string(i));
  std::map<std::string, std::string> before;
  for (const std::string& name : names)
    if (const char* value = std::getenv(name.c_str())) before[name] = value;
  const auto again = open();
  const auto traced = small_layer(*again);
  int misses = 0;
  for (int i = 0; i < 1000; ++i) {
    ::setenv(names[random() % names.size()].c_str(), std::to_string(random()).c_str(), 1);
    const auto now = plans_key(*traced, *again, ranges(), {});
    misses += now == key && again->cache->find(*now) ? 0 : 1;
  }
  for (const std::string& name : names) ::unsetenv(name.c_str());
  for (const auto& [name, value] : before) ::setenv(name.c_str(), value.c_str(), 1);
  EXPECT_EQ(misses, 0);
  // The same bytes in a cache elsewhere.
  const auto bytes_of = [&](const Context& context) {
    const auto entry = context.cache->find(key);
    EXPECT_TRUE(entry);
    return std::vector<std::byte>(entry->payload().begin(), entry->payload().end());
  };
  const auto elsewhere = open();
  elsewhere->cache = std::make_unique<CompileCache>(CompileCacheSettings{.root = folder_ / "another"});
  find_or_compile(*small_layer(*elsewhere), *elsewhere, ranges(), {});
  EXPECT_EQ(bytes_of(*first), bytes_of(*elsewhere));
}

// A valid entry whose content has another source.
TEST_F(PlanStore, PassesOverWhatMakesNoSense) {
  const auto first = open();
  const auto traced = small_layer(*first);
  const CompiledRanges wanted = find_or_compile(*traced, *first, ranges(), {});
  const CacheKey key = key_of(*first);
  std::vector<std::byte> payload;
  {
    const auto entry = first->cache->find(key);
    payload.assign(entry->payload().begin(), entry->payload().end());
  }
  for (const std::size_t length : {std::size_t{0}, std::size_t{3}, payload.size() / 2, payload.size() - 1}) {
    ASSERT_TRUE(first->cache->store(key, std::span(payload).first(length)));
    const auto second = open();
    testing::internal::CaptureStderr();
    const CompiledRanges came = find_or_compile(*traced, *second, ranges(), {});
    EXPECT_NE(testing::internal::GetCapturedStderr().find("are of no use"), std::string::npos) << length;
    EXPECT_EQ(came.records.size(), 2u);
    EXPECT_EQ(results_of(came, *traced, *second), results_of(wanted, *traced, *first));
    const auto third = open();  // which finds the second one's entry
    EXPECT_EQ(find_or_compile(*traced, *third, ranges(), {}).records.size(), 0u);
  }
}

TEST_F(PlanStore, SaysWhatTheNearestEntryDiffersIn) {
  const auto first = open();
  find_or_compile(*small_layer(*first), *first, ranges(), {});
  find_or_compile(*small_layer(*first), *first, {{1, 3}}, {});  // of another graph of the model, as it were
  EXPECT_TRUE(cache_use(*first, key_of(*first), true).hit);
  const auto second = open([](Context& context) { ++context.device.threads; });
  const CacheUse use = cache_use(*second, key_of(*second), false);
  ASSERT_TRUE(use.first_difference);
  EXPECT_EQ(use.first_difference->factor, "device");
  const auto third = open([](Context& context) {
    context.options.block_size = 32;
    context.options.max_num_seqs = 7;
  });
  const auto option = cache_use(*third, key_of(*third), false).first_difference;
  ASSERT_TRUE(option);
  EXPECT_EQ(option->factor, "--block-size") << "the first of two";
  EXPECT_EQ(option->wanted, "32");
  EXPECT_EQ(option->found, "auto");
  // An entry of this run is no neighbour, however near.
  find_or_compile(*small_layer(*third), *third, {{1, 3}}, {});
  EXPECT_EQ(cache_use(*third, key_of(*third), false).first_difference->factor, "--block-size");
  EXPECT_FALSE(cache_use(*second, std::nullopt, false).enabled);
}

TEST_F(PlanStore, SaysWhatOfAGraphTheNearestEntryDiffersIn) {
  const auto first = open(), context = open();
  find_or_compile(*small_layer(*first), *first, ranges(), {});
  const auto difference_with = [&](const std::function<void(Graph&)>& change) {
    const auto graph = small_layer(*context);
    change(*graph);
    return cache_use(*context, plans_key(*graph, *context, ranges(), {}), false).first_difference.value();
  };
  const CacheDifference number = difference_with([](Graph& graph) {
    for (const auto& node : graph.nodes())
      if (node->attributes.find("epsilon") != nullptr) node->attributes.set("epsilon", 0.5);
  });
  EXPECT_TRUE(number.factor.starts_with("op ")) << number.factor;
  EXPECT_NE(number.wanted->find("epsilon=0.5"), std::string::npos) << *number.wanted;
  EXPECT_EQ(number.found->find("epsilon=0.5"), std::string::npos) << *number.found;
  const CacheDifference type = difference_with([](Graph& graph) {
    graph.inputs()[0]->meta = Meta::tensor(DType::f64, {3, 5});
  });
  EXPECT_EQ(type.factor, "inputs");
  EXPECT_NE(type.wanted->find("f64[3, 5]"), std::string::npos) << *type.wanted;
}

}  // namespace weft::plan_store_test
