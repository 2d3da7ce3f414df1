#pragma once

// What a program did and when, as a file for chrome://tracing and Perfetto: Chrome's Trace Event Format, an array of
// events with a beginning and a duration, by thread.
//
//   [{"name":"rms_norm","cat":"launch","ph":"X","ts":8417.201,"dur":4.110,"pid":1,"tid":0,"args":{"provider":"cpu"}},
//
// Times are microseconds of the steady clock. A program that is killed leaves an array without its end, which both
// viewers read. A step of a model with 30 layers is some 60 KB.

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
  Arguments arguments = {};  // shown beside it; empty ones are not
};

class Timeline {
 public:
  using Clock = Stopwatch::Clock;

  // What is at `path` is written over. UserError where it cannot be; `warn` is told what fails later.
  Timeline(std::string path, std::function<void(const std::string&)> warn);
  // Writes what is left.
  ~Timeline();
  Timeline(const Timeline&) = delete;
  Timeline& operator=(const Timeline&) = delete;

  // From any thread, which it is then an event of.
  void add(const char* category, const TimelineEvent& event, Clock::time_point begin, Clock::time_point end);

 private:
  std::string path_;
  std::function<void(const std::string&)> warn_;
  std::mutex lock_;
  std::ofstream file_;
  std::map<std::thread::id, int> threads_;  // numbered as they come
};

// An event from here to the end of the scope, that `describe` gives at its end; none where there is no timeline.
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

// Each lap of `watch`, those that were and those to come, becomes an event; nothing where there is no timeline.
void show_laps(Stopwatch& watch, const std::shared_ptr<Timeline>& timeline, const char* category,
               const TimelineEvent::Arguments& arguments = {});

}  // namespace weft
