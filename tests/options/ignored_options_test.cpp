#include "options/ignored_options.h"

#include <string>

#include <gtest/gtest.h>

#include "options/options.h"
#include "options/options_text.h"

namespace weft::ignored_options_test {

TEST(IgnoredOptions, AreNamesOfTheirOwnInEverySpelling) {
  for (const IgnoredOption& row : ignored_options()) {
    EXPECT_TRUE(row.name.starts_with("cc.")) << row.name;
    EXPECT_TRUE(row.sentence.ends_with('.')) << row.name;
    EXPECT_EQ(find_option(row.name), nullptr) << row.name << " has an effect";
    for (const std::string prefix : {"-cc.", "--compilation-config.", "compilation_config."})
      EXPECT_EQ(find_ignored_option(prefix + std::string(row.name.substr(3))), &row) << prefix;
  }
  EXPECT_EQ(find_ignored_option("cc.mode"), nullptr);
  EXPECT_EQ(find_ignored_option(""), nullptr);
}

TEST(IgnoredOptions, TakeAnyValueAndChangeNothing) {
  for (const IgnoredOption& row : ignored_options()) {
    Options options;
    set_option(options, row.name, "anything", "test");
    EXPECT_EQ(code_options(options), code_options(Options()));
    ASSERT_EQ(options.requested.size(), 1u) << row.name;
    const std::vector<std::string> notes = options_without_effect(options);
    ASSERT_EQ(notes.size(), 1u) << row.name;
    EXPECT_EQ(notes[0].find("[" + std::string(row.name) + "] is accepted but has no effect"), 0u) << notes[0];
  }
}

TEST(IgnoredOptions, ShareALine) {
  Options options;
  apply_json(
      options,
      R"({"compile_mm_encoder": {"a": [null]}, "local_cache_dir": null, "pass_config": {"fuse_act_padding": 1}})",
      "f.json", "cc");
  const std::vector<std::string> notes = options_without_effect(options);
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_EQ(notes[0].find("[cc.compile_mm_encoder, cc.local_cache_dir, cc.pass_config.fuse_act_padding] are accepted"),
            0u)
      << notes[0];
}

TEST(IgnoredOptions, AreTakenFromTheCommandLineWithTheirValue) {
  Options options;
  const std::vector<std::string> apart{"-cc.fast_moe_cold_start", "true", "rest"},
      whole{"-cc.fast_moe_cold_start=true"};
  EXPECT_EQ(take_option(options, apart), 2u);
  EXPECT_EQ(take_option(options, whole), 1u);
  const std::vector<std::string> none{"-cc.fast_moe_cold_start"};
  EXPECT_THROW(take_option(options, none), std::exception);
}

TEST(IgnoredOptions, StandBesideEarlierNamesOfOptions) {
  Options options;
  apply_json(options, R"({"level": 0, "use_cudagraph": true, "full_cuda_graph": false, "use_inductor": true,
      "pass_config": {"enable_noop": false, "enable_attn_fusion": false, "enable_sequence_parallelism": true,
                      "enable_fusion": true, "enable_async_tp": false, "enable_fi_allreduce_fusion": false}})",
             "test", "cc");
  EXPECT_EQ(options.mode, "none");
  EXPECT_EQ(options.requested.at("cc.mode").alias, "cc.level");
  EXPECT_EQ(options.eliminate_noops, OptionalFlag(false));
  EXPECT_EQ(options.fuse_attn_quant, OptionalFlag(false));
  EXPECT_EQ(options.enable_sp, OptionalFlag(true));
  EXPECT_TRUE(options.requested.contains("cc.use_cudagraph"));
}

}  // namespace weft::ignored_options_test
