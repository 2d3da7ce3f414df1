#include "runtime/cuda/cuda_graph_builder.h"

#include <algorithm>

#include "runtime/cuda/current_guard.h"
#include "runtime/launch_key.h"

namespace weft::cuda {

class CudaGraphBuilder::Launches : public LaunchGraph {
 public:
  Launches(CudaGraphBuilder& graph_builder, const LaunchList& list, std::size_t first, std::size_t last)
      : graph_builder_(graph_builder), list_(list), first_(first), last_(last), launch_key_(list) {
    launch_key_.add(first, last);
  }
  // Launched graphs read the data of their host functions until they end, so recordings are retired, not freed.
  ~Launches() override {
    for (auto& [numbers, entry] : entries_) graph_builder_.queue_.retire(std::move(entry.graph.recording));
  }

  bool has_capture() const override {
    const auto found = find();
    return found != entries_.end() && is_in_place(found->second);
  }

  LaunchGraphCost prepare() override {
    const std::size_t before = graph_builder_.free_bytes();
    const Entry& entry = current();
    graph_builder_.executable_for(entry.graph);
    const std::size_t after = graph_builder_.free_bytes();
    return {.nodes = entry.graph.recording.work.nodes,
            .device_bytes = before > after ? static_cast<std::int64_t>(before - after) : 0};
  }

  void replay() override { graph_builder_.launch(current().graph); }

  void forget() override {
    const auto found = find();
    if (found == entries_.end()) return;
    graph_builder_.queue_.retire(std::move(entries_.at(key_).graph.recording));
    entries_.erase(found);
  }

 private:
  struct Entry {
    Graph graph;
    std::vector<LaunchKey::BoundAddress> addresses;
  };
  using Entries = std::map<std::vector<std::int64_t>, Entry>;  // by LaunchKey's numbers

  Entries::const_iterator find() const {
    launch_key_.numbers(key_);
    return entries_.find(key_);
  }

  bool is_in_place(const Entry& entry) const {
    launch_key_.addresses(addresses_);
    return entry.addresses == addresses_;
  }

  const Entry& current() {
    const auto found = find();
    if (found != entries_.end() && is_in_place(found->second)) return found->second;
    Entry captured = capture();
    const auto place = entries_.find(key_);
    if (place == entries_.end()) return entries_.emplace(key_, std::move(captured)).first->second;
    graph_builder_.queue_.retire(std::move(place->second.graph.recording));
    return place->second = std::move(captured);
  }

  Entry capture() const {
    Entry entry{graph_builder_.record([&] { list_.run(first_, last_); }), {}};
    launch_key_.addresses(entry.addresses);
    return entry;
  }

  CudaGraphBuilder& graph_builder_;
  const LaunchList& list_;
  const std::size_t first_, last_;
  LaunchKey launch_key_;
  Entries entries_;
  // Buffers that are kept between look-ups, so that a look-up does not allocate.
  mutable std::vector<std::int64_t> key_;
  mutable std::vector<LaunchKey::BoundAddress> addresses_;
};

CudaGraphBuilder::CudaGraphBuilder(Driver& driver, Stream stream, DriverQueue& queue)
    : driver_(driver), stream_(stream), queue_(queue) {}

std::unique_ptr<LaunchGraph> CudaGraphBuilder::capture(const LaunchList& list, std::size_t first, std::size_t last) {
  return std::make_unique<Launches>(*this, list, first, last);
}

CudaGraphBuilder::Graph CudaGraphBuilder::record(const std::function<void()>& enqueue) {
  Graph graph{++last_number_, queue_.record(enqueue), nullptr};
  std::erase_if(forms_, [](const auto& known) { return known.second.expired(); });
  std::weak_ptr<Executables>& known = forms_[graph.recording.work.form];
  graph.executables = known.lock();
  if (graph.executables == nullptr) known = graph.executables = std::make_shared<Executables>();
  ++counts_.captures;
  return graph;
}

CudaGraphBuilder::Executable& CudaGraphBuilder::executable_for(const Graph& graph) {
  Executables& known = *graph.executables;
  const auto holder = std::find_if(known.begin(), known.end(),
                                   [&](const Executable& executable) { return executable.holds == graph.number; });
  if (holder != known.end()) return *holder;
  for (Executable& executable : known) {
    if (!driver_.update(*executable.object, *graph.recording.graph)) {
      ++counts_.refusals;
      continue;
    }
    executable.holds = graph.number;
    ++counts_.updates;
    return executable;
  }
  Owner<ExecutableObject> made(driver_, driver_.instantiate(*graph.recording.graph));
  const CurrentGuard guard(driver_, stream_);
  driver_.upload(stream_, *made);
  ++counts_.executables;
  return known.emplace_back(Executable{std::move(made), graph.number});
}

void CudaGraphBuilder::launch(const Graph& graph) {
  const CurrentGuard guard(driver_, stream_);
  driver_.launch(stream_, *executable_for(graph).object);
  ++counts_.launches;
}

std::size_t CudaGraphBuilder::free_bytes() { return driver_.memory(stream_.device).free; }

}  // namespace weft::cuda
