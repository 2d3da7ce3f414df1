#include "apps/cli/served_model_argument.h"

#include "base/error.h"
#include "base/text.h"

namespace weft {

void ServedModelArgument::declare(Flags& flags) {
  model.declare_to_run(flags);
  flags.option("--served-model-name", given.names,
               "The model's names for clients, instead of MODEL: several, with commas or blanks between them, or "
               "given several times. Answers have the first.",
               {.takes_several = true});
  chat_template.declare(flags);
  flags.flag("--trust-request-chat-template", given.trusts_templates,
             "Take the chat template of a request that has one, which is a program; else such a request is refused.");
  defaults.declare_defaults(flags, given.defaults.parameters, "Most tokens of an answer whose request says nothing");
  declare_answers(flags);
  // The words of the command line have no such flag any more: the program reads the file first.
  flags.option(
      "--config", [](const std::string&) { fail_user("[--config] must be given on the command line"); },
      "A file with flags in YAML (port: 8000) or JSON ({\"port\": 8000}). Those of the command line win.");
  vllm.declare(flags);
}

void ServedModelArgument::declare_answers(Flags& flags) {
  flags.option("--max-logprobs", given.answers.max_logprobs,
               "Most tokens that logprobs, top_logprobs and prompt_logprobs may ask for; -1: the whole vocabulary.",
               {.shows_default = true});
  flags.flag("--return-tokens-as-token-ids", given.answers.tokens_as_ids,
             "Write the tokens of log probabilities as token_id:42, unless a request says otherwise.");
  flags.flag("--enable-prompt-tokens-details", given.answers.has_prompt_details,
             "Say in usage how many tokens of the prompt were found in the prefix cache.");
  flags.option("--tool-call-parser", given.tool_call_parser,
               "How the model writes tool calls: " + dialect_names() +
                   ", none (calls are not looked for), or auto: as its chat template shows.",
               {.shows_default = true});
  flags.option("--reasoning-parser", given.reasoning_parser,
               "How the model marks its reasoning: " + reasoning_format_names() +
                   ", none (reasoning is part of the content), or auto: as its chat template shows.",
               {.shows_default = true});
  pooling.declare(flags);
  flags.option(
      "--fingerprint-mode", given.fingerprint_mode,
      "system_fingerprint: full is weft-VERSION-HASH, hash its last part, custom --fingerprint-value, none null.",
      {.shows_default = true});
  flags.option("--fingerprint-value", given.fingerprint_value, "The fingerprint of --fingerprint-mode custom.");
}

ServedModelSettings ServedModelArgument::settings() const {
  std::vector<std::string> names;
  for (const std::string& list : given.names)
    for (const std::string& word : split_text(list, ',')) {
      names.emplace_back(trim(word));
      USER_CHECK(!names.back().empty(), "[--served-model-name] a name must not be empty");
    }
  in_range(given.answers.max_logprobs, -1, std::int64_t{1} << 31, "--max-logprobs");
  const std::string& calls = given.tool_call_parser;
  USER_CHECK(calls == "auto" || calls == "none" || find_dialect(calls) != nullptr, "[--tool-call-parser] {}",
             wrong_dialect(calls));
  const std::string& reasoning = given.reasoning_parser;
  USER_CHECK(reasoning == "auto" || reasoning == "none" || reasoning == kChannelReasoning ||
                 find_reasoning_format(reasoning) != nullptr,
             "[--reasoning-parser] {}", wrong_reasoning_format(reasoning));
  const std::string& mode = given.fingerprint_mode;
  USER_CHECK(mode == "full" || mode == "hash" || mode == "custom" || mode == "none",
             "[--fingerprint-mode] must be full, hash, custom or none, but is {}", quote(mode));
  USER_CHECK((mode == "custom") == !given.fingerprint_value.empty(),
             "[--fingerprint-value] must be given with --fingerprint-mode custom, and with it alone");
  ServedModelSettings settings = given;
  settings.names = std::move(names);
  if (settings.names.empty()) settings.names = {model.name};
  settings.root = model.name;
  settings.pooling = pooling.pooling();
  settings.defaults = defaults.request();
  settings.defaults.config.check();
  settings.chat_template = chat_template.given;
  settings.template_arguments = chat_template.arguments();
  return settings;
}

}  // namespace weft
