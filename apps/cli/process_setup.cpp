#include "apps/cli/process_setup.h"

#include <csignal>

#include <fcntl.h>

#include "base/interruption.h"
#include "base/mapped_files.h"

namespace weft {

void set_up_process() {
  // open() takes the lowest free number. In the other direction than the descriptor's, so that its use fails.
  for (const int number : {0, 1, 2})
    if (::fcntl(number, F_GETFD) < 0) static_cast<void>(::open("/dev/null", number == 0 ? O_WRONLY : O_RDONLY));
  std::signal(SIGXFSZ, SIG_IGN);
  remove_unfinished_if_interrupted();
  report_lost_pages();
}

}  // namespace weft
