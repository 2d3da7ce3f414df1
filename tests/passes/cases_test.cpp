// Runs cases/<pass>/<case>.graph. A file begins with comments that say what is wanted, then holds graphs:
//
//   graph before, graph after     the pass turns the one into the other; a second run changes nothing more
//   # error: TEXT                 the pass refuses `before` with a UserError that holds TEXT
//   # counts: NAME N, ...         the pass reports these counts; `after` may be left out then
//   # options: NAME=VALUE, ...    as on the command line, without dashes
//   # range: LO HI                the rows it is compiled for, 1 to 8 otherwise

#include <filesystem>
#include <set>
#include <sstream>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "compiler/pipeline.h"
#include "ir/parse.h"
#include "ir/print.h"
#include "ir/verify.h"
#include "tests/test_context.h"

namespace weft::cases_test {

const std::string kFolder = std::string(WEFT_SOURCE_ROOT) + "/tests/passes/cases";

std::vector<std::string> case_names() {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(kFolder))
    if (entry.path().extension() == ".graph")
      names.insert(std::filesystem::relative(entry.path(), kFolder).replace_extension().string());
  return {names.begin(), names.end()};
}

// What stands behind `# KEY: ` in the text, "" when it has no such line.
std::string note(const std::string& text, const std::string& key) {
  const std::string start = "# " + key + ": ";
  const std::size_t begin = text.find(start);
  if (begin == std::string::npos) return "";
  return text.substr(begin + start.size(), text.find('\n', begin) - begin - start.size());
}

void apply_options(Options& options, const std::string& words) {
  for (const std::string& word : split_text(words, ',')) {
    const std::size_t equals = word.find('=');
    if (!word.empty()) set_option(options, word.substr(0, equals), word.substr(equals + 1), "test");
  }
}

class PassCase : public testing::TestWithParam<std::string> {
 protected:
  PassCase() : context_(test_context()), passes_(pass_context(*context_, {1, 8})) {}

  const PassRow& row() const {
    const std::string pass = GetParam().substr(0, GetParam().find('/'));
    for (const PassRow& row : pipeline_passes())
      if (pass == row.name) return row;
    throw std::runtime_error("there is no pass named " + pass);
  }

  std::shared_ptr<Context> context_;
  PassContext passes_;
};

TEST_P(PassCase, ComesOutAsWritten) {
  const std::string text = read_file(kFolder + "/" + GetParam() + ".graph", 1 << 20);
  const auto graphs = parse_graphs(text, context_->ops, GetParam());
  ASSERT_GE(graphs.size(), 1u);
  Graph& graph = *graphs[0];
  ASSERT_EQ(graph.name, "before");
  verify_text(graph, context_->ops, GetParam());
  apply_options(context_->options, note(text, "options"));
  if (const std::string range = note(text, "range"); !range.empty())
    std::istringstream(range) >> passes_.range.lo >> passes_.range.hi;

  if (const std::string error = note(text, "error"); !error.empty()) {
    try {
      row().run(graph, passes_);
      FAIL() << "the pass took it:\n" << display(graph);
    } catch (const UserError& refused) {
      EXPECT_NE(std::string(refused.what()).find(error), std::string::npos) << refused.what();
    }
    return;
  }
  const PassResult result = row().run(graph, passes_);
  EXPECT_EQ(find_breach(graph, context_->ops).value_or(""), "") << display(graph);
  EXPECT_EQ(graph.stage, row().leaves);
  const std::string counts = note(text, "counts");
  if (!counts.empty()) {
    std::string came;
    for (const auto& [name, count] : result.counts) came += fmt::format("{} {}, ", name, count);
    EXPECT_EQ(came.substr(0, counts.size()), counts) << display(graph);
  }
  if (graphs.size() > 1 || counts.empty()) {
    ASSERT_EQ(graphs.size(), 2u);
    verify_text(*graphs[1], context_->ops, GetParam());
    EXPECT_EQ(canonical(graph), canonical(*graphs[1]));
  }
  if (row().needs == row().leaves) {
    const std::string once = canonical(graph);
    row().run(graph, passes_);
    EXPECT_EQ(canonical(graph), once) << "a second run changes more";
  }
}

INSTANTIATE_TEST_SUITE_P(Files, PassCase, testing::ValuesIn(case_names()), [](const auto& name) {
  std::string text = name.param;
  for (char& c : text)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return text;
});

TEST(PassCases, CoverEveryPass) {
  std::set<std::string> covered;
  for (const std::string& name : case_names()) covered.insert(name.substr(0, name.find('/')));
  for (const PassRow& row : pipeline_passes()) EXPECT_EQ(covered.count(row.name), 1u) << row.name;
}

}  // namespace weft::cases_test
