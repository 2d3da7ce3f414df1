#include "tests/server/running_server.h"

#include <fstream>

#include "base/json.h"
#include "tests/engine/tiny_model.h"
#include "tests/http_client.h"

namespace weft {

RunningServer::RunningServer(ServerSettings settings, const EngineOptions& options, const AnswerSettings& answers,
                             const ModelChanges& changes)
    : path_(changes.path.empty() ? write_tiny_model(folder_, 1, changes.added_tokens) : changes.path) {
  const std::string chat_template = folder_ / "template.jinja";
  std::ofstream(chat_template)
      << std::string(
             "{% for m in messages %}{% if m.role == 'bad' %}{{ raise_exception('no such role') }}"
             "{% endif %}<{{ m.role }}>{{ m.content }}{% endfor %}"
             "{% if add_generation_prompt %}") +
             changes.prompt_end + "{% endif %}";
  engine_ = tiny_engine(path_, options);
  model_ = make_served_model(*engine_, {.names = {"tiny", "small"},
                                        .root = "tiny.gguf",
                                        .chat_template = chat_template,
                                        .trusts_templates = changes.trusts_templates,
                                        .answers = answers,
                                        .fingerprint_mode = changes.fingerprint_mode,
                                        .tool_call_parser = changes.tool_call_parser,
                                        .reasoning_parser = changes.reasoning_parser,
                                        .pooling = changes.pooling});
  settings.port = 0;
  server_ = std::make_unique<Server>(std::move(settings), [this](const std::string& line) {
    const std::lock_guard lock(mutex_);
    lines_.push_back(line);
  });
  std::promise<void> ready;
  thread_ = std::thread([&] { server_->serve(*engine_, model_, [&] { ready.set_value(); }); });
  ready.get_future().wait();
}

RunningServer::~RunningServer() { shut_down(); }

void RunningServer::shut_down() {
  server_->shut_down();
  if (thread_.joinable()) thread_.join();
}

int RunningServer::load() { return parse_json(HttpClient(port()).get("/load").body)["server_load"].get<int>(); }

bool RunningServer::has_load(int least) {
  for (int i = 0; i < 10000; ++i) {
    if (load() >= least) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

int RunningServer::load_at_rest() {
  int now = 1;
  for (int i = 0; i < 600 && (now = load()) != 0; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(100));
  return now;
}

std::vector<std::string> RunningServer::log() {
  const std::lock_guard lock(mutex_);
  return lines_;
}

}  // namespace weft
