#pragma once

// The program and its libraries as the loader has them in memory.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace weft {

// A part that is mapped from a file, with the file's content.
using UnchangedPages = std::span<std::byte>;

// Of all that is loaded now, the parts that neither the loader nor the program writes to: code, constants and tables of
// names, by whole pages. Objects whose code is relocated have none.
std::vector<UnchangedPages> unchanged_pages();

// Those that are still an object's that is loaded no longer count as this process's memory; touched again, they come
// back from the page cache. What somebody patched into them at run time, as debuggers do, is lost.
void drop_unchanged_pages(std::span<const UnchangedPages> pages);

}  // namespace weft
