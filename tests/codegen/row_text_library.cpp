#include "tests/codegen/row_text_library.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "codegen/row_text.h"

namespace weft {

SharedLibrary compiled_row_text(const std::vector<RowProgram>& programs, int lanes) {
  // A library that is open under a path would be found there again.
  static int count = 0;
  const auto folder = std::filesystem::temp_directory_path() / fmt::format("weft_row_text_{}_{}", getpid(), ++count);
  std::filesystem::create_directories(folder);
  std::string text = row_text_prologue(lanes);
  for (const RowProgram& program : programs) text += row_text(program, lanes);
  const std::string source = folder / "rows.cpp", library = folder / "rows.so";
  FILE* file = std::fopen(source.c_str(), "w");
  std::fwrite(text.data(), 1, text.size(), file);
  std::fclose(file);
  const std::string command = fmt::format(
      "c++ -std=c++20 -O1 -march=x86-64-v2 -ffp-contract=off -fno-math-errno -Wno-psabi -shared -fPIC -I {}/src {} -o "
      "{}",
      WEFT_SOURCE_ROOT, source, library);
  EXPECT_EQ(std::system(command.c_str()), 0) << command;
  std::string problem;
  auto opened = SharedLibrary::open(library, problem);
  EXPECT_TRUE(opened.has_value()) << problem;
  std::filesystem::remove_all(folder);
  return *opened;
}

}  // namespace weft
