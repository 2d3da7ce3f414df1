#pragma once

// The program and its libraries as the loader maps them.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace weft {

// A part of memory that is mapped from a file and has the file's content.
using UnchangedPages = std::span<std::byte>;

// The parts of all loaded objects that neither the loader nor the program writes to: code, constants and tables of
// names, in whole pages. Objects whose code is relocated have none.
std::vector<UnchangedPages> unchanged_pages();

// Pages that still belong to a loaded object stop counting as memory of this process; the next access loads them from
// the page cache again. Run-time patches to them, such as a debugger's, are lost.
void drop_unchanged_pages(std::span<const UnchangedPages> pages);

}  // namespace weft
