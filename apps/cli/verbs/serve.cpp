#include <mutex>

#include "apps/cli/session.h"
#include "base/error.h"
#include "base/text.h"
#include "server/server.h"

namespace weft {
namespace {

// Tokens of one prompt in a step, so that no step of hundreds of rows delays the tokens of other sequences. A device
// computes so few rows too inefficiently.
constexpr std::int64_t kLongPrefillThresholdOnHost = 32;

struct ServeArguments {
  ModelArgument model;
  TemplateArgument chat_template;
  std::string generation_config = "auto";
  std::string host = "127.0.0.1";
  std::int64_t port = 8000;
  std::vector<std::string> names;
  std::vector<std::string> keys;
  std::int64_t head_bytes = std::int64_t{4} << 20;
  std::int64_t head_lines = 256;
  std::int64_t body_bytes = std::int64_t{64} << 20;
  double shutdown_timeout = 0;
  bool is_quiet = false;
  bool has_prompt_details = false;
  bool has_developer_paths = false;
};

void declare(ServeArguments& arguments, Flags& flags) {
  arguments.model.declare_to_run(flags);
  flags.option("--host", arguments.host, "The address to listen at; 0.0.0.0 is reached from other machines.",
               {.shows_default = true});
  flags.option("--port", arguments.port, "The port to listen at; 0 is any free one.", {.shows_default = true});
  flags.option("--served-model-name", arguments.names,
               "The model's name for clients, instead of MODEL; may be given several times.");
  flags.option("--api-key", arguments.keys,
               "Answer only requests with this key; may be given several times. Else WEFT_API_KEY, if it is set.");
  arguments.chat_template.declare(flags);
  flags.option("--generation-config", arguments.generation_config,
               "auto takes defaults of sampling from the model's generation_config.json; none (or vllm) does not.",
               {.shows_default = true});
  flags.option("--shutdown-timeout", arguments.shutdown_timeout,
               "Seconds in which answers may end by themselves after SIGTERM.");
  flags.option("--h11-max-incomplete-event-size", arguments.head_bytes, "Most bytes of a request's head.");
  flags.option("--h11-max-header-count", arguments.head_lines, "Most fields of a request's head.");
  flags.option("--max-body-size", arguments.body_bytes, "Most bytes of a request's body.");
  flags.flag("--disable-uvicorn-access-log", arguments.is_quiet, "Print no line for each request.");
  flags.flag("--enable-prompt-tokens-details", arguments.has_prompt_details,
             "Say in usage how many tokens of the prompt were found in the prefix cache.");
  flags.flag("--enable-dev-endpoints", arguments.has_developer_paths,
             "Serve POST /reset_prefix_cache, for benchmarks.");
}

std::int64_t in_range(std::int64_t value, std::int64_t least, std::int64_t most, const char* flag) {
  USER_CHECK(value >= least && value <= most, "[{}] must be from {} to {}, but is {}", flag, least, most, value);
  return value;
}

ServerSettings server_settings(const ServeArguments& arguments, const VerbCall& call) {
  ServerSettings settings{.host = arguments.host, .takes_signals = true};
  settings.port = static_cast<int>(in_range(arguments.port, 0, 65535, "--port"));
  settings.limits.head_bytes = static_cast<std::size_t>(
      in_range(arguments.head_bytes, 256, std::int64_t{1} << 30, "--h11-max-incomplete-event-size"));
  settings.limits.head_lines =
      static_cast<std::size_t>(in_range(arguments.head_lines, 1, 1 << 20, "--h11-max-header-count"));
  settings.limits.body_bytes =
      static_cast<std::uint64_t>(in_range(arguments.body_bytes, 1, std::int64_t{1} << 31, "--max-body-size"));
  USER_CHECK(arguments.shutdown_timeout >= 0 && arguments.shutdown_timeout <= 1e6,
             "[--shutdown-timeout] must be from 0 to 1000000 seconds, but is {}", arguments.shutdown_timeout);
  settings.shutdown_timeout = std::chrono::milliseconds(static_cast<std::int64_t>(arguments.shutdown_timeout * 1000));
  settings.api.keys = arguments.keys;
  if (const auto key = call.environment("WEFT_API_KEY"); settings.api.keys.empty() && key && !key->empty())
    settings.api.keys = {*key};
  for (const std::string& key : settings.api.keys) USER_CHECK(!key.empty(), "[--api-key] a key must not be empty");
  settings.api.logs_requests = !arguments.is_quiet;
  settings.api.has_developer_paths = arguments.has_developer_paths;
  return settings;
}

ServedModelSettings model_settings(const ServeArguments& arguments) {
  const std::string& config = arguments.generation_config;
  USER_CHECK(config == "auto" || config == "none" || config == "vllm",
             "[--generation-config] must be auto or none, but is {}", quote(config));
  for (const std::string& name : arguments.names)
    USER_CHECK(!name.empty(), "[--served-model-name] a name must not be empty");
  return {.names = arguments.names.empty() ? std::vector<std::string>{arguments.model.name} : arguments.names,
          .root = arguments.model.name,
          .chat_template = arguments.chat_template.given,
          .template_arguments = arguments.chat_template.arguments(),
          .reads_generation_config = config == "auto",
          .has_prompt_details = arguments.has_prompt_details};
}

std::string start_line(const ServedModel& model, const Engine& engine, const Server& server) {
  const auto tokens = static_cast<double>(engine.page_count() * engine.page_tokens());
  const Options& options = engine.context().options;
  const bool is_tuned = !options.compile_sizes.empty() && options.tuning_budget > 0;
  const bool may_differ = !options.batch_invariant && (is_tuned || engine.context().stream_device != nullptr);
  return fmt::format(
      "serving {} on {} (context {}, {} KV pages of {} tokens: {:.1f} sequences of full context, prefix cache {}){}",
      model.names[0], server.url(), model.max_model_len, engine.page_count(), engine.page_tokens(),
      tokens / static_cast<double>(model.max_model_len), options.enable_prefix_caching ? "on" : "off",
      may_differ ? "; answers may differ in last bits with load (--batch-invariant)" : "");
}

int serve(const ServeArguments& arguments, VerbCall& call) {
  std::mutex mutex;
  const auto log = [&](const std::string& line) {
    const std::lock_guard lock(mutex);
    call.err << "weft: " << line << std::endl;
  };
  const ServedModelSettings model_of = model_settings(arguments);
  // The port is bound first: a second server on it ends at once, and not after it has loaded its model.
  Server server(server_settings(arguments, call), log);
  ModelRequest request = arguments.model.request(call);
  // Nothing is compiled for the first time while clients wait, unless that is what the user asks for.
  if (!request.options.requested.contains("forbid-lazy") && request.options.capture != "lazy")
    request.options.forbid_lazy = true;
  if (!request.options.requested.contains("long-prefill-token-threshold") && request.options.device == "cpu")
    request.options.long_prefill_token_threshold = kLongPrefillThresholdOnHost;
  const auto engine = open_engine(request, log, &call.watch);
  const ServedModel model = make_served_model(*engine, model_of);
  server.serve(*engine, model, [&] { log(start_line(model, *engine, server)); });
  return 0;
}

}  // namespace
}  // namespace weft

VERB(serve) {
  verbs.add("serve", {"Answer HTTP requests as OpenAI's API does.", [](Flags& flags, VerbCall& call) -> VerbBody {
                        auto arguments = std::make_shared<ServeArguments>();
                        declare(*arguments, flags);
                        return [arguments, &call] { return serve(*arguments, call); };
                      }});
}
