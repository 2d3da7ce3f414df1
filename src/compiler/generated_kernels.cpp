#include "compiler/generated_kernels.h"

#include <ostream>
#include <utility>

#include "base/error.h"
#include "codegen/compile_rows.h"
#include "compiler/context.h"

namespace weft {
namespace {

// A function on its way.
struct Made {
  const RowProgram* program;
  std::vector<std::byte> object = {};
  std::shared_ptr<const LoadedCode> code = nullptr;
  std::string problem = {};
};

CacheKey key_of(const RowProgram& program, const DeviceDescription& device) {
  return {"rows",
          {{"llvm", std::string(row_emitter_llvm())},
           {"emitter", std::string(row_emitter_hash())},
           {"features", cpu_features_text(device.features)},
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

void make(Made& made, const Context& context) {
  const CacheKey key = key_of(*made.program, context.device);
  const std::string name = made.program->name();
  const auto entry = context.cache->find(key);
  context.first_time_work->begin(entry ? FirstTime::load : FirstTime::compile, name);
  if (entry) {
    made.object.assign(entry->payload().begin(), entry->payload().end());
  } else {
    made.object = compile_rows(*made.program, context.device.features, made.problem, context.options.debug_dump_path);
  }
  if (!made.problem.empty()) return;
  try {
    made.code = LoadedCode::load(made.object);
  } catch (const DeviceError& error) {  // a system that lets nobody make code of memory
    made.problem = error.what();
  }
  if (!entry) context.cache->store(key, made.object);
}

}  // namespace

std::string GeneratedKernels::compile(std::span<const RowProgram* const> programs, const Context& context) {
  const std::lock_guard guard(lock_);
  std::map<std::string, const RowProgram*> wanted;
  for (const RowProgram* program : programs) {
    std::string name = program->kernel_name();
    if (entries_.count(name) == 0) wanted.emplace(std::move(name), program);
  }
  std::vector<Made> made;
  for (const auto& [name, program] : wanted) made.push_back({program});
  context.threads->run(static_cast<std::int64_t>(made.size()),
                       [&](std::int64_t i, int) { make(made[static_cast<std::size_t>(i)], context); });
  for (const Made& one : made)
    if (!one.problem.empty()) return one.problem;
  for (Made& one : made) {
    const GeneratedFunction function = function_of(*one.program);
    entries_[function.name] = {
        {function, std::move(one.object)},
        std::make_unique<const Kernel>(generated_kernel(function, std::move(one.code), context.device.threads))};
  }
  return "";
}

void GeneratedKernels::load(const GeneratedFunction& function, std::span<const std::byte> code,
                            const Context& context) {
  const std::lock_guard guard(lock_);
  if (entries_.count(function.name) != 0) return;
  auto kernel =
      std::make_unique<const Kernel>(generated_kernel(function, LoadedCode::load(code), context.device.threads));
  entries_[function.name] = {{function, {code.begin(), code.end()}}, std::move(kernel)};
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

void GeneratedKernels::warn_once(std::ostream& to, const std::string& problem) {
  const std::lock_guard guard(lock_);
  if (has_failed_) return;
  has_failed_ = true;
  to << "weft: no code can be generated, native ops run one by one: " << problem << "\n";
}

}  // namespace weft
