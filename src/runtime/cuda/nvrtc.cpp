#include "runtime/cuda/nvrtc.h"

#include <algorithm>
#include <filesystem>

#include <fmt/ranges.h>

#include "base/error.h"
#include "base/shared_library.h"
#include "runtime/cuda/library_places.h"

namespace weft::cuda {
namespace {

// NVRTC has no standard library; device code needs this much of it.
constexpr const char* kFixedWidths =
    "#pragma once\nnamespace std {\n"
    "using int8_t = signed char; using int16_t = short; using int32_t = int; using int64_t = long;\n"
    "using uint8_t = unsigned char; using uint16_t = unsigned short; using uint32_t = unsigned;\n"
    "using uint64_t = unsigned long; using uintptr_t = unsigned long;\n}\n";

// Looks up all required functions. `problem` names the first one that is missing.
NvrtcFunctions find_nvrtc_functions(const FindSymbol& find, const std::string& library, std::string& problem) {
  NvrtcFunctions functions;
#define WEFT_NVRTC_FIND(symbol, ...)                                              \
  functions.symbol = reinterpret_cast<decltype(functions.symbol)>(find(#symbol)); \
  if (functions.symbol == nullptr && problem.empty()) problem = library + " has no " #symbol;
  WEFT_NVRTC_FIND(nvrtcGetErrorString)
  WEFT_NVRTC_FUNCTIONS(WEFT_NVRTC_FIND)
#undef WEFT_NVRTC_FIND
  return functions;
}

// NVRTC asks the loader for its builtins by file name only. The loader may not search NVRTC's folder, so they are
// opened here.
void open_builtins(const std::string& library) {
  const std::filesystem::path folder = std::filesystem::path(library).parent_path();
  if (folder.empty()) return;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored))
    if (entry.path().filename().string().starts_with("libnvrtc-builtins.so.")) {
      std::string problem;
      SharedLibrary::open(entry.path().string(), problem);
    }
}

std::vector<std::string> all_options(int architecture, NvrtcCode code, const std::vector<std::string>& options) {
  std::vector<std::string> all = {
      "--std=c++20", "--fmad=false",
      fmt::format("--gpu-architecture={}_{}", code == NvrtcCode::ptx ? "compute" : "sm", architecture)};
  all.insert(all.end(), options.begin(), options.end());
  return all;
}

}  // namespace

std::string nvrtc_version_text(int version) { return fmt::format("{}.{}", version / 1000, version % 1000 / 10); }

// Owns an NVRTC program object.
class Nvrtc::Program {
 public:
  Program(const Nvrtc& compiler, const NvrtcSource& source) : compiler_(compiler) {
    std::vector<const char*> texts = {kFixedWidths}, names = {"cstdint"};
    for (const auto& [name, text] : source.headers) {
      names.push_back(name.c_str());
      texts.push_back(text.c_str());
    }
    compiler.check(compiler.functions_.nvrtcCreateProgram(&program_, source.text.c_str(), source.name.c_str(),
                                                          static_cast<int>(names.size()), texts.data(), names.data()),
                   "nvrtcCreateProgram");
  }
  ~Program() { compiler_.functions_.nvrtcDestroyProgram(&program_); }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  NvrtcStatus compile(const std::vector<std::string>& options) {
    std::vector<const char*> words;
    for (const std::string& option : options) words.push_back(option.c_str());
    return compiler_.functions_.nvrtcCompileProgram(program_, static_cast<int>(words.size()), words.data());
  }

  using Size = NvrtcStatus(NvrtcProgramObject*, std::size_t*);
  using Read = NvrtcStatus(NvrtcProgramObject*, char*);
  // The bytes that a pair of calls, for the size and for the contents, returns.
  std::string bytes(Size* size, Read* read, const char* call) const {
    std::size_t count = 0;
    compiler_.check(size(program_, &count), call);
    std::string contents(count, '\0');
    compiler_.check(read(program_, contents.data()), call);
    return contents;
  }
  // The same for a text, without the zero at its end.
  std::string text(Size* size, Read* read, const char* call) const {
    std::string text = bytes(size, read, call);
    text.resize(text.find_last_not_of('\0') + 1);
    return text;
  }

 private:
  const Nvrtc& compiler_;
  NvrtcProgramObject* program_ = nullptr;
};

void Nvrtc::check(NvrtcStatus status, const char* call) const {
  if (status != NvrtcStatus::success)
    fail_device("[nvrtc] {} of {}: {}", call, library_, functions_.nvrtcGetErrorString(status));
}

std::unique_ptr<Nvrtc> Nvrtc::open(const FindSymbol& find, const std::string& library, std::string& problem) {
  problem.clear();
  const NvrtcFunctions functions = find_nvrtc_functions(find, library, problem);
  // An old library lacks functions. Its version is a better error message than their names.
  int major = 0, minor = 0;
  if (functions.nvrtcVersion != nullptr && functions.nvrtcVersion(&major, &minor) == NvrtcStatus::success &&
      1000 * major + 10 * minor < kLeastNvrtcVersion)
    problem = fmt::format("{} is of CUDA {}.{}", library, major, minor);
  if (!problem.empty()) return nullptr;
  int count = 0;
  functions.nvrtcGetNumSupportedArchs(&count);
  std::vector<int> supported(static_cast<std::size_t>(count));
  functions.nvrtcGetSupportedArchs(supported.data());
  return std::unique_ptr<Nvrtc>(new Nvrtc(functions, library, 1000 * major + 10 * minor, std::move(supported)));
}

std::unique_ptr<Nvrtc> Nvrtc::open(const std::vector<std::string>& places, std::string& problem) {
  std::unique_ptr<Nvrtc> opened;
  problem = open_first(
      places, fmt::format("libnvrtc of CUDA {} or newer", nvrtc_version_text(kLeastNvrtcVersion)),
      [&](const FindSymbol& find, const std::string& place, std::string& why) {
        opened = open(find, place, why);
        return opened != nullptr;
      },
      open_builtins);
  return opened;
}

std::string Nvrtc::compile(const NvrtcSource& source, int architecture, NvrtcCode code,
                           const std::vector<std::string>& options) const {
  if (std::find(supported_.begin(), supported_.end(), architecture) == supported_.end())
    fail_user("[nvrtc] {} is wanted for sm_{}, but NVRTC {} compiles for sm_{}", source.name, architecture,
              nvrtc_version_text(version_), fmt::join(supported_, ", "));
  Program program(*this, source);
  const bool is_ptx = code == NvrtcCode::ptx;
  const NvrtcStatus status = program.compile(all_options(architecture, code, options));
  const auto log = [&] {
    return program.text(functions_.nvrtcGetProgramLogSize, functions_.nvrtcGetProgramLog, "nvrtcGetProgramLog");
  };
  if (status == NvrtcStatus::compilation)
    fail_user("[nvrtc] {} does not compile for sm_{}: {}", source.name, architecture, log());
  if (status != NvrtcStatus::success)
    fail_device("[nvrtc] nvrtcCompileProgram of {} for {}: {}: {}", library_, source.name,
                functions_.nvrtcGetErrorString(status), log());
  if (!is_ptx) return program.bytes(functions_.nvrtcGetCUBINSize, functions_.nvrtcGetCUBIN, "nvrtcGetCUBIN");
  return program.text(functions_.nvrtcGetPTXSize, functions_.nvrtcGetPTX, "nvrtcGetPTX");
}

std::string Nvrtc::recipe(int architecture, NvrtcCode code, const std::vector<std::string>& options) {
  return fmt::format("{}\n{}", fmt::join(all_options(architecture, code, options), " "), kFixedWidths);
}

std::vector<std::string> nvrtc_places(const EnvironmentLookup& environment) {
  return library_places({.front = "libnvrtc.so.", .packages = {"cu13", "cuda_nvrtc"}, .cache = "nvrtc-"}, environment);
}

std::string nvrtc_text() {
  std::string problem;
  const auto compiler = Nvrtc::open(nvrtc_places(process_environment()), problem);
  if (compiler == nullptr) return "none: " + problem;
  const std::vector<int>& all = compiler->architectures();
  return fmt::format("{} of {}, for sm_{} to sm_{}", nvrtc_version_text(compiler->version()), compiler->library(),
                     all.empty() ? 0 : all.front(), all.empty() ? 0 : all.back());
}

}  // namespace weft::cuda
