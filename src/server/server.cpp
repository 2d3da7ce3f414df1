#include "server/server.h"

#include <algorithm>
#include <csignal>
#include <cstdlib>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "base/text.h"
#include "server/memory_wait.h"

namespace weft {
namespace {

constexpr std::chrono::seconds kStatisticsInterval{10};

HttpServer listening(const ServerSettings& settings) {
  if (!settings.socket_path.empty()) return {settings.socket_path, settings.limits};
  std::optional<TlsContext> tls;
  if (settings.tls) tls = TlsContext::of_server(*settings.tls);
  return {settings.host, settings.port, settings.limits, std::move(tls)};
}

// The system takes the terminal from a process before it sends SIGHUP because the terminal is gone.
bool has_terminal() {
  const int terminal = ::open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
  if (terminal >= 0) ::close(terminal);
  return terminal >= 0;
}

bool is_ignored(int signal) {
  struct sigaction action {};
  return ::sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

const char* name_of(int signal) { return signal == SIGINT ? "SIGINT" : signal == SIGHUP ? "SIGHUP" : "SIGTERM"; }

}  // namespace

Server::Server(ServerSettings settings, ApiServer::Log log)
    : settings_(std::move(settings)),
      log_(std::move(log)),
      http_(listening(settings_)),
      api_(
          settings_.api, [this](std::function<void()> task) { http_.post(std::move(task)); }, log_) {
  if (const std::size_t most = descriptor_limit(); most <= settings_.limits.connections)
    log_(fmt::format("[server] the process may have {} open files, which is too few for {} connections: ulimit -n",
                     most, settings_.limits.connections));
  if (settings_.takes_signals) {
    ends_with_terminal_ = has_terminal() && !is_ignored(SIGHUP);
    http_.on_signals({SIGINT, SIGTERM}, [this](int signal) { take_signal(signal); });
    http_.on_signals({SIGHUP}, [this](int) { take_hang_up(); });
  }
  io_ = std::thread([this] {
    http_.run(api_);
    const std::lock_guard lock(mutex_);
    is_ended_ = true;
    if (running_ != nullptr) running_->stop();
  });
}

Server::~Server() { end_io(); }

void Server::end_io() {
  http_.stop();
  if (io_.joinable()) io_.join();
}

void Server::serve(Engine& engine, const ServedModel& model, const std::function<void()>& ready) {
  // A user who sets the limit wants that one. A device computes few rows at a time too inefficiently.
  if (engine.context().stream_device == nullptr &&
      !engine.context().options.requested.contains("long-prefill-token-threshold"))
    engine.pace_prompts();
  engine.pace_proposals();
  EngineLoop loop(
      engine,
      [this, &loop](StepReport report) {
        std::shared_ptr<const StepReport> shared;
        wait_for_memory([&] { shared = std::make_shared<const StepReport>(std::move(report)); });
        const auto deliver = [this, shared, &loop] {
          // Also after an exception: the next step waits for it.
          struct Acknowledged {
            EngineLoop& loop;
            ~Acknowledged() { loop.acknowledge(); }
          } const acknowledged{loop};
          api_.deliver(*shared);
        };
        wait_for_memory([&] { http_.post(deliver); });
      },
      log_);
  {
    const std::lock_guard lock(mutex_);
    if (is_ended_) return;
    running_ = &loop;
  }
  http_.post([this, &model, &loop, ready] {
    loop_ = &loop;
    api_.set_model(model, loop);
    repeat(kStatisticsInterval, [this] {
      api_.log_statistics(kStatisticsInterval);
      api_.check_step();
    });
    // Four times in each interval, so that a comment comes at most a quarter of it too late.
    if (settings_.keep_alive_interval.count() > 0)
      repeat(std::max(settings_.keep_alive_interval / 4, std::chrono::milliseconds(1)), [this] { api_.keep_alive(); });
    if (ready) ready();
  });
  try {
    loop.run();
  } catch (...) {
    end_io();  // it refers to the loop
    api_.end_work();
    throw;
  }
  api_.end_work();
  const std::lock_guard lock(mutex_);
  running_ = nullptr;
}

void Server::repeat(std::chrono::milliseconds interval, const std::function<void()>& task) {
  http_.after(interval, [this, interval, task] {
    repeat(interval, task);  // first: the task may throw
    task();
  });
}

void Server::shut_down() {
  http_.post([this] { drain(); });
}

void Server::renew_tls() {
  http_.post([this] {
    try {
      http_.set_tls(TlsContext::of_server(*settings_.tls));
      log_(fmt::format("[tls] read again: {}", quote(settings_.tls->certificate, 1000)));
    } catch (const std::exception& error) {
      log_(fmt::format("{}; the certificate that was read before stays", error.what()));
    }
  });
}

void Server::take_signal(int signal) {
  if (is_draining_) exit_now(128 + signal);
  // The thread that loads the model cannot be interrupted, and nothing of it has to be kept.
  if (loop_ == nullptr) exit_now(0);
  log_(fmt::format("shutting down: {}", name_of(signal)));
  drain();
}

void Server::take_hang_up() {
  if (ends_with_terminal_ && !has_terminal()) return take_signal(SIGHUP);
  if (settings_.tls) return renew_tls();
  log_("SIGHUP changes nothing: there is no certificate to read again");
}

void Server::drain() {
  if (is_draining_) return;
  is_draining_ = true;
  api_.drain();
  http_.drain();
  if (settings_.shutdown_timeout.count() == 0) {
    end_answers();
  } else {
    http_.after(settings_.shutdown_timeout, [this] { end_answers(); });
  }
}

void Server::end_answers() {
  api_.abort();
  http_.cut();
}

void Server::exit_now(int status) {
  http_.remove_socket();
  std::_Exit(status);
}

}  // namespace weft
