#pragma once

// What a program must not leave behind when SIGINT, SIGTERM or SIGHUP ends it: files and folders that are not finished.
//
// Only a program may install the handlers. Without them nothing here has an effect, so that a library leaves signals to
// its caller.

#include <string>

namespace weft {

// From now on these signals first remove all unfinished paths, and then end the process as they always do. A signal
// that is ignored (nohup) stays ignored.
void remove_unfinished_if_interrupted();

// Removes them at once, for handlers of other signals that end the process.
void remove_unfinished() noexcept;

// A file, or an empty folder, that is removed if the process is interrupted while this object exists. Those made later
// are removed first. At most 1,024 at once are removed.
class UnfinishedPath {
 public:
  explicit UnfinishedPath(const std::string& path);
  ~UnfinishedPath();
  UnfinishedPath(UnfinishedPath&& other) noexcept;
  UnfinishedPath& operator=(UnfinishedPath&& other) noexcept;

 private:
  int place_ = -1;  // in the list; -1: in none
};

// While such an object exists, a signal only becomes pending: for work that asks is_pending() and removes its files
// itself. The destructor ends the process if a signal is pending.
class InterruptionLater {
 public:
  InterruptionLater();
  ~InterruptionLater();
  InterruptionLater(const InterruptionLater&) = delete;
  InterruptionLater& operator=(const InterruptionLater&) = delete;

  static bool is_pending();
};

}  // namespace weft
