#pragma once

// GGUF files that are written in several parts: NAME-00001-of-00003.gguf and so on. Each part is a GGUF file with some
// of the tensors; the first has the metadata of the model.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "io/gguf.h"

namespace weft {

// The names of all parts in their order, derived from the name of one; the name itself if the file is whole. UserError
// when the name does not end in the part's number and their count.
std::vector<std::string> gguf_part_names(const Gguf& part, std::string_view name);

// UserError when the file is not part `index` of `count`.
void check_gguf_part(const Gguf& part, std::size_t index, std::size_t count);

// UserError when the first part counts other tensors than there are in all parts.
void check_gguf_part_tensors(const Gguf& first, std::size_t tensors);

}  // namespace weft
