#pragma once

namespace weft {

// What a program, and no library, decides for its process: call it first in main.
//
// Closed standard descriptors are opened, so that no file of the program takes their numbers and gets what is printed;
// reading and writing them still fails. A file that reaches its limit of size (ulimit -f) is an error of writing, not
// the end of the process. Interrupted, it removes what is not finished (base/interruption.h), and it names a mapped
// file whose pages are lost (base/mapped_files.h).
void set_up_process();

}  // namespace weft
