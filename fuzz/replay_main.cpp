// Runs a fuzz target over files instead of under a fuzzer: every argument is a file or a folder of files. Prints how
// many inputs ran; fails when there was none, or when the target returns anything but 0 or -1 (libFuzzer's "not of
// interest").

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

std::vector<std::filesystem::path> inputs_of(int argument_count, char** arguments) {
  std::vector<std::filesystem::path> inputs;
  for (int i = 1; i < argument_count; ++i) {
    if (std::filesystem::is_directory(arguments[i])) {
      for (const auto& entry : std::filesystem::recursive_directory_iterator(arguments[i])) {
        if (entry.is_regular_file()) inputs.push_back(entry.path());
      }
    } else {
      inputs.emplace_back(arguments[i]);
    }
  }
  std::sort(inputs.begin(), inputs.end());
  return inputs;
}

bool replay(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    std::fprintf(stderr, "%s: cannot be read\n", path.c_str());
    return false;
  }
  const std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const int result = LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  if (result == 0 || result == -1) return true;
  std::fprintf(stderr, "%s: the target returned %d\n", path.c_str(), result);
  return false;
}

}  // namespace

int main(int argument_count, char** arguments) {
  const std::vector<std::filesystem::path> inputs = inputs_of(argument_count, arguments);
  std::size_t failed = 0;
  for (const std::filesystem::path& path : inputs) {
    if (!replay(path)) ++failed;
  }
  const std::string name = std::filesystem::path(arguments[0]).filename().string();
  std::printf("count: %s replayed %zu inputs, %zu failed\n", name.c_str(), inputs.size(), failed);
  return inputs.empty() || failed != 0 ? 1 : 0;
}
