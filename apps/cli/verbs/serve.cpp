#include <algorithm>
#include <cmath>
#include <set>

#include <fcntl.h>
#include <unistd.h>

#include "apps/cli/served_model_argument.h"
#include "base/error.h"
#include "base/text.h"
#include "server/log_queue.h"
#include "server/routes.h"
#include "server/server.h"

namespace weft {
namespace {

constexpr std::int64_t kNone = -1;

struct ServeArguments {
  ServedModelArgument model;
  std::string host = "127.0.0.1";
  std::int64_t port = 8000;
  std::vector<std::string> keys;
  std::int64_t head_bytes = std::int64_t{4} << 20;
  std::int64_t head_lines = 256;
  std::int64_t body_bytes = std::int64_t{64} << 20;
  double shutdown_timeout = 0;
  double keep_alive_interval = 0;
  std::int64_t most_sequences = kNone, most_queued_tokens = kNone;
  std::string quiet_paths;
  std::string metrics_prefix = "vllm:";
  bool is_quiet = false, logs_requests = false, logs_no_statistics = false;
  bool has_id_fields = false, forces_usage = false;
  bool has_developer_paths = false;
  bool has_no_page = false;
  bool has_slots = false, has_tokenizer_info = false;
  double stall_timeout = 60;
  std::string allowed_origins, allowed_methods, allowed_headers;
  bool allows_credentials = false;
  std::string root_path;
  std::string socket_path;
  TlsFiles tls;
  std::int64_t client_certificates = 0;
};

void declare_model(ServeArguments& arguments, Flags& flags) {
  arguments.model.declare(flags);
  flags.option("--host", arguments.host, "The address to listen at; 0.0.0.0 is reached from other machines.",
               {.shows_default = true});
  flags.option("--port", arguments.port, "The port to listen at; 0 is any free one.", {.shows_default = true});
  flags.option("--uds", arguments.socket_path, "Listen on this Unix socket (mode 0600) instead of --host and --port.");
  flags.option(
      "--api-key", arguments.keys,
      "Answer only requests with this key, or one of several. Else WEFT_API_KEY or VLLM_API_KEY, if it is set.",
      {.takes_several = true});
  flags.option("--stream-interval", arguments.model.given.answers.stream_interval,
               "Tokens of an event of a stream, but for its first and last; a request may ask for more.",
               {.shows_default = true});
}

void declare_tls(ServeArguments& arguments, Flags& flags) {
  flags.option("--ssl-certfile", arguments.tls.certificate,
               "Listen in TLS (https) with this certificate: PEM, followed by those up to its authority.");
  flags.option("--ssl-keyfile", arguments.tls.key,
               "Its key: PEM without a passphrase. Else it is in the file of the certificate.");
  flags.option("--ssl-ca-certs", arguments.tls.authorities,
               "Authorities whose signature a client's certificate must have: PEM.");
  flags.option("--ssl-cert-reqs", arguments.client_certificates,
               "Whether clients must have a certificate: 0 no, 1 only a valid one or none, 2 yes.",
               {.shows_default = true});
}

void declare_limits(ServeArguments& arguments, Flags& flags) {
  flags.option("--shutdown-timeout", arguments.shutdown_timeout,
               "Seconds in which answers may end by themselves after SIGTERM.");
  flags.option("--h11-max-incomplete-event-size", arguments.head_bytes, "Most bytes of a request's head.");
  flags.option("--h11-max-header-count", arguments.head_lines, "Most fields of a request's head.");
  flags.option("--max-body-size", arguments.body_bytes, "Most bytes of a request's body.");
  flags.option("--max-num-queued-reqs", arguments.most_sequences,
               "Most sequences that run and wait together; 503 beyond. Else there is no limit.");
  flags.option("--max-num-queued-tokens", arguments.most_queued_tokens,
               "Most prompt tokens of sequences without a first token; 503 beyond. Else there is no limit.");
  flags.option("--stream-stall-timeout", arguments.stall_timeout,
               "Seconds after which a client that takes no byte is cut off.", {.shows_default = true});
  flags.option("--sse-keep-alive-interval", arguments.keep_alive_interval,
               "Seconds after which a silent stream gets a comment; 0 is off.", {.shows_default = true});
}

void declare_responses(ServeArguments& arguments, Flags& flags) {
  flags.flag("--enable-force-include-usage", arguments.forces_usage,
             "End each stream with an event of its usage, also if it is not asked for.");
  flags.flag("--enable-per-request-metrics", arguments.model.given.answers.has_metrics,
             "Answers of one choice have an object `metrics`: the times of the request in milliseconds.");
  flags.flag("--enable-request-id-headers", arguments.has_id_fields, "Give each response the field X-Request-Id.");
  flags.option("--metrics-prefix", arguments.metrics_prefix, "What the names of metrics begin with.",
               {.shows_default = true, .may_be_empty = true});
  flags.option("--allowed-origins", arguments.allowed_origins,
               "Origins of pages that may use the server (CORS), with commas between them or as a JSON list: "
               "https://a.org,https://b.org or '*', which is all.");
  flags.option("--allowed-methods", arguments.allowed_methods,
               "Methods that they may use, in one of these forms. Else all.");
  flags.option("--allowed-headers", arguments.allowed_headers,
               "Fields that they may send, in one of these forms. Else all.");
  flags.flag("--allow-credentials", arguments.allows_credentials, "Pages of these origins may send cookies and keys.");
  flags.option("--root-path", arguments.root_path,
               "A prefix of paths, such as /x, that a proxy leaves there; paths without it work, too.",
               {.may_be_empty = true});
  flags.flag("--slots", arguments.has_slots, "Answer GET /slots.");
  flags.flag("--enable-tokenizer-info-endpoint", arguments.has_tokenizer_info, "Answer GET /tokenizer_info.");
  flags.flag("--no-webui", arguments.has_no_page, "Serve no page at /.");
  flags.flag("--disable-uvicorn-access-log", arguments.is_quiet, "Print no line for each request.");
  flags.flag("--enable-dev-endpoints", arguments.has_developer_paths,
             "Serve POST /reset_prefix_cache, for benchmarks.");
  flags.option("--disable-access-log-for-endpoints", arguments.quiet_paths,
               "Print no such line for these paths, separated by commas: /health,/metrics.");
  flags.flag("--enable-log-requests", arguments.logs_requests,
             "Print also the prompt and the parameters of each request.");
  flags.flag("--disable-log-stats", arguments.logs_no_statistics,
             "Print no line of rates each 10 seconds in which there is anything to do.");
}

void declare(ServeArguments& arguments, Flags& flags) {
  declare_model(arguments, flags);
  declare_tls(arguments, flags);
  declare_limits(arguments, flags);
  declare_responses(arguments, flags);
}

std::set<std::string> paths_of(const std::string& text) {
  std::set<std::string> paths;
  if (text.empty()) return paths;
  for (const std::string& word : split_text(text, ',')) {
    const std::string path(trim(word));
    USER_CHECK(find_route(path) != nullptr,
               "[--disable-access-log-for-endpoints] must be paths of the server, but {} is none", quote(path));
    paths.insert(path);
  }
  return paths;
}

void check_metrics_prefix(const std::string& prefix) {
  const auto is_name = [](char c) { return c == '_' || c == ':' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  for (std::size_t i = 0; i < prefix.size(); ++i)
    USER_CHECK(is_name(prefix[i]) || (i > 0 && prefix[i] >= '0' && prefix[i] <= '9'),
               "[--metrics-prefix] must have letters, digits, _ and : alone, and begin with no digit, but is {}",
               quote(prefix));
}

// A JSON list, or words with commas between them.
std::vector<std::string> list_of(const std::string& given, const char* flag) {
  const std::string_view text = trim(given);
  const bool is_json = text.starts_with('[') || text.starts_with('{') || text.starts_with('"');
  Json list = is_json ? parse_json(text) : Json::array();
  if (!is_json)
    for (const std::string& word : split_text(text, ',')) {
      list.push_back(trim(word));
      USER_CHECK(!trim(word).empty(), "[{}] must have no empty word, but is {}", flag, quote(given));
    }
  const bool is_list =
      list.is_array() && std::all_of(list.begin(), list.end(), [](const Json& one) {
        return one.is_string() && one.get_ref<const std::string&>().find_first_of("\r\n") == std::string::npos;
      });
  USER_CHECK(is_list,
             "[{}] must be a JSON list of texts, such as [\"*\"], or words with commas between them, but is {}", flag,
             quote(given));
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

std::optional<std::int64_t> queue_limit(std::int64_t given, const char* flag) {
  if (given == kNone) return std::nullopt;
  return in_range(given, 1, std::int64_t{1} << 40, flag);
}

void take_api_settings(const ServeArguments& arguments, ApiSettings& api) {
  api.logs_access = !arguments.is_quiet;
  api.quiet_paths = paths_of(arguments.quiet_paths);
  api.logs_requests = arguments.logs_requests;
  api.logs_statistics = !arguments.logs_no_statistics;
  api.has_id_fields = arguments.has_id_fields;
  api.has_developer_paths = arguments.has_developer_paths;
  api.forces_usage = arguments.forces_usage;
  api.most_sequences = queue_limit(arguments.most_sequences, "--max-num-queued-reqs");
  api.most_queued_tokens = queue_limit(arguments.most_queued_tokens, "--max-num-queued-tokens");
  check_metrics_prefix(arguments.metrics_prefix);
  api.metrics_prefix = arguments.metrics_prefix;
  api.cors = cors_settings(arguments);
  api.root_path = root_path(arguments.root_path);
  api.has_slots = arguments.has_slots;
  api.has_tokenizer_info = arguments.has_tokenizer_info;
  api.has_page = !arguments.has_no_page;
}

std::optional<TlsFiles> tls_files(const ServeArguments& arguments) {
  TlsFiles files = arguments.tls;
  files.clients = static_cast<ClientCertificates>(in_range(arguments.client_certificates, 0, 2, "--ssl-cert-reqs"));
  if (files.certificate.empty()) {
    USER_CHECK(files.key.empty() && files.authorities.empty() && files.clients == ClientCertificates::none,
               "[--ssl-certfile] must name the server's certificate if another option of TLS is given");
    return std::nullopt;
  }
  USER_CHECK(arguments.socket_path.empty(), "[--ssl-certfile] excludes --uds: a Unix socket has no TLS");
  return files;
}

ServerSettings server_settings(const ServeArguments& arguments, const VerbCall& call) {
  ServerSettings settings{.host = arguments.host, .takes_signals = true};
  settings.tls = tls_files(arguments);
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
  USER_CHECK(arguments.stall_timeout > 0 && arguments.stall_timeout <= 1e6,
             "[--stream-stall-timeout] must be above 0 and at most 1000000 seconds, but is {}",
             arguments.stall_timeout);
  settings.limits.stall =
      std::chrono::milliseconds(static_cast<std::int64_t>(std::ceil(arguments.stall_timeout * 1000)));
  settings.api.keys = arguments.keys;
  // A server that was started for vLLM must not become open to all.
  for (const char* variable : {"WEFT_API_KEY", "VLLM_API_KEY"})
    if (const auto key = call.environment(variable); settings.api.keys.empty() && key && !key->empty())
      settings.api.keys = {*key};
  for (const std::string& key : settings.api.keys) USER_CHECK(!key.empty(), "[--api-key] a key must not be empty");
  USER_CHECK(arguments.keep_alive_interval >= 0 && arguments.keep_alive_interval <= 1e6,
             "[--sse-keep-alive-interval] must be from 0 to 1000000 seconds, but is {}", arguments.keep_alive_interval);
  settings.keep_alive_interval =
      std::chrono::milliseconds(static_cast<std::int64_t>(std::ceil(arguments.keep_alive_interval * 1000)));
  take_api_settings(arguments, settings.api);
  return settings;
}

// 248,512
std::string with_commas(std::int64_t number) {
  std::string digits = std::to_string(number);
  for (std::ptrdiff_t at = std::ssize(digits) - 3; at > 0; at -= 3) digits.insert(static_cast<std::size_t>(at), ",");
  return digits;
}

std::string start_line(const ServedModel& model, const Engine& engine, const Server& server) {
  const std::int64_t tokens = engine.page_count() * engine.page_tokens();
  const std::int64_t conversations = tokens / model.max_model_len;
  const Options& options = engine.context().options;
  const bool is_tuned = !options.compile_sizes.empty() && options.tuning_budget > 0;
  const bool may_differ = !options.batch_invariant && (is_tuned || engine.context().stream_device != nullptr);
  return fmt::format("serving {} on {} (room for {} tokens: {} {} of {}, prefix cache {}){}", model.names[0],
                     server.url(), with_commas(tokens), with_commas(conversations),
                     conversations == 1 ? "conversation" : "conversations", with_commas(model.max_model_len),
                     options.enable_prefix_caching && model.generates ? "on" : "off",
                     may_differ ? "; answers may differ in last bits with load (--batch-invariant)" : "");
}

// The lines of the log on standard error.
class ServeLog {
 public:
  explicit ServeLog(const VerbCall& call) : lines_(log_to(call)) {}
  // If nothing reads standard error, the end of the process must not wait for it.
  ~ServeLog() {
    if (lines_.end()) return;
    const int nowhere = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
    ::dup2(nowhere, STDERR_FILENO);
    ::close(nowhere);
  }
  NoteFunction function() {
    return [this](const std::string& line) { lines_.add(line); };
  }

 private:
  LogQueue lines_;
};

// llama.cpp's server takes several keys with commas between them. A key of vLLM may have commas, so it is not divided.
void note_commas(const std::vector<std::string>& keys, const NoteFunction& log) {
  if (std::any_of(keys.begin(), keys.end(), [](const std::string& key) { return key.find(',') != std::string::npos; }))
    log("[--api-key] the key with a comma is one key; several keys are given one after the other: --api-key K1 K2");
}

int serve(const ServeArguments& arguments, VerbCall& call) {
  ServeLog lines(call);
  const NoteFunction log = lines.function();
  in_range(arguments.model.given.answers.stream_interval, 1, std::int64_t{1} << 31, "--stream-interval");
  const ServedModelSettings model_of = arguments.model.settings();
  arguments.model.vllm.report(arguments.model.model.name, log);
  note_commas(arguments.keys, log);
  // The port is bound first: a second server on it ends at once, and not after it has loaded its model.
  Server server(server_settings(arguments, call), log);
  ModelRequest request = arguments.model.model.request(call);
  // Nothing is compiled for the first time while clients wait, unless that is what the user asks for.
  if (!request.options.requested.contains("forbid-lazy") && request.options.capture != "lazy")
    request.options.forbid_lazy = true;
  // As in llama.cpp, clients may change the scales of --lora. Of a GPU the adapters are joined for good.
  constexpr std::int64_t kScaleSlots = 8;
  if (!request.options.requested.contains("lora-scale-slots") && request.options.device == "cpu")
    request.options.lora_scale_slots = kScaleSlots;
  const auto engine = open_engine(request, log, &call.watch);
  arguments.model.vllm.check_quantization(engine->runner().checkpoint(), engine->runner().facts().config, log);
  const ServedModel model = make_served_model(*engine, model_of);
  server.serve(*engine, model, [&] {
    log(start_line(model, *engine, server));
    if (model.pooling)
      log(fmt::format("{} with the pooling {}",
                      model.embedding_head.scores ? "/v1/score, /v1/rerank and /classify answer"
                                                  : "/v1/embeddings, /v1/score and /v1/rerank answer",
                      pooling_text(*model.pooling)));
    if (model.chat_template && !model.reads_tools)
      log("the chat template does not read tools: the system message of a request with tools lists them");
  });
  return 0;
}

}  // namespace
}  // namespace weft

VERB(serve) {
  verbs.add("serve", {.summary = "Answer HTTP requests as OpenAI's API does.",
                      .setup = [](Flags& flags, VerbCall& call) -> VerbBody {
                        auto arguments = std::make_shared<ServeArguments>();
                        declare(*arguments, flags);
                        return [arguments, &call] { return serve(*arguments, call); };
                      },
                      .takes_config = true});
}
