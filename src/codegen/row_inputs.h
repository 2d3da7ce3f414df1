#pragma once

// The buffers that a row program reads, while it is built: each view of a tensor, as each domain that reads it, has
// one.

#include <vector>

#include "codegen/build_row_program.h"

namespace weft {

class RowInputs {
 public:
  // Adds the buffers and loads to the region's program, which has no other buffers yet.
  explicit RowInputs(RowRegion& region) : region_(region) {}

  // Returns the index of the buffer through which `from` is read.
  int buffer_of(const GraphValue& from, RowDomain domain, const RowBuffer& buffer);
  // Returns the value that `from` is loaded as.
  int load(const GraphValue& from, RowDomain domain, const RowBuffer& buffer);
  // Sets RowBuffer::interleaved_with.
  void find_neighbours();

 private:
  struct Input {
    const GraphValue* from;
    RowDomain domain;
    RowBuffer buffer;
    int value;  // -1: not loaded as a value, for example row indices
  };

  RowRegion& region_;
  std::vector<Input> inputs_;  // by buffer
};

}  // namespace weft
