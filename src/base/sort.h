#pragma once

#include <algorithm>
#include <vector>

namespace weft {

// Sorts in ascending order and removes repeated values.
template <class T>
void sort_without_repeats(std::vector<T>& values) {
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
}

}  // namespace weft
