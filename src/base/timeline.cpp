#include "base/timeline.h"

#include <unistd.h>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"

namespace weft {
namespace {

double microseconds(Timeline::Clock::duration time) { return std::chrono::duration<double, std::micro>(time).count(); }

}  // namespace

Timeline::Timeline(std::string path, std::function<void(const std::string&)> warn)
    : path_(std::move(path)), warn_(std::move(warn)), file_(path_, std::ios::trunc) {
  USER_CHECK(file_, "[--trace] {} cannot be written: {}", quote(path_), system_error_text());
  file_ << "[";
}

Timeline::~Timeline() {
  file_ << "\n]\n";
  check_written();
  file_.close();
  check_written();
  if (!file_) warn_(fmt::format("[--trace] {} could not be written to its end: {}", quote(path_), reason_));
}

// The system's error is only known until the next call of the system.
void Timeline::check_written() {
  if (!file_ && reason_.empty()) reason_ = system_error_text();
}

void Timeline::add(const char* category, const TimelineEvent& event, Clock::time_point begin, Clock::time_point end) {
  Json arguments = Json::object();
  for (const auto& [name, value] : event.arguments)
    if (!value.empty()) arguments[name] = value;
  const std::lock_guard guard(lock_);
  const bool is_first = threads_.empty();
  const int thread = threads_.try_emplace(std::this_thread::get_id(), static_cast<int>(threads_.size())).first->second;
  file_ << (is_first ? "\n" : ",\n")
        << fmt::format(R"({{"name":{},"cat":"{}","ph":"X","ts":{:.3f},"dur":{:.3f},"pid":{},"tid":{},"args":{}}})",
                       json_text(event.name), category, microseconds(begin.time_since_epoch()),
                       microseconds(end - begin), ::getpid(), thread, json_text(arguments));
  check_written();
}

void show_laps(Stopwatch& watch, const std::shared_ptr<Timeline>& timeline, const char* category,
               const TimelineEvent::Arguments& arguments) {
  if (timeline == nullptr) return;
  watch.observe([=](const std::string& name, Timeline::Clock::time_point begin, Timeline::Clock::time_point end) {
    timeline->add(category, {name, arguments}, begin, end);
  });
}

}  // namespace weft
