// examples/capture.txt is what examples/capture.cpp prints; docs/capture.md shows parts of both.

#include <cstdio>
#include <sstream>

#include <gtest/gtest.h>

#include "base/files.h"

namespace weft::example_test {

// Leaves out messages about this build, such as that it generates no code.
std::string output_of(const std::string& command) {
  std::string output;
  FILE* pipe = popen(command.c_str(), "r");
  char line[4096];
  while (fgets(line, sizeof line, pipe) != nullptr)
    if (std::string_view(line).substr(0, 6) != "weft: ") output += line;
  EXPECT_EQ(pclose(pipe), 0) << output;
  return output;
}

// The texts between ```kind and ```.
std::vector<std::string> blocks_of(const std::string& page, const std::string& kind) {
  std::vector<std::string> blocks;
  const std::string open = "```" + kind + "\n";
  for (std::size_t at = page.find(open); at != std::string::npos; at = page.find(open, at)) {
    at += open.size();
    const std::size_t end = page.find("```\n", at);
    blocks.push_back(page.substr(at, end - at));
    at = end;
  }
  return blocks;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// The first line of `block` that `output` does not have from line `at` on, or "". A line `...` stands for any lines,
// and so does the begin of a block; every other line follows the one before it directly. Moves `at` past the block.
std::string first_missing(const std::vector<std::string>& block, const std::vector<std::string>& output,
                          std::size_t& at) {
  bool may_skip = true;
  for (const std::string& line : block) {
    if (line == "...") {
      may_skip = true;
      continue;
    }
    while (may_skip && at < output.size() && output[at] != line) ++at;
    if (at == output.size() || output[at] != line) return line;
    ++at;
    may_skip = false;
  }
  return "";
}

constexpr std::size_t kMostBytes = 1 << 20;
const std::string kRoot = WEFT_SOURCE_ROOT;

TEST(Example, PrintsWhatTheRecordedOutputHas) {
  EXPECT_EQ(read_file(kRoot + "/examples/capture.txt", kMostBytes), output_of(std::string(WEFT_EXAMPLE) + " 2>&1"));
}

TEST(Example, ThePageShowsPartsOfTheSourceAndOfTheOutput) {
  const std::string page = read_file(kRoot + "/docs/capture.md", kMostBytes);
  const std::string source = read_file(kRoot + "/examples/capture.cpp", kMostBytes);
  const std::vector<std::string> output = lines_of(read_file(kRoot + "/examples/capture.txt", kMostBytes));
  const std::vector<std::string> sources = blocks_of(page, "cpp"), outputs = blocks_of(page, "text");
  EXPECT_GE(sources.size(), 4u);
  for (const std::string& block : sources) EXPECT_NE(source.find(block), std::string::npos) << block;
  EXPECT_GE(outputs.size(), 5u);
  std::size_t at = 0;
  for (const std::string& block : outputs) EXPECT_EQ(first_missing(lines_of(block), output, at), "") << block;
}

TEST(Example, ALineThatIsLeftOutWithoutDotsIsMissed) {
  const std::vector<std::string> output = {"a", "b", "c", "d"};
  const auto missing = [&](const std::vector<std::string>& block) {
    std::size_t at = 0;
    return first_missing(block, output, at);
  };
  EXPECT_EQ(missing({"a", "...", "c", "d"}), "");
  EXPECT_EQ(missing({"b", "c", "..."}), "");
  EXPECT_EQ(missing({"a", "c"}), "c");
  EXPECT_EQ(missing({"c", "...", "b"}), "b");
}

}  // namespace weft::example_test
