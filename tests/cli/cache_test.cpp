// weft cache as a user sees it.

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "apps/cli/tensor_file.h"
#include "apps/cli/verb.h"
#include "tests/cache/cache_case.h"
#include "tests/program_run.h"

namespace weft::cache_test {

class CacheVerb : public ::testing::Test {
 protected:
  ProgramRun weft(std::vector<std::string> words) const {
    words.insert(words.begin(), "cache");
    return run_weft(words, "", {{"WEFT_CACHE_ROOT", folder_.path()}});
  }
  nlohmann::json weft_json(std::vector<std::string> words, int status = 0) const {
    words.push_back("--json");
    const ProgramRun run = weft(words);
    EXPECT_EQ(run.status, status) << run.err;
    return nlohmann::json::parse(run.out);
  }
  void SetUp() override {
    for (const int number : {1, 2}) ASSERT_TRUE(cache_.store(numbered_key(number), numbered_payload(number)));
    ASSERT_TRUE(cache_.store(numbered_key(1, "plan"), numbered_payload(1)));
  }
  std::string path_of(const CacheKey& key) const {
    return entry_folder(cache_.root(), key.kind()) + "/" + entry_name(key.hash());
  }

  TemporaryFolder folder_;
  CompileCache cache_{{.root = folder_ / "compile"}};
};

TEST_F(CacheVerb, ListsEntriesWithTheirFactors) {
  const nlohmann::json report = weft_json({"list"});
  EXPECT_EQ(report["root"], cache_.root());
  ASSERT_EQ(report["entries"].size(), 3u);
  const nlohmann::json& first = report["entries"][0];
  EXPECT_EQ(first["kind"], "plan");
  EXPECT_EQ(first["hash"], numbered_key(1, "plan").hash().hex());
  EXPECT_EQ(first["factors"][1]["name"], "features");
  EXPECT_EQ(first["factors"][1]["value"], "avx2");
  EXPECT_TRUE(first["problem"].is_null());
  EXPECT_LT(first["age_seconds"].get<int>(), 600);
  EXPECT_EQ(report["bytes"], 3 * first["bytes"].get<int>());
  const ProgramRun text = weft({"list"});
  EXPECT_NE(text.out.find(numbered_key(2).hash().hex()), std::string::npos);
  EXPECT_NE(text.out.find("3 entries, "), std::string::npos);
}

TEST_F(CacheVerb, APlanOfAGraphAsTextIsFoundListedAndPruned) {
  const std::string graph = folder_ / "g.graph", in = folder_ / "in";
  put_text(graph, "graph g(%x: f32[s0, 8]) stage=traced {\n  %y = silu_and_mul(%x)\n  return %y\n}\n");
  Tensor x = Tensor::empty(Meta::tensor(DType::f32, {3, 8}));
  for (int i = 0; i < 24; ++i) x.as<float>()[i] = 0.25F * static_cast<float>(i) - 2;
  write_results(in, {{"x", x}});
  std::vector<std::string> logs, results;
  for (const char* name : {"first", "second"}) {
    const std::string out = folder_ / name;
    ::testing::internal::CaptureStderr();
    const ProgramRun run = run_weft({"graph", "run", graph, "--in", in, "--out", out}, "",
                                    {{"WEFT_CACHE_ROOT", folder_.path()}, {"WEFT_LOGS", "cache"}});
    logs.push_back(::testing::internal::GetCapturedStderr());
    ASSERT_EQ(run.status, 0) << run.err;
    results.push_back(file_text(out));
  }
  EXPECT_NE(logs[0].find("[cache] g: plans compiled"), std::string::npos) << logs[0];
  EXPECT_NE(logs[1].find("[cache] g: plans found"), std::string::npos) << logs[1];
  EXPECT_EQ(results[0], results[1]);
  std::vector<std::string> hashes;
  const nlohmann::json report = weft_json({"list"});
  for (const nlohmann::json& entry : report["entries"])
    if (entry["kind"] == "plans") hashes.push_back(entry["hash"]);
  ASSERT_EQ(hashes.size(), 1u);
  EXPECT_NE(logs[1].find(hashes[0]), std::string::npos) << logs[1];
  EXPECT_NE(weft({"explain", hashes[0]}).out.find("\"op silu_and_mul\""), std::string::npos);
  weft_json({"prune", "--all"});
  EXPECT_EQ(weft_json({"list"})["entries"].size(), 0u);
}

TEST_F(CacheVerb, ExplainsAnEntryByItsNearest) {
  const std::string hash = numbered_key(1).hash().hex();
  const nlohmann::json report = weft_json({"explain", hash.substr(0, 12)});
  ASSERT_EQ(report.size(), 1u);
  EXPECT_EQ(report[0]["key"], hash);
  EXPECT_EQ(report[0]["nearest"], numbered_key(2).hash().hex());
  EXPECT_EQ(report[0]["first_difference"]["factor"], "graph");
  EXPECT_EQ(report[0]["first_difference"]["wanted"], "1");
  EXPECT_EQ(report[0]["first_difference"]["found"], "2");
  const ProgramRun all = weft({"explain"});
  EXPECT_EQ(all.status, 0);
  EXPECT_NE(all.out.find("\"features\" = \"avx2\""), std::string::npos) << all.out;
  EXPECT_NE(all.out.find("first to differ is \"graph\": \"1\" here, \"2\" there"), std::string::npos) << all.out;
  EXPECT_NE(all.out.find("there is no other entry of its kind"), std::string::npos) << all.out;
  EXPECT_EQ(breach_of_refusal(weft({"explain", "xyz"}), "no entry of"), "");
}

TEST_F(CacheVerb, VerifyFailsWhenAnEntryIsBad) {
  EXPECT_EQ(weft({"verify"}).out, "3 entries, 0 bad\n");
  std::string damaged = file_text(path_of(numbered_key(2)));
  damaged.back() = static_cast<char>(damaged.back() ^ 1);
  put_text(path_of(numbered_key(2)), damaged);
  const nlohmann::json report = weft_json({"verify"}, 2);
  ASSERT_EQ(report["bad"].size(), 1u);
  EXPECT_EQ(report["bad"][0]["hash"], numbered_key(2).hash().hex());
  EXPECT_EQ(weft({"verify"}).status, 2);
  put_text(path_of(numbered_key(1)), "short");
  EXPECT_NE(weft({"list"}).out.find("it is cut short"), std::string::npos);
  EXPECT_NE(weft({"explain"}).out.find("it is cut short"), std::string::npos);
}

TEST_F(CacheVerb, AnEntryUnderAnothersNameIsNamedAndPruned) {
  const std::string misplaced = path_of(numbered_key(2)), own = numbered_key(1).hash().hex();
  put_text(misplaced, file_text(path_of(numbered_key(1))));
  const std::string problem = "[\"" + misplaced +
                              "\"] is not an entry of the compile cache: its content is that of rows " + own +
                              ", under another name";
  const ProgramRun verified = weft({"verify"});
  EXPECT_EQ(verified.status, 2);
  EXPECT_EQ(verified.out, problem + "\n3 entries, 1 bad\n");
  const nlohmann::json report = weft_json({"verify"}, 2);
  ASSERT_EQ(report["bad"].size(), 1u);
  EXPECT_EQ(report["bad"][0]["hash"], numbered_key(2).hash().hex());
  const ProgramRun pruned = weft({"prune"});
  EXPECT_EQ(pruned.status, 0);
  EXPECT_NE(pruned.out.find("removed: " + problem + "\nremoved 1 entries"), std::string::npos) << pruned.out;
  EXPECT_EQ(weft({"verify"}).out, "2 entries, 0 bad\n");
  put_text(misplaced, file_text(path_of(numbered_key(1))));
  EXPECT_EQ(weft_json({"prune"})["bad"], nlohmann::json::array({problem}));
}

TEST_F(CacheVerb, PruneLeavesNothingThatVerifyCallsBad) {
  for (const int number : {1, 2}) put_text(path_of(numbered_key(number)), "cut short");
  EXPECT_EQ(weft({"verify"}).status, 2);
  EXPECT_EQ(weft_json({"prune"})["entries"], 2);
  EXPECT_EQ(weft({"verify"}).out, "1 entries, 0 bad\n");
}

TEST_F(CacheVerb, PrunesToASizeOrAll) {
  EXPECT_EQ(weft_json({"prune"})["entries"], 0);
  EXPECT_EQ(weft_json({"prune", "--to", "2.5k"})["entries"], 1);
  const nlohmann::json all = weft_json({"prune", "--all"});
  EXPECT_EQ(all["entries"], 2);
  EXPECT_GT(all["bytes"].get<int>(), 2000);
  EXPECT_EQ(weft({"list"}).out, "0 entries, 0.0 kB in " + cache_.root() + "\n");
  EXPECT_EQ(breach_of_refusal(weft({"prune", "--to", "-1"}), "[--to]"), "");
  EXPECT_EQ(breach_of_refusal(weft({"prune", "--to", "1", "--all"}), "--to"), "");
}

// Root may remove files from any folder, but no one may unlink a folder.
TEST_F(CacheVerb, PruneFailsIfItCannotRemoveAnEntry) {
  const std::string folder = path_of(numbered_key(3));
  std::filesystem::create_directory(folder);
  EXPECT_EQ(weft({"verify"}).out, "[\"" + folder + "\"] is not used: it is not a file\n4 entries, 1 bad\n");
  const ProgramRun run = weft({"prune", "--to", "2.5k"});
  const std::string failure = "[\"" + folder + "\"] cannot be removed: Is a directory";
  EXPECT_EQ(run.status, 2);
  EXPECT_EQ(run.out.substr(0, run.out.rfind(',')), "left: " + failure + "\nremoved 1 entries and 0 temporary files");
  const nlohmann::json report = weft_json({"prune", "--all"}, 2);
  EXPECT_EQ(report["failures"], nlohmann::json::array({failure}));
  EXPECT_EQ(report["entries"], 2);
  std::filesystem::remove(folder);
  EXPECT_EQ(weft_json({"prune", "--all"})["failures"], nlohmann::json::array());
}

TEST_F(CacheVerb, ExportsAndImports) {
  const std::string archive = folder_ / "cache.zip";
  EXPECT_EQ(weft_json({"export", archive})["entries"], 3);
  EXPECT_EQ(weft({"prune", "--all"}).status, 0);
  EXPECT_EQ(weft({"import", archive}).out, "3 entries, 0 left out\n");
  EXPECT_EQ(finds(cache_, 2), true);
  put_text(path_of(numbered_key(1)), "short");
  EXPECT_EQ(weft_json({"export", archive}, 2)["left_out"].size(), 1u);
  put_text(archive, "garbage");
  EXPECT_EQ(breach_of_refusal(weft({"import", archive}), archive), "");
  EXPECT_EQ(breach_of_refusal(weft({"import", folder_ / "none"}), "No such file"), "");
  EXPECT_EQ(breach_of_refusal(weft({"export"}), "file is required"), "");
}

TEST_F(CacheVerb, AFolderThatOthersCanWriteIsRefused) {
  ASSERT_EQ(::chmod(cache_.root().c_str(), 0777), 0);
  for (const char* verb : {"list", "explain", "verify", "prune"})
    EXPECT_EQ(breach_of_refusal(weft({verb}), "others can write to it"), "") << verb;
}

TEST(CacheVerbHelp, EveryVerbSaysWhatItDoes) {
  for (const char* verb : {"list", "explain", "verify", "prune", "export", "import"}) {
    const ProgramRun run = run_weft({"cache", verb, "--help"});
    EXPECT_EQ(run.status, 0) << verb;
    EXPECT_NE(run.out.find("--json"), std::string::npos) << run.out;
  }
  EXPECT_EQ(breach_of_refusal(run_weft({"cache"}), "list, explain, verify, prune, export, import"), "");
  EXPECT_EQ(breach_of_refusal(run_weft({"cache", "lst"}), "did you mean \"list\"?"), "");
  EXPECT_EQ(run_weft({"cache", "list"}).status, 0);  // a folder that does not exist
}

}  // namespace weft::cache_test
