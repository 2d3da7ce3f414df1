// weft compile and its artifacts as a user sees them.

#include <algorithm>
#include <filesystem>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/wait.h>

#include "apps/cli/verb.h"
#include "base/files.h"
#include "codegen/compile_rows.h"
#include "tests/artifact_case.h"
#include "tests/test_context.h"

namespace weft::compile_test {

class CompileVerb : public ArtifactCase {};

TEST_F(CompileVerb, WhatItMakesRunsAsTheModelDoes) {
  const std::string artifact = compile("m.weft");
  EXPECT_EQ(text_of(complete(artifact)), text_of(complete(model_)));
  const auto logits_of = [&](const std::string& model) {
    return text_of(weft({"logits", model, "--ids", "[1,2,3]", "--positions", "all"}));
  };
  EXPECT_EQ(logits_of(artifact), logits_of(model_));
  EXPECT_EQ(breach_of_refusal(weft({"chat", artifact}), "[chat template] the model at " + model_), "");
  EXPECT_EQ(weft({"bench", "model", artifact, "-p", "4", "-n", "2", "-r", "1"}).status, 0);
  expect_refused(weft({"compile", artifact, "-o", folder_ / "n.weft"}), "is an artifact");
}

TEST_F(CompileVerb, ItsSummaryAndTheErrorNameTheVerbsThatTakeIt) {
  const std::string artifact = compile("m.weft");
  const std::string summary = text_of(weft({"compile", "--help"})), error = weft({"plan", artifact}).err;
  int count = 0;
  const auto check = [&](Words words, const std::string& name) {
    words.push_back("--help");
    if (run_weft(words).out.find("--checkpoint ") == std::string::npos) return;
    ++count;
    EXPECT_NE(summary.find(name), std::string::npos) << name;
    EXPECT_NE(error.find(name), std::string::npos) << name;
  };
  const VerbTable verbs = make_verb_table();
  for (const auto& [name, verb] : verbs.all()) check({name}, name);
  for (const char* name : {"latency", "model", "ops", "serve", "startup", "throughput"}) check({"bench", name}, name);
  EXPECT_EQ(count, 11);
}

TEST_F(CompileVerb, WhatItMakesIsExplainedAsTheModelIs) {
  const auto told_of = [&](const std::string& model) {
    return nlohmann::ordered_json::parse(text_of(weft({"explain", model, "--json"})));
  };
  const nlohmann::ordered_json artifact = told_of(compile("m.weft")), model = told_of(model_);
  for (const char* section : {"nodes", "clones", "pieces", "ranges"}) {
    ASSERT_TRUE(model.contains(section)) << section;
    EXPECT_EQ(artifact[section], model[section]) << section;
  }
}

TEST_F(CompileVerb, AFolderIsAModelToo) {
  const std::string folder = sample().write_folder(folder_, "hf", DType::bf16, 2);
  const std::string artifact = folder_ / "hf.weft";
  ASSERT_EQ(weft({"compile", folder + "/", "-o", artifact}).status, 0);
  EXPECT_EQ(text_of(complete(artifact)), text_of(complete(folder)));
  write_then_rename(folder + "/config.json", read_file(folder + "/config.json", 1 << 20) + " ");
  expect_refused(complete(artifact), "config.json");
}

// The program itself, at the path that the loader knows, without a cache.
TEST_F(CompileVerb, RunsWithoutLlvmAndWithoutPasses) {
  if (!can_compile_rows()) GTEST_SKIP() << "libweft_llvm.so was not built";
  const std::string err = folder_ / "err";
  const auto run = [&](const std::string& variables, const std::string& words) {
    const std::string command = "env WEFT_DISABLE_COMPILE_CACHE=1 " + variables + " " WEFT_PROGRAM " " + words + " >" +
                                folder_ / "out" + " 2>" + err;
    return WEXITSTATUS(std::system(command.c_str()));
  };
  const std::string artifact = folder_ / "m.weft";
  ASSERT_EQ(run("", "compile " + model_ + " -o " + artifact + " --require-codegen"), 0) << read_file(err, 1 << 20);
  for (const bool is_compiled : {false, true}) {
    const std::string model = is_compiled ? artifact : model_;
    ASSERT_EQ(run("LD_DEBUG=files", "complete " + model + " -p abc -n 2 --require-codegen"), 0);
    const std::string files = read_file(err, 1 << 24);
    EXPECT_NE(files.find("libc.so"), std::string::npos);
    EXPECT_EQ(files.find("libweft_llvm.so") == std::string::npos, is_compiled);
  }
}

TEST_F(CompileVerb, EqualModelsGiveEqualBytes) {
  const std::string once = read_file(compile("one.weft"), 1 << 26);
  EXPECT_EQ(read_file(compile("two.weft"), 1 << 26), once);
  const std::map<std::string, std::string> cached{{"WEFT_CACHE_ROOT", folder_ / "cache"}};
  for (int i = 0; i < 2; ++i) {  // stored, then found
    ASSERT_EQ(weft({"compile", model_, "-o", folder_ / "three.weft"}, cached).status, 0);
    EXPECT_EQ(read_file(folder_ / "three.weft", 1 << 26), once);
  }
}

TEST_F(CompileVerb, SaysWhatLiesInTheFile) {
  const std::string artifact = folder_ / "m.weft";
  const std::string said = text_of(weft({"compile", model_, "-o", artifact}));
  const Members members = members_of(artifact);
  const auto objects = std::count_if(members.begin(), members.end(),
                                     [](const auto& member) { return member.first.starts_with("objects/"); });
  EXPECT_EQ(said, fmt::format("\"{}\": 2 graphs, {} functions, {} members, {} bytes\n", artifact, objects,
                              members.size(), std::filesystem::file_size(artifact)));
}

TEST_F(CompileVerb, ItsOptionsAreTakenUnlessOthersAreGiven) {
  const std::string artifact = compile(
      "m.weft", {"--max-model-len", "16", "--max-num-batched-tokens", "8", "--ir-op-priority.rms_norm=reference",
                 "-cc.splitting_ops=[]", "--activation-precision", "exact"});
  const Words same{"--max-model-len", "16", "--activation-precision", "exact"};
  EXPECT_EQ(text_of(complete(artifact)), text_of(complete(model_, same)));
  EXPECT_EQ(text_of(complete(artifact, same)), text_of(complete(model_, same)));
  expect_refused(complete(artifact, {"--max-model-len", "17"}), "--max-model-len \"16\", but here it is \"17\"");
  expect_refused(complete(artifact, {"--activation-precision", "fast"}), "--activation-precision \"exact\"");
  expect_refused(complete(artifact, {"--ir-op-priority.rms_norm=cpu"}), "--ir-op-priority");
  expect_refused(complete(artifact, {"-O0"}), "--optimization-level \"2\", but here it is \"0\"");
  expect_refused(complete(artifact, {"--enforce-eager"}), "--enforce-eager \"false\", but here it is \"true\"");
  expect_refused(complete(artifact, {"--compile-to", "lowered"}), "is compiled already");
  expect_refused(complete(artifact, {"--skip-pass", "raise"}), "--skip-pass");
  EXPECT_EQ(complete(artifact, {"-cc.cudagraph_mode=NONE"}).status, 0);  // changes no code
}

TEST_F(CompileVerb, ForAGpuItSaysWhichAndRunsOnThatAlone) {
  const Words device{"--device", "fake-cuda"};
  const std::string artifact = compile("gpu.weft", device);
  const std::string shown = text_of(weft({"compile", "--inspect", artifact, "--json"}));
  EXPECT_EQ(nlohmann::json::parse(shown)["device"]["gpu"], "sm_90");
  EXPECT_EQ(text_of(complete(artifact)), text_of(complete(model_, device)));
  expect_refused(complete(artifact, {"--device", "cpu"}), "with --device \"fake-cuda\", but here it is \"cpu\"");
  expect_refused(complete(with(artifact, "/device/gpu", "sm_80")),
                 "was compiled for a GPU of \"sm_80\", but here is a GPU of \"sm_90\"");
}

// Targets also instruction sets that this host does not have or may not use; every host compiles the same.
TEST_F(CompileVerb, ForAnotherProcessorItIsWhatThatCompiles) {
  const CpuFeatures host = describe_cpu("", 1).host;
  for (int level = 0; level <= static_cast<int>(CpuFeatures::amx); ++level) {
    const auto features = static_cast<CpuFeatures>(level);
    const std::string name = cpu_features_text(features);
    const Words target{"--target", "cpu=" + name};
    const std::string artifact = compile(name + ".weft", target);
    const std::string shown = text_of(weft({"compile", "--inspect", artifact, "--json"}));
    EXPECT_EQ(nlohmann::json::parse(shown)["device"]["features"], name);
    ASSERT_EQ(weft({"compile", model_, "-o", folder_ / "lowest.weft", "--target", "cpu=" + name},
                   {{"WEFT_CPU_FEATURES", "baseline"}})
                  .status,
              0);
    EXPECT_TRUE(read_file(folder_ / "lowest.weft", 1 << 26) == read_file(artifact, 1 << 26)) << name;
    if (features > host) {
      expect_refused(complete(artifact), "\"" + name + "\", but this device has " + cpu_features_text(host));
      expect_refused(weft({"compile", model_, "-o", artifact, "--target", "cpu=" + name, "--tuning-budget", "1",
                           "-cc.compile_sizes=[4]"}),
                     "cannot be measured here");
    } else {
      const Words there{"--cpu-features", name};
      EXPECT_TRUE(read_file(compile("native.weft", there), 1 << 26) == read_file(artifact, 1 << 26)) << name;
      EXPECT_EQ(text_of(complete(artifact)), text_of(complete(model_, there)));
    }
    if (features > CpuFeatures::baseline) expect_refused(complete(artifact, {"--cpu-features", "baseline"}), name);
  }
}

TEST_F(CompileVerb, RefusesWhatItCannotKeepOrWrite) {
  const std::string out = folder_ / "m.weft";
  expect_refused(weft({"compile", model_}), "[-o] must be given");
  expect_refused(weft({"compile", "-o", out}), "[model] must be given");
  expect_refused(weft({"compile", model_, "-o", folder_ / "none/m.weft"}), "cannot be written");
  expect_refused(weft({"compile", model_, "-o", model_}), "is a file of the model");
  expect_refused(weft({"compile", model_, "-o", out, "--enforce-eager"}), "nothing is compiled");
  expect_refused(weft({"compile", model_, "-o", out, "--compile-to", "lowered"}), "nothing is compiled");
  expect_refused(weft({"compile", model_, "-o", out, "--skip-pass", "raise"}), "cannot be kept");
  expect_refused(weft({"compile", model_, "-o", out, "--target", "avx2"}), "[--target]");
  expect_refused(weft({"compile", model_, "-o", out, "--target", "cpu=sse9"}), "sse9");
  expect_refused(weft({"compile", model_, "-o", out, "--inspect", out}), "[--inspect]");
  EXPECT_FALSE(std::filesystem::exists(out));
}

TEST_F(CompileVerb, OverwritesNoFileOfAFolder) {
  const std::string folder = sample().write_folder(folder_, "hf", DType::bf16, 2);
  std::filesystem::create_symlink(folder + "/config.json", folder_ / "link");
  std::filesystem::rename(folder + "/tokenizer.json", folder_ / "blob");  // as in the cache of Hugging Face's hub
  std::filesystem::create_symlink(folder_ / "blob", folder + "/tokenizer.json");
  write_then_rename(folder + "/README.md", "of the model");
  Words paths{folder_ / "link", folder_ / "blob", folder + "/../hf/config.json"};
  for (const auto& entry : std::filesystem::directory_iterator(folder)) paths.push_back(entry.path());
  ASSERT_GE(paths.size(), 9u);  // two files of weights, their index, the config, the tokenizer, the README
  for (const std::string& path : paths) {
    const std::string before = read_file(path, 1 << 24);
    for (const Words& more : {Words{}, {"--load-format", "dummy"}}) {
      Words words{"compile", folder, "-o", path};
      words.insert(words.end(), more.begin(), more.end());
      expect_refused(weft(words), "is a file of the model");
      EXPECT_EQ(read_file(path, 1 << 24), before) << path;
    }
  }
  for (int i = 0; i < 2; ++i) EXPECT_EQ(weft({"compile", folder, "-o", folder + "/m.weft"}).status, 0);
}

TEST_F(CompileVerb, OverwritesNoPartOfASplitModel) {
  SampleCheckpoint most = sample();
  const std::string norm = "model.norm.weight", norm_in_part = most.gguf_name(norm);
  const auto width = static_cast<std::uint64_t>(most.config().hidden_size);
  const auto count = static_cast<std::int32_t>(most.weights().size());
  most.erase(norm);
  const auto part = [&](testing::GgufBytes file, std::uint16_t index) {
    return file.entry("split.no", testing::kU16, testing::raw(index))
        .entry("split.count", testing::kU16, testing::raw(std::uint16_t{2}))
        .entry("split.tensors.count", testing::kI32, testing::raw(count));
  };
  const std::string first = folder_ / "s-00001-of-00002.gguf", second = folder_ / "s-00002-of-00002.gguf";
  write_then_rename(first, part(most.gguf(DType::q4_1), 0).bytes());
  const std::string zeros(width * sizeof(float), '\0');
  write_then_rename(second, part({}, 1).tensor(norm_in_part, {width}, testing::kGgmlF32, zeros).bytes());
  for (const std::string& path : {first, second}) {
    const std::string before = read_file(path, 1 << 24);
    expect_refused(weft({"compile", first, "-o", path}), "is a file of the model");
    EXPECT_EQ(read_file(path, 1 << 24), before);
  }
  EXPECT_EQ(weft({"compile", first, "-o", folder_ / "s.weft"}).status, 0);
}

}  // namespace weft::compile_test
