#include "png/huffman.h"

#include <algorithm>
#include <array>
#include <cstddef>

namespace cutout::png {

namespace {

constexpr std::size_t kMaxSymbols = 288;
constexpr std::size_t kMaxLength = 15;

/// Leaves are sorted by count, then by symbol, so that the code depends on the counts only.
struct Leaf {
  std::uint32_t count;
  std::uint32_t symbol;
};

/// Number of symbols of each length in an optimal code without a limit; lengths above kMaxDepth
/// count as that. `leaves`: ascending, at least two.
constexpr std::size_t kMaxDepth = 63;
using LengthCounts = std::array<std::uint32_t, kMaxDepth + 1>;
LengthCounts optimal_length_counts(std::span<const Leaf> leaves) {
  // Two queues: leaves in order, and inner nodes, which are created in ascending order.
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
  LengthCounts counts{};
  std::array<std::uint16_t, kMaxSymbols> depth;
  depth[n - 2] = 0;
  for (std::size_t i = n - 2; i-- > 0;) depth[i] = static_cast<std::uint16_t>(depth[parent[i]] + 1);
  for (std::size_t i = 0; i < n; ++i) {
    ++counts[std::min<std::size_t>(depth[leaf_parent[i]] + 1u, kMaxDepth)];
  }
  return counts;
}

/// The same with a limit: package-merge (Larmore and Hirschberg, 1990). Each level merges the
/// leaves and the pairs of the previous list, in ascending order, and records which items are
/// leaves.
LengthCounts limited_length_counts(std::span<const Leaf> leaves, std::size_t limit) {
  const std::size_t n = leaves.size();
  std::array<std::array<bool, 2 * kMaxSymbols>, kMaxLength> is_leaf;
  std::array<std::uint64_t, 2 * kMaxSymbols> list;
  std::array<std::uint64_t, kMaxSymbols> pairs;
  std::size_t pair_count = 0;
  for (std::size_t level = 0; level < limit; ++level) {
    std::size_t size = 0;
    std::size_t leaf = 0;
    std::size_t pair = 0;
    while (leaf < n || pair < pair_count) {
      const bool take_leaf = leaf < n && (pair == pair_count || leaves[leaf].count <= pairs[pair]);
      is_leaf[level][size] = take_leaf;
      list[size++] = take_leaf ? leaves[leaf++].count : pairs[pair++];
    }
    pair_count = size / 2;
    for (std::size_t i = 0; i < pair_count; ++i) pairs[i] = list[2 * i] + list[2 * i + 1];
  }
  // The first 2n - 2 items of the last list define the code: each leaf among them, and among the
  // items of its pairs on the levels below, adds one bit to that leaf's code. Leaves are taken in
  // ascending order, so their number identifies them.
  LengthCounts counts{};
  std::size_t longer = 0;  // leaves whose codes have at least the current length
  std::size_t taken = 2 * n - 2;
  for (std::size_t level = limit; level-- > 0;) {
    const auto from = is_leaf[level].begin();
    const auto found =
        static_cast<std::size_t>(std::count(from, from + static_cast<std::ptrdiff_t>(taken), true));
    const std::size_t length = limit - level;
    if (length > 1) counts[length - 1] = static_cast<std::uint32_t>(longer - found);
    longer = found;
    taken = 2 * (taken - found);
  }
  counts[limit] = static_cast<std::uint32_t>(longer);
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
  const auto longest = static_cast<std::size_t>(limit);
  auto of_length = optimal_length_counts(leaves);
  for (std::size_t length = longest + 1; length <= kMaxDepth; ++length) {
    if (of_length[length] == 0) continue;
    of_length = limited_length_counts(leaves, longest);
    break;
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
    code = (code & 0x5555u) << 1 | (code >> 1 & 0x5555u);
    code = (code & 0x3333u) << 2 | (code >> 2 & 0x3333u);
    code = (code & 0x0F0Fu) << 4 | (code >> 4 & 0x0F0Fu);
    code = (code & 0x00FFu) << 8 | code >> 8;
    codes[symbol] = static_cast<std::uint16_t>(code >> (16 - length));
  }
}

}  // namespace cutout::png
