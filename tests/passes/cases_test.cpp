// Runs cases/<pass>/<case>.graph. A file begins with comments for the expected result, followed by graphs:
//
//   graph before, graph after     the pass rewrites the one to the other; a second run changes nothing
//   # error: TEXT                 the pass refuses `before` with a UserError that contains TEXT
//   # counts: NAME N, ...         the pass reports these counts; `after` may be missing then
//   # options: NAME=VALUE, ...    as on the command line, without dashes
//   # range: LO HI                the rows it is compiled for, by default 1 to 8
//
// `before` is also compiled by the whole pipeline and run.

#include <algorithm>
#include <cstdio>
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
#include "tests/compiled_graph.h"
#include "tests/small_layer.h"
#include "tests/thrown_message.h"

namespace weft::cases_test {

const std::string kFolder = std::string(WEFT_SOURCE_ROOT) + "/tests/passes/cases";

std::vector<std::string> case_names() {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(kFolder))
    if (entry.path().extension() == ".graph")
      names.insert(std::filesystem::relative(entry.path(), kFolder).replace_extension().string());
  return {names.begin(), names.end()};
}

// The value of `# KEY: ` in the text, "" if it has no such line.
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

// Whether the kernels that the text names overwrite arguments as it states, so that they can run it.
bool is_as_kernels_are(const Graph& graph, const Context& context) {
  return std::all_of(graph.nodes().begin(), graph.nodes().end(), [&](const auto& node) {
    if (node->provider.empty() || node->op->is_view) return true;
    const Kernel* kernel = context.kernels.find(node->name, node->provider == "native" ? "reference" : node->provider);
    return kernel == nullptr ? node->provider == "native" && !node->op->is_primitive() : kernel->writes == node->writes;
  });
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

  // The graphs of the file, its options and range applied.
  std::vector<std::shared_ptr<Graph>> read(const std::string& text) {
    const auto graphs = parse_graphs(text, context_->ops, GetParam());
    apply_options(context_->options, note(text, "options"));
    if (const std::string range = note(text, "range"); !range.empty())
      std::istringstream(range) >> passes_.range.lo >> passes_.range.hi;
    return graphs;
  }

  std::shared_ptr<Context> context_;
  PassContext passes_;
};

TEST_P(PassCase, ComesOutAsWritten) {
  const std::string text = read_file(kFolder + "/" + GetParam() + ".graph", 1 << 20);
  const auto graphs = read(text);
  ASSERT_GE(graphs.size(), 1u);
  Graph& graph = *graphs[0];
  ASSERT_EQ(graph.name, "before");
  const std::string error = note(text, "error");
  // The verifier may refuse the graph, too, but for no other reason.
  const std::string breach = find_breach(graph, context_->ops).value_or("");
  EXPECT_TRUE(breach.empty() || (!error.empty() && breach.find(error) != std::string::npos)) << breach;

  if (!error.empty()) {
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

TEST_P(PassCase, ComputesItsMeaningWhenItIsCompiled) {
  const std::string text = read_file(kFolder + "/" + GetParam() + ".graph", 1 << 20);
  const auto graph = read(text).at(0);
  const TokenRange range = passes_.range;
  const auto rows = static_cast<int>(std::clamp<std::int64_t>(3, range.lo, range.hi));
  const std::vector<Tensor> inputs = layer_inputs(*graph, rows).tensors;
  if (const std::string error = note(text, "error"); !error.empty()) {
    const std::string message = message_of([&] { run_compiled(*graph, *context_, range, inputs); });
    EXPECT_NE(message.find(error), std::string::npos) << message;
  } else if (is_as_kernels_are(*graph, *context_)) {
    EXPECT_EQ(compiled_difference(*graph, *context_, range, inputs), "") << display(*graph);
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

TEST(PassCases, AreCompiledForEveryPass) {
  const auto context = test_context();
  std::map<std::string, int> compiled;  // by pass
  int others = 0;
  for (const std::string& name : case_names()) {
    const auto graphs = parse_graphs(read_file(kFolder + "/" + name + ".graph", 1 << 20), context->ops, name);
    (is_as_kernels_are(*graphs.at(0), *context) ? compiled[name.substr(0, name.find('/'))] : others) += 1;
  }
  for (const PassRow& row : pipeline_passes()) EXPECT_GT(compiled[row.name], 0) << row.name;
  std::printf("count: %d cases name kernels that write elsewhere, and are not compiled\n", others);
}

}  // namespace weft::cases_test
