#pragma once

// Writes the events of a program to a file for chrome://tracing and Perfetto. The file has Chrome's Trace Event Format:
// an array of events with thread, start time and duration.
//
//   [{"name":"rms_norm","cat":"launch","ph":"X","ts":8417.201,"dur":4.110,"pid":1,"tid":0,"args":{"provider":"cpu"}},
//
// Times are microseconds of the steady clock. A killed program leaves an array without its end, which both viewers
// accept. One step of a model with 30 layers takes about 60 KB.

#include <chrono>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/stopwatch.h"

namespace weft {

struct TimelineEvent {
  using Arguments = std::vector<std::pair<const char*, std::string>>;

  std::string name;
  Arguments arguments = {};  // shown with the event, except empty ones
};

class Timeline {
 public:
  using Clock = Stopwatch::Clock;

  // Overwrites the file at `path`; UserError if that fails. Later failures are reported to `warn`.
  Timeline(std::string path, std::function<void(const std::string&)> warn);
  // Writes the remaining events.
  ~Timeline();
  Timeline(const Timeline&) = delete;
  Timeline& operator=(const Timeline&) = delete;

  // Adds an event of the calling thread. Any thread may call it.
  void add(const char* category, const TimelineEvent& event, Clock::time_point begin, Clock::time_point end);

 private:
  void check_written();

  std::string path_;
  std::function<void(const std::string&)> warn_;
  std::mutex lock_;
  std::ofstream file_;
  std::string reason_;                      // of the first write that failed
  std::map<std::thread::id, int> threads_;  // numbered in order of their first event
};

// Adds an event that lasts from construction to the end of the scope. `describe` returns the event at the end. A null
// timeline adds none.
template <class Describe>
class TimelineScope {
 public:
  TimelineScope(Timeline* timeline, const char* category, Describe describe)
      : timeline_(timeline), category_(category), describe_(std::move(describe)) {
    if (timeline_ != nullptr) begin_ = Timeline::Clock::now();
  }
  ~TimelineScope() {
    if (timeline_ == nullptr) return;
    const Timeline::Clock::time_point end = Timeline::Clock::now();
    timeline_->add(category_, describe_(), begin_, end);
  }
  TimelineScope(const TimelineScope&) = delete;
  TimelineScope& operator=(const TimelineScope&) = delete;

 private:
  Timeline* timeline_;
  const char* category_;
  Describe describe_;
  Timeline::Clock::time_point begin_;
};

// Adds an event for each past and future lap of `watch`. A null timeline adds none.
void show_laps(Stopwatch& watch, const std::shared_ptr<Timeline>& timeline, const char* category,
               const TimelineEvent::Arguments& arguments = {});

}  // namespace weft
