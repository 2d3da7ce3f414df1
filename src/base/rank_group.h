#pragma once

// Ranks: workers that run one graph together, each on its share, and what they hand each other. Here they are threads
// of one process, and read each other's memory where it lies.
//
// In base, because kernels call it and may include no more than base and tensor: it knows threads and bytes, and
// nothing of what the bytes stand for.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"

namespace weft {

// Another rank of the group failed, or ended, so that the group cannot meet any more.
class RankGone : public DeviceError {
 public:
  using DeviceError::DeviceError;
};

// What a rank took part in so far.
struct RankTraffic {
  std::int64_t meetings = 0;
  std::int64_t bytes = 0;  // read from others
};

// One rank's place in a group. For the thread of that rank alone.
class RankGroup {
 public:
  using Memories = std::span<const std::span<const std::byte>>;  // by rank

  ~RankGroup();
  RankGroup(const RankGroup&) = delete;
  RankGroup& operator=(const RankGroup&) = delete;

  const std::string& name() const;
  int size() const;
  int rank() const { return rank_; }
  const RankTraffic& traffic() const { return traffic_; }

  // Every rank of the group comes with memory of its own, reads what all brought, and goes on when all have read.
  // `read` returns how many bytes it took from others; what it throws is rethrown when all have read. `purpose` says
  // what for, and must be the same on every rank: UserError on all of them when it is not. RankGone when a rank left
  // before all were there.
  void meet(const std::string& purpose, std::span<const std::byte> own,
            const std::function<std::int64_t(Memories)>& read);
  // The others must not wait for this rank any more, because of `reason`: "rank 1 failed: ...".
  void leave(const std::string& reason);

  // The places of a new group, by rank.
  static std::vector<std::shared_ptr<RankGroup>> make(const std::string& name, int size);

 private:
  struct Shared;
  RankGroup(std::shared_ptr<Shared> shared, int rank);

  std::shared_ptr<Shared> shared_;
  int rank_;
  RankTraffic traffic_;
};

// The groups that one rank is in, by name. None: a process that is alone.
class RankGroups {
 public:
  void add(std::shared_ptr<RankGroup> group);
  // UserError, `[op] ...`, when this rank is in no group of the name, or in one of another size.
  RankGroup& at(const std::string& name, std::int64_t size, const std::string& op) const;
  const std::map<std::string, std::shared_ptr<RankGroup>>& all() const { return groups_; }

 private:
  std::map<std::string, std::shared_ptr<RankGroup>> groups_;
};

// Runs `body` on as many threads, each a rank of one group of each name, and returns when all have ended. What a rank
// throws takes the others out of their meetings and is thrown here; of several the one of the lowest rank. DeviceError
// when the system gives no more threads.
void run_ranks(int ranks, std::span<const std::string> groups,
               const std::function<void(int rank, const RankGroups& groups)>& body);

}  // namespace weft
