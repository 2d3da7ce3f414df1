#pragma once

// Stretches of a launch list as CUDA graphs. A graph holds the numbers and addresses of one run (runtime/launch_key.h),
// so each token count has its own, with attention inside each count of sequences, too; where addresses moved it is
// captured again. Graphs of the same form, as those of equal pieces and of other sizes, share one executable, which is
// given the parameters of the graph that is launched next where it holds another's. It is the device's from the capture
// on, and gone with the last of them.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/capture.h"
#include "runtime/cuda/driver_queue.h"

namespace weft::cuda {

class GraphCapturer : public Capturer {
 public:
  // All must outlive the capturer, and it what it captures.
  GraphCapturer(Driver& driver, Stream stream, DriverQueue& queue);

  std::unique_ptr<CapturedLaunches> capture(const LaunchList& list, std::size_t first, std::size_t last) override;

  struct Counts {
    std::int64_t captures = 0;     // graphs, those captured again included
    std::int64_t executables = 0;  // that were made
    std::int64_t updates = 0;      // executables given another graph's parameters
    std::int64_t refusals = 0;     // updates that the driver refused
    std::int64_t launches = 0;
  };
  const Counts& counts() const { return counts_; }

 private:
  struct Executable {
    Owner<ExecutableObject> object;
    std::uint64_t holds;  // number of the graph whose parameters it has
  };
  using Executables = std::vector<Executable>;  // of one form
  struct Graph {
    std::uint64_t number;  // no other has it
    DriverQueue::Recording recording;
    std::shared_ptr<Executables> executables;
  };
  class Launches;

  Graph record(const std::function<void()>& give);
  Executable& executable_for(const Graph& graph);
  void launch(const Graph& graph);
  std::size_t free_bytes();

  Driver& driver_;
  const Stream stream_;
  DriverQueue& queue_;
  std::uint64_t last_number_ = 0;
  std::map<std::string, std::weak_ptr<Executables>> forms_;
  Counts counts_;
};

}  // namespace weft::cuda
