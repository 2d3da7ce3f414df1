#include "builtin/models.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "tests/base/temporary_folder.h"
#include "tests/thrown_message.h"

namespace weft::models_test {

TEST(ResolveModel, ReportsTheReasonOfTheSystem) {
  const TemporaryFolder folder;
  std::filesystem::create_symlink("loop", folder / "loop");
  const auto problem_of = [&](const std::string& name) {
    return message_of([&] { resolve_model(name, folder.path()); });
  };
  const std::string in_loop = folder / "loop/model";
  EXPECT_EQ(problem_of(in_loop).find("[\"" + in_loop + "\"]"), 0u) << problem_of(in_loop);
  EXPECT_NE(problem_of(in_loop).find("Too many levels of symbolic links"), std::string::npos);
  EXPECT_NE(problem_of("loop/model").find("Too many levels"), std::string::npos) << "in the folder of models";
  EXPECT_NE(problem_of(std::string(300, 'x')).find("File name too long"), std::string::npos);
  std::ofstream(folder / "file").close();
  for (const std::string& name : {folder / "file/model", folder / "none", std::string("none")})
    EXPECT_NE(problem_of(name).find("there is nothing at"), std::string::npos) << name;
}

// The path as it was given is a loop, but a model in the folder has the name.
TEST(ResolveModel, SearchesTheFolderOfModelsInAnyCase) {
  const TemporaryFolder folder;
  const std::string given = folder / "loop", in_folder = folder / "models" + given;
  std::filesystem::create_symlink("loop", given);
  std::filesystem::create_directories(in_folder);
  EXPECT_EQ(resolve_model(given, folder / "models"), folder / "models/" + given);
}

}  // namespace weft::models_test
