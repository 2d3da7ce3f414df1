#include "engine/artifact/artifact.h"

#include <cstdio>
#include <filesystem>
#include <set>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "codegen/compile_rows.h"
#include "tests/artifact_case.h"
#include "tests/test_context.h"

namespace weft::artifact_test {

class ArtifactTest : public ArtifactCase {};

TEST_F(ArtifactTest, AnotherDeviceOrBuildIsRefusedWithTheDifference) {
  const std::string artifact = compile("m.weft");
  ProgramRun run = run_weft({"complete", artifact, "-p", "abc", "-t", "2"});
  expect_refused(run, "was compiled for up to 1 threads, but here are 2");
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
  expect_refused(complete(with(artifact, "/graphs/0/name", "head")), "the plans of \"head\" are of no use");
  expect_refused(complete(with(artifact, "/graphs/0/name", "x")), "wanted the member \"plans/x.bin\"");
  const Words levels = cpu_features_to_try();
  if (levels.size() < 2) return;
  const Words avx{"--cpu-features", levels[0]};
  expect_refused(complete(artifact, avx), "\"" + levels.back() + "\", but this device has " + levels[0]);
}

TEST_F(ArtifactTest, FewerThreadsThanItWasCompiledForRunIt) {
  const std::string artifact = folder_ / "three.weft";
  ASSERT_EQ(run_weft({"compile", model_, "-o", artifact, "-t", "3"}).status, 0);
  const std::string wanted = text_of(complete(model_));
  for (const char* threads : {"1", "2", "3"})
    EXPECT_EQ(text_of(run_weft({"complete", artifact, "-p", "abc", "-n", "8", "--ignore-eos", "-t", threads})), wanted)
        << threads;
}

TEST_F(ArtifactTest, OtherWeightsAreRefused) {
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

TEST_F(ArtifactTest, WeightsInsideAreMapped) {
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
  expect_refused(complete(write_members(members)), "has the member \"weights/m.gguf\" packed");
  std::swap(members[0], members[1]);
  expect_refused(complete(write_members(members)),
                 "the 1 members of the model first, but member 0 is \"manifest.json\"");
}

TEST_F(ArtifactTest, AFolderInsideIsMappedToo) {
  const std::string folder = sample().write_folder(folder_, "hf", DType::bf16, 2);
  write_then_rename(folder + "/chat_template.jinja", std::string_view("{{ messages[0].content }}"));
  write_then_rename(folder + "/generation_config.json", std::string_view(R"({"repetition_penalty": 1.5})"));
  write_then_rename(folder + "/pytorch_model.bin", std::string_view("which nobody reads"));
  const auto compile_folder = [&](const std::string& name) {
    EXPECT_EQ(weft({"compile", folder, "-o", folder_ / name, "--with-weights"}).status, 0);
    return folder_ / name;
  };
  const std::string artifact = compile_folder("hf.weft"), bytes = read_file(artifact, 1 << 26);
  EXPECT_EQ(read_file(compile_folder("again.weft"), 1 << 26), bytes);
  const std::string wanted = text_of(complete(folder)), said = text_of(weft({"chat", folder, "-n", "3"}));
  const std::set<std::string> names{
      "config.json",    "model-0.safetensors",    "model-1.safetensors", "model.safetensors.index.json",
      "tokenizer.json", "generation_config.json", "chat_template.jinja"};
  std::map<std::string, std::size_t> places;
  const std::vector<FilePart> parts = ZipReader(artifact).places_of_first(names.size());
  const Members members = members_of(artifact);
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::string name = members[i].first.substr(std::string_view("weights/").size());
    EXPECT_TRUE(names.contains(name)) << name;
    EXPECT_EQ(members[i].second, read_file(folder + "/" + name, 1 << 26)) << name;
    EXPECT_EQ(parts[i].offset % 4096, 0u) << name;
    places[name] = parts[i].offset;
  }
  EXPECT_EQ(places.size(), names.size());
  std::filesystem::remove_all(folder);
  EXPECT_EQ(text_of(complete(artifact)), wanted);
  EXPECT_EQ(text_of(weft({"chat", artifact, "-n", "3"})), said);
  for (const auto& [name, place] : places) {
    std::string changed = bytes;
    changed[place + 20] ^= 1;
    write_then_rename(folder_ / "changed.weft", changed);
    expect_refused(complete(folder_ / "changed.weft"), name);
  }
}

TEST_F(ArtifactTest, AFolderInsideHasAllThatItsConfigAndTemplatesAreReadFrom) {
  const std::string plain = sample().write_folder(folder_, "plain", DType::f32), folder = folder_ / "hf";
  write_then_rename(folder_ / "text", std::string_view("The sea is deep, and the boats go out at 5."));
  ASSERT_EQ(weft({"quantize", plain, "--format", "fp8", "--calibrate", folder_ / "text", "-o", folder}).status, 0);
  auto config = nlohmann::json::parse(read_file(folder + "/config.json", 1 << 20));
  ASSERT_EQ(config.erase("quantization_config"), 1u);
  write_then_rename(folder + "/config.json", std::string_view(config.dump()));
  write_then_rename(folder + "/hf_quant_config.json",
                    std::string_view(R"({"quantization": {"quant_algo": "FP8", "exclude_modules": ["lm_head"]}})"));
  make_folders(folder + "/additional_chat_templates");
  write_then_rename(folder + "/chat_template.jinja", std::string_view("plain"));
  write_then_rename(folder + "/additional_chat_templates/tool_use.jinja", std::string_view("{{ tools[0] }}"));
  const std::string artifact = folder_ / "hf.weft";
  const ProgramRun run = weft({"compile", folder, "-o", artifact, "--with-weights"});
  ASSERT_EQ(run.status, 0) << run.err;
  const std::string wanted = text_of(complete(folder));
  std::filesystem::remove_all(folder);
  EXPECT_EQ(text_of(complete(artifact)), wanted);
  const auto checkpoint = Artifact::open(artifact).open_checkpoint("", Options(), {});
  EXPECT_EQ(checkpoint.chat_template("tool_use"), "{{ tools[0] }}");
  EXPECT_EQ(checkpoint.chat_template(), "plain");
}

TEST_F(ArtifactTest, WhatIsNoArtifactIsRefused) {
  const std::string artifact = compile("m.weft"), no_zip = folder_ / "no.weft";
  write_then_rename(no_zip, std::string_view("GGUF is what it is not"));
  expect_refused(complete(no_zip), "cannot be opened as an archive");
  expect_refused(weft({"compile", "--inspect", model_}), "cannot be opened as an archive");
  const Members members = members_of(artifact);
  for (std::size_t i = 0; i < members.size(); ++i) {
    Members fewer = members;
    fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
    expect_refused(complete(write_members(fewer)), i == 0 ? "is a zip file without manifest.json" : "members, but it");
    Members other = members;
    other[i].second += "x";
    expect_refused(complete(write_members(other)), i == 0 ? "wanted JSON" : "differs from the manifest's");
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

// A program that updates the hash cannot be distinguished from the compiler; code that cannot run is still refused.
TEST_F(ArtifactTest, PlansThatAreNoneAreRefused) {
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
    expect_refused(complete(write_members(members)), "the plans of \"head\" are of no use");
  }
}

// The graphs after the last pass of the stage.
TEST_F(ArtifactTest, HasTheGraphsOfEveryStageAndRange) {
  const Words ranges{"-cc.compile_ranges_split_points=[8]"};
  std::map<std::string, std::string> graphs;
  for (const auto& [name, text] : members_of(compile("m.weft", ranges)))
    if (name.starts_with("graphs/")) graphs[name] = text;
  EXPECT_EQ(graphs.size(), 12u);  // four stages of two ranges of the forward and one of the head
  const std::string dumps = folder_ / "dumps/";
  ASSERT_EQ(complete(model_, {ranges[0], "--debug-dump-path", dumps}).status, 0);
  for (const char* range : {"forward.1-8", "forward.9-128", "head.1-128"}) {
    int number = 0;
    for (const auto& [stage, pass] : {std::pair<std::string, std::string>("traced", "00-trace."),
                                      {"pure", dump_prefix("fuse_qk_norm_rope")},
                                      {"lowered", dump_prefix("clone_elimination")},
                                      {"split", dump_prefix("split")}}) {
      const std::string name = fmt::format("graphs/{:02}-{}.{}.graph", number++, stage, range);
      ASSERT_TRUE(graphs.contains(name)) << name;
      EXPECT_EQ(graphs[name], read_file(dumps + pass + range + ".graph", 1 << 20)) << name;
    }
  }
}

TEST_F(ArtifactTest, HasEachObjectOnceAsTheFileThatItIs) {
  if (!can_compile_rows()) GTEST_SKIP() << "libweft_llvm.so was not built";
  const std::string artifact = compile("m.weft");
  std::set<std::string> contents;
  std::size_t objects = 0;
  for (const auto& [name, text] : members_of(artifact)) {
    if (!name.starts_with("objects/")) {
      EXPECT_EQ(text.find("\x7f"
                          "ELF"),
                std::string::npos)
          << name;
      continue;
    }
    EXPECT_EQ(name, "objects/" + hash_bytes(text).hex() + ".o");
    EXPECT_TRUE(
        text.starts_with("\x7f"
                         "ELF"))
        << name;
    contents.insert(text);
    ++objects;
  }
  EXPECT_GT(objects, 2u);
  EXPECT_EQ(contents.size(), objects);
}

TEST_F(ArtifactTest, AnObjectThatIsMissingSwappedOrMoreIsRefused) {
  if (!can_compile_rows()) GTEST_SKIP() << "libweft_llvm.so was not built";
  const Members members = members_of(compile("m.weft"));
  EXPECT_EQ(text_of(complete(write_listed(members))), text_of(complete(model_)));
  std::vector<std::size_t> objects;
  for (std::size_t i = 0; i < members.size(); ++i)
    if (members[i].first.starts_with("objects/")) objects.push_back(i);
  for (const std::size_t at : objects) {
    Members fewer = members;
    fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(at));
    expect_refused(complete(write_members(fewer)), "members, but it has");
    const std::string hash = hash_bytes(members[at].second).hex();
    expect_refused(complete(write_listed(fewer)), "want the object " + hash + ", but there is none");
  }
  Members swapped = members;
  std::swap(swapped[objects[0]].second, swapped[objects[1]].second);
  expect_refused(complete(write_members(swapped)), "differs from the manifest's");
  expect_refused(complete(write_listed(swapped)), "holds what belongs to \"" + members[objects[1]].first);
  std::swap(swapped[objects[0]].first, swapped[objects[1]].first);  // only their order is another one
  EXPECT_EQ(text_of(complete(write_listed(swapped))), text_of(complete(model_)));
  Members more = members;
  const std::string object = members[objects[0]].second + "x";
  more.emplace_back("objects/" + hash_bytes(object).hex() + ".o", object);
  expect_refused(complete(write_members(more)), "members, but it has");
  expect_refused(complete(write_listed(more)), "no plans want the object " + hash_bytes(object).hex());
}

TEST_F(ArtifactTest, InspectShowsWhatIsInside) {
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

}  // namespace weft::artifact_test
