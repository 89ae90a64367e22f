#include "low_precision/run.h"

#include <algorithm>

#include "low_precision/maps.h"

namespace cutout::low_precision {

namespace {

/// Smallest part of an operation that is worth handing to another thread: multiplications of a
/// convolution, bytes of everything else.
constexpr double kMinPartMultiplications = 8e6;
constexpr double kMinPartBytes = 128e3;
constexpr int kMaxParts = 64;
/// Outputs of a part where weights are transformed, at least, if a map is split by rows.
constexpr int kMinTilePixels = 24 * 16;

/// Units of the largest value of a map in high and low bytes.
constexpr float kMaxUnits = 65535;
/// Units that 1 of a high byte stands for.
constexpr float kUnitsOfHighByte = 256;

/// Transformed weights of one convolution that are kept at a time, unless one group has more.
constexpr std::size_t kTransformedBytes = std::size_t{8} << 20;
/// Largest map whose parts transform their own weights, and how many parts these are at most. Its
/// weights outnumber its values by far: handing them from one processor to another costs more than
/// transforming the inputs once for every pair of groups.
constexpr int kSmallMapPixels = 48 * 48;
constexpr int kTransformingParts = 4;

/// Returns the bytes of the transformed weights of a group, for an output map; 0 where the kernel
/// does not transform them.
std::size_t transformed_bytes(const Kernel& kernel, const Conv& conv, const Map& output) {
  return kernel.transformed_bytes == nullptr
             ? 0
             : kernel.transformed_bytes(conv, output.width, output.height);
}

/// Groups of output channels whose transformed weights, so many bytes each, are kept at a time.
int groups_together(const Conv& conv, std::size_t bytes) {
  const auto fitting = static_cast<int>(kTransformedBytes / bytes);
  return std::clamp(fitting / 2 * 2, 1, conv.groups());
}

/// Groups are multiplied in pairs.
int pairs_of(int groups) { return (groups + 1) / 2; }

/// Parts of a convolution with transformed weights that transform their own, one pair of groups at
/// a time, at most; 0: the weights are transformed for all parts together.
int transforming_parts(const Conv& conv, const Map& output) {
  const bool small = output.width * output.height <= kSmallMapPixels;
  return small && conv.groups() >= 4 ? std::min(pairs_of(conv.groups()), kTransformingParts) : 0;
}

double multiplications_of(const Conv& conv, const Map& output, int groups) {
  return static_cast<double>(output.width) * output.height * groups * kLanes * conv.panels() *
         static_cast<double>(conv.chunks.size()) * kChunkInputs / conv.element();
}

/// Splits `length` into `parts` nearly equal pieces.
int begin_of(int length, std::size_t part, std::size_t parts) {
  return static_cast<int>(static_cast<std::int64_t>(length) * static_cast<std::int64_t>(part) /
                          static_cast<std::int64_t>(parts));
}

int parts_for(double work, double min_part, int max_parts) {
  const double parts = std::min(work / min_part, static_cast<double>(kMaxParts));
  return std::clamp(static_cast<int>(parts), 1, std::max(1, max_parts));
}

class Runner {
 public:
  Runner(const Program& program, const Plan& plan, const Kernel& kernel, const RunBuffers& buffers,
         const Parallel& parallel, const CancelToken* token)
      : program_(program),
        plan_(plan),
        kernel_(kernel),
        buffers_(buffers),
        parallel_(parallel),
        token_(token),
        units_(program.values().size(), 1.0F) {}

  Status run() {
    for (std::size_t i = 0; i < program_.operations().size(); ++i) {
      if (stopped()) return token_->check();
      for (const int value : plan_.borders_before(i)) {
        fill_border(map(value), plan_.border(value));
      }
      compute(program_.operations()[i]);
    }
    return token_ == nullptr ? Status() : token_->check();
  }

 private:
  [[nodiscard]] bool stopped() const { return token_ != nullptr && !token_->check().ok(); }
  [[nodiscard]] Map map(int value) const { return plan_.map(value, buffers_.memory.data()); }
  /// `work(first, last)` for all of `height` rows or the like, in parts. A stopped run leaves the
  /// rest out.
  template <typename Work>
  void rows(int height, double bytes, const Work& work) {
    const auto parts = static_cast<std::size_t>(parts_for(bytes, kMinPartBytes, height));
    each(parts, [&](std::size_t part) {
      work(begin_of(height, part, parts), begin_of(height, part + 1, parts));
    });
  }

  template <typename Work>
  void each(std::size_t parts, const Work& work) {
    if (parts == 1) {
      work(std::size_t{0});
      return;
    }
    parallel_(parts, [&](std::size_t part) {
      if (!stopped()) work(part);
    });
  }

  static double bytes_of(const Map& map) {
    return static_cast<double>(map.width) * map.height * map.bytes();
  }

  void compute(const Operation& operation) {
    const Map input = operation.inputs.empty() ? Map{} : map(operation.inputs.front());
    const Map output = operation.outward() ? Map{} : map(operation.output);
    switch (operation.kind) {
      case Kind::kInput: {
        const float scale = operation.scales.empty() ? 1.0F : operation.scales.front();
        return rows(output.height, 4 * bytes_of(output), [&](int first, int last) {
          read_planes(buffers_.input, program_.input_channels(), scale, output, first, last);
        });
      }
      case Kind::kConv:
        return convolve(operation);
      case Kind::kMaxPool:
        return rows(output.height, bytes_of(input), [&](int first, int last) {
          max_pool(operation.pool, input, output, first, last);
        });
      case Kind::kResize:
        return rows(output.height, 2 * bytes_of(output), [&](int first, int last) {
          resize(operation.factor, input, output, first, last);
        });
      case Kind::kAdd: {
        const Map other = map(operation.inputs[1]);
        return rows(output.height, 2 * bytes_of(output), [&](int first, int last) {
          add(operation.add, input, other, output, first, last);
        });
      }
      case Kind::kConcat:
        return concatenate(operation);
      case Kind::kSplitBytes: {
        const float unit = max_value(input) / kMaxUnits;
        units_[static_cast<std::size_t>(operation.output)] = unit;
        return rows(output.height, 4 * bytes_of(output),
                    [&](int first, int last) { split_bytes(input, unit, output, first, last); });
      }
      case Kind::kCombine: {
        std::vector<Map> inputs;
        for (const int value : operation.inputs) inputs.push_back(map(value));
        const float scale = operation.scales.front();
        return rows(output.height, 4 * bytes_of(output), [&](int first, int last) {
          combine(inputs, operation.relu, scale, output, first, last);
        });
      }
      case Kind::kOutput:
      case Kind::kPlanes: {
        const int channels = operation.output_channels(input.channels);
        return rows(input.height, 4 * bytes_of(input), [&](int first, int last) {
          write_planes(input, channels, operation.scales, output_of(operation), first, last);
        });
      }
      case Kind::kSumOutput:
        return rows(input.height, bytes_of(input), [&](int first, int last) {
          sum(input, operation.scales.front(), operation.low, output_of(operation), first, last);
        });
    }
  }

  [[nodiscard]] std::span<float> output_of(const Operation& operation) const {
    return buffers_.outputs[static_cast<std::size_t>(operation.output)];
  }

  void convolve(const Operation& operation) {
    const Conv& conv = operation.conv;
    const float unit = units_[static_cast<std::size_t>(operation.inputs.front())];
    const bool split = program_.values()[static_cast<std::size_t>(operation.inputs.front())].split;
    const bool high_bytes = split && conv.channel == 0;
    const float input_scale = high_bytes ? kUnitsOfHighByte * unit : unit;
    ConvTask task(conv, map(operation.inputs.front()), map(operation.output), input_scale);
    task.transformed_bytes = transformed_bytes(kernel_, conv, task.output);
    if (task.transformed_bytes == 0) {
      convolve(task, 0, conv.groups());
      return;
    }
    const std::span<std::uint8_t> scratch = buffers_.memory.subspan(plan_.bytes());
    if (transforming_parts(conv, task.output) > 0) {
      convolve_pairs(task, scratch);
      return;
    }
    task.transformed = scratch;
    const int together = groups_together(conv, task.transformed_bytes);
    for (int first = 0; first < conv.groups() && !stopped(); first += together) {
      const int last = std::min(first + together, conv.groups());
      const double bytes =
          static_cast<double>(last - first) * static_cast<double>(task.transformed_bytes);
      rows(last - first, bytes, [&](int from, int to) {
        kernel_.transform(conv, first + from, first + to,
                          scratch.data() + static_cast<std::size_t>(from) * task.transformed_bytes);
      });
      task.transformed_from = first;
      convolve(task, first, last);
    }
  }

  /// Every part transforms and multiplies pairs of groups, one after the other in the same memory.
  void convolve_pairs(const ConvTask& task, std::span<std::uint8_t> scratch) {
    const Conv& conv = *task.conv;
    const int pairs = pairs_of(conv.groups());
    const auto parts = static_cast<std::size_t>(
        parts_for(multiplications_of(conv, task.output, conv.groups()), kMinPartMultiplications,
                  transforming_parts(conv, task.output)));
    // Copied here, because a copy allocates and no exception may leave a part.
    std::vector<ConvTask> tasks(parts, task);
    each(parts, [&](std::size_t part) {
      ConvTask& own = tasks[part];
      const std::span<std::uint8_t> weights =
          scratch.subspan(part * 2 * task.transformed_bytes, 2 * task.transformed_bytes);
      own.transformed = weights;
      const int last_pair = begin_of(pairs, part + 1, parts);
      for (int pair = begin_of(pairs, part, parts); pair < last_pair && !stopped(); ++pair) {
        const int last = std::min(2 * pair + 2, conv.groups());
        own.transformed_from = 2 * pair;
        kernel_.transform(conv, 2 * pair, last, weights.data());
        kernel_.run(own, 0, task.output.height, 2 * pair, last);
      }
    });
  }

  void convolve(const ConvTask& task, int first_group, int last_group) {
    const Conv& conv = *task.conv;
    const int groups = last_group - first_group;
    const double multiplications = multiplications_of(conv, task.output, groups);
    const int height = task.output.height;
    // Rows that are computed together, where weights are transformed, are not split, and a part has
    // enough of them to use their weights often.
    const bool tiles = !task.transformed.empty();
    const int step = tiles ? kernel_.tile_side * conv.dilation : 1;
    const int tall = tiles ? kMinTilePixels / (task.output.width * step) + 1 : 1;
    const int row_units = (height + step - 1) / step;
    // Large maps are split by rows, small ones by output channel, because their weights outnumber
    // their values.
    const bool by_rows = groups < 4 || (tiles ? row_units / tall >= 2 : height >= kMaxParts);
    const int units = by_rows ? row_units : pairs_of(groups);
    const auto parts = static_cast<std::size_t>(
        parts_for(multiplications, kMinPartMultiplications, by_rows ? units / tall : units));
    each(parts, [&](std::size_t part) {
      const int first = begin_of(units, part, parts);
      const int last = begin_of(units, part + 1, parts);
      if (by_rows) {
        kernel_.run(task, first * step, std::min(last * step, height), first_group, last_group);
      } else {
        kernel_.run(task, 0, height, first_group + 2 * first,
                    std::min(first_group + 2 * last, last_group));
      }
    });
  }

  /// Copies the parts that do not lie in place.
  void concatenate(const Operation& operation) {
    const Map output = map(operation.output);
    int before = 0;
    for (const int value : operation.inputs) {
      const Map input = map(value);
      const bool there = input.data == output.data + before && input.stride == output.stride;
      if (!there) {
        rows(input.height, 2 * bytes_of(input),
             [&](int first, int last) { copy(input, output, before, first, last); });
      }
      before += input.bytes();
    }
  }

  const Program& program_;
  const Plan& plan_;
  const Kernel& kernel_;
  const RunBuffers& buffers_;
  const Parallel& parallel_;
  const CancelToken* token_;
  std::vector<float> units_;  // of the values of kSplitBytes; 1 for all others
};

}  // namespace

std::size_t bytes_of_run(const Program& program, const Plan& plan, const Kernel& kernel) {
  std::size_t most = 0;
  for (const Operation& operation : program.operations()) {
    if (operation.kind != Kind::kConv) continue;
    const Map output = plan.map(operation.output, nullptr);
    const std::size_t bytes = transformed_bytes(kernel, operation.conv, output);
    if (bytes == 0) continue;
    const int parts = transforming_parts(operation.conv, output);
    const int groups = parts > 0 ? 2 * parts : groups_together(operation.conv, bytes);
    most = std::max(most, static_cast<std::size_t>(groups) * bytes);
  }
  return plan.bytes() + most;
}

Status run(const Program& program, const Plan& plan, const Kernel& kernel,
           const RunBuffers& buffers, const Parallel& parallel, const CancelToken* token) {
  return Runner(program, plan, kernel, buffers, parallel, token).run();
}

}  // namespace cutout::low_precision
