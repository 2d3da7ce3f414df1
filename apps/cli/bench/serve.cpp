#include "apps/cli/bench/serve.h"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <future>
#include <ostream>
#include <random>
#include <thread>

#include <fmt/format.h>

#include "apps/cli/bench/serve_load.h"
#include "apps/cli/bench/serve_results.h"
#include "apps/cli/bench/serve_target.h"
#include "apps/cli/result_file.h"
#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "server/server.h"

namespace weft {
namespace {

constexpr double kMostRate = 1e6;

bool is_chat(const BenchServeArguments& arguments) { return arguments.backend == "openai-chat"; }

// A flag with a number; nullopt for an empty one.
std::optional<double> number(const std::string& text, const char* flag, double least, double most) {
  if (text.empty()) return std::nullopt;
  const double value = decimal_number(text, flag);
  USER_CHECK(value >= least && value <= most, "[{}] must be from {} to {}, but is {}", flag, least, most, value);
  return value;
}

std::string name_for_server(const BenchServeArguments& arguments) {
  return arguments.served_name.empty() ? arguments.model : arguments.served_name;
}

std::vector<std::string> comma_words(const std::string& text) {
  return text.empty() ? std::vector<std::string>{} : split_text(text, ',');
}

Json request_fields(const BenchServeArguments& arguments) {
  Json fields = Json::object();
  fields["stream"] = true;
  fields["stream_options"] = {{"include_usage", true}};
  fields["temperature"] = number(arguments.temperature, "--temperature", 0, 2).value_or(0);
  if (const auto value = number(arguments.top_p, "--top-p", 0, 1)) fields["top_p"] = *value;
  if (const auto value = number(arguments.top_k, "--top-k", -1, 1e9))
    fields["top_k"] = static_cast<std::int64_t>(*value);
  if (const auto value = number(arguments.min_p, "--min-p", 0, 1)) fields["min_p"] = *value;
  if (const auto value = number(arguments.frequency_penalty, "--frequency-penalty", -2, 2))
    fields["frequency_penalty"] = *value;
  if (const auto value = number(arguments.presence_penalty, "--presence-penalty", -2, 2))
    fields["presence_penalty"] = *value;
  if (const auto value = number(arguments.repetition_penalty, "--repetition-penalty", 0, 1e6))
    fields["repetition_penalty"] = *value;
  if (!arguments.logprobs.empty()) {
    const std::int64_t count = in_range(human_integer(arguments.logprobs, "--logprobs"), 0, 1 << 20, "--logprobs");
    fields["logprobs"] = is_chat(arguments) ? Json(true) : Json(count);
    if (is_chat(arguments)) fields["top_logprobs"] = count;
  }
  // Random text has ends anywhere.
  if (arguments.ignores_end || arguments.dataset.name == "random") fields["ignore_eos"] = true;
  if (arguments.extra_body.empty()) return fields;
  const Json more = parse_json(arguments.extra_body);
  USER_CHECK(more.is_object(), "[--extra-body] must be a JSON object, but is {}", quote(arguments.extra_body));
  fields.update(more);
  return fields;
}

std::string body_of(const BenchServeArguments& arguments, const BenchRequest& request, const Json& fields,
                    const std::string& model, const Tokenizer* tokenizer) {
  Json body{{"model", model}};
  if (is_chat(arguments)) {
    USER_CHECK(!request.text.empty() || tokenizer != nullptr, "[--backend] a chat needs the tokenizer of the model");
    const std::string text = request.text.empty() ? tokenizer->decode(request.ids) : request.text;
    body["messages"] = Json::array({{{"role", "user"}, {"content", text}}});
    body["max_completion_tokens"] = request.output_tokens;
  } else {
    // Ids keep the length of a random prompt, which its text need not have.
    body["prompt"] = request.text.empty() ? Json(request.ids) : Json(request.text);
    body["max_tokens"] = request.output_tokens;
  }
  body.update(fields);
  return json_text(body);
}

// Gaps of a gamma distribution whose mean is 1 / rate, scaled so that the last request is sent at its expected time.
void set_times(std::vector<LoadRequest>& requests, double rate, const BenchServeArguments& arguments) {
  std::mt19937_64 random(arguments.dataset.seed);
  std::gamma_distribution<double> gap(arguments.burstiness, 1 / (rate * arguments.burstiness));
  double time = 0;
  for (LoadRequest& request : requests) request.send_at = time += gap(random);
  if (time == 0) return;
  const double scale = static_cast<double>(requests.size()) / rate / time;
  for (LoadRequest& request : requests) request.send_at *= scale;
}

std::optional<double> request_rate(const BenchServeArguments& arguments) {
  if (arguments.request_rate == "inf") return std::nullopt;
  const double rate = decimal_number(arguments.request_rate, "--request-rate");
  USER_CHECK(rate > 0 && rate <= kMostRate, "[--request-rate] must be inf, or above 0 and at most {}, but is {}",
             kMostRate, rate);
  return rate;
}

ServeReportSettings report_settings(const BenchServeArguments& arguments) {
  ServeReportSettings settings{.endpoint_type = arguments.backend,
                               .label = arguments.label,
                               .model = arguments.model,
                               .tokenizer = arguments.tokenizer.empty() ? arguments.model : arguments.tokenizer,
                               .request_rate = request_rate(arguments),
                               .burstiness = arguments.burstiness,
                               .metrics = comma_words(arguments.metrics),
                               .is_detailed = arguments.is_detailed};
  if (arguments.max_concurrency > 0) settings.max_concurrency = arguments.max_concurrency;
  for (const std::string& text : arguments.metadata) settings.metadata.push_back(pair_of(text, '=', "--metadata"));
  for (const std::string& word : comma_words(arguments.percents))
    settings.percents.push_back(*number(word.empty() ? "?" : word, "--metric-percentiles", 0, 100));
  for (const std::string& text : arguments.goodput) {
    const auto [name, value] = pair_of(text, ':', "--goodput");
    USER_CHECK(name == "ttft" || name == "tpot" || name == "e2el",
               "[--goodput] must be of ttft, tpot and e2el, but has {}", quote(name));
    settings.goodput.emplace_back(name, *number(value.empty() ? "?" : value, "--goodput", 0, 1e9));
  }
  ServeResults(settings, {}, 1);  // refuses unknown metrics before anything is measured
  return settings;
}

void check_arguments(const BenchServeArguments& arguments) {
  USER_CHECK(arguments.backend == "openai" || arguments.backend == "vllm" || is_chat(arguments),
             "[--backend] must be openai, openai-chat or vllm, but is {}", quote(arguments.backend));
  USER_CHECK(arguments.burstiness > 0 && arguments.burstiness <= 1e6,
             "[--burstiness] must be above 0 and at most 1e6, but is {}", arguments.burstiness);
  USER_CHECK(arguments.max_concurrency >= 0 && arguments.max_concurrency <= 10000,
             "[--max-concurrency] must be from 1 to 10000, but is {}", arguments.max_concurrency);
  USER_CHECK(arguments.adapter_assignment == "random" || arguments.adapter_assignment == "round-robin",
             "[--lora-assignment] must be random or round-robin, but is {}", quote(arguments.adapter_assignment));
  in_range(arguments.warm_ups, 0, 1'000'000, "--num-warmups");
  USER_CHECK(arguments.ready_seconds >= 0, "[--ready-check-timeout-sec] must be at least 0, but is {}",
             arguments.ready_seconds);
  USER_CHECK(arguments.port >= 0 && arguments.port <= 65535, "[--port] must be from 1 to 65535, but is {}",
             arguments.port);
}

// The requests of the dataset as they are sent to one server.
class ServeBench {
 public:
  ServeBench(const BenchServeArguments& arguments, VerbCall& call)
      : arguments_(arguments), call_(call), settings_(report_settings(arguments)) {
    if (!arguments_.saves && !arguments_.appends) return;
    if (!arguments_.folder.empty()) make_folders(arguments_.folder);
    (arguments_.appends ? check_can_append : check_can_write)(result_path(now_text()), "--result-filename");
  }

  // `model` is its name for the server.
  void make_requests(const BenchVocabulary& vocabulary, const std::string& model) {
    const Json fields = request_fields(arguments_);
    const std::vector<BenchRequest> requests = bench_requests(arguments_.dataset, vocabulary);
    const std::vector<std::string> models = models_of_requests(arguments_.adapters, arguments_.adapter_assignment,
                                                               arguments_.dataset.seed, model, requests.size());
    for (std::size_t i = 0; i < requests.size(); ++i)
      requests_.push_back({.body = body_of(arguments_, requests[i], fields, models[i], vocabulary.tokenizer),
                           .prompt_tokens = std::ssize(requests[i].ids)});
    if (!arguments_.id_prefix.empty())
      for (std::size_t i = 0; i < requests_.size(); ++i)
        requests_[i].fields = {{"X-Request-Id", arguments_.id_prefix + std::to_string(i)}};
    settings_.requests = requests_.size();
    if (settings_.request_rate) set_times(requests_, *settings_.request_rate, arguments_);
  }

  int run(LoadTarget target) {
    const char* usual = is_chat(arguments_) ? "/v1/chat/completions" : "/v1/completions";
    target.path += arguments_.endpoint.empty() ? usual : arguments_.endpoint;
    target.max_concurrency = settings_.max_concurrency;
    wait_until_ready(target);
    if (arguments_.warm_ups > 0)
      send_load(target, std::vector<LoadRequest>(static_cast<std::size_t>(arguments_.warm_ups), first()));
    LoadResult result = send_load(target, requests_);
    for (const ServeOutcome& outcome : result.outcomes)
      if (!outcome.is_success) {
        call_.err << "weft: a request failed: " << quote(outcome.error, 1000) << "\n";
        break;
      }
    const ServeResults results(settings_, std::move(result.outcomes), result.duration);
    if (arguments_.is_json) {
      call_.out << json_text(results.json(now_text()), 4) << "\n";
    } else {
      results.print(call_.out);
    }
    if (arguments_.saves || arguments_.appends) save(results);
    return results.failed() == 0 ? 0 : 1;
  }

 private:
  LoadRequest first() const { return {.body = requests_[0].body, .prompt_tokens = requests_[0].prompt_tokens}; }

  void wait_until_ready(const LoadTarget& target) const {
    if (arguments_.ready_seconds == 0) return;
    const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(arguments_.ready_seconds);
    for (;;) {
      const LoadResult result = send_load(target, {first()});
      if (result.outcomes[0].is_success) return;
      USER_CHECK(std::chrono::steady_clock::now() < end,
                 "[--ready-check-timeout-sec] the server did not answer within {} seconds: {}",
                 arguments_.ready_seconds, quote(result.outcomes[0].error, 500));
      std::this_thread::sleep_for(std::chrono::seconds(1));
    }
  }

  static std::string now_text() {
    const std::time_t now = std::time(nullptr);
    std::tm parts{};
    ::localtime_r(&now, &parts);
    char date[32];
    std::strftime(date, sizeof date, "%Y%m%d-%H%M%S", &parts);
    return date;
  }

  std::string result_path(const std::string& date) const {
    std::string name = arguments_.file;
    if (name.empty()) {
      std::string label = arguments_.label.empty() ? arguments_.backend : arguments_.label;
      std::replace(label.begin(), label.end(), '/', '_');
      const std::string concurrency =
          settings_.max_concurrency ? fmt::format("-concurrency{}", *settings_.max_concurrency) : "";
      name = fmt::format("{}-{}qps{}-{}-{}.json", label, arguments_.request_rate, concurrency,
                         std::filesystem::path(arguments_.model).filename().string(), date);
    }
    return std::filesystem::path(arguments_.folder) / name;
  }

  void save(const ServeResults& results) const {
    const std::string date = now_text(), path = result_path(date), text = json_text(results.json(date));
    if (!arguments_.appends) return write_then_rename(path, text);
    std::error_code error;
    const bool has_more = std::filesystem::exists(path, error);
    std::ofstream file(path, std::ios::app);
    file << (has_more ? "\n" : "") << text;
    file.close();
    USER_CHECK(file.good(), "[--result-filename] {} cannot be written: {}", quote(path, 1000), system_error_text());
  }

  const BenchServeArguments& arguments_;
  VerbCall& call_;
  ServeReportSettings settings_;
  std::vector<LoadRequest> requests_;
};

int bench_given_server(BenchServeArguments arguments, VerbCall& call) {
  const LoadTarget target = given_target(arguments);
  for (const std::string& adapter : arguments.adapters)
    USER_CHECK(adapter.find('=') == std::string::npos,
               "[--lora-modules] must be a name that the server has for an adapter, but is {}", quote(adapter));
  if (arguments.model.empty()) {
    const ListedModel listed = first_model(target);
    log_to(call)(fmt::format("[--model] is not given: the first model of the server is {}, of {}", quote(listed.name),
                             quote(listed.root)));
    arguments.model = listed.root;
    if (arguments.served_name.empty()) arguments.served_name = listed.name;
  }
  const std::string source = arguments.tokenizer.empty() ? arguments.model : arguments.tokenizer;
  ModelArgument tokens_of;
  tokens_of.name = source;
  const Tokenizer tokenizer(tokens_of.open(call).vocabulary());
  ServeBench bench(arguments, call);
  bench.make_requests({.tokenizer = &tokenizer}, name_for_server(arguments));
  if (arguments.is_insecure && !target.server.has_tls) log_to(call)("[--insecure] has no effect: the URL is not https");
  return bench.run(target);
}

int bench_own_server(const BenchServeArguments& arguments, VerbCall& call) {
  USER_CHECK(!arguments.model.empty(), "[model] must be given, or a server by --base-url, or by --host and --port");
  USER_CHECK(arguments.tokenizer.empty(),
             "[--tokenizer] is only for a server that is given by --base-url, --host or "
             "--port");
  if (!arguments.threads.empty()) set_option(call.options, "threads", arguments.threads, "command line");
  for (const std::string& adapter : arguments.adapters)
    set_option(call.options, "lora-modules", adapter, "command line");
  ServeBench bench(arguments, call);
  const NoteFunction log = log_to(call);
  ServerSettings settings{.port = 0};
  settings.api.logs_access = settings.api.logs_statistics = false;
  Server server(settings, log);
  ModelArgument model;
  model.name = arguments.model;
  model.checkpoint = arguments.checkpoint;
  const auto engine = open_engine(model.request(call), log, &call.watch);
  const ServedModel served =
      make_served_model(*engine, {.names = {name_for_server(arguments)}, .root = arguments.model});
  bench.make_requests({.tokenizer = served.tokenizer, .size = served.vocabulary_size}, served.names[0]);
  const HttpFields fields = header_fields(arguments);
  std::future<int> status;
  {
    std::promise<void> ready;  // broken where the server does not begin
    status = std::async(std::launch::async, [&bench, &server, &fields, begin = ready.get_future()]() mutable {
      struct End {
        Server& server;
        ~End() { server.shut_down(); }
      } const end{server};
      begin.get();
      return bench.run({.server = {.host = "127.0.0.1", .port = server.port()}, .fields = fields});
    });
    server.serve(*engine, served, [&ready] { ready.set_value(); });
  }
  return status.get();
}

}  // namespace

int bench_serve(const BenchServeArguments& arguments, VerbCall& call) {
  check_arguments(arguments);
  arguments.vllm.report(arguments.model, log_to(call));
  if (!arguments.base_url.empty() && (!arguments.host.empty() || arguments.port != 0))
    log_to(call)("[--host, --port] have no effect: --base-url names the server");
  const bool is_given = !arguments.base_url.empty() || !arguments.host.empty() || arguments.port != 0;
  return is_given ? bench_given_server(arguments, call) : bench_own_server(arguments, call);
}

void BenchServeArguments::declare(Flags& flags) {
  declare_server(flags);
  dataset.declare(flags);
  declare_requests(flags);
  declare_results(flags);
  flags.option("-t,--threads", threads, "Threads that compute in this process.");
  vllm.declare(flags);
}

void BenchServeArguments::declare_server(Flags& flags) {
  flags.option(
      "model,-m,--model", model,
      "The model to serve in this process; of a server that is given, its name and that of its tokenizer, else "
      "the first model that it lists.");
  flags.option("--checkpoint", checkpoint, "The model of an artifact, if it is not next to it.");
  flags.option("--base-url", base_url,
               "A server that is already running: http://HOST:PORT or https://HOST:PORT. Wins over --host and --port.");
  flags.flag("--insecure", is_insecure, "Accept any certificate of a server of https, such as one that signs itself.");
  flags.option("--host", host, "The host of such a server, 127.0.0.1 if only --port is given.");
  flags.option("--port", port, "Its port, 8000 if only --host is given.");
  flags.option("--endpoint", endpoint, "Its path, else that of the backend.");
  flags.option("--backend,--endpoint-type", backend, "openai (or vllm) for completions, openai-chat for chat.",
               {.shows_default = true});
  flags.option("--served-model-name", served_name, "The model's name in requests, if it is not MODEL.");
  flags.option("--tokenizer", tokenizer, "A model with the tokenizer of a server that is given, if it is not MODEL.");
}

void BenchServeArguments::declare_requests(Flags& flags) {
  flags.option("--request-rate", request_rate, "Requests per second; inf sends all at once.", {.shows_default = true});
  flags.option("--burstiness", burstiness, "Shape of the gamma distribution of the times between requests.",
               {.shows_default = true});
  flags.option("--max-concurrency", max_concurrency, "Most requests that run at once; else there is no limit.");
  flags.option("--num-warmups", warm_ups, "Requests before those that count.", {.shows_default = true});
  flags.option("--ready-check-timeout-sec", ready_seconds,
               "Seconds in which a first request must be answered; 0 does not ask.", {.shows_default = true});
  flags.option("--lora-modules", adapters,
               "Names of adapters, one of which each request has as its model; of a server in this process NAME=PATH.",
               {.takes_several = true});
  flags.option("--lora-assignment", adapter_assignment, "Which one: random, or round-robin.", {.shows_default = true});
  flags.flag("--ignore-eos", ignores_end, "Go on after end-of-text tokens; on for random requests.");
  flags.option("--temperature", temperature, "Of the requests; 0 if it is not given.");
  flags.option("--top-p", top_p, "Of the requests.");
  flags.option("--top-k", top_k, "Of the requests.");
  flags.option("--min-p", min_p, "Of the requests.");
  flags.option("--frequency-penalty", frequency_penalty, "Of the requests.");
  flags.option("--presence-penalty", presence_penalty, "Of the requests.");
  flags.option("--repetition-penalty", repetition_penalty, "Of the requests.");
  flags.option("--logprobs", logprobs, "Log probabilities of the chosen token and of the N most likely ones.");
  flags.option("--extra-body", extra_body, "A JSON object of more fields for each request.");
  flags.option("--header", headers, "NAME=VALUE for the head of each request; several, or given several times.",
               {.takes_several = true, .separator = '='});
  flags.option("--request-id-prefix", id_prefix, "Each request has this and its number as X-Request-Id.",
               {.may_be_empty = true});
}

void BenchServeArguments::declare_results(Flags& flags) {
  flags.option("--percentile-metrics", metrics, "Metrics to report: ttft, tpot, itl and e2el.",
               {.shows_default = true});
  flags.option("--metric-percentiles", percents, "Their percentiles.", {.shows_default = true});
  flags.option("--goodput", goodput, "METRIC:MILLISECONDS that a good request keeps: several, or given several times.",
               {.takes_several = true, .separator = ':'});
  flags.flag("--json", is_json, "Print the results as JSON, with the keys of --save-result.");
  flags.flag("--save-result", saves, "Write the results to a JSON file.");
  flags.flag("--save-detailed", is_detailed, "With the values of each request.");
  flags.flag("--append-result", appends, "Append the results to the file.");
  flags.option("--result-dir", folder, "Where the file is.");
  flags.option("--result-filename", file, "Its name, else one of label, rate, model and date.");
  flags.option("--label", label, "The prefix of that name, and a key of the results.");
  flags.option("--metadata", metadata, "KEY=VALUE for the results: several, or given several times.",
               {.takes_several = true, .separator = '='});
}

}  // namespace weft
