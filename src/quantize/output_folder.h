#pragma once

// Writes the files of a new folder. Unless keep() is called, the destructor removes the files and folders that were
// made, and so does a signal that ends the program (base/interruption.h), so that a failed command leaves nothing.
//
// The folder must be missing or empty. A reader of a model folder takes every file that it knows, so files of an
// earlier model would be read together with the new ones. For the same reason a rename of files one by one cannot
// replace a model: a process that is killed between two of them would leave a mix.

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file_system.h"
#include "base/interruption.h"

namespace weft {

// UserError if the path is a file, or a folder that is not empty; it names what is there.
void check_output_folder(const std::string& path, const FileSystem& file_system = host_file_system());

class OutputFolder {
 public:
  // Throws the errors of check_output_folder. Creates nothing yet.
  explicit OutputFolder(std::string path, const FileSystem& file_system = host_file_system());
  ~OutputFolder();
  OutputFolder(const OutputFolder&) = delete;
  OutputFolder& operator=(const OutputFolder&) = delete;

  // Writes a file that appears complete or not at all. `name` is relative to the folder and may have folders in it;
  // they are made as needed. Throws the errors of base/files.h.
  void write(const std::string& name, std::span<const std::byte> bytes);
  void write(const std::string& name, std::string_view text);

  void keep() { made_.clear(); }

 private:
  struct Made {
    explicit Made(const std::string& path) : path(path), unfinished(path) {}
    std::string path;
    UnfinishedPath unfinished;
  };

  void make_folder(const std::filesystem::path& folder);

  std::string path_;
  const FileSystem& file_system_;
  std::vector<Made> made_;  // files and folders, in the order in which they were made
};

}  // namespace weft
