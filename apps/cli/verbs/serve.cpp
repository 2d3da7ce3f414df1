#include <algorithm>
#include <mutex>

#include "apps/cli/session.h"
#include "base/error.h"
#include "base/text.h"
#include "server/server.h"

namespace weft {
namespace {

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
  std::string tool_call_parser = "auto", reasoning_parser = "auto";
  bool chooses_tools = false;
  bool has_no_page = false;
  bool has_slots = false;
  std::string allowed_origins, allowed_methods, allowed_headers;
  bool allows_credentials = false;
  std::string root_path;
  std::string socket_path;
};

void declare(ServeArguments& arguments, Flags& flags) {
  arguments.model.declare_to_run(flags);
  flags.option("--host", arguments.host, "The address to listen at; 0.0.0.0 is reached from other machines.",
               {.shows_default = true});
  flags.option("--port", arguments.port, "The port to listen at; 0 is any free one.", {.shows_default = true});
  flags.option("--uds", arguments.socket_path,
               "Listen on this Unix socket, a file of the user's alone, and not at --host and --port.");
  flags.option("--served-model-name", arguments.names,
               "The model's name for clients, instead of MODEL; may be given several times.");
  flags.option("--api-key", arguments.keys,
               "Answer only requests with this key; may be given several times. Else WEFT_API_KEY, if it is set.");
  arguments.chat_template.declare(flags);
  flags.option("--tool-call-parser", arguments.tool_call_parser,
               "How the model writes tool calls: " + dialect_names() +
                   ", none (calls are not looked for), or auto: " + "as its chat template shows.",
               {.shows_default = true});
  flags.option("--reasoning-parser", arguments.reasoning_parser,
               "How the model marks its reasoning: " + reasoning_format_names() +
                   ", none (reasoning is part of the content), or auto: as its chat template shows.",
               {.shows_default = true});
  flags.flag("--enable-auto-tool-choice", arguments.chooses_tools,
             "Taken as vLLM's; tool calls are found without it, too.");
  flags.option("--generation-config", arguments.generation_config,
               "auto takes defaults of sampling from the model's generation_config.json; none (or vllm) does not.",
               {.shows_default = true});
  flags.option("--shutdown-timeout", arguments.shutdown_timeout,
               "Seconds in which answers may end by themselves after SIGTERM.");
  flags.option("--h11-max-incomplete-event-size", arguments.head_bytes, "Most bytes of a request's head.");
  flags.option("--h11-max-header-count", arguments.head_lines, "Most fields of a request's head.");
  flags.option("--max-body-size", arguments.body_bytes, "Most bytes of a request's body.");
  flags.option("--allowed-origins", arguments.allowed_origins,
               "Origins of pages that may use the server (CORS), as a JSON list: [\"https://a.org\"] or [\"*\"].");
  flags.option("--allowed-methods", arguments.allowed_methods, "Methods that they may use, as a JSON list. Else all.");
  flags.option("--allowed-headers", arguments.allowed_headers, "Fields that they may send, as a JSON list. Else all.");
  flags.flag("--allow-credentials", arguments.allows_credentials, "Pages of these origins may send cookies and keys.");
  flags.option("--root-path", arguments.root_path,
               "A prefix of paths, such as /x, that a proxy leaves there; paths without it work, too.");
  flags.flag("--slots", arguments.has_slots, "Answer GET /slots.");
  flags.flag("--no-webui", arguments.has_no_page, "Serve no page at /.");
  flags.flag("--disable-uvicorn-access-log", arguments.is_quiet, "Print no line for each request.");
}

std::int64_t in_range(std::int64_t value, std::int64_t least, std::int64_t most, const char* flag) {
  USER_CHECK(value >= least && value <= most, "[{}] must be from {} to {}, but is {}", flag, least, most, value);
  return value;
}

std::vector<std::string> list_of(const std::string& json, const char* flag) {
  const Json list = parse_json(json);
  const bool is_list =
      list.is_array() && std::all_of(list.begin(), list.end(), [](const Json& one) {
        return one.is_string() && one.get_ref<const std::string&>().find_first_of("\r\n") == std::string::npos;
      });
  USER_CHECK(is_list, "[{}] must be a JSON list of texts, such as [\"*\"], but is {}", flag, quote(json));
  return list.get<std::vector<std::string>>();
}

CorsSettings cors_settings(const ServeArguments& arguments) {
  CorsSettings cors{.allows_credentials = arguments.allows_credentials};
  const auto take = [](std::vector<std::string>& target, const std::string& given, const char* flag) {
    if (!given.empty()) target = list_of(given, flag);
  };
  take(cors.origins, arguments.allowed_origins, "--allowed-origins");
  take(cors.methods, arguments.allowed_methods, "--allowed-methods");
  take(cors.headers, arguments.allowed_headers, "--allowed-headers");
  return cors;
}

std::string root_path(std::string given) {
  while (given.ends_with('/')) given.pop_back();
  USER_CHECK(given.empty() || given.starts_with('/'), "[--root-path] must begin with /, but is {}", quote(given));
  return given;
}

ServerSettings server_settings(const ServeArguments& arguments, const VerbCall& call) {
  ServerSettings settings{.host = arguments.host, .takes_signals = true};
  settings.socket_path = arguments.socket_path;
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
  settings.api.cors = cors_settings(arguments);
  settings.api.root_path = root_path(arguments.root_path);
  settings.api.has_slots = arguments.has_slots;
  settings.api.has_page = !arguments.has_no_page;
  return settings;
}

ServedModelSettings model_settings(const ServeArguments& arguments) {
  const std::string& config = arguments.generation_config;
  USER_CHECK(config == "auto" || config == "none" || config == "vllm",
             "[--generation-config] must be auto or none, but is {}", quote(config));
  const std::string& calls = arguments.tool_call_parser;
  USER_CHECK(calls == "auto" || calls == "none" || find_dialect(calls) != nullptr,
             "[--tool-call-parser] must be auto, none, {}, but is {}", dialect_names(), quote(calls));
  const std::string& reasoning = arguments.reasoning_parser;
  USER_CHECK(reasoning == "auto" || reasoning == "none" || find_reasoning_format(reasoning) != nullptr,
             "[--reasoning-parser] must be auto, none, {}, but is {}", reasoning_format_names(), quote(reasoning));
  for (const std::string& name : arguments.names)
    USER_CHECK(!name.empty(), "[--served-model-name] a name must not be empty");
  return {.names = arguments.names.empty() ? std::vector<std::string>{arguments.model.name} : arguments.names,
          .root = arguments.model.name,
          .chat_template = arguments.chat_template.given,
          .template_arguments = arguments.chat_template.arguments(),
          .reads_generation_config = config == "auto",
          .tool_call_parser = arguments.tool_call_parser,
          .reasoning_parser = arguments.reasoning_parser};
}

std::string start_line(const ServedModel& model, const Engine& engine, const Server& server) {
  const auto tokens = static_cast<double>(engine.page_count() * engine.page_tokens());
  return fmt::format("serving {} on {} (context {}, {} KV pages of {} tokens: {:.1f} sequences of full context)",
                     model.names[0], server.url(), model.max_model_len, engine.page_count(), engine.page_tokens(),
                     tokens / static_cast<double>(model.max_model_len));
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
  const auto engine = open_engine(request, log, &call.watch);
  const ServedModel model = make_served_model(*engine, model_of);
  server.serve(*engine, model, [&] {
    log(start_line(model, *engine, server));
    if (model.chat_template && !model.reads_tools)
      log("the chat template does not read tools: the system message of a request with tools lists them");
  });
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
