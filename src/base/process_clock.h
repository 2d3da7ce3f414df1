#pragma once

// Time since this process began.

#include "base/stopwatch.h"

namespace weft {

// For the first line of main(): a Stopwatch that began when the process did. The kernel tells that moment in hundredths
// of a second, which is too coarse for a start of a tenth of one. What it tells exactly is the processor time that the
// process has used, and until main() that is all the process did: it was made, its program and libraries were mapped
// and linked. So the Stopwatch began that long ago; time spent waiting before main() (for a file that is not in the
// page cache, for a processor) is not in it.
Stopwatch watch_from_process_start();

}  // namespace weft
