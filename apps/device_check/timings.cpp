#include "apps/device_check/timings.h"

#include <algorithm>

#include "apps/device_check/device_memory.h"
#include "apps/device_check/timed_launches.h"
#include "base/error.h"
#include "runtime/cuda/current_guard.h"

namespace weft::device_check {

using namespace cuda;

namespace {

constexpr int kLaunchesOfGraph = 20, kWarmUps = 3, kGraphs = 13;
constexpr std::size_t kCopiedBytes = std::size_t{1} << 30;

double bytes_of(const TimedSubject& subject, TimedSize size) {
  return subject.bytes_of_element * size.rows * size.columns;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// Of what `run` queues, in microseconds.
double median_time(Target& target, const std::function<void(Stream)>& run) {
  Driver& driver = target.driver();
  const Stream stream = target.stream();
  const Owner<EventObject> before(driver, driver.create_event(target.device(), true));
  const Owner<EventObject> after(driver, driver.create_event(target.device(), true));
  std::vector<double> times;
  for (int i = 0; i < kWarmUps + kGraphs; ++i) {
    driver.record(*before, stream);
    run(stream);
    driver.record(*after, stream);
    driver.synchronize(*after);
    if (i >= kWarmUps) times.push_back(1e3 * static_cast<double>(driver.milliseconds_between(*before, *after)));
  }
  return median(std::move(times));
}

double copied_bytes_per_second(Target& target) {
  constexpr int kCopies = 10;
  DeviceMemory memory(target);
  void* from = memory.add(kCopiedBytes);
  void* to = memory.add(kCopiedBytes);
  target.driver().fill(target.stream(), from, 1, kCopiedBytes);
  const double microseconds = median_time(target, [&](Stream stream) {
    for (int i = 0; i < kCopies; ++i) target.driver().copy(stream, to, from, kCopiedBytes);
  });
  return 2.0 * kCopies * static_cast<double>(kCopiedBytes) / (microseconds * 1e-6);
}

// One launch, in microseconds.
double time_of(Target& target, const TimedSubject& subject, TimedSize size) {
  Driver& driver = target.driver();
  DeviceMemory memory(target);
  // As many as it takes for none of them to be in the caches when it is used again.
  const double bytes = bytes_of(subject, size);
  const double caches = 4.0 * static_cast<double>(driver.facts(target.device()).level_two_bytes);
  std::vector<TimedBuffers> sets;
  for (int count = std::clamp(static_cast<int>(caches / bytes) + 1, 1, kLaunchesOfGraph); count > 0; --count)
    sets.push_back(add_buffers(memory, subject, size));
  const auto launch_all = [&](Stream stream) {
    Launcher launch(target, stream);
    for (std::size_t i = 0; i < kLaunchesOfGraph; ++i) subject.launch(launch, sets[i % sets.size()], size);
  };
  launch_all(target.stream());  // loads the code, which a capture must not
  driver.synchronize(target.stream());
  if (!subject.in_graph) return median_time(target, launch_all) / kLaunchesOfGraph;
  CaptureScope scope(driver, target.stream());
  launch_all(target.stream());
  const Owner<GraphObject> graph = scope.end();
  const Owner<ExecutableObject> executable(driver, driver.instantiate(*graph));
  return median_time(target, [&](Stream stream) { driver.launch(stream, *executable); }) / kLaunchesOfGraph;
}

// "" or what went wrong with one launch.
std::string problem_of(Target& target, const TimedSubject& subject, TimedSize size) {
  try {
    DeviceMemory memory(target);
    const TimedBuffers buffers = add_buffers(memory, subject, size);
    Launcher launcher(target, target.stream());
    subject.launch(launcher, buffers, size);
    target.driver().synchronize(target.stream());
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

}  // namespace

std::vector<CheckedCase> check_timed_launches(Target& target) {
  // Four heads of queries; and a page of a prompt, or one sequence.
  constexpr std::uint32_t kColumns = 4 * kTimedHeadDim, kSequences = 1;
  std::vector<CheckedCase> results;
  for (const TimedSubject& subject : timed_subjects()) {
    if (!target.lost().empty()) break;
    const TimedSize size{subject.decode_tokens > 0 ? kSequences : kPageTokens, kColumns};
    const std::string problem = problem_of(target, subject, size);
    results.push_back({subject.what, problem.empty() ? Outcome::passed : Outcome::failed, problem});
    // A kernel that failed took its device with it.
    target.mend();
  }
  return results;
}

std::vector<Timing> planned_timings() {
  std::vector<Timing> timings;
  for (const TimedSubject& subject : timed_subjects())
    for (const TimedSize size : subject.sizes)
      timings.push_back({.what = subject.what,
                         .rows = size.rows,
                         .columns = size.columns,
                         .bytes = bytes_of(subject, size),
                         .target_share = size.target_share,
                         .microseconds = {}});
  return timings;
}

void measure(Target& target, const std::string& name, Report& report) {
  report.timings = planned_timings();
  report.copied_bytes_per_second = copied_bytes_per_second(target);
  std::size_t i = 0;
  for (const TimedSubject& subject : timed_subjects())
    for (const TimedSize size : subject.sizes) {
      Timing& timing = report.timings[i++];
      if (timing_label(timing).find(name) != std::string::npos) timing.microseconds = time_of(target, subject, size);
    }
}

}  // namespace weft::device_check
