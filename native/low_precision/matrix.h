#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "core/status.h"
#include "low_precision/conv.h"
#include "low_precision/rows.h"

namespace cutout::low_precision {

/// Rows that are multiplied with matrices, in bf16, or rounded from there to 8 bits; in memory of
/// the caller.
class ProductRows {
 public:
  /// Memory of `rows` rows of `columns` values, a multiple of Plan::kAlignment.
  static std::size_t bytes(bool bf16, int columns, std::size_t rows);

  /// Borrows as much memory, aligned to Plan::kAlignment.
  ProductRows(bool bf16, int columns, std::size_t rows, std::uint8_t* memory);

  /// The rows in bf16, `padded_columns` values apart, to be written by the caller; what is behind
  /// their columns is 0.
  [[nodiscard]] Bf16* values() const { return values_; }
  /// Rounds the first `count` rows, which the caller has written, to 8 bits if they are to be.
  void round(int count) const;

 private:
  friend class Matrix;

  bool bf16_;
  int columns_;
  Bf16* values_;
  std::uint8_t* quantised_;
  RowSteps* steps_;
};

/// A constant matrix that rows are multiplied with, and a bias, in bf16 or in 8 bits. In bf16 rows
/// and matrix are rounded to the nearest, to even. In 8 bits a row is rounded to 256 values from
/// its own least to its largest one, and a column of the matrix to -64 to 64 times a scale. Sums
/// are floats, or in 8 bits integers of 32, which do not overflow.
class Matrix {
 public:
  /// Takes the matrix off the front of `weights`, as src/compiler/lowPrecision/pack.ts packs them
  /// (packMatrix), and its biases, or in 8 bits scales, sums of columns and biases, off the front
  /// of `constants`; all in whole groups of kLanes. They are borrowed for as long as the matrix
  /// lives. With `relu` negative results become 0. kModel where they do not suffice, and for more
  /// than 2^20 columns or inputs, or in 8 bits 2^16 inputs.
  static Status take(bool bf16, std::int64_t inputs, std::int64_t columns, bool relu,
                     std::span<const float>& constants, std::span<const std::int8_t>& weights,
                     Matrix& taken);

  [[nodiscard]] int columns() const { return columns_; }
  /// Columns in whole groups.
  [[nodiscard]] int outputs() const { return conv_.outputs; }
  [[nodiscard]] bool bf16() const { return conv_.bf16; }

  /// Writes the product of `rows`, which are rounded; `wide` has room for `outputs` columns of
  /// them where `to` has fewer.
  void multiply(ConvKernel kernel, const ProductRows& rows, const OutputRows& to,
                float* wide) const;

 private:
  Conv conv_;
  int columns_ = 0;
  bool relu_ = false;
  std::span<const float> sums_;              // of 8 bits
  std::span<const float> biases_;            // of 8 bits
  std::unique_ptr<std::int32_t[]> no_bias_;  // of 8 bits
};

}  // namespace cutout::low_precision
