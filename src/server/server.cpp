#include "server/server.h"

#include <algorithm>
#include <csignal>
#include <cstdlib>

#include <fmt/format.h>

namespace weft {
namespace {

constexpr std::chrono::seconds kStatisticsInterval{10};

}  // namespace

Server::Server(ServerSettings settings, ApiServer::Log log)
    : settings_(std::move(settings)),
      log_(std::move(log)),
      http_(settings_.socket_path.empty() ? HttpServer(settings_.host, settings_.port, settings_.limits)
                                          : HttpServer(settings_.socket_path, settings_.limits)),
      api_(
          settings_.api, [this](std::function<void()> task) { http_.post(std::move(task)); }, log_) {
  if (settings_.takes_signals) http_.on_signals([this](int signal) { take_signal(signal); });
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
  EngineLoop loop(
      engine,
      [this, &loop](StepReport report) {
        const auto shared = std::make_shared<const StepReport>(std::move(report));
        http_.post([this, shared, &loop] {
          // Also after an exception: the next step waits for it.
          struct Acknowledged {
            EngineLoop& loop;
            ~Acknowledged() { loop.acknowledge(); }
          } const acknowledged{loop};
          api_.deliver(*shared);
        });
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
    repeat(kStatisticsInterval, [this] { api_.log_statistics(kStatisticsInterval); });
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
    task();
    repeat(interval, task);
  });
}

void Server::shut_down() {
  http_.post([this] { drain(); });
}

void Server::take_signal(int signal) {
  if (is_draining_) std::_Exit(128 + signal);
  // The thread that loads the model cannot be interrupted, and nothing of it has to be kept.
  if (loop_ == nullptr) std::_Exit(0);
  log_(fmt::format("shutting down: {}", signal == SIGINT ? "SIGINT" : "SIGTERM"));
  drain();
}

void Server::drain() {
  if (is_draining_) return;
  is_draining_ = true;
  api_.drain();
  if (settings_.shutdown_timeout.count() == 0) {
    api_.abort();
  } else {
    http_.after(settings_.shutdown_timeout, [this] { api_.abort(); });
  }
  http_.drain();
}

}  // namespace weft
