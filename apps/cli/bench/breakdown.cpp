#include "apps/cli/bench/breakdown.h"

#include <algorithm>
#include <chrono>
#include <map>

#include <fmt/format.h>

namespace weft {
namespace {

double seconds_of(const std::function<void()>& repetition) {
  const auto start = std::chrono::steady_clock::now();
  repetition();
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count();
}

double count(std::chrono::nanoseconds time) { return static_cast<double>(time.count()); }

double total(const std::vector<KernelTime>& kernels) {
  double total = 0;
  for (const KernelTime& kernel : kernels) total += kernel.kernels + kernel.barriers;
  return total;
}

}  // namespace

StepMeter::StepMeter(ModelRunner& runner, ThreadPool& threads) : runner_(runner), threads_(threads) {
  runner_.set_launch_times(nullptr);
}

StepMeter::~StepMeter() {
  threads_.measure(nullptr);
  runner_.set_launch_times(nullptr);
  runner_.set_observer({});
}

void StepMeter::measure(const std::function<void()>& repetition, std::int64_t steps, double plain) {
  const auto count = static_cast<double>(std::max<std::int64_t>(steps, 1));
  best_.plain = best_.plain == 0 ? plain / count : std::min(best_.plain, plain / count);
  threads_.measure(&runs_);
  runner_.set_launch_times(&launches_);
  measure_parts(repetition, count);
  measure_kernels(repetition, count);
  threads_.measure(nullptr);
  runner_.set_launch_times(nullptr);
}

double StepMeter::barriers(const RunTimes& times) const {
  return count(times.wall) - count(times.busy) / threads_.threads();
}

void StepMeter::measure_parts(const std::function<void()>& repetition, double steps) {
  launches_ = {};
  runs_ = {};
  const double wall = seconds_of(repetition) / steps;
  if (best_.wall != 0 && wall >= best_.wall) return;
  best_.wall = wall;
  best_.barriers = barriers(runs_) / steps;
  best_.kernels = count(launches_.wall) / steps - best_.barriers;
  best_.alone = count(launches_.wall - runs_.wall) / steps;
  best_.launches = static_cast<double>(launches_.launches) / steps;
  best_.runs = static_cast<double>(runs_.runs) / steps;
}

void StepMeter::measure_kernels(const std::function<void()>& repetition, double steps) {
  std::map<const Kernel*, KernelTime> found;
  LaunchTimes launches = launches_ = {};
  RunTimes runs = runs_ = {};
  runner_.set_observer([&](const PlanStep& step) {
    KernelTime& kernel = found[step.kernel];
    const double waited = barriers(runs_) - barriers(runs);
    kernel.calls += 1 / steps;
    kernel.barriers += waited / steps;
    kernel.kernels += (count(launches_.wall - launches.wall) - waited) / steps;
    launches = launches_;
    runs = runs_;
  });
  repetition();
  runner_.set_observer({});
  std::vector<KernelTime> kernels;
  for (auto& [kernel, time] : found) {
    time.kernel = fmt::format("{}@{}", kernel->op, kernel->provider);
    kernels.push_back(std::move(time));
  }
  std::sort(kernels.begin(), kernels.end(), [](const KernelTime& a, const KernelTime& b) {
    const double of_a = a.kernels + a.barriers, of_b = b.kernels + b.barriers;
    return of_a != of_b ? of_a > of_b : a.kernel < b.kernel;
  });
  if (best_.by_kernel.empty() || total(kernels) < total(best_.by_kernel)) best_.by_kernel = std::move(kernels);
}

void add_breakdown(Json& row, const StepBreakdown& breakdown) {
  row["step_ns"] = breakdown.wall;
  row["step_plain_ns"] = breakdown.plain;
  row["step_measuring_percent"] = 100 * breakdown.cost_of_measuring();
  for (const auto& [part, time] : {std::pair("kernels", breakdown.kernels),
                                   {"barriers", breakdown.barriers},
                                   {"rest", breakdown.rest()},
                                   {"alone", breakdown.alone}}) {
    row[fmt::format("step_{}_ns", part)] = time;
    row[fmt::format("step_{}_percent", part)] = 100 * time / breakdown.wall;
  }
  row["step_launches"] = breakdown.launches;
  row["step_runs"] = breakdown.runs;
  Json kernels = Json::array();
  for (const KernelTime& kernel : breakdown.by_kernel)
    kernels.push_back({{"kernel", kernel.kernel},
                       {"calls", kernel.calls},
                       {"kernels_ns", kernel.kernels},
                       {"barriers_ns", kernel.barriers}});
  row["kernels"] = std::move(kernels);
}

std::string breakdown_markdown(const std::string& test, const StepBreakdown& breakdown) {
  const auto part = [&](double time) {
    return fmt::format("{:.1f} ({:.1f} %)", time / 1e3, 100 * time / breakdown.wall);
  };
  std::string text = fmt::format(
      "\n{}: a step of {:.1f} us, {:.1f} without measuring ({:+.1f} %); {:.0f} calls, {:.0f} shared runs\n\n"
      "| {:<16} | {:<16} | {:<16} | {:<22} |\n| {:-<16} | {:-<16} | {:-<16} | {:-<22} |\n"
      "| {:<16} | {:<16} | {:<16} | {:<22} |\n",
      test, breakdown.wall / 1e3, breakdown.plain / 1e3, 100 * breakdown.cost_of_measuring(), breakdown.launches,
      breakdown.runs, "kernels, us", "barriers, us", "rest, us", "kernels, on one thread", "", "", "", "",
      part(breakdown.kernels), part(breakdown.barriers), part(breakdown.rest()), part(breakdown.alone));
  text += fmt::format("\n| {:<48} | {:>7} | {:>11} | {:>12} |\n| {:-<48} | {:->6}: | {:->10}: | {:->11}: |\n", "kernel",
                      "calls", "kernels, us", "barriers, us", "", "", "", "");
  for (const KernelTime& kernel : breakdown.by_kernel)
    text += fmt::format("| {:<48} | {:>7.1f} | {:>11.1f} | {:>12.1f} |\n", kernel.kernel, kernel.calls,
                        kernel.kernels / 1e3, kernel.barriers / 1e3);
  return text;
}

}  // namespace weft
