// Every format of weights can be checked: its pieces against their graphs, its replays against its steps, and compiled
// output against eager output.

#include <gtest/gtest.h>

#include "builtin/context.h"
#include "builtin/models.h"
#include "compiler/check/bisect.h"
#include "compiler/check/verify_pieces.h"
#include "engine/calibration.h"
#include "tests/engine/tiny_model.h"
#include "tests/sample_checkpoint.h"

namespace weft::verify_formats_test {

struct Model {
  std::string name, path;
};

// The sample model as it is, in each format that `weft quantize` writes, and in each block format of GGUF files.
std::vector<Model> models_in(const TemporaryFolder& folder) {
  const ModelDefinition definition = make_model_registry().find("llama", "test");
  const SampleCheckpoint sample(definition);
  std::vector<Model> models;
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    const std::string name(dtype_text(dtype));
    models.push_back({name, sample.write_folder(folder, name, dtype)});
  }
  for (const DType dtype : {DType::q4_1, DType::q8_0}) {
    const std::string name(dtype_text(dtype));
    models.push_back({name, sample.write_gguf(folder, name + ".gguf", dtype)});
  }
  const std::string source = models[2].path;
  const auto inputs = calibrate(*tiny_engine(source, {{"enforce-eager", "true"}}), "The sea is deep.");
  ThreadPool threads(2);
  const auto add = [&](NumberFormat format, bool is_calibrated) {
    QuantizeRecipe recipe{.format = format, .block = {32, 32}};
    if (is_calibrated) recipe.inputs = inputs;
    const std::string name = std::string(number_format_text(format)) + (is_calibrated ? " calibrated" : "");
    quantize_checkpoint(Checkpoint::open(source), definition, recipe, folder / name, threads);
    models.push_back({name, folder / name});
  };
  for (const NumberFormat format :
       {NumberFormat::fp8, NumberFormat::fp8_per_token, NumberFormat::fp8_block, NumberFormat::int8})
    add(format, false);
  add(NumberFormat::fp8, true);
  add(NumberFormat::nvfp4, true);
  return models;
}

Options options_of(const std::string& dtype, const std::string& precision) {
  Options options;
  options.threads = 2;
  options.dtype = dtype;
  options.activation_precision = precision;
  return options;
}

class VerifyFormats : public ::testing::Test {
 protected:
  // Calls the function for each model, in f32 and bf16, with codes and with the numbers that they stand for.
  template <class Check>
  void for_each_model(Check&& check) const {
    int tried = 0;
    for (const Model& model : models_in(folder_))
      for (const char* dtype : {"f32", "bf16"})
        for (const char* precision : {"fast", "exact"}) {
          SCOPED_TRACE(model.name + " in " + dtype + ", " + precision);
          check(model.path, options_of(dtype, precision));
          ++tried;
        }
    EXPECT_EQ(tried, 4 * 11);
  }

  TemporaryFolder folder_;
};

TEST_F(VerifyFormats, EveryPieceIsComparedWithItsGraph) {
  for_each_model([](const std::string& path, const Options& options) {
    const auto context = make_context(options);
    Engine engine(context, Checkpoint::open(path), make_model_registry());
    PieceVerification verification(*context);
    engine.runner().verify_pieces(verification);
    engine.generate(some_ids(5), {.max_tokens = 2, .ignore_end = true});
    for (const PieceVerdict& verdict : verification.verdicts()) {
      EXPECT_TRUE(verdict.is_right()) << verdict.graph << "." << verdict.piece;
      EXPECT_GT(verdict.calls, 0) << verdict.graph << "." << verdict.piece;
    }
  });
}

TEST_F(VerifyFormats, EveryReplayIsCompared) {
  for_each_model([](const std::string& path, Options options) {
    options.check_replay = true;
    Engine engine(make_context(options), Checkpoint::open(path), make_model_registry());
    EXPECT_EQ(engine.generate(some_ids(5), {.max_tokens = 2, .ignore_end = true}).tokens.size(), 2u);
  });
}

TEST_F(VerifyFormats, CompiledLogitsAreThoseOfEager) {
  for_each_model([](const std::string& path, const Options& options) {
    const auto context = make_context(options);
    const auto run = [&](const Options& asked) {
      BisectRun run;
      Engine engine(make_context(asked), Checkpoint::open(path), make_model_registry());
      for (const std::vector<float>& row : all_logits(engine, some_ids(5)))
        run.values.insert(run.values.end(), row.begin(), row.end());
      return run;
    };
    EXPECT_FALSE(bisect(options, *context, run).differs);
  });
}

}  // namespace weft::verify_formats_test
