#pragma once

// Measures time from the start of the process.

#include "base/stopwatch.h"

namespace weft {

// Returns a Stopwatch that began when the process did; call it in the first line of main(). The kernel reports the
// start time only in hundredths of a second, which is too coarse for a startup of a tenth of a second. It reports the
// used processor time exactly, and until main() this time is the creation of the process and the mapping and linking of
// its program and libraries. So the Stopwatch begins that long before now. It excludes waits before main() (for a file
// that is not in the page cache, or for a processor).
Stopwatch watch_from_process_start();

}  // namespace weft
