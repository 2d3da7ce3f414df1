// Options that are declared to change no code: the Plans of a model, with their functions, have the same bytes under
// each.

#include <gtest/gtest.h>

#include "builtin/context.h"
#include "builtin/models.h"
#include "engine/open_checkpoint.h"
#include "engine/run/model_runner.h"
#include "tests/engine/tiny_model.h"
#include "tests/option_values.h"

namespace weft::run_options_test {

// Compiled anew, without a cache; nothing if compile-to stops before.
std::vector<std::vector<std::byte>> plans_with(const std::string& path, std::string_view name,
                                               const std::string& value) {
  Options options;
  options.threads = 2;
  options.load_format = "dummy";
  if (!name.empty()) set_option(options, name, value, "test");
  const ModelRegistry models = make_model_registry();
  ModelRunner runner(make_context(options), open_checkpoint(path, options, models), models);
  std::vector<std::vector<std::byte>> plans;
  if (runner.forward_plan() == nullptr) return plans;
  for (StoredPlans& stored : runner.model().store_plans()) plans.push_back(std::move(stored.bytes));
  return plans;
}

TEST(RunOptions, ChangeNoByteOfAModelsPlans) {
  const TemporaryFolder folder;
  const std::string path = write_config_only(folder, "llama", {{"num_hidden_layers", 1}});
  const auto wanted = plans_with(path, "", "");
  ASSERT_EQ(wanted.size(), 2u);
  EXPECT_NE(plans_with(path, "ir-op-priority.linear", "reference"), wanted) << "an option that does change code";
  int tried = 0;
  for (const OptionRow& row : option_table()) {
    // Their number is the device's, which is in the key; weights take files.
    if (row.effect == OptionEffect::code || row.name == "threads" || row.name == "load-format") continue;
    // Fails if fusions are missing, as it should.
    if (row.name == "expect-fusions") continue;
    for (const std::string& value : other_values(row, folder.path())) {
      ::testing::internal::CaptureStderr();
      const auto came = plans_with(path, row.name, value);
      ::testing::internal::GetCapturedStderr();
      EXPECT_TRUE(came == wanted || (came.empty() && row.name == "compile-to")) << row.name << "=" << value;
      ++tried;
    }
  }
  EXPECT_GT(tried, 15);
}

}  // namespace weft::run_options_test
