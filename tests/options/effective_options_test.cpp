#include "options/effective_options.h"

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/thrown_message.h"

namespace weft::effective_options_test {

EffectiveOptions settle(const std::vector<std::pair<std::string, std::string>>& settings) {
  Options options;
  for (const auto& [name, value] : settings) set_option(options, name, value, "test");
  return effective_options(options);
}

TEST(EffectiveOptions, ADifferenceHasTheNameThatWasGiven) {
  const EffectiveOptions effective = settle({{"cc.compile_ranges_endpoints", "8192"}});
  ASSERT_EQ(effective.differences.size(), 1u);
  EXPECT_EQ(effective.differences[0].option, "cc.compile_ranges_split_points");
  EXPECT_EQ(effective.differences[0].text().find(
                "cc.compile_ranges_endpoints (cc.compile_ranges_split_points) is empty instead of 8192: "),
            0u)
      << effective.differences[0].text();
  const EffectiveOptions own = settle({{"cc.compile_ranges_split_points", "8192"}});
  EXPECT_EQ(own.differences[0].text().find("cc.compile_ranges_split_points is empty instead of 8192: "), 0u);
}

TEST(EffectiveOptions, DefaultsAreFilledInWithoutDifferences) {
  const EffectiveOptions effective = settle({});
  EXPECT_TRUE(effective.differences.empty());
  EXPECT_EQ(effective.options.mode, "weft");
  EXPECT_EQ(effective.options.cudagraph_mode, "FULL");
  EXPECT_EQ(effective.options.kv_cache_dtype, "auto");
  EXPECT_EQ(effective.options.eliminate_noops, OptionalFlag(true));
  EXPECT_EQ(effective.options.cudagraph_capture_sizes, default_capture_sizes(256));
}

TEST(EffectiveOptions, LevelsChooseModeReplayAndFusions) {
  struct Row {
    const char *mode, *replay;
    bool fuses;
  };
  const Row rows[] = {
      {"none", "NONE", false}, {"weft", "PIECEWISE", true}, {"weft", "FULL", true}, {"weft", "FULL", true}};
  constexpr OptionalFlag Options::*kFusions[] = {&Options::fuse_norm_quant,   &Options::fuse_act_quant,
                                                 &Options::fuse_attn_quant,   &Options::enable_qk_norm_rope_fusion,
                                                 &Options::fuse_rope_kvcache, &Options::fuse_qk_norm_rope_kvcache};
  for (int level = 0; level <= 3; ++level) {
    const Options options = settle({{"O", std::to_string(level)}}).options;
    EXPECT_EQ(options.mode, rows[level].mode) << level;
    EXPECT_EQ(options.cudagraph_mode, rows[level].replay) << level;
    for (const auto fusion : kFusions) EXPECT_EQ(options.*fusion, OptionalFlag(rows[level].fuses)) << level;
    EXPECT_EQ(options.eliminate_noops, OptionalFlag(true)) << level;
    EXPECT_EQ(options.enable_sp, OptionalFlag(false)) << level;
  }
}

// On a device the whole forward is one graph only for steps of one token for each sequence.
TEST(EffectiveOptions, FullIsFullAndPiecewiseOnADevice) {
  for (const char* device : {"cuda", "fake-cuda:0"}) {
    const char* const replays[] = {"NONE", "PIECEWISE", "FULL_AND_PIECEWISE", "FULL_AND_PIECEWISE"};
    for (int level = 0; level <= 3; ++level)
      EXPECT_EQ(settle({{"device", device}, {"O", std::to_string(level)}}).options.cudagraph_mode, replays[level]);
    const EffectiveOptions full = settle({{"device", device}, {"cc.cudagraph_mode", "FULL"}});
    EXPECT_EQ(full.options.cudagraph_mode, "FULL_AND_PIECEWISE");
    ASSERT_EQ(full.differences.size(), 1u);
    EXPECT_EQ(full.differences[0].requested, "FULL");
    EXPECT_NE(full.differences[0].reason.find("one token a sequence"), std::string::npos);
    for (const char* mode : {"NONE", "PIECEWISE", "FULL_DECODE_ONLY", "FULL_AND_PIECEWISE"}) {
      const EffectiveOptions given = settle({{"device", device}, {"cc.cudagraph_mode", mode}});
      EXPECT_EQ(given.options.cudagraph_mode, mode);
      EXPECT_TRUE(given.differences.empty());
    }
  }
}

TEST(EffectiveOptions, LevelsFillOnlyWhatIsLeftOpen) {
  const EffectiveOptions effective = settle({{"O", "0"},
                                             {"cc.mode", "3"},
                                             {"cc.cudagraph_mode", "FULL"},
                                             {"cc.pass_config.fuse_act_quant", "true"},
                                             {"cc.pass_config.enable_sp", "true"}});
  EXPECT_EQ(effective.options.mode, "weft");
  EXPECT_EQ(effective.options.cudagraph_mode, "FULL");
  EXPECT_EQ(effective.options.fuse_act_quant, OptionalFlag(true));
  EXPECT_EQ(effective.options.fuse_norm_quant, OptionalFlag(false));
  EXPECT_EQ(effective.options.enable_sp, OptionalFlag(true));
  EXPECT_TRUE(effective.differences.empty());
  EXPECT_EQ(settle({{"O", "3"}, {"cc.mode", "0"}}).options.mode, "none");
}

TEST(EagerOption, NamesWhatHasOpsRunOneByOneBeforeAndAfterSettling) {
  using Settings = std::vector<std::pair<std::string, std::string>>;
  const std::pair<Settings, const char*> rows[] = {{{}, ""},
                                                   {{{"O", "0"}}, "-O0"},
                                                   {{{"cc.mode", "none"}}, "-cc.mode=none"},
                                                   {{{"O", "0"}, {"cc.mode", "3"}}, ""},
                                                   {{{"O", "0"}, {"cc.mode", "stock"}}, ""},
                                                   {{{"enforce-eager", ""}, {"cc.mode", "3"}}, "--enforce-eager"},
                                                   {{{"enforce-eager", ""}, {"O", "0"}}, "--enforce-eager"}};
  for (const auto& [settings, wanted] : rows) {
    Options options;
    for (const auto& [name, value] : settings) set_option(options, name, value, "test");
    EXPECT_EQ(eager_option(options), wanted);
    EXPECT_EQ(eager_option(effective_options(options).options), wanted);
  }
}

TEST(EffectiveOptions, EagerOverrulesTheModeAndSaysSo) {
  const EffectiveOptions effective = settle({{"enforce-eager", ""}, {"cc.mode", "3"}, {"cc.cudagraph_mode", "FULL"}});
  EXPECT_EQ(effective.options.mode, "none");
  EXPECT_EQ(effective.options.cudagraph_mode, "NONE");
  EXPECT_TRUE(effective.options.cudagraph_capture_sizes.empty());
  ASSERT_EQ(effective.differences.size(), 2u);
  EXPECT_EQ(effective.differences[0].option, "cc.mode");
  EXPECT_EQ(effective.differences[0].requested, "weft");
  EXPECT_EQ(effective.differences[0].effective, "none");
  EXPECT_EQ(effective.differences[0].reason, "--enforce-eager");
  EXPECT_EQ(effective.differences[1].option, "cc.cudagraph_mode");
}

TEST(EffectiveOptions, ExactPrecisionKeepsAnF32Cache) {
  EXPECT_EQ(settle({{"activation-precision", "exact"}}).options.kv_cache_dtype, "f32");
  EXPECT_EQ(settle({{"activation-precision", "exact"}, {"kv-cache-dtype", "f16"}}).options.kv_cache_dtype, "f16");
}

TEST(EffectiveOptions, SizesAreSortedExpandedAndLimited) {
  const EffectiveOptions effective = settle({{"max-num-batched-tokens", "64"},
                                             {"cc.cudagraph_capture_sizes", "8,2,2,100"},
                                             {"cc.compile_sizes", "3,cudagraph_capture_sizes,65"},
                                             {"cc.compile_ranges_split_points", "64,32,1,32"}});
  EXPECT_EQ(effective.options.cudagraph_capture_sizes, (Counts{2, 8}));
  EXPECT_EQ(effective.options.max_cudagraph_capture_size, 8);
  EXPECT_EQ(effective.options.compile_sizes, (Words{"2", "3", "8"}));
  EXPECT_EQ(effective.options.compile_ranges_split_points, Counts{32});
  EXPECT_EQ(effective.options.max_num_seqs, 64);
  EXPECT_EQ(effective.differences.size(), 3u);
}

TEST(EffectiveOptions, CaptureTheSizesOfFullSteps) {
  Counts wanted = default_capture_sizes(200);
  wanted.insert(std::lower_bound(wanted.begin(), wanted.end(), 100), 100);
  EXPECT_EQ(settle({{"max-num-seqs", "100"}}).options.cudagraph_capture_sizes, wanted);
  EXPECT_EQ(settle({{"max-num-seqs", "3"}, {"max-num-batched-tokens", "5"}}).options.cudagraph_capture_sizes,
            (Counts{1, 2, 3, 4, 5}));
}

TEST(EffectiveOptions, TheLargestCaptureIsOneOfTheSizes) {
  const EffectiveOptions limited = settle({{"cc.max_cudagraph_capture_size", "100"}});
  EXPECT_EQ(limited.options.cudagraph_capture_sizes, default_capture_sizes(96));
  EXPECT_EQ(limited.options.max_cudagraph_capture_size, 96);
  ASSERT_EQ(limited.differences.size(), 1u);
  EXPECT_EQ(limited.differences[0].requested, "100");
  EXPECT_EQ(settle({{"cc.cudagraph_capture_sizes", "8,4"}, {"cc.max_cudagraph_capture_size", "8"}})
                .options.max_cudagraph_capture_size,
            8);
  EXPECT_THROW(settle({{"cc.cudagraph_capture_sizes", "8,4"}, {"cc.max_cudagraph_capture_size", "16"}}), UserError);
  EXPECT_TRUE(settle({{"cc.cudagraph_capture_sizes", "600"}}).options.cudagraph_capture_sizes.empty());
}

// As in a config that vLLM printed where its steps are larger.
TEST(EffectiveOptions, CaptureSizesOfLargerStepsAreCutTogether) {
  const EffectiveOptions cut =
      settle({{"cc.cudagraph_capture_sizes", "4,8,1024"}, {"cc.max_cudagraph_capture_size", "1024"}});
  EXPECT_EQ(cut.options.cudagraph_capture_sizes, (Counts{4, 8}));
  EXPECT_EQ(cut.options.max_cudagraph_capture_size, 8);
  EXPECT_THROW(settle({{"cc.cudagraph_capture_sizes", "4,8,1024"}, {"cc.max_cudagraph_capture_size", "8"}}), UserError);
}

TEST(EffectiveOptions, NothingIsCapturedWhereNoSizeIsLeft) {
  using Settings = std::vector<std::pair<std::string, std::string>>;
  for (const Settings& settings : {Settings{{"cc.max_cudagraph_capture_size", "0"}},
                                   {{"cc.cudagraph_capture_sizes", "600"}},
                                   {{"cc.cudagraph_capture_sizes", "600"}, {"cc.max_cudagraph_capture_size", "600"}},
                                   {{"cc.cudagraph_capture_sizes", ""}, {"cc.max_cudagraph_capture_size", "0"}}}) {
    const EffectiveOptions once = settle(settings);
    EXPECT_EQ(once.options.cudagraph_mode, "NONE");
    EXPECT_TRUE(once.options.cudagraph_capture_sizes.empty());
    EXPECT_EQ(effective_options(once.options).options, once.options);
  }
  EXPECT_EQ(settle({{"cc.cudagraph_mode", "FULL"}, {"cc.max_cudagraph_capture_size", "0"}}).differences[0].option,
            "cc.cudagraph_mode");
}

TEST(EffectiveOptions, ABudgetThatMeasuresNothingIsNone) {
  for (const auto& [name, value] : {std::pair("enforce-eager", ""), {"cc.compile_sizes", ""}}) {
    const EffectiveOptions none = settle({{"tuning-budget", "5"}, {name, value}});
    EXPECT_EQ(none.options.tuning_budget, 0) << name;
    ASSERT_FALSE(none.differences.empty()) << name;
    EXPECT_EQ(none.differences.back().option, "tuning-budget");
  }
  EXPECT_EQ(settle({{"tuning-budget", "5"}, {"cc.compile_sizes", "600"}}).options.tuning_budget, 0) << "above a step";
  EXPECT_EQ(settle({{"tuning-budget", "5"}, {"cc.compile_sizes", "4"}}).options.tuning_budget, 5);
}

TEST(EffectiveOptions, RefuseThoseThatContradictEachOther) {
  using Settings = std::vector<std::pair<std::string, std::string>>;
  const auto refusal_of = [](const Settings& settings) { return message_of([&] { settle(settings); }); };
  const std::string lazy = refusal_of({{"forbid-lazy", ""}, {"capture", "lazy"}});
  EXPECT_NE(lazy.find("[--forbid-lazy]"), std::string::npos) << lazy;
  EXPECT_NE(lazy.find("--capture=lazy"), std::string::npos) << lazy;
  EXPECT_EQ(refusal_of({{"require-codegen", ""}, {"O", "0"}}), "[--require-codegen] no code is generated with -O0");
  EXPECT_EQ(refusal_of({{"expect-fusions", "all"}, {"enforce-eager", ""}}),
            "[--expect-fusions] nothing is fused with --enforce-eager");
  for (const Settings& settings : {Settings{{"forbid-lazy", ""}, {"capture", "lazy"}, {"cc.cudagraph_mode", "NONE"}},
                                   {{"forbid-lazy", ""}, {"capture", "lazy"}, {"enforce-eager", ""}},
                                   {{"require-codegen", ""}, {"O", "0"}, {"cc.mode", "3"}}})
    EXPECT_NO_THROW(settle(settings));
  Options options;
  for (const auto& [name, value] : Settings{{"require-codegen", ""}, {"expect-fusions", "all"}})
    set_option(options, name, value, "test");
  run_eagerly(options);
  EXPECT_EQ(effective_options(options).options.mode, "none");
}

TEST(CompileAnyway, LeavesNothingThatRunsOpsOneByOne) {
  for (const auto& [name, value] : {std::pair("enforce-eager", ""), {"O", "0"}, {"cc.mode", "none"}, {"O", "1"}}) {
    Options options;
    set_option(options, name, value, "test");
    set_option(options, "enforce-eager", "", "test");
    compile_anyway(options);
    EXPECT_EQ(eager_option(options), "") << name << value;
    EXPECT_EQ(effective_options(options).options.mode, "weft") << name << value;
  }
}

TEST(EffectiveOptions, AreSettledOnce) {
  const EffectiveOptions once = settle({{"cc.compile_sizes", "cudagraph_capture_sizes"}, {"max-num-seqs", "1k"}});
  const EffectiveOptions twice = effective_options(once.options);
  EXPECT_EQ(twice.options, once.options);
  EXPECT_TRUE(twice.differences.empty());
}

TEST(DefaultCaptureSizes, GrowInThreeSteps) {
  EXPECT_EQ(default_capture_sizes(0), Counts{});
  EXPECT_EQ(default_capture_sizes(3), (Counts{1, 2}));
  EXPECT_EQ(default_capture_sizes(16), (Counts{1, 2, 4, 8, 16}));
  const Counts sizes = default_capture_sizes(512);
  EXPECT_EQ(sizes.size(), 3u + 32u + 16u);
  EXPECT_EQ(sizes.back(), 512);
  EXPECT_EQ(sizes[34], 256);
  EXPECT_EQ(sizes[35], 272);
}

TEST(TranslateAutotuning, GivesTheNewSpelling) {
  const auto translate = [](std::string_view config, const char* budget = nullptr) {
    Options options;
    set_option(options, "cc.inductor_compile_config", config, "test");
    if (budget != nullptr) set_option(options, "tuning-budget", budget, "test");
    const std::string spelling = translate_autotuning(options);
    return std::tuple(spelling, options.tuning_budget, options.inductor_compile_config,
                      options.requested.contains("cc.inductor_compile_config"));
  };
  EXPECT_EQ(translate(R"({"max_autotune": true})"), std::tuple("--tuning-budget=10", 10, "", false));
  EXPECT_EQ(translate(R"({"coordinate_descent_tuning": true, "max_autotune": false, "fast": 1})"),
            std::tuple("--tuning-budget=10", 10, R"({"fast":1})", true));
  EXPECT_EQ(translate(R"({"max_autotune": true})", "3"), std::tuple("--tuning-budget=3", 3, "", false));
  EXPECT_EQ(translate(R"({"max_autotune": true})", "0"), std::tuple("--tuning-budget=0", 0, "", false));
  for (const char* config : {R"({"max_autotune": false})", R"({"max_autotune": "yes"})", "{}", "[true]"})
    EXPECT_EQ(std::get<0>(translate(config)), "") << config;
  EXPECT_EQ(std::get<2>(translate(R"({"max_autotune":false})")), R"({"max_autotune":false})");
}

// Otherwise no message would report that the option has no effect if no size is compiled exactly.
TEST(TranslateAutotuning, CountsAsAskedFor) {
  Options options;
  set_option(options, "cc.inductor_compile_config", R"({"max_autotune": true})", "test");
  translate_autotuning(options);
  EXPECT_EQ(options.requested.at("tuning-budget"), (RequestedOption{"10", "test"}));
}

}  // namespace weft::effective_options_test
