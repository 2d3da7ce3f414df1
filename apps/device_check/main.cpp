// What runs on a machine with a GPU: see program.h.

#include <iostream>

#include "apps/device_check/program.h"

int main(int count, char** words) {
  return weft::device_check::run_program({words + 1, words + count}, std::cout, std::cerr);
}
