#include "tests/cuda/ptx/built_ptx.h"

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <set>

#include "base/error.h"
#include "base/files.h"
#include "kernels/cuda/lib/run_call.h"
#include "kernels/launch_queue.h"

namespace weft::ptx {
namespace {

// tools/check_seeded_faults.py names another one.
std::filesystem::path folder() {
  const char* given = std::getenv("WEFT_TEST_PTX");
  return given != nullptr ? given : WEFT_PTX_FOLDER;
}

// Read once in a process.
std::shared_ptr<Interpreter> file_of(const std::filesystem::path& path) {
  static std::map<std::string, std::shared_ptr<Interpreter>> files;
  std::shared_ptr<Interpreter>& file = files[path.string()];
  if (file == nullptr)
    file = std::make_shared<Interpreter>(read_file(path.string(), 64u << 20), path.filename().string());
  return file;
}

class PtxQueue : public LaunchQueue {
 public:
  PtxQueue(BuiltPtx& ptx, const KernelCall& call) : ptx_(ptx), memory_(cuda::memory_of(call)) {}

  std::string device() const override { return "the interpreter"; }
  void launch(const std::string& kernel, const LaunchShape& shape, std::span<const std::byte> arguments) override {
    ptx_.run(kernel, shape, arguments.data(), arguments.size(), memory_);
  }
  void run_on_host(const std::string& name, std::function<void()>) override { CHECK(false, "[{}] is no launch", name); }

 private:
  BuiltPtx& ptx_;
  cuda::MemoryMap memory_;
};

}  // namespace

std::string absence_of_ptx() {
  const std::filesystem::path reason = folder() / "absent.txt";
  return std::filesystem::exists(reason) ? read_file(reason.string(), 1u << 16) : "";
}

std::vector<int> architectures_of_ptx() {
  std::set<int> found;
  for (const auto& entry : std::filesystem::directory_iterator(folder()))
    if (entry.path().extension() == ".ptx") found.insert(std::stoi(entry.path().stem().extension().string().substr(1)));
  return {found.begin(), found.end()};
}

BuiltPtx::BuiltPtx(int architecture) {
  const std::string ending = fmt::format(".{}.ptx", architecture);
  for (const auto& entry : std::filesystem::directory_iterator(folder())) {
    const std::string name = entry.path().filename().string();
    if (!name.ends_with(ending)) continue;
    const std::shared_ptr<Interpreter> file = file_of(entry.path());
    CHECK(file->architecture() == architecture, "[{}] is for sm_{}", name, file->architecture());
    for (const std::string& kernel : file->kernels()) kernels_.emplace(kernel, file);
  }
}

void BuiltPtx::run(const std::string& kernel, const LaunchShape& shape, const void* arguments, std::size_t bytes,
                   cuda::MemoryMap& memory) {
  const auto found = kernels_.find(kernel);
  CHECK(found != kernels_.end(), "[ptx] no file has kernel {}", kernel);
  ++runs_[kernel];
  found->second->run(kernel, shape, arguments, bytes, memory);
}

std::vector<std::string> BuiltPtx::used() const {
  std::vector<std::string> names;
  for (const auto& [name, count] : runs_) names.push_back(name);
  return names;
}

void BuiltPtx::take_over(const Context& context) {
  for (const std::string& op : context.kernels.ops()) {
    for (const std::string& provider : context.kernels.providers(op)) {
      if (!provider.starts_with("cuda")) continue;
      auto& kernel = const_cast<Kernel&>(*context.kernels.find(op, provider));
      kernel.run = [this, run = kernel.run](const KernelCall& call) {
        PtxQueue queue(*this, call);
        KernelCall queued = call;
        queued.queue = &queue;
        run(queued);
      };
    }
  }
}

}  // namespace weft::ptx
