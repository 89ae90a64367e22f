#pragma once

#include <cstddef>
#include <map>
#include <memory>

namespace cutout::ort {

/// A stretch of address space that is handed out in pieces. Pieces come from the lowest place they
/// fit in and grow together again when they are given back, so that pages once used serve whatever
/// comes next, also one large block after many small ones. No locks: NetworkMemory has one.
///
/// | what    | how                                                                             |
/// |---------|---------------------------------------------------------------------------------|
/// | sizes   | multiples of kPage                                                              |
/// | pages   | of the system only once they are written to; huge ones where the system has them |
class Region {
 public:
  static constexpr std::size_t kPage = 4096;

  /// Reserves `wish` bytes, or less where the system does not allow that much, at least `least`;
  /// null when there is not even that. Throws std::bad_alloc without memory for its own books.
  static std::unique_ptr<Region> reserve(std::size_t wish, std::size_t least);
  ~Region();
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;

  /// Content undefined; null when no free stretch is long enough. Throws std::bad_alloc without
  /// memory for its own books; nothing is taken then.
  [[nodiscard]] void* take(std::size_t bytes);
  /// What take() returned. Needs no memory.
  void give(void* piece) noexcept;
  /// Gives the pages of everything free back to the system; the addresses stay reserved.
  void release();

  [[nodiscard]] bool holds(const void* piece) const;
  /// Nothing is handed out.
  [[nodiscard]] bool idle() const;
  /// Free bytes that may have pages: at most these.
  [[nodiscard]] std::size_t resident_bytes() const;

 private:
  struct Stretch {
    std::size_t bytes;
    std::size_t used;  // from the front; those behind have no pages
  };

  Region(std::byte* base, std::size_t bytes);

  std::byte* const base_;
  const std::size_t bytes_;
  using Stretches = std::map<std::byte*, Stretch>;
  Stretches free_;   // no two touch each other
  Stretches taken_;  // their entries go back to free_ with them
};

}  // namespace cutout::ort
