#include "builtin/hub_cache.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "builtin/models.h"
#include "tests/base/temporary_folder.h"
#include "tests/thrown_message.h"

namespace weft::hub_cache_test {

class HubCacheTest : public ::testing::Test {
 protected:
  void write(const std::string& path, const std::string& text = "x") const {
    const std::string whole = folder_ / path;
    std::filesystem::create_directories(std::filesystem::path(whole).parent_path());
    std::ofstream(whole) << text;
  }
  // "" if nothing is found; else the path in the folder.
  std::string found(const std::string& name, const std::string& revision = "") const {
    const std::optional<std::string> path =
        HubCache{.folder = folder_ / "hub", .llama_folder = folder_ / "llama", .revision = revision}.find(name);
    return path ? path->substr(folder_.path().size() + 1) : "";
  }
  std::string problem(const std::string& name, const std::string& revision = "") const {
    return message_of([&] { found(name, revision); });
  }

  const TemporaryFolder folder_;
};

constexpr const char* kModel = "hub/models--Some--Model-1.5B/";

TEST_F(HubCacheTest, FindsTheSnapshotOfARevision) {
  EXPECT_EQ(found("Some/Model-1.5B"), "");
  write(std::string(kModel) + "snapshots/aa/config.json");
  EXPECT_EQ(found("Some/Model-1.5B"), std::string(kModel) + "snapshots/aa") << "the only one";
  write(std::string(kModel) + "snapshots/bb/config.json");
  EXPECT_NE(problem("Some/Model-1.5B").find("are aa, bb"), std::string::npos);
  write(std::string(kModel) + "refs/main", "bb\n");
  write(std::string(kModel) + "refs/v1", "aa");
  EXPECT_EQ(found("Some/Model-1.5B"), std::string(kModel) + "snapshots/bb");
  EXPECT_EQ(found("Some/Model-1.5B", "v1"), std::string(kModel) + "snapshots/aa");
  EXPECT_EQ(found("Some/Model-1.5B", "aa"), std::string(kModel) + "snapshots/aa");
  EXPECT_NE(problem("Some/Model-1.5B", "v2").find("\"v2\""), std::string::npos);
}

TEST_F(HubCacheTest, FindsAGgufFileByItsFormat) {
  const std::string snapshot = std::string(kModel) + "snapshots/aa/";
  write(snapshot + "model-Q4_K_M.gguf");
  write(snapshot + "model-Q4_K_S.gguf");
  write(snapshot + "mmproj-model-F16.gguf");
  write(snapshot + "Q8_0/model-Q8_0-00001-of-00002.gguf");
  write(snapshot + "Q8_0/model-Q8_0-00002-of-00002.gguf");
  EXPECT_EQ(found("Some/Model-1.5B"), snapshot + "model-Q4_K_M.gguf");
  EXPECT_EQ(found("Some/Model-1.5B:q4_k_s"), snapshot + "model-Q4_K_S.gguf");
  EXPECT_EQ(found("Some/Model-1.5B:Q8_0"), snapshot + "Q8_0/model-Q8_0-00001-of-00002.gguf");
  EXPECT_NE(problem("Some/Model-1.5B:Q4_K").find("one GGUF file of Q4_K"), std::string::npos);
  write(snapshot + "config.json");
  EXPECT_EQ(found("Some/Model-1.5B") + "/", snapshot) << "a folder with a config is a model";
  EXPECT_EQ(found("Some/Model-1.5B:Q4_K_M"), snapshot + "model-Q4_K_M.gguf");
}

TEST_F(HubCacheTest, FindsFilesOfEarlierVersionsOfLlamaCpp) {
  write("llama/some_model-GGUF_model-q8_0.gguf");
  write("llama/some_model-GGUF-2_model-q8_0.gguf");
  EXPECT_EQ(found("some/model-GGUF"), "llama/some_model-GGUF_model-q8_0.gguf");
  EXPECT_NE(problem("some/model-GGUF:Q4_0").find("of Q4_0"), std::string::npos);
}

TEST_F(HubCacheTest, ReadsNoOtherNames) {
  write("hub/models--..--x/snapshots/aa/config.json");
  for (const char* name : {"model", "a/b/c", "../x", "/a", "a/", "a/b:", "a/b:c/d", "a/.b", "", "a:b/c"}) {
    EXPECT_FALSE(is_hub_name(name)) << name;
    EXPECT_EQ(found(name), "") << name;
  }
}

TEST_F(HubCacheTest, IsWhereTheVariablesSay) {
  const auto folder_of = [](std::map<std::string, std::string> variables) {
    return HubCache::of_user([&](const std::string& name) -> std::optional<std::string> {
             const auto found = variables.find(name);
             return found == variables.end() ? std::nullopt : std::optional(found->second);
           })
        .folder;
  };
  EXPECT_EQ(folder_of({{"HF_HUB_CACHE", "/a"}, {"HF_HOME", "/b"}}), "/a");
  EXPECT_EQ(folder_of({{"HF_HOME", "/b"}, {"HOME", "/c"}}), "/b/hub");
  EXPECT_EQ(folder_of({{"XDG_CACHE_HOME", "/x"}, {"HOME", "/c"}}), "/x/huggingface/hub");
  EXPECT_EQ(folder_of({{"HOME", "/c"}}), "/c/.cache/huggingface/hub");
  EXPECT_EQ(folder_of({}), "");
}

TEST_F(HubCacheTest, AnswersForModelsThatAreNowhereElse) {
  const HubCache hub{.folder = folder_ / "hub", .llama_folder = ""};
  write(std::string(kModel) + "snapshots/aa/config.json");
  EXPECT_EQ(resolve_model("Some/Model-1.5B", folder_ / "models", hub), folder_ / kModel + "snapshots/aa");
  const std::string missing = message_of([&] { resolve_model("Some/Other:Q4_0", folder_ / "models", hub); });
  EXPECT_NE(missing.find("hf download Some/Other`"), std::string::npos) << missing;
  write("models/Some/Model-1.5B/config.json");
  EXPECT_EQ(resolve_model("Some/Model-1.5B", folder_ / "models", hub), folder_ / "models/Some/Model-1.5B");
}

}  // namespace weft::hub_cache_test
