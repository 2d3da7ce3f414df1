// weft compile, and the artifacts that it makes, as a user meets them.

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/wait.h>

#include "base/files.h"
#include "base/text.h"
#include "base/zip_archive.h"
#include "builtin/models.h"
#include "codegen/compile_rows.h"
#include "tests/program_run.h"
#include "tests/sample_checkpoint.h"
#include "tests/test_context.h"

namespace weft::compile_test {

using Words = std::vector<std::string>;
using Members = std::vector<std::pair<std::string, std::string>>;

SampleCheckpoint sample(std::uint64_t seed = 1) {
  return SampleCheckpoint(make_model_registry().find("llama", "test"), nlohmann::json::object(), seed);
}

class CompileVerb : public ::testing::Test {
 protected:
  // Everything here runs with one thread, as of a host of one core.
  static ProgramRun weft(Words words, const std::map<std::string, std::string>& environment = {}) {
    words.insert(words.end(), {"-t", "1"});
    return run_weft(words, "ab\n", environment);
  }
  std::string compile(const std::string& name, const Words& more = {}) const {
    Words words{"compile", model_, "-o", folder_ / name};
    words.insert(words.end(), more.begin(), more.end());
    const ProgramRun run = weft(words);
    EXPECT_EQ(run.status, 0) << run.err;
    return folder_ / name;
  }
  static ProgramRun complete(const std::string& model, const Words& more = {}) {
    Words words{"complete", model, "-p", "abc", "-n", "8", "--ignore-eos"};
    words.insert(words.end(), more.begin(), more.end());
    return weft(words);
  }
  static std::string text_of(const ProgramRun& run) {
    EXPECT_EQ(run.status, 0) << run.err;
    EXPECT_FALSE(run.out.empty());
    return run.out;
  }
  static void expect_refused(const ProgramRun& run, const std::string& part) {
    EXPECT_EQ(breach_of_refusal(run, part), "") << part;
  }

  static Members members_of(const std::string& path) {
    const ZipReader archive(path);
    const Words names = archive.names();
    Members members;
    for (std::size_t i = 0; i < names.size(); ++i) {
      const std::vector<std::byte> bytes = archive.read(i, 1 << 26);
      members.emplace_back(names[i], std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
    }
    return members;
  }
  std::string write_members(const Members& members) const {
    ZipWriter archive(folder_ / "changed.weft");
    for (const auto& [name, text] : members) archive.add(name, std::as_bytes(std::span(text)));
    archive.write();
    return folder_ / "changed.weft";
  }
  // The artifact with one value of its manifest set to another.
  std::string with(const std::string& path, const std::string& pointer, const nlohmann::json& value) const {
    Members members = members_of(path);
    auto manifest = nlohmann::ordered_json::parse(members[0].second);
    const nlohmann::ordered_json::json_pointer place(pointer);
    EXPECT_TRUE(manifest.contains(place)) << pointer;
    manifest[place] = value;
    members[0].second = manifest.dump();
    return write_members(members);
  }

  TemporaryFolder folder_;
  const std::string model_ = sample().write_gguf(folder_, "m.gguf", DType::q4_1);
};

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

// The program itself, as the loader tells it, without a cache.
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

TEST_F(CompileVerb, AnotherDeviceOrBuildIsRefusedWithTheDifference) {
  const std::string artifact = compile("m.weft");
  ProgramRun run = run_weft({"complete", artifact, "-p", "abc", "-t", "2"});
  expect_refused(run, "was compiled for 1 threads, but here are 2");
  expect_refused(complete(with(artifact, "/device/threads", 3)), "was compiled for 3 threads, but here are 1");
  expect_refused(complete(with(artifact, "/device/fp8", "f8e5m2")), "\"f8e5m2\"");
  expect_refused(complete(with(artifact, "/device/features", "sse9")), "sse9");
  expect_refused(complete(with(artifact, "/build", "0123")), "was compiled by build \"0123\"");
  expect_refused(complete(with(artifact, "/files/0/xxh3_128", "12")), "manifest.json");
  expect_refused(complete(with(artifact, "/files/0/bytes", -1)), "must be a count, but is \"-1\"");
  expect_refused(complete(with(artifact, "/device/gpu", "sm_90")),
                 "was compiled for a GPU of \"sm_90\", but here is no GPU");
  expect_refused(complete(with(artifact, "/format", 1)), "it is of format 1");
  expect_refused(complete(with(artifact, "/options/cc.mode", "other")), "\"other\"");
  expect_refused(complete(with(artifact, "/options", nlohmann::json::object())), "has 0 options, but there are");
  expect_refused(complete(with(artifact, "/graphs/0/made_from/ranges", "1-9 ")), "with ranges \"1-9 \"");
  expect_refused(complete(with(artifact, "/graphs/1/made_from/graph", "x")), "of the graph head with graph \"x\"");
  expect_refused(complete(with(artifact, "/graphs/0/name", "head")), "has no plans of the graph forward");
  const Words levels = cpu_features_to_try();
  if (levels.size() < 2) return;
  const Words avx{"--cpu-features", levels[0]};
  expect_refused(complete(artifact, avx), "\"" + levels.back() + "\", but this device has " + levels[0]);
}

// Of more instruction sets than this host has or may use, too; every host compiles the same.
TEST_F(CompileVerb, ForAnotherProcessorItIsWhatThatCompiles) {
  const CpuFeatures host = describe_cpu("", 1).host;
  for (int level = 0; level <= static_cast<int>(CpuFeatures::avx512_bf16); ++level) {
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

TEST_F(CompileVerb, OtherWeightsAreRefused) {
  const std::string artifact = compile("m.weft");
  const std::string good = read_file(model_, 1 << 26);
  std::string changed = good;
  changed.back() = static_cast<char>(changed.back() ^ 1);
  write_then_rename(model_, changed);
  expect_refused(complete(artifact), "\"m.gguf\" of hash");
  write_then_rename(model_, good + "x");
  expect_refused(complete(artifact), fmt::format("of {} bytes, but it has {}", good.size(), good.size() + 1));
  write_then_rename(folder_ / "moved", good);
  ASSERT_EQ(std::remove(model_.c_str()), 0);
  expect_refused(complete(artifact), "--checkpoint PATH");
  expect_refused(complete(artifact, {"--checkpoint", folder_ / "none"}), "there is nothing at");
  EXPECT_EQ(complete(artifact, {"--checkpoint", folder_ / "moved"}).status, 0);
  expect_refused(complete(folder_ / "moved", {"--checkpoint", model_}), "[--checkpoint] is for artifacts");
}

TEST_F(CompileVerb, WeightsInsideAreMapped) {
  const std::string artifact = compile("m.weft", {"--with-weights"});
  const std::string weights = read_file(model_, 1 << 26), bytes = read_file(artifact, 1 << 26);
  constexpr std::size_t kPage = 4096;
  EXPECT_EQ(bytes.substr(kPage, weights.size()), weights);
  EXPECT_EQ(read_file(compile("again.weft", {"--with-weights"}), 1 << 26), bytes);
  const std::string wanted = text_of(complete(model_));
  write_then_rename(folder_ / "moved", weights);
  ASSERT_EQ(std::remove(model_.c_str()), 0);
  EXPECT_EQ(text_of(complete(artifact)), wanted);
  EXPECT_EQ(text_of(complete(artifact, {"--checkpoint", folder_ / "moved"})), wanted);
  EXPECT_NE(text_of(weft({"compile", "--inspect", artifact})).find("weights/m.gguf"), std::string::npos);
  for (const std::size_t back : {1, 100}) {  // among the weights
    std::string changed = bytes;
    changed[kPage + weights.size() - back] ^= 1;
    write_then_rename(folder_ / "changed.weft", changed);
    expect_refused(complete(folder_ / "changed.weft"), "\"m.gguf\" of hash");
  }
  Members members = members_of(artifact);
  expect_refused(complete(write_members(members)), "has its first member packed");
  std::swap(members[0], members[1]);
  expect_refused(complete(write_members(members)), "wanted the member \"weights/m.gguf\" first");
  const std::string folder = sample().write_folder(folder_, "hf", DType::bf16);
  expect_refused(weft({"compile", folder, "-o", folder_ / "f.weft", "--with-weights"}), "[--with-weights]");
}

TEST_F(CompileVerb, WhatIsNoArtifactIsRefused) {
  const std::string artifact = compile("m.weft"), no_zip = folder_ / "no.weft";
  write_then_rename(no_zip, std::string_view("GGUF is what it is not"));
  expect_refused(complete(no_zip), "cannot be opened as an archive");
  expect_refused(weft({"compile", "--inspect", model_}), "cannot be opened as an archive");
  const Members members = members_of(artifact);
  for (std::size_t i = 0; i < members.size(); ++i) {
    Members fewer = members;
    fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
    expect_refused(complete(write_members(fewer)), i == 0 ? "wanted the member \"manifest.json\"" : "members, but it");
    Members other = members;
    other[i].second += "x";
    expect_refused(complete(write_members(other)), i == 0 ? "wanted JSON" : "is not what the manifest says");
  }
  Members more = members;
  more.emplace_back("more", "x");
  expect_refused(complete(write_members(more)), "members, but it has");
  for (const char* text : {"", "[]", "{}", "{\"format\": -1}", "{\"format\": 1}", "{\"format\": \"1\"}", "null"}) {
    more = members;
    more[0].second = text;
    expect_refused(complete(write_members(more)), "manifest.json");
  }
}

// Whoever writes the hash anew is not told from the compiler; what cannot be run is still refused.
TEST_F(CompileVerb, PlansThatAreNoneAreRefused) {
  const std::string artifact = compile("m.weft");
  Members members = members_of(artifact);
  auto manifest = nlohmann::ordered_json::parse(members[0].second);
  for (const char* plans : {"", "x", "\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"}) {
    for (auto& member : manifest["members"]) {
      if (member["name"] != "plans/head.bin") continue;
      member["bytes"] = std::string_view(plans).size();
      member["xxh3_128"] = hash_bytes(std::string_view(plans)).hex();
    }
    members[0].second = manifest.dump();
    for (auto& [name, text] : members)
      if (name == "plans/head.bin") text = plans;
    expect_refused(complete(write_members(members)), "the plans of head are of no use");
  }
}

TEST_F(CompileVerb, InspectShowsWhatIsInside) {
  const std::string artifact = compile("m.weft");
  const ProgramRun as_json = weft({"compile", "--inspect", artifact, "--json"});
  const auto manifest = nlohmann::json::parse(text_of(as_json));
  EXPECT_EQ(manifest["device"]["threads"], 1);
  EXPECT_EQ(manifest["architecture"], "llama");
  EXPECT_EQ(manifest["checkpoint"], "m.gguf");
  EXPECT_EQ(manifest["files"][0]["bytes"], read_file(model_, 1 << 26).size());
  EXPECT_EQ(manifest["files"][0]["xxh3_128"], hash_bytes(read_file(model_, 1 << 26)).hex());
  EXPECT_EQ(manifest["graphs"].size(), 2u);
  EXPECT_EQ(manifest["graphs"][0]["functions"].empty(), !can_compile_rows());
  const Members members = members_of(artifact);
  ASSERT_EQ(manifest["members"].size() + 1, members.size());
  const std::string text = text_of(weft({"compile", "--inspect", artifact}));
  for (std::size_t i = 1; i < members.size(); ++i) {
    EXPECT_EQ(manifest["members"][i - 1]["name"], members[i].first);
    EXPECT_NE(text.find(members[i].first), std::string::npos);
    EXPECT_EQ(members[i].second.find(folder_.path()), std::string::npos) << members[i].first;
  }
  EXPECT_EQ(members[0].second.find(folder_.path()), std::string::npos);
  for (const auto& function : manifest["graphs"][0]["functions"])
    EXPECT_NE(text.find(function.get<std::string>()), std::string::npos);
  EXPECT_EQ(members[1].first, "graphs/00-traced.forward.1-128.graph");
  EXPECT_NE(members[1].second.find("forward"), std::string::npos);
}

TEST_F(CompileVerb, RefusesWhatItCannotKeepOrWrite) {
  const std::string out = folder_ / "m.weft";
  expect_refused(weft({"compile", model_}), "[-o] must be given");
  expect_refused(weft({"compile", "-o", out}), "[model] must be given");
  expect_refused(weft({"compile", model_, "-o", folder_ / "none/m.weft"}), "cannot be written");
  expect_refused(weft({"compile", model_, "-o", model_}), "is the model itself");
  expect_refused(weft({"compile", model_, "-o", out, "--enforce-eager"}), "nothing is compiled");
  expect_refused(weft({"compile", model_, "-o", out, "--compile-to", "lowered"}), "nothing is compiled");
  expect_refused(weft({"compile", model_, "-o", out, "--skip-pass", "raise"}), "cannot be kept");
  expect_refused(weft({"compile", model_, "-o", out, "--target", "avx2"}), "[--target]");
  expect_refused(weft({"compile", model_, "-o", out, "--target", "cpu=sse9"}), "sse9");
  expect_refused(weft({"compile", model_, "-o", out, "--inspect", out}), "[--inspect]");
  EXPECT_FALSE(std::filesystem::exists(out));
}

}  // namespace weft::compile_test
