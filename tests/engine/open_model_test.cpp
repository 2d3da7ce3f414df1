// What opening a model reports, and when.

#include "engine/open_model.h"

#include <gtest/gtest.h>

#include "tests/engine/tiny_model.h"
#include "tests/thrown_message.h"

namespace weft::open_model_test {

class OpenModel : public ::testing::Test {
 protected:
  ModelRequest request(const std::string& name) const {
    ModelRequest request{.name = name};
    set_option(request.options, "disable-compile-cache", "true", "test");
    set_option(request.options, "max-num-batched-tokens", "8", "test");
    set_option(request.options, "max-num-seqs", "16", "test");
    return request;
  }
  NoteFunction note() {
    return [this](const std::string& sentence) { notes_ += sentence + "\n"; };
  }

  const TemporaryFolder folder_;
  std::string notes_;
};

TEST_F(OpenModel, HasTheDifferencesAndTheLaps) {
  Stopwatch watch;
  const OpenedModel opened = open_model(request(write_tiny_model(folder_)), note(), &watch);
  ASSERT_EQ(opened.differences.size(), 1U);
  EXPECT_EQ(opened.differences[0].option, "max-num-seqs");
  EXPECT_EQ(opened.context->options.max_num_seqs, 8);
  EXPECT_NE(notes_.find("max-num-seqs is 8 instead of 16"), std::string::npos) << notes_;
  std::vector<std::string> laps;
  for (const auto& [name, milliseconds] : watch.laps()) laps.push_back(name);
  EXPECT_EQ(laps, (std::vector<std::string>{"options", "context", "checkpoint"}));
}

TEST_F(OpenModel, NotesOptionsBeforeTheErrorOfTheModel) {
  const std::string missing = folder_ / "missing.gguf";
  const std::string message = message_of([&] { open_model(request(missing), note()); });
  EXPECT_NE(message.find("[model]"), std::string::npos) << message;
  EXPECT_NE(notes_.find("max-num-seqs"), std::string::npos) << notes_;
}

TEST_F(OpenModel, TakesACheckpointForAnArtifactAlone) {
  ModelRequest wrong = request(write_tiny_model(folder_));
  wrong.checkpoint = wrong.name;
  EXPECT_NE(message_of([&] { open_model(wrong, note()); }).find("[--checkpoint]"), std::string::npos);
}

TEST_F(OpenModel, GivesTheEngineOfItsModel) {
  const std::string path = write_tiny_model(folder_);
  const auto engine = open_engine(request(path), note());
  EXPECT_EQ(all_logits(*engine, some_ids(5)), all_logits(*tiny_engine(path), some_ids(5)));
}

}  // namespace weft::open_model_test
