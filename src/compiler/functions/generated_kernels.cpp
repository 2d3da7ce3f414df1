#include "compiler/functions/generated_kernels.h"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "base/error.h"
#include "codegen/compile_rows.h"
#include "codegen/cuda_row_text.h"
#include "codegen/row_compiler.h"
#include "compiler/context.h"
#include "compiler/functions/device_rows.h"
#include "ir/print.h"
#include "runtime/cuda/stream_device.h"
#include "tensor/vector_lanes.h"

namespace weft {
namespace {

// The displayed text of a graph. The first function that must be compiled makes it once for all functions of the piece.
class GraphText {
 public:
  const std::string& of(const Graph& graph) {
    std::call_once(made_, [&] { text_ = display(graph); });
    return text_;
  }

 private:
  std::once_flag made_;
  std::string text_;
};

// A function that is being compiled.
struct Made {
  const RowProgram* program;
  const Graph* graph = nullptr;  // the graph it was made from; null if unknown
  GraphText* graph_text = nullptr;
  std::vector<std::byte> object = {};
  std::shared_ptr<const LoadedCode> code = nullptr;
  std::string problem = {};
  std::vector<std::byte> image = {};
  std::string image_problem = {};
  bool was_found = false;  // in the compile cache
  bool may_come = false;   // a later attempt may yield an image: the program is not the cause

  void refuse_image(std::string reason, bool may_come_later) {
    image.clear();
    image_problem = std::move(reason);
    may_come = may_come_later;
  }
};

CacheKey key_of(const RowProgram& program, const DeviceDescription& device) {
  return {"rows",
          {{"llvm", std::string(row_emitter_llvm())},
           {"emitter", std::string(row_emitter_hash())},
           {"lanes", std::to_string(vector_lanes(device.features))},
           {"program", hash_bytes(program.text()).hex()}}};
}

GeneratedFunction function_of(const RowProgram& program) {
  GeneratedFunction function{.name = program.kernel_name(),
                             .row_bytes = program.row_bytes(),
                             .scratch_bytes = program.scratch_bytes(),
                             .parts = program.tuning.parts,
                             .chunks = program.tuning.chunks};
  for (const RowBuffer& buffer : program.buffers)
    if (buffer.numbers >= 0) function.numbers.push_back({buffer.numbers, buffer.taken_from});
  for (const RowBuffer& buffer : program.buffers)
    if (buffer.is_output) function.over.push_back(buffer.over);
  return function;
}

// Makes the code for the host. `host_problem` is why the host cannot compile; "" if it can.
void make_object(Made& made, const std::string& host_problem, const Context& context) {
  const CacheKey key = key_of(*made.program, context.device);
  const std::string name = made.program->name();
  const auto entry = context.cache->find(key);
  context.first_time_work->begin(entry ? FirstTime::load : FirstTime::compile, name);
  const TimelineScope event(context.timeline.get(), entry ? "load" : "generate", [&] { return TimelineEvent{name}; });
  made.was_found = entry.has_value();
  if (entry) {
    made.object.assign(entry->payload().begin(), entry->payload().end());
  } else if (!host_problem.empty()) {
    made.problem = host_problem;
  } else {
    made.object = compile_rows(*made.program, context.device.features, made.problem, context.options.debug_dump_path,
                               made.graph == nullptr ? "" : made.graph_text->of(*made.graph));
  }
  if (!made.problem.empty()) {
    if (!made.image_problem.empty()) made.problem += "; for the device: " + made.image_problem;
    return;
  }
  try {
    made.code = LoadedCode::load(made.object);
  } catch (const DeviceError& error) {  // the system forbids making memory executable
    made.problem = error.what();
  }
  if (!entry) context.cache->store(key, made.object);
}

void make_image(Made& made, const DeviceRows& rows, std::span<const std::string> compilers, const Context& context) {
  try {
    const cuda::NvrtcSource source = rows.source(*made.program);
    for (const std::string& compiler : compilers)
      if (const auto entry = context.cache->find(rows.key(source, compiler))) {
        context.first_time_work->begin(FirstTime::load, source.name);
        made.image.assign(entry->payload().begin(), entry->payload().end());
        made.was_found = true;
        return;
      }
    if (!rows.problem().empty()) return made.refuse_image(rows.problem(), true);
    context.first_time_work->begin(FirstTime::compile, source.name);
    made.image = rows.compile(source);
    context.cache->store(rows.key(source, compilers.front()), made.image);
  } catch (const UserError& error) {
    made.refuse_image(error.what(), false);
  } catch (const DeviceError& error) {  // an error of the compiler: no device is used here
    made.refuse_image(error.what(), true);
  }
}

void log_cache(const std::vector<Made>& made, const Context& context) {
  if (made.empty() || context.log.detail("cache") == Log::Detail::none) return;
  const auto found = std::count_if(made.begin(), made.end(), [](const Made& one) { return one.was_found; });
  context.log.say("cache", Log::Detail::some,
                  fmt::format("{} functions found, {} compiled{}", found, std::ssize(made) - found,
                              context.cache->enabled() ? "" : ": the compile cache is off"));
  for (const Made& one : made)
    context.log.say("cache", Log::Detail::more,
                    fmt::format("{}: {}", one.program->kernel_name(), one.was_found ? "found" : "compiled"));
}

}  // namespace

std::string GeneratedKernels::compile(std::span<const RowProgram* const> programs, const Context& context,
                                      std::span<const Graph* const> graphs) {
  const std::lock_guard guard(lock_);
  std::map<std::string, Made> wanted;
  std::map<const Graph*, GraphText> texts;
  for (std::size_t i = 0; i < programs.size(); ++i) {
    std::string name = programs[i]->kernel_name();
    if (entries_.count(name) != 0) continue;
    const Graph* graph = graphs.empty() ? nullptr : graphs[i];
    wanted.emplace(std::move(name), Made{.program = programs[i], .graph = graph, .graph_text = &texts[graph]});
  }
  std::vector<Made> made;
  for (auto& [name, one] : wanted) made.push_back(std::move(one));
  const auto for_each = [&](const auto& body) {
    context.threads->run(static_cast<std::int64_t>(made.size()),
                         [&](std::int64_t i, int) { body(made[static_cast<std::size_t>(i)]); });
  };
  if (device_rows_ != nullptr && !made.empty()) {
    const std::vector<std::string>& compilers = image_compilers(*context.cache);
    for_each([&](Made& one) { make_image(one, *device_rows_, compilers, context); });
    for (Made& one : made) {
      if (one.image.empty()) continue;
      if (std::string refusal = load_image(function_of(*one.program), one.image, context); !refusal.empty())
        one.refuse_image(std::move(refusal), true);
    }
  }
  for_each([&, problem = host_problem()](Made& one) {
    if (one.image.empty()) make_object(one, problem, context);
  });
  for (const Made& one : made)
    if (!one.problem.empty()) return one.problem;
  log_cache(made, context);
  for (Made& one : made) {
    // If the device has a problem, all functions share that reason, so it is not recorded for each.
    if (!one.image_problem.empty() && one.image_problem != device_rows_->problem())
      without_image_[one.program->kernel_name()] = one.image_problem;
    lacks_images_ = lacks_images_ || one.may_come;
    add({function_of(*one.program), std::move(one.object), std::move(one.image)}, std::move(one.code), context);
  }
  return "";
}

void GeneratedKernels::load(const GeneratedFunction& function, std::span<const std::byte> code,
                            std::span<const std::byte> image, const Context& context) {
  const std::lock_guard guard(lock_);
  if (entries_.count(function.name) != 0) return;
  GeneratedObject object{function, {code.begin(), code.end()}, {}};
  if (device_rows_ != nullptr) {
    const std::string refusal =
        image.empty() ? "its Plan was kept without device code" : load_image(function, image, context);
    if (refusal.empty()) {
      object.image.assign(image.begin(), image.end());
    } else {
      if (code.empty()) fail_device("[{}] is kept as code of the device alone: {}", function.name, refusal);
      without_image_[function.name] = refusal;
      lacks_images_ = lacks_images_ || !image.empty();
    }
  }
  add(std::move(object), object.image.empty() ? LoadedCode::load(code) : nullptr, context);
}

std::string GeneratedKernels::load_image(const GeneratedFunction& function, std::span<const std::byte> image,
                                         const Context& context) {
  CHECK(context.stream_device != nullptr, "{} has code for a device, and there is none", function.name);
  const std::string symbol = symbol_of(function);  // functions that differ only in their chunks share an image
  if (loaded_symbols_.contains(symbol)) return "";
  try {
    context.stream_device->load(image, symbol);
  } catch (const DeviceError& error) {
    return error.what();
  }
  loaded_symbols_.insert(symbol);
  return "";
}

void GeneratedKernels::add(GeneratedObject object, std::shared_ptr<const LoadedCode> code, const Context& context) {
  const std::string name = object.function.name;
  Kernel kernel = object.image.empty() ? generated_kernel(object.function, std::move(code), context.device.threads)
                                       : launched_kernel(object.function, kCudaRowThreads);
  entries_[name] = {std::move(object), std::make_unique<const Kernel>(std::move(kernel))};
}

const std::vector<std::string>& GeneratedKernels::image_compilers(const CompileCache& cache) {
  if (image_compilers_.empty()) image_compilers_ = device_rows_->compilers(cache);
  return image_compilers_;
}

void GeneratedKernels::make_for_device(std::shared_ptr<const DeviceRows> rows, std::string reason) {
  const std::lock_guard guard(lock_);
  CHECK(entries_.empty(), "{} functions were made before their device was known", entries_.size());
  device_rows_ = std::move(rows);
  image_compilers_.clear();
  loaded_symbols_.clear();
  host_reason_ = std::move(reason);
}

void GeneratedKernels::leave_out_host(std::string reason) {
  const std::lock_guard guard(lock_);
  host_left_out_ = std::move(reason);
}

std::string GeneratedKernels::host_problem() const {
  if (host_left_out_) return *host_left_out_;
  return can_compile_rows() ? "" : row_compiler().problem;
}

std::string GeneratedKernels::problem(const CompileCache& cache) {
  const std::lock_guard guard(lock_);
  const std::string of_host = host_problem();
  if (of_host.empty()) return "";
  if (device_rows_ == nullptr) return host_reason_.empty() ? of_host : of_host + "; for the device: " + host_reason_;
  if (device_rows_->problem().empty() || !image_compilers(cache).empty()) return "";
  return of_host + "; for the device: " + device_rows_->problem();
}

std::string GeneratedKernels::device_compiler_text() const {
  const std::lock_guard guard(lock_);
  if (device_rows_ == nullptr) return host_reason_.empty() ? "" : "none: " + host_reason_;
  if (!device_rows_->problem().empty()) return "none: " + device_rows_->problem();
  return fmt::format("{}, {}", device_rows_->compiler_text(), device_rows_->code_text());
}

std::optional<DeviceFunctions> GeneratedKernels::device_functions() const {
  const std::lock_guard guard(lock_);
  if (entries_.empty() || (device_rows_ == nullptr && host_reason_.empty())) return std::nullopt;
  DeviceFunctions said{.functions = entries_.size(), .reason = host_reason_, .host_problem = host_problem()};
  if (device_rows_ == nullptr) return said;
  const auto has_image = [](const auto& entry) { return !entry.second.object.image.empty(); };
  said.launched = static_cast<std::size_t>(std::count_if(entries_.begin(), entries_.end(), has_image));
  said.code = device_rows_->code_text();
  said.compiler = device_rows_->compiler_text();
  said.reason = device_rows_->problem();
  said.on_host.assign(without_image_.begin(), without_image_.end());
  return said;
}

bool GeneratedKernels::lacks_images() const {
  const std::lock_guard guard(lock_);
  return lacks_images_;
}

const Kernel* GeneratedKernels::find(const std::string& name) const {
  const std::lock_guard guard(lock_);
  const auto found = entries_.find(name);
  return found == entries_.end() ? nullptr : found->second.kernel.get();
}

const GeneratedObject& GeneratedKernels::object(const std::string& name) const {
  const std::lock_guard guard(lock_);
  const auto found = entries_.find(name);
  CHECK(found != entries_.end(), "{} was not compiled", name);
  return found->second.object;
}

std::size_t GeneratedKernels::size() const {
  const std::lock_guard guard(lock_);
  return entries_.size();
}

bool GeneratedKernels::has_failed() const {
  const std::lock_guard guard(lock_);
  return has_failed_;
}

bool GeneratedKernels::fail() {
  const std::lock_guard guard(lock_);
  return !std::exchange(has_failed_, true);
}

}  // namespace weft
