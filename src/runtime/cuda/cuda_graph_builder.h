#pragma once

// Captures stretches of a launch list as CUDA graphs. A graph holds the numbers and addresses of one run
// (runtime/launch_key.h), so each token count has its own graph; with attention inside, so has each count of sequences.
// When addresses change, the graph is captured again. Graphs of the same form, such as those of equal pieces or of
// other sizes, share one executable; before a launch the executable is updated to the graph's parameters if it holds
// another graph's. The executable takes device memory from the capture on and is destroyed with the last of these
// graphs.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/cuda/driver_queue.h"
#include "runtime/launch_graph.h"

namespace weft::cuda {

class CudaGraphBuilder : public LaunchGraphBuilder {
 public:
  // The arguments must outlive the graph builder, and the graph builder must outlive its captures.
  CudaGraphBuilder(Driver& driver, Stream stream, DriverQueue& queue);

  std::unique_ptr<LaunchGraph> capture(const LaunchList& list, std::size_t first, std::size_t last) override;

  struct Counts {
    std::int64_t captures = 0;     // graphs, repeated captures included
    std::int64_t executables = 0;  // executables that were instantiated
    std::int64_t updates = 0;      // updates of an executable to another graph
    std::int64_t refusals = 0;     // updates that the driver refused
    std::int64_t launches = 0;
  };
  const Counts& counts() const { return counts_; }

 private:
  struct Executable {
    Owner<ExecutableObject> object;
    std::uint64_t holds;  // the number of the graph whose parameters it holds
  };
  using Executables = std::vector<Executable>;  // those of one form
  struct Graph {
    std::uint64_t number;  // unique
    DriverQueue::Recording recording;
    std::shared_ptr<Executables> executables;
  };
  class Launches;

  Graph record(const std::function<void()>& enqueue);
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
