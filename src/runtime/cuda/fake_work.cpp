#include "runtime/cuda/fake_work.h"

#include <algorithm>
#include <set>

#include "base/error.h"

namespace weft::cuda {
namespace {

bool is_ready(const FakeWork& work) {
  return std::all_of(work.after.begin(), work.after.end(), [](const WorkPointer& before) { return before->is_done; });
}

void finish(FakeWork& work) {
  work.is_done = true;
  work.after.clear();
  work.operation = {};
}

// The work and all that must be done before it.
std::set<const FakeWork*> needed_for(const WorkPointer& work) {
  std::set<const FakeWork*> needed;
  std::vector<const FakeWork*> open{work.get()};
  while (!open.empty()) {
    const FakeWork* next = open.back();
    open.pop_back();
    if (next->is_done || !needed.insert(next).second) continue;
    for (const WorkPointer& before : next->after) open.push_back(before.get());
  }
  return needed;
}

}  // namespace

WorkPointer FakeQueue::add(FakeOperation operation, std::vector<WorkPointer> after) {
  std::erase_if(after, [](const WorkPointer& before) { return before->is_done; });
  auto work = std::make_shared<FakeWork>(FakeWork{std::move(operation), std::move(after)});
  waiting_.push_back(work);
  if (!is_late_) run(waiting_.size() - 1);
  return work;
}

void FakeQueue::run(std::size_t index) {
  const WorkPointer work = waiting_[index];
  waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(index));
  run_(work->operation);
  finish(*work);
  work->done_at = ++done_;
}

bool FakeQueue::run_one(const std::function<bool(const FakeWork&)>& is_wanted) {
  std::vector<std::size_t> ready;
  for (std::size_t i = 0; i < waiting_.size(); ++i)
    if (is_ready(*waiting_[i]) && is_wanted(*waiting_[i])) ready.push_back(i);
  if (ready.empty()) return false;
  run(choose(ready));
  return true;
}

std::size_t FakeQueue::choose(const std::vector<std::size_t>& ready) {
  constexpr std::size_t kStepsInFavour = 8;  // the average number of steps that a stream is preferred
  std::size_t chosen = ready.front();
  std::uint64_t highest = 0;
  for (const std::size_t index : ready) {
    const auto [favour, is_new] = favours_.try_emplace(waiting_[index]->operation.stream, 0);
    if (is_new) favour->second = random_();
    if (favour->second > highest || (favour->second == highest && below(2) == 0)) chosen = index;
    highest = std::max(highest, favour->second);
  }
  if (below(kStepsInFavour) == 0) favours_[waiting_[chosen]->operation.stream] = random_();
  return chosen;
}

void FakeQueue::run_some() {
  while (below(steps_between_) == 0)
    if (!run_one([](const FakeWork&) { return true; })) return;
}

void FakeQueue::run_until(const WorkPointer& work) {
  // In half of the calls, work that is not needed stays queued as long as possible.
  const bool only_needed = below(2) == 0;
  const std::set<const FakeWork*> needed = only_needed ? needed_for(work) : std::set<const FakeWork*>();
  while (!work->is_done)
    CHECK(run_one([&](const FakeWork& next) { return !only_needed || needed.contains(&next); }),
          "work of a fake device waits for itself");
}

void FakeQueue::run_device(int device) {
  std::vector<WorkPointer> wanted;
  for (const WorkPointer& work : waiting_)
    if (work->operation.device == device) wanted.push_back(work);
  for (const WorkPointer& work : wanted) run_until(work);
}

void FakeQueue::drop_device(int device) {
  std::vector<WorkPointer> dropped;
  for (const WorkPointer& work : waiting_)
    if (work->operation.device == device) dropped.push_back(work);
  std::erase_if(waiting_, [&](const WorkPointer& work) { return work->operation.device == device; });
  for (const WorkPointer& work : dropped) finish(*work);
}

}  // namespace weft::cuda
