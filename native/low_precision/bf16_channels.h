#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "low_precision/plan.h"
#include "low_precision/program.h"

namespace cutout::low_precision {

// Operations on whole channels of maps of bf16, as native/low_precision/program.h defines them.

/// Sums of every channel's differences from its first pixel, and of their squares.
struct ChannelSums {
  explicit ChannelSums(std::size_t channels)
      : values(channels), squares(channels), row_values(channels), row_squares(channels) {}

  ChannelSums& operator+=(const ChannelSums& other);

  std::vector<double> values;
  std::vector<double> squares;
  /// Of the row that is being added.
  std::vector<float> row_values;
  std::vector<float> row_squares;
};

/// Adds rows [first, last). Different sums may be made at the same time.
void add_rows(const Map& input, int first, int last, ChannelSums& sums);

/// The means of the channels, from the sums of all rows.
void write_means(const Map& input, const ChannelSums& sums, const Map& output);

/// x * factor + offset of every channel.
struct ChannelScales {
  std::vector<float> factors;
  std::vector<float> offsets;
};
/// What normalises the channels, from the sums of all rows; the ones before the first that is
/// normalised stay as they are.
ChannelScales normalising(const Normalise& normalise, const Map& input, const ChannelSums& sums);
/// What multiplies by the one pixel of `gates`.
ChannelScales gating(const Map& gates);

/// Rows [first, last) of x * factor + offset.
void scale_channels(const ChannelScales& scales, Activation activation, const Map& input,
                    const Map& output, int first, int last);

}  // namespace cutout::low_precision
