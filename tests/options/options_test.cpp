#include "options/options.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/error.h"
#include "options/options_text.h"
#include "tests/thrown_message.h"

namespace weft::options_test {

using Row = OptionRow;

std::string set_error(std::string_view name, std::string_view text) {
  Options options;
  const std::string message = message_of([&] { set_option(options, name, text, "test"); });
  EXPECT_EQ(options, Options()) << name << " " << text;
  return message;
}

Options with(std::string_view name, std::string_view text) {
  Options options;
  set_option(options, name, text, "test");
  return options;
}

EnvironmentLookup environment_of(std::map<std::string, std::string> variables) {
  return [variables = std::move(variables)](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end()) return std::nullopt;
    return found->second;
  };
}

TEST(OptionTable, NamesAreUniqueAndSentencesAreSentences) {
  std::set<std::string> names;
  for (const std::string& name : option_names()) EXPECT_TRUE(names.insert(name).second) << name;
  for (const Row& row : option_table()) {
    EXPECT_TRUE(row.sentence.ends_with('.')) << row.name;
    EXPECT_EQ(find_option(row.name), &row);
  }
}

TEST(OptionTable, DefaultsReadBackFromTheirText) {
  for (const Row& row : option_table()) {
    Options options;
    set_option(options, row.name, value_text(options, row), "test");
    options.requested.clear();
    EXPECT_EQ(options, Options()) << row.name;
  }
}

TEST(OptionTable, DefaultsAreThoseOfTheDocumentation) {
  const Options options;
  EXPECT_EQ(options.block_size, 0) << "decided by the model";
  EXPECT_EQ(options.max_num_batched_tokens, 512);
  EXPECT_EQ(options.kv_cache_dtype, "auto");
  EXPECT_EQ(options.splitting_ops, Words{"attention"});
  EXPECT_EQ(options.optimization_level, 2);
  EXPECT_EQ(options.activation_precision, "fast");
  EXPECT_EQ(options.dtype, "auto");
}

TEST(FindOption, TakesTheSpellingsOfUsers) {
  for (const char* name : {"max-model-len", "--max-model-len", "max_model_len", "--max_model_len"}) {
    ASSERT_NE(find_option(name), nullptr) << name;
    EXPECT_EQ(find_option(name)->name, "max-model-len");
  }
  for (const char* name :
       {"cc.compile_ranges_split_points", "-cc.compile_ranges_endpoints",
        "--compilation-config.compile_ranges_endpoints", "compilation_config.compile-ranges-endpoints"}) {
    ASSERT_NE(find_option(name), nullptr) << name;
    EXPECT_EQ(find_option(name)->name, "cc.compile_ranges_split_points");
  }
  EXPECT_EQ(find_option("-t")->name, "threads");
  EXPECT_EQ(find_option("-tp")->name, "tensor-parallel-size");
  EXPECT_EQ(find_option("--ir-op-priority.rms_norm")->name, "ir-op-priority");
  for (const char* name : {"", "-", "max", "compilation-configx.mode", "cc.", "ir-op-priorityx", "---threads"}) {
    EXPECT_EQ(find_option(name), nullptr) << name;
  }
}

TEST(SetOption, SetsEveryKindOfValueAndRemembersWhereFrom) {
  EXPECT_EQ(with("max-model-len", "4k").max_model_len, 4000);
  EXPECT_EQ(with("max-model-len", "4K").max_model_len, 4096);
  for (const char* automatic : {"auto", "-1"}) EXPECT_EQ(with("max-model-len", automatic).max_model_len, 0);
  EXPECT_EQ(with("load-format", "safetensors").load_format, "auto");
  EXPECT_NE(set_error("max-num-seqs", "-1"), "") << "it has no automatic value";
  EXPECT_TRUE(with("enforce-eager", "").enforce_eager);
  EXPECT_TRUE(with("batch-invariant", "1").batch_invariant);
  EXPECT_FALSE(with("batch-invariant", "False").batch_invariant);
  EXPECT_EQ(with("dtype", "bfloat16").dtype, "bf16");
  EXPECT_EQ(with("kv-cache-dtype", "Half").kv_cache_dtype, "f16");
  EXPECT_EQ(with("cc.mode", "3").mode, "weft");
  EXPECT_EQ(with("cc.mode", "VLLM_COMPILE").mode, "weft");
  EXPECT_EQ(with("cc.mode", "DYNAMO_TRACE_ONCE").mode, "trace_once");
  EXPECT_EQ(with("cc.mode", "0").mode, "none");
  EXPECT_EQ(with("cc.cudagraph_mode", "full_and_piecewise").cudagraph_mode, "FULL_AND_PIECEWISE");
  EXPECT_EQ(with("cc.splitting_ops", "[]").splitting_ops, Words{});
  EXPECT_EQ(with("cc.splitting_ops", "").splitting_ops, Words{});
  EXPECT_EQ(with("cc.splitting_ops", "vllm::unified_attention_with_output, moe").splitting_ops,
            (Words{"vllm::unified_attention_with_output", "moe"}));
  EXPECT_EQ(with("cc.splitting_ops", "[\"a,b\", \"c\"]").splitting_ops, (Words{"a,b", "c"}));
  EXPECT_EQ(with("cc.cudagraph_capture_sizes", "1,2,1k").cudagraph_capture_sizes, (Counts{1, 2, 1000}));
  EXPECT_EQ(with("cc.compile_sizes", "[1, \"cudagraph_capture_sizes\"]").compile_sizes,
            (Words{"1", "cudagraph_capture_sizes"}));
  EXPECT_EQ(with("cc.pass_config.eliminate_noops", "false").eliminate_noops, OptionalFlag(false));
  EXPECT_EQ(with("cc.pass_config.eliminate_noops", "none").eliminate_noops, OptionalFlag());
  EXPECT_EQ(with("device", "cuda:1").device, "cuda:1");
  EXPECT_EQ(with("O", "3").optimization_level, 3);
  EXPECT_EQ(with("--ir-op-priority.rms_norm", "cpu,native").ir_op_priority,
            (Priorities{{"rms_norm", {"cpu", "native"}}}));
  EXPECT_EQ(with("ir-op-priority", "{\"add\": [\"native\"]}").ir_op_priority, (Priorities{{"add", {"native"}}}));
  EXPECT_EQ(with("max_model_len", "4k").requested,
            (std::map<std::string, RequestedOption>{{"max-model-len", {"4k", "test"}}}));
  EXPECT_EQ(with("ir-op-priority.add", "cpu").requested,
            (std::map<std::string, RequestedOption>{{"ir-op-priority.add", {"cpu", "test"}}}));
}

TEST(SetOption, LastOneWins) {
  Options options;
  set_option(options, "threads", "4", "WEFT_ARG_THREADS");
  set_option(options, "-t", "2", "command line");
  EXPECT_EQ(options.threads, 2);
  EXPECT_EQ(options.requested.at("threads"), (RequestedOption{"2", "command line", "t"}));
}

TEST(SetOption, ListsOfFilesAndPassesGrowWhenGivenAgainByTheSame) {
  Options options;
  set_option(options, "plugin", "env.so", "WEFT_PLUGINS");
  set_option(options, "plugin", "a.so", "command line");
  set_option(options, "plugin", "b.so,c.so", "command line");
  EXPECT_EQ(options.plugin, (Words{"a.so", "b.so", "c.so"}));
  EXPECT_EQ(options.requested.at("plugin").text, "a.so,b.so,c.so");
  set_option(options, "cc.splitting_ops", "x", "command line");
  set_option(options, "cc.splitting_ops", "y", "command line");
  EXPECT_EQ(options.splitting_ops, Words{"y"});
}

TEST(SetOption, RefusesUnknownNamesWithTheNearestKnownOne) {
  EXPECT_EQ(set_error("max-modle-len", "1"),
            "[option] wanted a known option, but is \"max-modle-len\", did you mean \"max-model-len\"? (test)");
  EXPECT_NE(set_error("--enforce-eagre", "").find("did you mean \"enforce-eager\"?"), std::string::npos);
  EXPECT_NE(set_error("-cc.fuse_norm_quant", "1").find("did you mean \"cc.pass_config.fuse_norm_quant\"?"),
            std::string::npos);
  EXPECT_NE(set_error("splitting_op", "x").find("did you mean \"cc.splitting_ops\"?"), std::string::npos);
  // Of names in a group, the group makes nothing near.
  for (const char* name : {"cc.slope", "cc.pass_config.slope", "cc.x"})
    EXPECT_EQ(set_error(name, "1").find("did you mean"), std::string::npos) << set_error(name, "1");
  EXPECT_EQ(set_error("completely-different", "1"),
            "[option] wanted a known option, but is \"completely-different\" (test)");
  EXPECT_NE(set_error(std::string("max\0len\x1b[31m", 12), "1").find("\"max\\u{0}len\\u{1b}[31m\""), std::string::npos);
}

TEST(SetOption, RefusesNumbersOutOfRange) {
  EXPECT_EQ(set_error("max-model-len", "-5"),
            "[max-model-len] wanted a whole number from 1 to 16777216, but is -5 (test)");
  EXPECT_EQ(set_error("threads", "0"), "[threads] wanted a whole number from 1 to 1024, but is 0 (test)");
  EXPECT_EQ(set_error("tensor-parallel-size", "2"), "[tensor-parallel-size] wanted 1, but is 2 (test)");
  EXPECT_NE(set_error("max-num-seqs", "99999999999999999999").find("to 2^63 - 1"), std::string::npos);
  EXPECT_NE(set_error("block-size", "16.5"), "");
  EXPECT_NE(set_error("block-size", ""), "");
  EXPECT_NE(set_error("cc.cudagraph_capture_sizes", "1,0"), "");
  EXPECT_NE(set_error("cc.compile_sizes", "1,-1"), "");
  EXPECT_NE(set_error("O", "4"), "");
}

TEST(SetOption, RefusesWordsThatAreNotAllowed) {
  EXPECT_EQ(set_error("dtype", "bf61"),
            "[dtype] wanted one of auto, f32, bf16, f16, but is \"bf61\", did you mean \"bf16\"? (test)");
  EXPECT_NE(set_error("enforce-eager", "maybe"), "");
  EXPECT_NE(set_error("device", "gpu"), "");
  EXPECT_NE(set_error("device", "cuda:"), "");
  EXPECT_NE(set_error("device", "cuda:99999"), "");
  EXPECT_NE(set_error("cc.splitting_ops", "a,,b"), "");
  EXPECT_NE(set_error("cc.splitting_ops", "[1.5]"), "");
  EXPECT_NE(set_error("cc.splitting_ops", "[\"a\""), "");
  EXPECT_NE(set_error("ir-op-priority.add", ""), "");
  EXPECT_NE(set_error("ir-op-priority.add", "cpu,cpu"), "");
  EXPECT_NE(set_error("ir-op-priority.ADD", "cpu"), "");
  EXPECT_NE(set_error("ir-op-priority", "cpu"), "");
  EXPECT_NE(set_error("logs", "\xff"), "");
  EXPECT_NE(set_error("debug-dump-path", std::string("a\0b", 3)), "");
}

// An empty value is printed as empty, under the name of its option.
TEST(SetOption, SaysOfAnEmptyValueThatItIsEmpty) {
  int refused = 0;
  for (const OptionRow& row : option_table()) {
    Options options;
    const std::string message = message_of([&] { set_option(options, row.name, "", "test"); });
    if (message.empty()) continue;
    EXPECT_NE(message.find("[" + std::string(row.name) + "]"), std::string::npos) << message;
    EXPECT_NE(message.find("empty"), std::string::npos) << row.name << ": " << message;
    EXPECT_EQ(message.find("[]"), std::string::npos) << message;
    ++refused;
  }
  EXPECT_GT(refused, 15);
}

TEST(ApplyJson, ReadsThePastedConfiguration) {
  Options options;
  set_option(options, "--compilation-config",
             R"({"mode": 3, "splitting_ops": [], "compile_ranges_endpoints": [64], "cudagraph_mode": "NONE",
                 "cudagraph_capture_sizes": [1, 2], "pass_config": {"fuse_norm_quant": true, "enable_sp": null}})",
             "command line");
  EXPECT_EQ(options.mode, "weft");
  EXPECT_EQ(options.splitting_ops, Words{});
  EXPECT_EQ(options.compile_ranges_split_points, Counts{64});
  EXPECT_EQ(options.cudagraph_mode, "NONE");
  EXPECT_EQ(options.cudagraph_capture_sizes, (Counts{1, 2}));
  EXPECT_EQ(options.fuse_norm_quant, OptionalFlag(true));
  EXPECT_EQ(options.enable_sp, OptionalFlag());
  EXPECT_EQ(options.requested.at("cc.mode"), (RequestedOption{"3", "command line"}));
}

TEST(ApplyJson, ReadsAllOptionsAtTheTop) {
  Options options;
  apply_json(options,
             R"({"max_model_len": "4k", "threads": 2, "enforce-eager": true, "cc.mode": "none", "dtype": null,
                 "compilation_config": {"pass_config.eliminate_noops": false},
                 "ir_op_priority": {"rms_norm": ["cpu"], "add": "cpu,native"}, "ir-op-priority.mul": ["cpu"]})",
             "options.json");
  EXPECT_EQ(options.max_model_len, 4000);
  EXPECT_EQ(options.threads, 2);
  EXPECT_TRUE(options.enforce_eager);
  EXPECT_EQ(options.mode, "none");
  EXPECT_EQ(options.eliminate_noops, OptionalFlag(false));
  EXPECT_EQ(options.ir_op_priority, (Priorities{{"add", {"cpu", "native"}}, {"mul", {"cpu"}}, {"rms_norm", {"cpu"}}}));
}

TEST(ApplyJson, NullIsTheDefault) {
  Options options = with("threads", "3");
  apply_json(options, R"({"threads": null})", "test");
  EXPECT_EQ(options.threads, 0);
}

TEST(ApplyJson, RefusesWhatItDoesNotKnowAndThenSetsNothing) {
  const auto error = [](std::string_view json, std::string_view group = "") {
    Options options;
    const std::string message = message_of([&] { apply_json(options, json, "f.json", group); });
    EXPECT_EQ(options, Options()) << json;
    EXPECT_TRUE(message.ends_with(" (f.json)")) << message;
    return message;
  };
  EXPECT_EQ(error(R"({"threads": 2, "max-modle-len": 1})"),
            "[option] wanted a known option, but is \"max-modle-len\", did you mean \"max-model-len\"? (f.json)");
  EXPECT_NE(error(R"({"fuse_norm_qant": true})", "cc").find("did you mean \"cc.pass_config.fuse_norm_quant\"?"),
            std::string::npos);
  EXPECT_EQ(error(R"({"dtype": "f32", "dtype": "f16"})"), "[options] has the key \"dtype\" twice (f.json)");
  EXPECT_NE(error(R"({"threads": true})").find("[threads] wanted a value, but is true"), std::string::npos);
  EXPECT_NE(error(R"({"threads": 2.5})"), "");
  EXPECT_NE(error(R"({"threads": 1e999})"), "");
  EXPECT_NE(error(R"({"threads": 99999999999999999999})"), "");
  EXPECT_NE(error(R"({"threads": [1]})"), "");
  EXPECT_NE(error(R"({"threads": {}})"), "");
  EXPECT_NE(error(R"({"logs": 3})"), "");
  EXPECT_NE(error(R"({"enforce-eager": 2})"), "");
  EXPECT_NE(error(R"({"cc": 3})"), "");
  EXPECT_NE(error(R"({"cc.splitting_ops": [null]})"), "");
  EXPECT_NE(error(R"({"ir-op-priority": {"add": {}}})"), "");
  EXPECT_NE(error("[]"), "");
  EXPECT_NE(error(""), "");
  EXPECT_NE(error("{"), "");
  EXPECT_NE(error("{} {}"), "");
  EXPECT_NE(error("{\"a\xff\": 1}"), "");
  EXPECT_NE(error(std::string(100000, '[')).find("nested at most 16 deep"), std::string::npos);
  EXPECT_NE(error(std::string(2 << 20, ' ')).find("must have at most 1048576 bytes"), std::string::npos);
}

TEST(ApplyEnvironment, ReadsNamedVariablesAndMirrors) {
  Options options;
  apply_environment(options, environment_of({{"WEFT_ARG_MAX_MODEL_LEN", "1k"},
                                             {"WEFT_ARG_CC_MODE", "none"},
                                             {"WEFT_ARG_NO_ENABLE_PREFIX_CACHING", "1"},
                                             {"WEFT_ARG_CC", R"({"splitting_ops": []})"},
                                             {"WEFT_ARG_CC_PASS_CONFIG_ELIMINATE_NOOPS", "0"},
                                             {"WEFT_ARG_IR_OP_PRIORITY", R"({"add": ["native"]})"},
                                             {"WEFT_BATCH_INVARIANT", "1"},
                                             {"WEFT_DEBUG_DUMP_PATH", "/dump"},
                                             {"WEFT_LOGS", "+passes"},
                                             {"WEFT_CPU_FEATURES", "avx2"},
                                             {"WEFT_CACHE_ROOT", "/cache"},
                                             {"WEFT_DISABLE_COMPILE_CACHE", "1"},
                                             {"WEFT_PLUGINS", "a.so,b.so"},
                                             {"WEFT_ARG_DTYPE", ""}}));
  EXPECT_EQ(options.max_model_len, 1000);
  EXPECT_EQ(options.mode, "none");
  EXPECT_FALSE(options.enable_prefix_caching);
  EXPECT_EQ(options.splitting_ops, Words{});
  EXPECT_EQ(options.eliminate_noops, OptionalFlag(false));
  EXPECT_EQ(options.ir_op_priority, (Priorities{{"add", {"native"}}}));
  EXPECT_TRUE(options.batch_invariant);
  EXPECT_EQ(options.debug_dump_path, "/dump");
  EXPECT_EQ(options.logs, "+passes");
  EXPECT_EQ(options.cpu_features, "avx2");
  EXPECT_EQ(options.cache_root, "/cache");
  EXPECT_TRUE(options.disable_compile_cache);
  EXPECT_EQ(options.plugin, (Words{"a.so", "b.so"}));
  EXPECT_EQ(options.dtype, "auto");
  EXPECT_EQ(options.requested.at("max-model-len").source, "WEFT_ARG_MAX_MODEL_LEN");
  EXPECT_FALSE(options.requested.contains("dtype"));
}

TEST(ApplyEnvironment, EveryOptionHasAMirrorOfItsOwn) {
  std::set<std::string> asked;
  std::size_t count = 0;
  Options options;
  apply_environment(options, [&](const std::string& name) -> std::optional<std::string> {
    asked.insert(name);
    ++count;
    return std::nullopt;
  });
  EXPECT_EQ(asked.size(), count);
  EXPECT_TRUE(asked.contains("WEFT_ARG_CC_PASS_CONFIG_FUSE_NORM_QUANT"));
  EXPECT_TRUE(asked.contains("WEFT_ARG_KV_CACHE_DTYPE"));
  EXPECT_TRUE(asked.contains("WEFT_ARG_CHECK_RETRACE"));
  EXPECT_EQ(options, Options());
}

TEST(ApplyEnvironment, NamesTheVariableInErrors) {
  Options options;
  const std::string message = message_of([&] {
    apply_environment(options, environment_of({{"WEFT_CPU_FEATURES", "sse9"}}));
  });
  EXPECT_TRUE(message.ends_with("(WEFT_CPU_FEATURES)")) << message;
}

TEST(CheckEnvironmentNames, RefusesMirrorsOfNothing) {
  const std::vector<std::string> good{"WEFT_ARG_THREADS", "WEFT_ARG_CC", "WEFT_ARG_CC_DYNAMIC_SHAPES_CONFIG",
                                      "WEFT_LOGS", "PATH"};
  check_environment_names(good, {});
  const std::vector<std::string> bad{"WEFT_ARG_THRAEDS"};
  EXPECT_EQ(message_of([&] { check_environment_names(bad, {}); }),
            "[environment] wanted the mirror of an option, but is \"WEFT_ARG_THRAEDS\", did you mean "
            "\"WEFT_ARG_THREADS\"?");
}

TEST(TakeOption, TakesWhatCommandLinesHold) {
  Options options;
  const auto take = [&](std::vector<std::string> words) { return take_option(options, words); };
  EXPECT_EQ(take({"--max-model-len", "4K", "rest"}), 2u);
  EXPECT_EQ(take({"--max-num-seqs=7"}), 1u);
  EXPECT_EQ(take({"-O1", "x"}), 1u);
  EXPECT_EQ(take({"-t", "3"}), 2u);
  EXPECT_EQ(take({"-tp", "1"}), 2u);
  EXPECT_EQ(take({"--enforce-eager", "prompt"}), 1u);
  EXPECT_EQ(take({"--batch-invariant=false"}), 1u);
  EXPECT_EQ(take({"-cc.splitting_ops=[]"}), 1u);
  EXPECT_EQ(take({"-cc", R"({"mode": "none"})"}), 2u);
  EXPECT_EQ(take({R"(--compilation-config={"compile_sizes": [4]})"}), 1u);
  EXPECT_EQ(take({"--ir-op-priority.add=cpu,native"}), 1u);
  EXPECT_EQ(take({"--no-cc.pass_config.eliminate_noops"}), 1u);
  EXPECT_EQ(options.max_model_len, 4096);
  EXPECT_EQ(options.max_num_seqs, 7);
  EXPECT_EQ(options.optimization_level, 1);
  EXPECT_EQ(options.threads, 3);
  EXPECT_TRUE(options.enforce_eager);
  EXPECT_FALSE(options.batch_invariant);
  EXPECT_EQ(options.splitting_ops, Words{});
  EXPECT_EQ(options.mode, "none");
  EXPECT_EQ(options.compile_sizes, Words{"4"});
  EXPECT_EQ(options.ir_op_priority, (Priorities{{"add", {"cpu", "native"}}}));
  EXPECT_EQ(options.eliminate_noops, OptionalFlag(false));
  EXPECT_EQ(take({"--no-enforce-eager"}), 1u);
  EXPECT_FALSE(options.enforce_eager);
}

TEST(TakeOption, LeavesTheFlagsOfVerbsAlone) {
  Options options;
  for (const char* word : {"", "-", "--", "prompt", "-p", "--prompt", "-threads", "--t", "--no-repack", "-dtype",
                           "--no-threads", "--temp=0"}) {
    EXPECT_EQ(take_option(options, std::vector<std::string>{word, "1"}), 0u) << word;
  }
  EXPECT_EQ(take_option(options, {}), 0u);
  EXPECT_EQ(options, Options());
}

TEST(TakeOption, RefusesBadOnes) {
  Options options;
  const auto error = [&](std::vector<std::string> words) { return message_of([&] { take_option(options, words); }); };
  EXPECT_EQ(error({"--threads"}), "[threads] wanted a value, but the command line ends");
  for (const char* name : {"--models-root", "--patterns", "--skip-pass", "--cc.splitting_ops", "--check-replay"}) {
    const std::string wanted = fmt::format("[{}] wanted a value, but is \"\" (empty) (command line)", name + 2);
    EXPECT_EQ(error({name + std::string("=")}), wanted);
  }
  EXPECT_NE(error({"--models-root", ""}).find("(empty)"), std::string::npos);
  EXPECT_EQ(error({"--threads", "-5"}), "[threads] wanted a whole number from 1 to 1024, but is -5 (command line)");
  EXPECT_NE(error({"-cc.mod=3"}).find("did you mean \"cc.mode\"?"), std::string::npos);
  EXPECT_NE(error({"-O9"}), "");
  EXPECT_NE(error({"-cc", "{"}), "");
}

}  // namespace weft::options_test
