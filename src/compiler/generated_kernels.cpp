#include "compiler/generated_kernels.h"

#include <ostream>
#include <vector>

#include "base/error.h"
#include "codegen/compile_rows.h"
#include "runtime/generated_kernel.h"

namespace weft {

std::string GeneratedKernels::compile(std::span<const RowProgram* const> programs, const DeviceDescription& device) {
  const std::lock_guard guard(lock_);
  std::map<std::string, const RowProgram*> wanted;
  for (const RowProgram* program : programs) {
    const std::string text = program->text();
    if (kernels_.count(text) == 0) wanted.emplace(text, program);
  }
  if (wanted.empty()) return "";
  std::vector<const RowProgram*> missing;
  for (const auto& [text, program] : wanted) missing.push_back(program);
  std::string problem;
  const std::vector<std::byte> object = compile_rows(missing, device.features, problem);
  if (!problem.empty()) return problem;
  std::shared_ptr<const LoadedCode> code;
  try {
    code = LoadedCode::load(object);
  } catch (const DeviceError& error) {  // a system that lets nobody make code of memory
    return error.what();
  }
  for (const auto& [text, program] : wanted)
    kernels_[text] = std::make_unique<const Kernel>(generated_kernel(
        {.name = program->name(), .row_bytes = program->row_bytes(), .scratch_bytes = program->scratch_bytes()}, code,
        device.threads));
  return "";
}

const Kernel* GeneratedKernels::find(const RowProgram& program) const {
  const std::lock_guard guard(lock_);
  const auto found = kernels_.find(program.text());
  return found == kernels_.end() ? nullptr : found->second.get();
}

std::size_t GeneratedKernels::size() const {
  const std::lock_guard guard(lock_);
  return kernels_.size();
}

void GeneratedKernels::warn_once(std::ostream& to, const std::string& problem) {
  const std::lock_guard guard(lock_);
  if (has_warned_) return;
  has_warned_ = true;
  to << "weft: no code can be generated, native ops run one by one: " << problem << "\n";
}

}  // namespace weft
