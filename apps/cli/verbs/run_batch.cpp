#include <filesystem>
#include <fstream>

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

int run_batch(const BatchArguments& arguments, VerbCall& call) {
  const ServedModelSettings settings = arguments.model.settings();
  const NoteFunction log = log_to(call);
  arguments.model.vllm.report(log);
  std::ifstream in_file;
  std::ofstream out_file;
  if (arguments.in != "-") {
    in_file.open(arguments.in);
    USER_CHECK(in_file.is_open(), "[--input-file] {} cannot be read", quote(arguments.in, 1000));
  }
  if (arguments.out != "-") {
    std::error_code none;
    USER_CHECK(arguments.in == "-" || !std::filesystem::equivalent(arguments.in, arguments.out, none),
               "[--output-file] must be another file than the input, but is {}", quote(arguments.out, 1000));
    out_file.open(arguments.out);
    USER_CHECK(out_file.is_open(), "[--output-file] {} cannot be written", quote(arguments.out, 1000));
  }
  const auto engine = open_engine(arguments.model.model.request(call), log, &call.watch);
  const ServedModel model = make_served_model(*engine, settings);
  std::istream& in = arguments.in == "-" ? call.in : in_file;
  std::ostream& out = arguments.out == "-" ? call.out : out_file;
  const BatchRun::Counts counts = BatchRun(*engine, model, in, out, log).run();
  log(fmt::format("{} lines, {} failed", counts.lines, counts.failed));
  return counts.failed == 0 ? 0 : 1;
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
