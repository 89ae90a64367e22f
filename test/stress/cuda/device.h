#pragma once

#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include "cuda/table.h"

namespace cutout::test {

/// Ends the program if a function of the table fails.
inline void check(const cuda::Table& table, int error) {
  if (error == 0) return;
  std::fprintf(stderr, "the device failed: %s\n", table.error_text(error));
  std::exit(1);
}

/// Memory of the device, of exactly the size that is asked for.
template <typename T>
class Buffer {
 public:
  Buffer(const cuda::Table& table, std::size_t count) : table_(table), count_(count) {
    void* memory = nullptr;
    check(table, table.allocate(count * sizeof(T), &memory));
    data_ = static_cast<T*>(memory);
  }
  Buffer(const cuda::Table& table, std::span<const T> values) : Buffer(table, values.size()) {
    check(table, table.copy_to_device(data_, values.data(), values.size_bytes(), nullptr));
    check(table, table.synchronize(nullptr));
  }
  Buffer(const cuda::Table& table, const std::vector<T>& values)
      : Buffer(table, std::span<const T>(values)) {}
  ~Buffer() { check(table_, table_.release(data_)); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  [[nodiscard]] T* data() const { return data_; }
  [[nodiscard]] std::vector<T> read() const {
    std::vector<T> values(count_);
    check(table_, table_.synchronize(nullptr));
    check(table_, table_.copy_to_host(values.data(), data_, count_ * sizeof(T), nullptr));
    check(table_, table_.synchronize(nullptr));
    return values;
  }

 private:
  const cuda::Table& table_;
  std::size_t count_;
  T* data_ = nullptr;
};

}  // namespace cutout::test
