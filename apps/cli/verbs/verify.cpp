#include <set>

#include "apps/cli/session.h"
#include "apps/cli/tensor_file.h"
#include "apps/cli/verify_report.h"
#include "base/error.h"
#include "base/files.h"
#include "builtin/models.h"
#include "compiler/check/verify_pieces.h"
#include "compiler/piece_graph.h"
#include "ir/print.h"
#include "tensor/batch.h"

namespace weft {
namespace {

struct VerifyArguments {
  ModelArgument model;
  std::string prompt = "Once upon a time there was a";
  std::int64_t steps = 4;
  std::string keep;
  bool json = false;
};

// A graph's inputs under their names, as `weft graph run --in` reads them. Params that are packed stay in the model.
std::vector<std::pair<std::string, Tensor>> named_inputs(const Graph& graph, const std::vector<Tensor>& operands) {
  std::vector<std::pair<std::string, Tensor>> named;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const std::string& name = graph.inputs()[i]->name;
    const Tensor& tensor = operands[i];
    if (tensor.meta.kind == MetaKind::batch) {
      const Batch& batch = batch_of(tensor);
      const auto numbers = [&](const char* part, const std::int32_t* values, std::int64_t count) {
        named.emplace_back(name + "." + part, Tensor::from_bytes(Meta::tensor(DType::i32, {count}), values));
      };
      numbers("query_starts", batch.query_starts, std::int64_t{batch.sequences} + 1);
      numbers("lengths", batch.lengths, batch.sequences);
      numbers("block_table", batch.block_table, std::int64_t{batch.sequences} * batch.max_blocks);
    } else if (tensor.meta.packed.empty()) {
      named.emplace_back(name, tensor.meta.is_tensor() ? contiguous(tensor) : tensor);
    }
  }
  return named;
}

// FOLDER/forward.p2.1-512.graph and .safetensors: of each piece the first call, and of one that goes wrong
// the first that does.
class KeptPieces {
 public:
  explicit KeptPieces(std::string folder) : folder_(std::move(folder)) { make_folders(folder_); }

  void keep(const VerifiedCall& call) {
    const std::string name = fmt::format("{}.{}.{}-{}", call.verdict.graph, call.verdict.piece, call.verdict.range.lo,
                                         call.verdict.range.hi);
    if (!(call.differs ? differing_ : first_).insert(name).second) return;
    const auto graph = standalone_piece(*call.record.split, call.call);
    write_then_rename(folder_ + "/" + name + ".graph", display(*graph));
    write_results(folder_ + "/" + name + ".safetensors", named_inputs(*graph, call.operands));
  }

 private:
  std::string folder_;
  std::set<std::string> first_, differing_;  // that were written
};

int verify(const VerifyArguments& arguments, VerbCall& call) {
  USER_CHECK(arguments.steps >= 1 && arguments.steps <= 1'000'000, "[--steps] must be in [1, 1000000], but is {}",
             arguments.steps);
  const auto context = open_context(call);
  Engine engine(context, arguments.model.open(call), make_model_registry());
  const std::vector<int> prompt = engine.tokenizer().encode(arguments.prompt);
  const std::int64_t block = engine.runner().facts().kv.block;
  const std::int64_t tokens = static_cast<std::int64_t>(prompt.size()) + arguments.steps;
  engine.limit_pages((std::min(tokens, engine.max_model_len()) + block - 1) / block + 1);
  PieceVerification verification(*context);
  std::optional<KeptPieces> kept;
  if (!arguments.keep.empty()) {
    kept.emplace(arguments.keep);
    verification.on_call = [&](const VerifiedCall& verified) { kept->keep(verified); };
  }
  engine.runner().verify_pieces(verification);
  engine.generate(prompt, {.max_tokens = arguments.steps, .ignore_end = true});
  std::vector<PieceVerdict> verdicts = verification.verdicts();
  std::erase_if(verdicts, [](const PieceVerdict& verdict) { return verdict.calls == 0; });
  return report_verdicts(verdicts, arguments.model.name, verification.op_by_op_text(), arguments.json, call.out,
                         call.err);
}

}  // namespace
}  // namespace weft

VERB(verify) {
  verbs.add("verify", {"Compare each compiled piece with its graph, run op by op, while the model generates.",
                       [](Flags& flags, VerbCall& call) -> VerbBody {
                         auto arguments = std::make_shared<VerifyArguments>();
                         arguments->model.declare(flags);
                         flags.option("-p,--prompt", arguments->prompt, "The prompt.", {.shows_default = true});
                         flags.option("--steps", arguments->steps,
                                      "Steps: the prompt's, and one for each token after it.", {.shows_default = true});
                         flags.option("--keep", arguments->keep,
                                      "A folder for the graph of each piece and what one call took, for weft graph run "
                                      "FILE.graph --in FILE.safetensors --out FILE -m MODEL.");
                         flags.flag("--json", arguments->json, "Print JSON.");
                         return [arguments, &call] { return verify(*arguments, call); };
                       }});
}
