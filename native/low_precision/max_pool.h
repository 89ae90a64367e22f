#pragma once

#include <algorithm>
#include <cstring>

#include "low_precision/plan.h"
#include "low_precision/program.h"

namespace cutout::low_precision {

/// Output rows [first, last) of a max pooling of maps of `Element`.
/// `max_into(values, count, most)` sets every one of `most` to the larger of it and its value.
template <typename Element, typename MaxInto>
void pool_rows(const MaxPool& pool, const Map& input, const Map& output, int first, int last,
               MaxInto max_into) {
  const auto bytes = static_cast<std::size_t>(output.bytes);
  for (int y = first; y < last; ++y) {
    const int top = y * pool.stride;
    const int bottom = std::min(top + pool.kernel, input.height);
    for (int x = 0; x < output.width; ++x) {
      const int left = x * pool.stride;
      const int right = std::min(left + pool.kernel, input.width);
      auto* const most = reinterpret_cast<Element*>(output.at(x, y));
      std::memcpy(most, input.at(left, top), bytes);
      for (int v = top; v < bottom; ++v) {
        for (int u = v == top ? left + 1 : left; u < right; ++u) {
          max_into(reinterpret_cast<const Element*>(input.at(u, v)), output.channels, most);
        }
      }
    }
  }
}

}  // namespace cutout::low_precision
