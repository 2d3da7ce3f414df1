#include "parallel/rank_group.h"

#include <condition_variable>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>

namespace weft {

struct RankGroup::Shared {
  explicit Shared(std::string group, int size)
      : name(std::move(group)), memories(static_cast<std::size_t>(size)), purposes(memories.size()) {}

  const std::string name;
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::span<const std::byte>> memories;  // by rank, of this barrier
  std::vector<std::string> purposes;                 // likewise
  std::size_t arrived = 0;
  std::size_t finished = 0;
  std::uint64_t meeting = 0;  // the index of the current barrier
  bool complete = false;      // whether all ranks have arrived at it
  std::string disagreement;   // the purposes of the ranks, if they differ
  std::string gone;           // the first reason why no further barrier is possible

  // Called by the last rank that arrives.
  void open() {
    complete = true;
    for (std::size_t rank = 1; rank < purposes.size() && disagreement.empty(); ++rank)
      if (purposes[rank] != purposes[0])
        disagreement = fmt::format("rank 0 runs {}, but rank {} runs {}", purposes[0], rank, purposes[rank]);
    changed.notify_all();
  }

  void close() {
    arrived = finished = 0;
    complete = false;
    ++meeting;
    changed.notify_all();
  }
};

RankGroup::RankGroup(std::shared_ptr<Shared> shared, int rank) : shared_(std::move(shared)), rank_(rank) {}
RankGroup::~RankGroup() = default;

const std::string& RankGroup::name() const { return shared_->name; }
int RankGroup::size() const { return static_cast<int>(shared_->memories.size()); }

std::vector<std::shared_ptr<RankGroup>> RankGroup::make(const std::string& name, int size) {
  CHECK(size >= 1, "[group {}] must have a rank at least, but is made for {}", name, size);
  const auto shared = std::make_shared<Shared>(name, size);
  std::vector<std::shared_ptr<RankGroup>> places;
  for (int rank = 0; rank < size; ++rank) places.emplace_back(new RankGroup(shared, rank));
  return places;
}

void RankGroup::meet(const std::string& purpose, std::span<const std::byte> own,
                     const std::function<std::int64_t(Memories)>& read) {
  Shared& shared = *shared_;
  std::unique_lock lock(shared.mutex);
  if (!shared.gone.empty()) throw RankGone(fmt::format("[group {}] {}", shared.name, shared.gone));
  const std::uint64_t meeting = shared.meeting;
  shared.memories[static_cast<std::size_t>(rank_)] = own;
  shared.purposes[static_cast<std::size_t>(rank_)] = purpose;
  if (++shared.arrived == shared.memories.size()) shared.open();
  shared.changed.wait(lock, [&] { return shared.complete || !shared.gone.empty(); });
  if (!shared.complete) throw RankGone(fmt::format("[group {}] {}", shared.name, shared.gone));
  const std::string disagreement = shared.disagreement;
  lock.unlock();

  // The other ranks read this rank's memory until all have finished, so this rank must not leave earlier, even after an
  // exception.
  std::exception_ptr failure;
  if (disagreement.empty()) {
    try {
      const std::int64_t bytes = read(shared.memories);
      ++traffic_.meetings;
      traffic_.bytes += bytes;
    } catch (...) {
      failure = std::current_exception();
    }
  }

  lock.lock();
  if (++shared.finished == shared.memories.size()) shared.close();
  shared.changed.wait(lock, [&] { return shared.meeting != meeting; });
  if (failure) std::rethrow_exception(failure);
  USER_CHECK(disagreement.empty(), "[group {}] {}", shared.name, disagreement);
}

void RankGroup::leave(const std::string& reason) {
  const std::lock_guard lock(shared_->mutex);
  if (shared_->gone.empty()) shared_->gone = reason;
  shared_->changed.notify_all();
}

void RankGroups::add(std::shared_ptr<RankGroup> group) {
  const auto [place, is_new] = groups_.emplace(group->name(), group);
  CHECK(is_new, "[group {}] there are two of this name", place->first);
}

RankGroup& RankGroups::at(const std::string& name, std::int64_t size, const std::string& op) const {
  const auto group = groups_.find(name);
  USER_CHECK(group != groups_.end(), "[{}] wanted the {} ranks of group {}, but this process is in no such group", op,
             size, name);
  USER_CHECK(group->second->size() == size, "[{}] world_size must be the {} ranks of group {}, but is {}", op,
             group->second->size(), name, size);
  return *group->second;
}

namespace {

// The exceptions that ended the ranks of one run.
struct RankEnds {
  std::vector<std::exception_ptr> failures, consequences;  // by rank

  void rethrow_first() const {
    for (const auto* errors : {&failures, &consequences})
      for (const std::exception_ptr& error : *errors)
        if (error) std::rethrow_exception(error);
  }
};

void run_rank(int rank, const RankGroups& groups, const std::function<void(int, const RankGroups&)>& body,
              RankEnds& ends) {
  std::string reason = fmt::format("rank {} has ended", rank);
  try {
    body(rank, groups);
  } catch (const RankGone& gone) {
    ends.consequences[static_cast<std::size_t>(rank)] = std::current_exception();
    reason = gone.what();
  } catch (const std::exception& error) {
    ends.failures[static_cast<std::size_t>(rank)] = std::current_exception();
    reason = fmt::format("rank {} failed: {}", rank, error.what());
  }
  for (const auto& [name, group] : groups.all()) group->leave(reason);
}

}  // namespace

void run_ranks(int ranks, std::span<const std::string> groups,
               const std::function<void(int, const RankGroups&)>& body) {
  const auto count = static_cast<std::size_t>(ranks);
  std::vector<RankGroups> places(count);
  for (const std::string& name : groups) {
    const auto made = RankGroup::make(name, ranks);
    for (std::size_t rank = 0; rank < count; ++rank) places[rank].add(made[rank]);
  }
  RankEnds ends{std::vector<std::exception_ptr>(count), std::vector<std::exception_ptr>(count)};
  std::vector<std::thread> threads;
  std::string refused;
  try {
    for (int rank = 0; rank < ranks; ++rank)
      threads.emplace_back([&, rank] { run_rank(rank, places[static_cast<std::size_t>(rank)], body, ends); });
  } catch (const std::system_error& error) {
    refused = error.what();
    for (const auto& [name, group] : places[0].all()) group->leave("there is no thread for each rank");
  }
  for (std::thread& thread : threads) thread.join();
  if (!refused.empty())
    fail_device("[ranks] wanted {} threads, but the system gives {}: {}", ranks, threads.size(), refused);
  ends.rethrow_first();
}

}  // namespace weft
