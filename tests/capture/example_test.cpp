// docs/capture.md shows the source and the output of examples/capture.cpp in its blocks.

#include <cstdio>

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

TEST(Example, ThePageShowsItsSourceAndItsOutput) {
  constexpr std::size_t kMostBytes = 1 << 20;
  const std::string root = WEFT_SOURCE_ROOT;
  const std::string page = read_file(root + "/docs/capture.md", kMostBytes);
  const std::string source = read_file(root + "/examples/capture.cpp", kMostBytes);
  const std::string output = output_of(std::string(WEFT_EXAMPLE) + " 2>&1");
  const std::vector<std::string> sources = blocks_of(page, "cpp"), outputs = blocks_of(page, "text");
  EXPECT_GE(sources.size(), 4u);
  for (const std::string& block : sources) EXPECT_NE(source.find(block), std::string::npos) << block;
  std::string shown;
  for (const std::string& block : outputs) shown += "\n" + block;
  EXPECT_EQ(shown, output) << "the blocks of output, in order, are all that it prints";
}

}  // namespace weft::example_test
