#include <filesystem>
#include <fstream>

#include "apps/cli/result_file.h"
#include "apps/cli/served_model_argument.h"
#include "base/error.h"
#include "base/text.h"
#include "server/batch_run.h"

namespace weft {
namespace {

struct BatchArguments {
  ServedModelArgument model;
  std::string in, out;
};

// Opens the input once, because it may be a pipe. Errors that need no model are found here, before it is loaded.
std::ifstream open_input(const BatchArguments& arguments) {
  const std::string &in = arguments.in, &out = arguments.out;
  std::error_code none;
  std::ifstream file;
  if (in != "-") {
    USER_CHECK(!std::filesystem::is_directory(in, none), "[--input-file] {} cannot be read: it is a folder",
               quote(in, 1000));
    file.open(in);
    USER_CHECK(file.is_open(), "[--input-file] {} cannot be read: {}", quote(in, 1000), system_error_text());
  }
  if (out == "-") return file;
  USER_CHECK(in == "-" || !std::filesystem::equivalent(in, out, none),
             "[--output-file] must be another file than the input, but is {}", quote(out, 1000));
  check_can_append(out, "--output-file");
  return file;
}

int run_batch(const BatchArguments& arguments, VerbCall& call) {
  const ServedModelSettings settings = arguments.model.settings();
  const NoteFunction log = log_to(call);
  arguments.model.vllm.report(arguments.model.model.name, log);
  std::ifstream in_file = open_input(arguments);
  const auto engine = open_engine(arguments.model.model.request(call), log, &call.watch);
  arguments.model.vllm.check_quantization(engine->runner().checkpoint(), engine->runner().facts().config, log);
  const ServedModel model = make_served_model(*engine, settings);
  std::istream& in = arguments.in == "-" ? call.in : in_file;
  in.peek();
  USER_CHECK(!in.bad(), "[--input-file] {} cannot be read: {}",
             arguments.in == "-" ? "standard input" : quote(arguments.in, 1000), system_error_text());
  // Opening the output empties it, so it is opened after everything that may fail before there are results.
  std::ofstream out_file;
  if (arguments.out != "-") out_file.open(arguments.out);
  USER_CHECK(out_file.good(), "[--output-file] {} cannot be written: {}", quote(arguments.out, 1000),
             system_error_text());
  std::ostream& out = arguments.out == "-" ? call.out : out_file;
  try {
    const BatchRun::Counts counts = BatchRun(*engine, model, in, out, log).run();
    log(fmt::format("{} lines, {} failed", counts.lines, counts.failed));
    return counts.failed == 0 ? 0 : 1;
  } catch (const OutputError& error) {
    // A full disk is the user's fault where the user names a file, as in base/files.h.
    USER_CHECK(out_file.good(), "[--output-file] {} could not be written: {}", quote(arguments.out, 1000),
               error.reason());
    throw;
  }
}

}  // namespace
}  // namespace weft

VERB(run_batch) {
  verbs.add("run-batch",
            {.summary = "Answer the requests of a file as the server does.",
             .setup = [](Flags& flags, VerbCall& call) -> VerbBody {
               auto arguments = std::make_shared<BatchArguments>();
               arguments->model.declare(flags);
               flags.option("-i,--input-file", arguments->in,
                            "The requests, a JSON object on each line; - is standard input.", {.required = true});
               flags.option("-o,--output-file", arguments->out,
                            "The results, in the order of the requests; - is standard output.", {.required = true});
               return [arguments, &call] { return run_batch(*arguments, call); };
             },
             .takes_config = true});
}
