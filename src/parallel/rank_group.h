#pragma once

// Ranks are workers that run one graph together, each on its share, and exchange data. Here they are threads of one
// process and read each other's memory directly.
//
// This file is in base because kernels call it and may include only base and tensor. It handles threads and bytes, and
// does not interpret the bytes.

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

// Another rank of the group failed or ended, so the group cannot complete its next barrier.
class RankGone : public DeviceError {
 public:
  using DeviceError::DeviceError;
};

// The barriers and bytes of one rank so far.
struct RankTraffic {
  std::int64_t meetings = 0;
  std::int64_t bytes = 0;  // read from other ranks
};

// The membership of one rank in a group. Only the thread of that rank may use it.
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

  // A barrier with data exchange. Each rank of the group passes its own memory, calls `read` with the memories of all
  // ranks, and continues after all ranks have read. `read` returns the number of bytes that it read from others; meet()
  // rethrows its exception after all ranks have read. `purpose` names the exchange and must be equal on all ranks:
  // otherwise all of them get a UserError. RankGone if a rank left before all had arrived.
  void meet(const std::string& purpose, std::span<const std::byte> own,
            const std::function<std::int64_t(Memories)>& read);
  // The other ranks stop waiting for this rank, because of `reason`: "rank 1 failed: ...".
  void leave(const std::string& reason);

  // Creates a group and returns its members by rank.
  static std::vector<std::shared_ptr<RankGroup>> make(const std::string& name, int size);

 private:
  struct Shared;
  RankGroup(std::shared_ptr<Shared> shared, int rank);

  std::shared_ptr<Shared> shared_;
  int rank_;
  RankTraffic traffic_;
};

// The groups of one rank by name. A process without other ranks has none.
class RankGroups {
 public:
  void add(std::shared_ptr<RankGroup> group);
  // UserError, `[op] ...`, if this rank is in no group with this name, or if the group has another size.
  RankGroup& at(const std::string& name, std::int64_t size, const std::string& op) const;
  const std::map<std::string, std::shared_ptr<RankGroup>>& all() const { return groups_; }

 private:
  std::map<std::string, std::shared_ptr<RankGroup>> groups_;
};

// Runs `body` on `ranks` threads, each of which is a rank of one group per name, and returns after all have ended. If a
// rank throws, the others leave their barriers with RankGone and the exception is rethrown here; of several, that of
// the lowest rank. DeviceError if the system provides no more threads.
void run_ranks(int ranks, std::span<const std::string> groups,
               const std::function<void(int rank, const RankGroups& groups)>& body);

}  // namespace weft
