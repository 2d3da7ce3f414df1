// weft verify, --eager-piece and pieces as graphs, as a user sees them.

#include <filesystem>
#include <sstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "apps/cli/verify_report.h"
#include "base/files.h"
#include "builtin/models.h"
#include "tests/program_run.h"
#include "tests/sample_checkpoint.h"

namespace weft::verify_verb_test {

class VerifyVerb : public ::testing::Test {
 protected:
  TemporaryFolder folder_;
  std::string model_ =
      SampleCheckpoint(make_model_registry().find("llama", "test")).write_gguf(folder_, "m.gguf", DType::q4_1);
};

TEST_F(VerifyVerb, FindsEqualBits) {
  const ProgramRun run = run_weft({"verify", model_, "-p", "abc", "--steps", "3", "--json"});
  ASSERT_EQ(run.status, 0) << run.err;
  const nlohmann::json report = nlohmann::json::parse(run.out);
  EXPECT_EQ(report["equal_bits"], true);
  ASSERT_GE(report["pieces"].size(), 4u);
  for (const auto& piece : report["pieces"]) {
    EXPECT_GE(piece["calls"], 3) << piece.dump();
    EXPECT_EQ(piece["equal_bits"], true);
    EXPECT_EQ(piece["largest_ulps"], 0);
  }
  EXPECT_EQ(report["op_by_op"], "kernels of the host");
  EXPECT_NE(run_weft({"verify", model_, "--steps", "1"}).out.find("equal bits"), std::string::npos);
}

TEST_F(VerifyVerb, SaysWhoseKernelsRunOpByOp) {
  const ProgramRun run = run_weft({"verify", model_, "-p", "abc", "--steps", "2", "--device", "fake-cuda"});
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_NE(run.out.find("op by op: kernels of "), std::string::npos) << run.out;
  EXPECT_NE(run.out.find(", and of the host where it has none\n"), std::string::npos) << run.out;
}

TEST_F(VerifyVerb, RefusesWhatItCannotDo) {
  EXPECT_EQ(breach_of_refusal(run_weft({"verify", model_, "--steps", "0"}), "[--steps]"), "");
  EXPECT_EQ(breach_of_refusal(run_weft({"verify", model_, "--enforce-eager"}), "nothing compiled"), "");
  EXPECT_EQ(breach_of_refusal(run_weft({"verify", model_, "--eager-piece", "p9"}), "names no piece"), "");
  EXPECT_EQ(breach_of_refusal(run_weft({"verify", model_, "--keep", "/dev/null/x"}), "/dev/null"), "");
}

// Every stored piece runs separately, uncompiled and compiled, from the files of the folder and the model.
TEST_F(VerifyVerb, KeepsPiecesThatRun) {
  const std::string kept = folder_ / "kept";
  ASSERT_EQ(run_weft({"verify", model_, "-p", "abc", "--steps", "2", "--keep", kept}).status, 0);
  int graphs = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kept)) {
    if (entry.path().extension() != ".graph") continue;
    ++graphs;
    std::string results[2];
    for (const char* mode : {"--enforce-eager", "--no-enforce-eager"}) {
      const std::string out = folder_ / mode;
      const std::string in = std::filesystem::path(entry.path()).replace_extension(".safetensors");
      const ProgramRun run = run_weft({"graph", "run", entry.path(), "--in", in, "-m", model_, "--out", out, mode});
      ASSERT_EQ(run.status, 0) << entry.path() << run.err;
      results[mode[2] == 'n'] = read_file(out, 1 << 24);
    }
    EXPECT_EQ(results[0], results[1]) << entry.path();
  }
  EXPECT_GE(graphs, 4);
  const std::string help = run_weft({"verify", "--help"}).out;
  for (const char* word : {"--in FILE.safetensors", "--out FILE"})
    EXPECT_NE(help.find(word), std::string::npos) << help;
}

TEST_F(VerifyVerb, DumpsOnePieceAsAGraphThatIsLegal) {
  const ProgramRun run = run_weft({"dump", "graph", model_, "--piece", "forward.p2"});
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(run.out.rfind("graph p2(", 0), 0u) << run.out;
  const std::string file = folder_ / "p2.graph";
  write_then_rename(file, run.out);
  EXPECT_EQ(run_weft({"graph", "verify", file}).status, 0);
  EXPECT_EQ(breach_of_refusal(run_weft({"dump", "graph", model_, "--piece", "p9"}), "names no piece"), "");
}

TEST_F(VerifyVerb, ExplainSaysWhichPiecesRunOpByOp) {
  const ProgramRun run = run_weft({"explain", model_, "--json", "--eager-piece", "forward.p2"});
  ASSERT_EQ(run.status, 0) << run.err;
  int eager = 0;
  const nlohmann::json report = nlohmann::json::parse(run.out);
  for (const auto& piece : report["pieces"]["list"]) {
    EXPECT_EQ(piece["eager"], piece["id"] == "forward.p2");
    eager += piece["eager"].get<bool>() ? 1 : 0;
  }
  EXPECT_EQ(eager, 1);
  EXPECT_NE(run_weft({"explain", model_, "--eager-piece", "2"}).out.find("op by op by --eager-piece"),
            std::string::npos);
}

TEST(VerifyReport, NamesWhatIsWrongAndFails) {
  PieceVerdict right{.graph = "forward", .piece = "p0", .range = {1, 8}, .calls = 3};
  PieceVerdict wrong = right;
  wrong.piece = "p2";
  wrong.differing_calls = 2;
  wrong.largest = 0.25;
  wrong.largest_ulps = 7;
  wrong.value = "linear_3";
  wrong.layer = "11";
  wrong.run = 4;
  PieceVerdict spoiled = right;
  spoiled.piece = "p3";
  spoiled.spoiled_calls = 1;
  spoiled.value = "add_1";
  spoiled.run = 1;
  std::ostringstream table, json, complaints, none;
  const std::vector<PieceVerdict> all{right, wrong, spoiled};
  EXPECT_EQ(report_verdicts(all, "m", "kernels of x", false, table, complaints), 3);
  EXPECT_EQ(complaints.str(),
            "weft: [verify] forward.p2 differs from its graph, run op by op (kernels of x): 2 of 3 calls "
            "differ, most at %linear_3 of layer 11, step 4\nweft: [verify] forward.p3 finds another value than was "
            "made for it: %add_1, step 1\n");
  for (const char* line : {"%linear_3 of layer 11, step 4\n", "\nop by op: kernels of x\n"})
    EXPECT_NE(table.str().find(line), std::string::npos) << table.str();
  EXPECT_EQ(report_verdicts(all, "m", "kernels of x", true, json, none), 3);
  const nlohmann::json report = nlohmann::json::parse(json.str());
  EXPECT_EQ(report["equal_bits"], false);
  EXPECT_EQ(report["op_by_op"], "kernels of x");
  EXPECT_EQ(report["pieces"][1]["largest_difference"], 0.25);
  EXPECT_EQ(report["pieces"][1]["layer"], "11");
  EXPECT_EQ(report["pieces"][2]["spoiled_calls"], 1);
  std::ostringstream quiet;
  EXPECT_EQ(report_verdicts({&right, 1}, "m", "kernels of x", false, table, quiet), 0);
  EXPECT_EQ(quiet.str(), "");
}

}  // namespace weft::verify_verb_test
