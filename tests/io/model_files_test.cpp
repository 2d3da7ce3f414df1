#include "io/model_files.h"

#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tests/base/temporary_folder.h"
#include "tests/thrown_message.h"

namespace weft::model_files_test {

std::string text_of(const ModelFile& file) {
  return {reinterpret_cast<const char*>(file.bytes.data()), file.bytes.size()};
}

class ModelFilesTest : public ::testing::Test {
 protected:
  ModelFilesTest() {
    write_then_rename(folder_ / "config.json", std::string_view("{}"));
    write_then_rename(folder_ / "weights", std::string_view("0123456789"));
    write_then_rename(folder_ / "whole", std::string_view("..{}....0123456789"));
  }
  ModelFiles parts() const { return {folder_ / "whole", {{"config.json", {2, 2}}, {"weights", {8, 10}}}}; }

  const TemporaryFolder folder_;
};

TEST_F(ModelFilesTest, AreTheSameInAFolderAndInPartsOfAFile) {
  for (const ModelFiles& files : {ModelFiles(folder_.path()), parts()}) {
    EXPECT_TRUE(files.has("config.json"));
    EXPECT_FALSE(files.has("tokenizer.json"));
    EXPECT_EQ(files.text("config.json"), "{}");
    EXPECT_EQ(files.text("tokenizer.json"), std::nullopt);
    EXPECT_EQ(files.map("weights").name, "weights");
    EXPECT_EQ(text_of(files.map("weights")), "0123456789");
    EXPECT_NE(message_of([&] { files.map("none"); }).find(files.path_of("none")), std::string::npos);
  }
  EXPECT_EQ(parts().path_of("weights"), folder_ / "whole/weights");
  EXPECT_EQ(ModelFiles("").path_of("m.gguf"), "m.gguf");
}

TEST_F(ModelFilesTest, NamesOfASubfolderAreTheSameInAFolderAndInPartsOfAFile) {
  using Names = std::vector<std::string>;
  std::filesystem::create_directory(folder_ / "more");
  for (const char* name : {"more/b", "more/a"}) write_then_rename(folder_ / name, std::string_view("x"));
  const ModelFiles parts(folder_ / "whole", {{"config.json", {2, 2}},
                                             {"more/a", {0, 1}},
                                             {"more/b", {1, 1}},
                                             {"more/../weights", {8, 10}},
                                             {"moreover/c", {0, 1}}});
  for (const ModelFiles& files : {ModelFiles(folder_.path()), parts}) {
    EXPECT_EQ(files.names_in("more"), (Names{"more/a", "more/b"}));
    EXPECT_EQ(files.names_in("none"), Names());
    EXPECT_EQ(files.names_in("config.json"), Names());
    EXPECT_TRUE(files.has("more/a"));
  }
}

TEST_F(ModelFilesTest, PartsShareOneMapThatOutlivesThem) {
  ModelFile config, weights;
  {
    const ModelFiles files = parts();
    config = files.map("config.json");
    weights = files.map("weights");
  }
  EXPECT_EQ(config.map, weights.map);
  EXPECT_EQ(text_of(weights), "0123456789");
}

TEST_F(ModelFilesTest, APipeIsRefusedAndNotWaitedFor) {
  ASSERT_EQ(::mkfifo((folder_ / "tokenizer.json").c_str(), 0600), 0);
  EXPECT_EQ(message_of([&] { ModelFiles(folder_.path()).text("tokenizer.json"); }),
            "[" + folder_ / "tokenizer.json" + "] wanted a regular file, but it is a device or pipe");
}

TEST_F(ModelFilesTest, APartThatTheFileHasNotIsRefused) {
  for (const FilePart part : {FilePart{9, 10}, FilePart{19, 0}, FilePart{1, SIZE_MAX}})
    EXPECT_NE(message_of([&] {
                ModelFiles(folder_ / "whole", {{"weights", part}});
              }).find("but it has 18"),
              std::string::npos);
  EXPECT_NE(message_of([&] { ModelFiles(folder_ / "none", {}); }), "");
}

}  // namespace weft::model_files_test
