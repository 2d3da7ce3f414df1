#include <algorithm>

#include <fmt/ranges.h>

#include "apps/cli/session.h"
#include "apps/cli/tensor_file.h"
#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "compiler/replay_settings.h"
#include "compiler/run/eager.h"
#include "ir/meta_evaluator.h"
#include "tensor/attribute_parser.h"

namespace weft {
namespace {

struct OpArguments {
  std::string name;
  std::string in;
  std::string out;
  std::string provider;
  std::vector<std::string> attributes;
  bool json = false;
};

NamedAttributes parse_attributes(const std::vector<std::string>& words) {
  NamedAttributes attributes;
  for (const std::string& word : words) {
    const std::size_t equals = word.find('=');
    USER_CHECK(equals != std::string::npos && equals > 0, "[--attr] must be name=value, but is {}", quote(word));
    attributes.emplace_back(word.substr(0, equals), parse_attribute(std::string_view(word).substr(equals + 1)));
  }
  return attributes;
}

// The op's tensors in schema order. Those of a list are numbered: tensors.0, tensors.1, ...
Values read_operands(const Op& op, const TensorFile& file, EagerEvaluator& evaluator) {
  Values operands;
  std::vector<std::string> used;
  const auto take = [&](const std::string& name) {
    std::optional<Tensor> tensor = file.find(name);
    if (tensor) used.push_back(name);
    return tensor;
  };
  for (std::size_t i = 0; i < op.schema.tensor_count(); ++i) {
    const Parameter& parameter = op.schema.parameters[i];
    if (parameter.type == ParameterType::tensor_list) {
      for (std::size_t element = 0;; ++element) {
        std::optional<Tensor> tensor = take(fmt::format("{}.{}", parameter.name, element));
        if (!tensor) break;
        operands.push_back(evaluator.value(std::move(*tensor)));
      }
      USER_CHECK(!operands.empty(), "[{}] {}.0 must be given", op.name, parameter.name);
      continue;
    }
    std::optional<Tensor> tensor = take(parameter.name);
    USER_CHECK(tensor || parameter.optional, "[{}] {} must be given: the file holds {}", op.name, parameter.name,
               fmt::join(file.names(), ", "));
    operands.push_back(tensor ? evaluator.value(std::move(*tensor)) : Value());
  }
  for (const std::string& name : file.names()) {
    bool known = false;
    for (const std::string& prefix : used) known = known || name == prefix || name.starts_with(prefix + ".");
    USER_CHECK(known, "[{}] takes no tensor {}: {}", op.name, name, op.schema.text());
  }
  return operands;
}

void check_batches(const Values& operands) {
  for (const Value& batch : operands)
    for (const Value& kv : operands)
      if (batch.present() && batch.meta().kind == MetaKind::batch && kv.present() && kv.meta().kind == MetaKind::kv)
        check_batch(batch.tensor(), kv.tensor(), operands[0].meta().is_tensor() ? operands[0].dim(0).number() : 0);
}

// Refuses a provider that would not run this call.
Choice check_provider(const OpArguments& arguments, const Context& context, const Op& op, const Values& operands,
                      const Attributes& attributes, TokenRange range) {
  const std::vector<std::optional<Meta>> metas = operand_metas(operands);
  const std::vector<Meta> results = infer_results(op, context.ops, metas, attributes);
  Choice choice = select_kernel(context.kernels, context.priorities, op.name, {metas, results, attributes, range},
                                context.options.batch_invariant);
  if (arguments.provider.empty() || choice.provider == arguments.provider) return choice;
  for (const Refusal& refusal : choice.refused)
    USER_CHECK(refusal.provider != arguments.provider, "[{}] {} refuses this call: {}", op.name, arguments.provider,
               refusal.reason);
  fail_user("[{}] {} does not run this call", op.name, arguments.provider);
}

TokenRange rows_of(const Op& op, const Values& operands) {
  const auto index = static_cast<std::size_t>(std::max(op.rows_of, 0));
  if (op.rows_of < 0 || index >= operands.size() || !operands[index].present() || operands[index].rank() == 0)
    return {1, 1};
  const std::int64_t rows = std::max<std::int64_t>(operands[index].dim(0).number(), 1);
  return {rows, rows};
}

int run_op(const OpArguments& arguments, VerbCall& call) {
  if (!arguments.provider.empty())
    set_option(call.options, "ir-op-priority." + arguments.name, arguments.provider, "command line");
  const auto context = open_context(call);
  check_host_reads(*context, "op", "take --device cpu");
  const Op& op = context->ops.at(arguments.name);
  const Attributes attributes = complete_attributes(op.schema, parse_attributes(arguments.attributes));
  const TensorFile file(arguments.in);
  EagerEvaluator reader(*context, {1, 1});
  const TokenRange range = rows_of(op, read_operands(op, file, reader));
  EagerEvaluator evaluator(*context, range);
  const Values operands = read_operands(op, file, evaluator);
  check_batches(operands);
  const Choice choice = check_provider(arguments, *context, op, operands, attributes, range);
  const Values results = evaluator.evaluate(op, operands, attributes, false);
  std::vector<std::pair<std::string, Tensor>> outputs;
  Json metas = Json::array();
  for (std::size_t i = 0; i < results.size(); ++i) {
    outputs.emplace_back(std::to_string(i), results[i].tensor());
    metas.push_back(results[i].meta().text());
  }
  write_results(arguments.out, outputs);
  if (arguments.json)
    call.out << json_text(Json{{"op", op.name}, {"provider", choice.provider}, {"results", metas}}) << "\n";
  return 0;
}

}  // namespace
}  // namespace weft

VERB(op) {
  verbs.add("op", {"Run one op on tensors of a file.", [](Flags& flags, VerbCall& call) -> VerbBody {
                     auto arguments = std::make_shared<OpArguments>();
                     flags.option("op", arguments->name, "Its name; 'weft dump ops' lists them.", {.required = true});
                     flags.option("--in", arguments->in, "Safetensors file; tensors are named as in the op's schema.",
                                  {.required = true});
                     flags.option("--out", arguments->out, "Safetensors file for the results 0, 1, ...",
                                  {.required = true});
                     flags.option("--attr", arguments->attributes, "An attribute as name=value; may be repeated.");
                     flags.option("--provider", arguments->provider, "Who computes it, or native.");
                     flags.flag("--json", arguments->json, "Print who computed it and the types of the results.");
                     return [arguments, &call] { return run_op(*arguments, call); };
                   }});
}
