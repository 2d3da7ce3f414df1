#include "runtime/cuda/library_places.h"

#include <algorithm>
#include <filesystem>

#include <fmt/ranges.h>

#include "base/shared_library.h"

namespace weft::cuda {
namespace {

// Adds the files of the library in a folder, newest version first, or the pattern of their names if there are none.
void add_folder(const CudaLibrary& library, const std::filesystem::path& folder, std::vector<std::string>& places) {
  std::vector<std::string> found;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    // This accepts libnvrtc.so.13, but neither its builtins nor its alternative build.
    if (name.starts_with(library.front) && name.find('.', library.front.size()) == std::string::npos)
      found.push_back(entry.path().string());
  }
  std::sort(found.rbegin(), found.rend());
  if (found.empty()) found.push_back((folder / (library.front + "*")).string());
  places.insert(places.end(), found.begin(), found.end());
}

// Sub-folders whose names begin with `front`, in descending order of names.
std::vector<std::filesystem::path> folders_in(const std::filesystem::path& folder, const std::string& front) {
  std::vector<std::filesystem::path> found;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored))
    if (entry.path().filename().string().starts_with(front)) found.push_back(entry.path());
  std::sort(found.rbegin(), found.rend());
  return found;
}

// Adds the files in a site-packages folder, under each name that the package has had.
void add_packages(const CudaLibrary& library, const std::filesystem::path& packages, std::vector<std::string>& places) {
  for (const std::string& name : library.packages)
    if (std::filesystem::exists(packages / "nvidia" / name / "lib"))
      add_folder(library, packages / "nvidia" / name / "lib", places);
}

std::filesystem::path cache_of(const EnvironmentLookup& environment) {
  if (const auto given = environment("XDG_CACHE_HOME"); given && !given->empty()) return *given;
  if (const auto home = environment("HOME"); home && !home->empty()) return std::filesystem::path(*home) / ".cache";
  return {};
}

}  // namespace

std::vector<std::string> library_places(const CudaLibrary& library, const EnvironmentLookup& environment) {
  std::vector<std::string> places;
  if (const auto home = environment("CUDA_HOME"); home && !home->empty())
    add_folder(library, std::filesystem::path(*home) / "lib64", places);
  for (const char* major : {"13", "12"}) places.push_back(library.front + major);
  add_folder(library, "/usr/local/cuda/lib64", places);
  if (const std::filesystem::path cache = cache_of(environment); !cache.empty() && !library.cache.empty())
    for (const std::filesystem::path& folder : folders_in(cache / "weft", library.cache))
      add_packages(library, folder, places);
  if (const auto python = environment("VIRTUAL_ENV"); python && !python->empty())
    for (const std::filesystem::path& folder : folders_in(std::filesystem::path(*python) / "lib", "python3"))
      add_packages(library, folder / "site-packages", places);
  return places;
}

std::string open_first(const std::vector<std::string>& places, const std::string& wanted, const TakeLibrary& take,
                       const std::function<void(const std::string& place)>& before) {
  std::vector<std::string> unfit;
  for (const std::string& place : places) {
    std::string words;
    if (before) before(place);
    const auto library = SharedLibrary::open(place, words);
    if (!library) {
      if (words.find("No such file") == std::string::npos)
        unfit.push_back(fmt::format("{} cannot be opened: {}", place, words));
      continue;
    }
    const FindSymbol find = [&](const char* symbol) { return reinterpret_cast<void*>(library->find<void()>(symbol)); };
    if (take(find, place, words)) return "";
    unfit.push_back(words);
  }
  std::string problem = wanted + " was not found";
  if (!unfit.empty()) problem += fmt::format(": {}", fmt::join(unfit, "; "));
  if (!places.empty()) problem += fmt::format("; looked for {}", fmt::join(places, ", "));
  return problem;
}

}  // namespace weft::cuda
