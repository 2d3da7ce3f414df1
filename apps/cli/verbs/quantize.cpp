#include "apps/cli/session.h"
#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "base/utf8.h"
#include "builtin/context.h"
#include "builtin/models.h"
#include "engine/calibration.h"
#include "options/effective_options.h"
#include "quantize/output_folder.h"

namespace weft {
namespace {

struct QuantizeArguments {
  ModelArgument model;
  std::string format;
  std::string block = "64x64";
  std::string group_size = "128";
  std::string calibrate;
  std::string output;
  bool json = false;
  Flags* flags = nullptr;
};

std::string read_calibration_text(const std::string& path) {
  constexpr std::size_t kMostBytes = 64u << 20;
  std::string text = read_file(path, kMostBytes);
  const auto bad = first_invalid_utf8(text);
  USER_CHECK(!bad, "[--calibrate] {} must be UTF-8, but is not from byte {} on", path, *bad);
  return text;
}

// What the layers are given; nothing where the format does not ask for it.
std::vector<LinearInput> inputs_for(const QuantizeArguments& arguments, NumberFormat format,
                                    const Checkpoint& checkpoint, const std::shared_ptr<Context>& context,
                                    const VerbCall& call) {
  const bool is_given = !arguments.calibrate.empty();
  USER_CHECK(
      !is_given || format == NumberFormat::fp8 || format == NumberFormat::nvfp4,
      "[--calibrate] is of use for fp8 and nvfp4, whose inputs have scales in the checkpoint, but --format is {}",
      arguments.format);
  if (!is_given && format != NumberFormat::nvfp4) return {};
  const std::string text = is_given ? read_calibration_text(arguments.calibrate) : kCalibrationText;
  if (!is_given)
    call.err << "weft: scales of inputs are from a built-in text; --calibrate FILE uses a text like the inputs that "
                "the model will get\n";
  Engine engine(context, checkpoint, make_model_registry());
  return calibrate(engine, text);
}

int run_quantize(const QuantizeArguments& arguments, VerbCall& call) {
  QuantizeRecipe recipe;
  recipe.format = number_format_from_text(arguments.format);
  recipe.block = block_shape_from_text(arguments.block);
  recipe.ignores_unread_tensors = call.options.ignore_unread_tensors;
  USER_CHECK(recipe.format == NumberFormat::fp8_block || !arguments.flags->given("--block"),
             "[--block] is of use for fp8-block, but --format is {}", arguments.format);
  USER_CHECK(recipe.format == NumberFormat::w4a16 || !arguments.flags->given("--group-size"),
             "[--group-size] is of use for w4a16, but --format is {}", arguments.format);
  if (recipe.format == NumberFormat::w4a16) recipe.block = group_from_text(arguments.group_size);
  check_output_folder(arguments.output);  // quantize_checkpoint does it too, but only after the calibration
  const Checkpoint checkpoint = Checkpoint::open(arguments.model.path(call));
  const ModelRegistry models = make_model_registry();
  const ModelDefinition& model = models.find_for_folder(checkpoint);
  run_eagerly(call.options);  // a model that reads one text is not worth compiling
  const auto context = open_context(call);
  recipe.inputs = inputs_for(arguments, recipe.format, checkpoint, context, call);
  const QuantizeSummary summary = quantize_checkpoint(checkpoint, model, recipe, arguments.output, *context->threads);
  for (const std::string& note : summary.notes) call.err << "weft: " << note << "\n";
  if (arguments.json) {
    call.out << json_text(Json{{"folder", arguments.output},
                               {"format", arguments.format},
                               {"quantized", summary.quantized},
                               {"others", summary.others},
                               {"bytes", summary.bytes},
                               {"files", summary.files}},
                          2)
             << "\n";
  } else {
    const std::string quantized =
        summary.quantized > 0 ? fmt::format("{} weights in {}, ", summary.quantized, arguments.format) : "";
    call.out << fmt::format("{}: {}{} weights in bf16, {:.1f} MB\n", arguments.output, quantized, summary.others,
                            static_cast<double>(summary.bytes) / 1e6);
  }
  return 0;
}

}  // namespace
}  // namespace weft

VERB(quantize) {
  verbs.add("quantize",
            {"Write a model as a Hugging Face folder in another number format.",
             [](Flags& flags, VerbCall& call) -> VerbBody {
               auto arguments = std::make_shared<QuantizeArguments>();
               arguments->flags = &flags;
               arguments->model.declare(flags);
               flags.option("--format", arguments->format,
                            "bf16, fp8, fp8-per-token, fp8-block, int8, nvfp4 or w4a16, of linear layers; the rest is "
                            "bf16.",
                            {.required = true});
               flags.option("--block", arguments->block, "Rows and columns of fp8-block's blocks.",
                            {.shows_default = true});
               flags.option("--group-size", arguments->group_size, "Columns with one scale of w4a16: 32, 64 or 128.",
                            {.shows_default = true});
               flags.option("--calibrate", arguments->calibrate,
                            "A text whose first 4096 tokens give the scales of inputs: those of nvfp4, and of fp8, "
                            "which without it makes them as it runs.");
               flags.option("-o,--output", arguments->output, "The folder to write, which must be new or empty.",
                            {.required = true});
               flags.flag("--json", arguments->json, "Print JSON.");
               return [arguments, &call] { return run_quantize(*arguments, call); };
             }});
}
