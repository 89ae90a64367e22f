#include "png/huffman.h"

#include <algorithm>
#include <array>
#include <cstddef>

namespace cutout::png {

namespace {

constexpr std::size_t kMaxSymbols = 288;
constexpr int kMaxLength = 15;

/// Sorted by count, ties by symbol: the code depends on nothing but the counts.
struct Leaf {
  std::uint32_t count;
  std::uint32_t symbol;
};

/// How many symbols get which length in an optimal code without limit; lengths above kMaxDepth are
/// counted there. `leaves` is ascending, at least two.
constexpr std::size_t kMaxDepth = 63;
std::array<std::uint32_t, kMaxDepth + 1> optimal_length_counts(std::span<const Leaf> leaves) {
  // Two queues: leaves in order, and inner nodes, which come into being in ascending order.
  const std::size_t n = leaves.size();
  std::array<std::uint64_t, kMaxSymbols> weight;  // of inner nodes
  std::array<std::uint16_t, kMaxSymbols> parent;  // of inner nodes
  std::array<std::uint16_t, kMaxSymbols> leaf_parent;
  std::size_t leaf = 0;
  std::size_t inner = 0;
  for (std::size_t made = 0; made + 1 < n; ++made) {
    std::uint64_t sum = 0;
    for (int child = 0; child < 2; ++child) {
      if (leaf < n && (inner >= made || leaves[leaf].count <= weight[inner])) {
        sum += leaves[leaf].count;
        leaf_parent[leaf++] = static_cast<std::uint16_t>(made);
      } else {
        sum += weight[inner];
        parent[inner++] = static_cast<std::uint16_t>(made);
      }
    }
    weight[made] = sum;
  }
  std::array<std::uint32_t, kMaxDepth + 1> counts{};
  std::array<std::uint16_t, kMaxSymbols> depth;
  depth[n - 2] = 0;
  for (std::size_t i = n - 2; i-- > 0;) depth[i] = static_cast<std::uint16_t>(depth[parent[i]] + 1);
  for (std::size_t i = 0; i < n; ++i) {
    ++counts[std::min<std::size_t>(depth[leaf_parent[i]] + 1u, kMaxDepth)];
  }
  return counts;
}

}  // namespace

void code_lengths(std::span<const std::uint32_t> counts, int limit,
                  std::span<std::uint8_t> lengths) {
  std::array<Leaf, kMaxSymbols> storage;
  std::size_t n = 0;
  for (std::size_t symbol = 0; symbol < counts.size(); ++symbol) {
    if (counts[symbol] != 0) storage[n++] = {counts[symbol], static_cast<std::uint32_t>(symbol)};
  }
  for (std::uint32_t symbol = 0; n < 2; ++symbol) {
    if (counts[symbol] == 0) storage[n++] = {1, symbol};
  }
  const std::span<Leaf> leaves(storage.data(), n);
  std::sort(leaves.begin(), leaves.end(), [](const Leaf& a, const Leaf& b) {
    return a.count != b.count ? a.count < b.count : a.symbol < b.symbol;
  });
  auto of_length = optimal_length_counts(leaves);

  // Too long codes are cut to the limit, which spends more than the whole code space. Each step
  // below wins one unit back: one code of the limit goes away and a shorter one becomes two.
  const auto longest = static_cast<std::size_t>(limit);
  for (std::size_t length = longest + 1; length <= kMaxDepth; ++length) {
    of_length[longest] += of_length[length];
    of_length[length] = 0;
  }
  std::uint64_t spent = 0;
  for (std::size_t length = 1; length <= longest; ++length) {
    spent += std::uint64_t{of_length[length]} << (longest - length);
  }
  for (; spent > std::uint64_t{1} << longest; --spent) {
    std::size_t length = longest - 1;
    while (of_length[length] == 0) --length;
    --of_length[longest];
    --of_length[length];
    of_length[length + 1] += 2;
  }

  std::fill(lengths.begin(), lengths.end(), std::uint8_t{0});
  std::size_t next = 0;
  for (std::size_t length = longest; length > 0; --length) {
    for (std::uint32_t i = 0; i < of_length[length]; ++i) {
      lengths[leaves[next++].symbol] = static_cast<std::uint8_t>(length);
    }
  }
}

void canonical_codes(std::span<const std::uint8_t> lengths, std::span<std::uint16_t> codes) {
  std::array<std::uint32_t, kMaxLength + 2> next{};
  for (const std::uint8_t length : lengths) {
    if (length != 0) ++next[length + 1u];
  }
  for (std::size_t length = 1; length <= kMaxLength; ++length) {
    next[length] = (next[length] + next[length - 1]) << 1;
  }
  for (std::size_t symbol = 0; symbol < lengths.size(); ++symbol) {
    const std::uint32_t length = lengths[symbol];
    std::uint32_t code = length != 0 ? next[length]++ : 0;
    std::uint32_t reversed = 0;
    for (std::uint32_t bit = 0; bit < length; ++bit, code >>= 1) {
      reversed = (reversed << 1) | (code & 1u);
    }
    codes[symbol] = static_cast<std::uint16_t>(reversed);
  }
}

}  // namespace cutout::png
