#pragma once

#include <cuda_fp16.h>

#include <algorithm>
#include <iterator>

#include "cuda/network/table.h"
#include "cuda/network/tensor_cores.cuh"

/// Convolutions as products of matrices that are never written: row m of the left one is the window
/// of pixel m, column n of the right one the weights of output n. A block computes kPixels pixels
/// of kOutputs outputs, kDepth products at a time, and copies the next ones meanwhile.
namespace cutout::cuda {

inline constexpr int kLeastOutputs = 16;

template <int kPixels_, int kOutputs_, int kDepth_, int kWarpPixels_, int kWarpOutputs_,
          int kStages_>
struct ConvTile {
  static constexpr int kPixels = kPixels_;    // of a block
  static constexpr int kOutputs = kOutputs_;  // of a block
  static constexpr int kDepth = kDepth_;      // channels of a tap that are multiplied at a time
  static constexpr int kWarpPixels = kWarpPixels_;
  static constexpr int kWarpOutputs = kWarpOutputs_;
  static constexpr int kStages = kStages_;  // of the copies

  static constexpr int kWarpsAcross = kOutputs / kWarpOutputs;
  static constexpr int kThreads = 32 * (kPixels / kWarpPixels) * kWarpsAcross;
  static constexpr int kChunks = kDepth / 8;  // of 16 bytes in a row of a stage
  static constexpr int kLeftBytes = 2 * kPixels * kDepth;
  static constexpr int kStageBytes = 2 * (kPixels + kOutputs) * kDepth;
  static constexpr int kStoredRow = kOutputs + 8;  // elements, against conflicts of banks
  static constexpr int kSharedBytes = std::max(kStages * kStageBytes, 2 * kPixels * kStoredRow);

  static_assert(kPixels * kChunks % kThreads == 0 && kThreads % kChunks == 0);
  static_assert(kChunks == 2 || kChunks == 4 || kChunks == 8);
};

/// Offset in bytes of a chunk in a matrix of rows of kChunks chunks, so that eight rows under each
/// other lie in different banks.
template <int kChunks>
__device__ __forceinline__ int chunk_offset(int row, int chunk) {
  constexpr int kRowsTogether = 8 / kChunks;  // in 128 bytes
  return 16 * (row * kChunks + (chunk ^ (row / kRowsTogether % kChunks)));
}

/// The pixels of a block: a rectangle of 16 columns, or, where maps are small, pixels in the order of
/// the maps.
struct BlockPixels {
  int width;
  int height;
  int count;       // of all images
  bool rectangles;
  int across;      // rectangles in a row
  int down;        // rectangles in a column

  static constexpr int kColumns = 16;

  /// Which pixel of which image the m-th of a block is; false: none.
  template <int kPixels>
  __device__ bool find(int block, int m, int& image, int& x, int& y) const {
    if (!rectangles) {
      const int at = block * kPixels + m;
      image = at / (width * height);
      const int in_image = at % (width * height);
      y = in_image / width;
      x = in_image % width;
      return at < count;
    }
    constexpr int kRows = kPixels / kColumns;
    image = block / (across * down);
    const int in_image = block % (across * down);
    x = in_image % across * kColumns + m % kColumns;
    y = in_image / across * kRows + m / kColumns;
    return x < width && y < height;
  }
};

template <typename T>
__global__ void __launch_bounds__(T::kThreads) convolve_tile(const Convolution what,
                                                            const BlockPixels pixels) {
  extern __shared__ __align__(128) unsigned char shared[];
  const int thread = static_cast<int>(threadIdx.x);
  const int lane = thread % 32;
  const int warp = thread / 32;
  const int warp_pixels = warp / T::kWarpsAcross * T::kWarpPixels;
  const int warp_outputs = warp % T::kWarpsAcross * T::kWarpOutputs;
  const int block = static_cast<int>(blockIdx.x);
  const int first_output = static_cast<int>(blockIdx.y) * T::kOutputs;
  const int channels = what.input.channels;
  const int outputs = what.output.channels;
  const Window window = what.window;

  // The rows of both matrices that this thread copies a chunk of: where the window begins, and a bit
  // for each of its taps that lies inside the map.
  constexpr int kRowStep = T::kThreads / T::kChunks;
  constexpr int kRows = T::kPixels / kRowStep;
  const int chunk = thread % T::kChunks;
  const int first_row = thread / T::kChunks;
  const __half* windows[kRows];
  unsigned inside[kRows];  // kMostTaps bits
  const auto* const maps = static_cast<const __half*>(what.input.data);
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    int image = 0;
    int x = 0;
    int y = 0;
    const bool there = pixels.find<T::kPixels>(block, first_row + i * kRowStep, image, x, y);
    const int column = x * window.stride - window.left;
    const int row = y * window.stride - window.top;
    windows[i] = maps + image * what.input.image +
                 static_cast<std::ptrdiff_t>(row) * what.input.row +
                 static_cast<std::ptrdiff_t>(column) * what.input.pixel + 8 * chunk;
    unsigned in_row = 0;  // of the taps of one row
    for (int tap = 0, at = column; there && tap < window.width; ++tap, at += window.dilation)
      in_row |= at >= 0 && at < what.input.width ? 1U << tap : 0U;
    inside[i] = 0;
    for (int tap = 0, at = row; tap < window.height; ++tap, at += window.dilation)
      inside[i] |= at >= 0 && at < what.input.height ? in_row << (tap * window.width) : 0U;
  }
  const int row_weights = window.height * window.width * channels;
  const auto* const weights = reinterpret_cast<const __half*>(what.weights);
  constexpr int kColumns = (T::kOutputs + kRowStep - 1) / kRowStep;
  const __half* columns[kColumns];
  bool made[kColumns];
#pragma unroll
  for (int i = 0; i < kColumns; ++i) {
    const int n = first_row + i * kRowStep;
    made[i] = n < T::kOutputs && first_output + n < outputs;
    columns[i] =
        weights + (made[i] ? static_cast<std::ptrdiff_t>(first_output + n) * row_weights : 0) +
        8 * chunk;
  }

  // What the next stage copies.
  int tap = 0;
  int tap_column = 0;
  int channel = 0;
  std::ptrdiff_t in_window = 0;  // from a window's beginning to the tap
  const auto copy_stage = [&](int stage) {
    const std::uint32_t left = shared_address(shared) + stage * T::kStageBytes;
    const std::uint32_t right = left + T::kLeftBytes;
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      const bool there = (inside[i] >> tap & 1U) != 0;
      copy_16<Through::kL1>(left + chunk_offset<T::kChunks>(first_row + i * kRowStep, chunk),
              there ? windows[i] + in_window + channel : maps, there);
    }
#pragma unroll
    for (int i = 0; i < kColumns; ++i) {
      const int n = first_row + i * kRowStep;
      if (n < T::kOutputs)
        copy_16<Through::kL2>(right + chunk_offset<T::kChunks>(n, chunk), columns[i], made[i]);
      columns[i] += T::kDepth;
    }
    channel += T::kDepth;
    if (channel < channels) return;
    channel = 0;
    ++tap;
    in_window += static_cast<std::ptrdiff_t>(window.dilation) * what.input.pixel;
    if (++tap_column < window.width) return;
    tap_column = 0;
    in_window += static_cast<std::ptrdiff_t>(window.dilation) *
                 (what.input.row - static_cast<std::ptrdiff_t>(window.width) * what.input.pixel);
  };

  constexpr int kTall = T::kWarpPixels / 16;
  constexpr int kWide = T::kWarpOutputs / 16;
  float sums[kTall][2 * kWide][4] = {};
  const int steps = row_weights / T::kDepth;
#pragma unroll
  for (int stage = 0; stage < T::kStages - 1; ++stage) {
    if (stage < steps) copy_stage(stage);
    end_copies();
  }
  for (int step = 0; step < steps; ++step) {
    wait_for_copies<T::kStages - 2>();
    __syncthreads();
    if (step + T::kStages - 1 < steps) copy_stage((step + T::kStages - 1) % T::kStages);
    end_copies();
    const std::uint32_t left = shared_address(shared) + step % T::kStages * T::kStageBytes;
    const std::uint32_t right = left + T::kLeftBytes;
#pragma unroll
    for (int k = 0; k < T::kDepth / 16; ++k) {
      std::uint32_t a[kTall][4];
      std::uint32_t b[kWide][4];
#pragma unroll
      for (int i = 0; i < kTall; ++i) {
        load_matrices(a[i], left + chunk_offset<T::kChunks>(warp_pixels + 16 * i + lane % 16,
                                                            2 * k + lane / 16));
      }
#pragma unroll
      for (int j = 0; j < kWide; ++j) {
        load_matrices(b[j], right + chunk_offset<T::kChunks>(
                                        warp_outputs + 16 * j + lane / 16 * 8 + lane % 8,
                                        2 * k + lane / 8 % 2));
      }
#pragma unroll
      for (int i = 0; i < kTall; ++i) {
#pragma unroll
        for (int j = 0; j < kWide; ++j) {
          multiply(sums[i][2 * j], a[i], b[j][0], b[j][1]);
          multiply(sums[i][2 * j + 1], a[i], b[j][2], b[j][3]);
        }
      }
    }
  }
  wait_for_copies<0>();
  __syncthreads();

  // A lane has two neighbouring outputs of pixels lane / 4 and lane / 4 + 8 of each product.
  auto* const stored = reinterpret_cast<__half*>(shared);
#pragma unroll
  for (int i = 0; i < kTall; ++i) {
#pragma unroll
    for (int j = 0; j < 2 * kWide; ++j) {
      const int n = warp_outputs + 8 * j + lane % 4 * 2;
      if (first_output + n >= outputs) continue;
      const float bias[2] = {what.bias[first_output + n], what.bias[first_output + n + 1]};
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int m = warp_pixels + 16 * i + lane / 4 + 8 * half;
        float values[2] = {sums[i][j][2 * half] + bias[0], sums[i][j][2 * half + 1] + bias[1]};
        if (what.relu) {
          values[0] = fmaxf(values[0], 0);
          values[1] = fmaxf(values[1], 0);
        }
        if (!what.to_floats) {
          *reinterpret_cast<__half2*>(stored + m * T::kStoredRow + n) =
              __floats2half2_rn(values[0], values[1]);
          continue;
        }
        int image = 0;
        int x = 0;
        int y = 0;
        if (!pixels.find<T::kPixels>(block, m, image, x, y)) continue;
        float* const to = static_cast<float*>(what.output.data) + image * what.output.image +
                          static_cast<std::ptrdiff_t>(y) * what.output.row + x * what.output.pixel +
                          first_output + n;
        to[0] = values[0];
        to[1] = values[1];
      }
    }
  }
  if (what.to_floats) return;
  __syncthreads();
  constexpr int kStored = T::kOutputs / 8;  // chunks of a pixel
  for (int at = thread; at < T::kPixels * kStored; at += T::kThreads) {
    const int m = at / kStored;
    const int n = at % kStored * 8;
    int image = 0;
    int x = 0;
    int y = 0;
    if (first_output + n >= outputs || !pixels.find<T::kPixels>(block, m, image, x, y)) continue;
    uint4 value = *reinterpret_cast<const uint4*>(stored + m * T::kStoredRow + n);
    if (what.added.data != nullptr) {
      const uint4 other = *reinterpret_cast<const uint4*>(
          static_cast<const __half*>(what.added.data) + image * what.added.image +
          static_cast<std::ptrdiff_t>(y) * what.added.row + x * what.added.pixel + first_output + n);
      auto* const a = reinterpret_cast<__half2*>(&value);
      const auto* const b = reinterpret_cast<const __half2*>(&other);
#pragma unroll
      for (int i = 0; i < 4; ++i) a[i] = __hadd2(a[i], b[i]);
    }
    *reinterpret_cast<uint4*>(static_cast<__half*>(what.output.data) + image * what.output.image +
                              static_cast<std::ptrdiff_t>(y) * what.output.row +
                              x * what.output.pixel + first_output + n) = value;
  }
}

/// The first convolution of a network, of an image's 4 channels: kPixels neighbours in a row and
/// kOutputs outputs a thread.
struct ImageTile {
  static constexpr int kPixels = 2;
  static constexpr int kOutputs = 16;
  static constexpr int kThreads = 128;

  static int shared_bytes(const Window& window) {
    return window.height * window.width * 4 * kOutputs * static_cast<int>(sizeof(float));
  }
};

__global__ void __launch_bounds__(ImageTile::kThreads) convolve_image(const Convolution what) {
  constexpr int kPixels = ImageTile::kPixels;
  constexpr int kOutputs = ImageTile::kOutputs;
  extern __shared__ __align__(128) unsigned char shared[];
  auto* const weights = reinterpret_cast<float*>(shared);  // [taps][4][kOutputs]
  const int first_output = static_cast<int>(blockIdx.y) * kOutputs;
  const Window window = what.window;
  const int taps = window.height * window.width;
  for (int at = static_cast<int>(threadIdx.x); at < taps * 4 * kOutputs;
       at += ImageTile::kThreads) {
    const int n = first_output + at % kOutputs;
    weights[at] = __half2float(
        reinterpret_cast<const __half*>(what.weights)[n * taps * 4 + at / kOutputs]);
  }
  __syncthreads();
  const int across = (what.output.width + kPixels - 1) / kPixels;
  const std::ptrdiff_t place =
      static_cast<std::ptrdiff_t>(blockIdx.x) * ImageTile::kThreads + threadIdx.x;
  const auto x = static_cast<int>(place % across) * kPixels;
  const auto y = static_cast<int>(place / across % what.output.height);
  const auto image = static_cast<int>(place / across / what.output.height);
  if (image >= what.output.images) return;
  float sums[kPixels][kOutputs];
#pragma unroll
  for (int n = 0; n < kOutputs; ++n) {
#pragma unroll
    for (int i = 0; i < kPixels; ++i) sums[i][n] = what.bias[first_output + n];
  }
  const __half* const from = static_cast<const __half*>(what.input.data) + image * what.input.image;
  int row = y * window.stride - window.top;
  int left = x * window.stride - window.left;
  for (int tap = 0, in_row = 0; tap < taps; ++tap) {
    float values[kPixels][4] = {};
#pragma unroll
    for (int i = 0; i < kPixels; ++i) {
      const int column = left + i * window.stride;
      if (row < 0 || row >= what.input.height || column < 0 || column >= what.input.width) continue;
      const uint2 loaded = *reinterpret_cast<const uint2*>(
          from + static_cast<std::ptrdiff_t>(row) * what.input.row + column * what.input.pixel);
      const float2 low = __half22float2(*reinterpret_cast<const __half2*>(&loaded.x));
      const float2 high = __half22float2(*reinterpret_cast<const __half2*>(&loaded.y));
      values[i][0] = low.x;
      values[i][1] = low.y;
      values[i][2] = high.x;
      values[i][3] = high.y;
    }
#pragma unroll
    for (int c = 0; c < 4; ++c) {
      const float4* const of =
          reinterpret_cast<const float4*>(weights + (tap * 4 + c) * kOutputs);
#pragma unroll
      for (int n = 0; n < kOutputs; n += 4) {
        const float4 four = of[n / 4];
#pragma unroll
        for (int i = 0; i < kPixels; ++i) {
          sums[i][n] = fmaf(values[i][c], four.x, sums[i][n]);
          sums[i][n + 1] = fmaf(values[i][c], four.y, sums[i][n + 1]);
          sums[i][n + 2] = fmaf(values[i][c], four.z, sums[i][n + 2]);
          sums[i][n + 3] = fmaf(values[i][c], four.w, sums[i][n + 3]);
        }
      }
    }
    left += window.dilation;
    if (++in_row < window.width) continue;
    in_row = 0;
    left -= window.width * window.dilation;
    row += window.dilation;
  }
#pragma unroll
  for (int i = 0; i < kPixels; ++i) {
    if (x + i >= what.output.width) continue;
    uint4 made[kOutputs / 8];
    auto* const pairs = reinterpret_cast<__half2*>(made);
#pragma unroll
    for (int n = 0; n < kOutputs; n += 2) {
      const float low = what.relu ? fmaxf(sums[i][n], 0.0F) : sums[i][n];
      const float high = what.relu ? fmaxf(sums[i][n + 1], 0.0F) : sums[i][n + 1];
      pairs[n / 2] = __floats2half2_rn(low, high);
    }
    auto* const to = reinterpret_cast<uint4*>(
        static_cast<__half*>(what.output.data) + image * what.output.image +
        static_cast<std::ptrdiff_t>(y) * what.output.row + (x + i) * what.output.pixel +
        first_output);
    to[0] = made[0];
    to[1] = made[1];
  }
}

template <typename T>
cudaError_t launch_tile(const Convolution& what, cudaStream_t stream) {
  const DeviceMap& to = what.output;
  // No more outputs than are wanted, but for the smallest tiles; whole steps of channels.
  const bool fits = (T::kOutputs <= to.channels || T::kOutputs == kLeastOutputs) &&
                    what.input.channels % T::kDepth == 0;
  if (!fits) return cudaErrorInvalidValue;
  // Of this device; launches are recorded as graphs, so that it is asked for rarely.
  if (cudaFuncSetAttribute(convolve_tile<T>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                           T::kSharedBytes) != cudaSuccess) {  // it has less shared memory
    (void)cudaGetLastError();
    return cudaErrorInvalidValue;
  }
  constexpr int kRows = T::kPixels / BlockPixels::kColumns;
  BlockPixels pixels{to.width, to.height, to.images * to.width * to.height, false, 0, 0};
  pixels.across = (to.width + BlockPixels::kColumns - 1) / BlockPixels::kColumns;
  pixels.down = (to.height + kRows - 1) / kRows;
  pixels.rectangles = to.width >= 2 * BlockPixels::kColumns && to.height >= 2 * kRows;
  const int blocks = pixels.rectangles ? to.images * pixels.across * pixels.down
                                       : (pixels.count + T::kPixels - 1) / T::kPixels;
  const dim3 grid(static_cast<unsigned>(blocks),
                  static_cast<unsigned>((to.channels + T::kOutputs - 1) / T::kOutputs));
  convolve_tile<T><<<grid, T::kThreads, T::kSharedBytes, stream>>>(what, pixels);
  return cudaGetLastError();
}

using LaunchTile = cudaError_t (*)(const Convolution& what, cudaStream_t stream);

/// Larger tiles use what they copy more often, smaller ones keep all processors of the GPU busy, and
/// more warps of a tile hide what each waits for. The first fits every convolution.
inline constexpr LaunchTile kTiles[] = {
    launch_tile<ConvTile<64, kLeastOutputs, 16, 16, 16, 4>>,
    launch_tile<ConvTile<256, 64, 16, 64, 64, 4>>,
    launch_tile<ConvTile<128, 32, 16, 32, 32, 4>>,
    launch_tile<ConvTile<256, 128, 32, 64, 64, 3>>,
    launch_tile<ConvTile<128, 128, 64, 64, 64, 3>>,
    launch_tile<ConvTile<128, 128, 32, 64, 64, 4>>,
    launch_tile<ConvTile<128, 128, 32, 64, 32, 4>>,
    launch_tile<ConvTile<256, 64, 32, 64, 64, 4>>,
    launch_tile<ConvTile<256, 64, 64, 64, 32, 2>>,
    launch_tile<ConvTile<128, 64, 64, 64, 32, 3>>,
    launch_tile<ConvTile<128, 64, 32, 32, 32, 4>>,
    launch_tile<ConvTile<64, 64, 64, 32, 32, 4>>,
    launch_tile<ConvTile<64, 64, 32, 32, 32, 4>>,
    launch_tile<ConvTile<256, 32, 32, 64, 32, 4>>,
    launch_tile<ConvTile<128, 32, 32, 32, 32, 4>>,
    launch_tile<ConvTile<64, 32, 64, 32, 16, 4>>,
    launch_tile<ConvTile<64, 32, 32, 32, 16, 4>>,
    launch_tile<ConvTile<256, kLeastOutputs, 32, 64, 16, 4>>,
    launch_tile<ConvTile<64, kLeastOutputs, 32, 16, 16, 4>>,
};
inline constexpr int kTileCount = static_cast<int>(std::size(kTiles));

inline cudaError_t convolve(const Convolution& what, cudaStream_t stream) {
  if (what.tile < 0 || what.tile >= kTileCount) return cudaErrorInvalidValue;
  const bool adds = what.added.data != nullptr;
  if (adds && (what.to_floats || what.input.channels == 4)) return cudaErrorInvalidValue;
  if (what.input.channels != 4) return kTiles[what.tile](what, stream);
  if (what.tile > 0) return cudaErrorInvalidValue;
  const std::ptrdiff_t across = (what.output.width + ImageTile::kPixels - 1) / ImageTile::kPixels;
  const std::ptrdiff_t threads = across * what.output.height * what.output.images;
  const dim3 grid(static_cast<unsigned>((threads + ImageTile::kThreads - 1) / ImageTile::kThreads),
                  static_cast<unsigned>(what.output.channels / ImageTile::kOutputs));
  convolve_image<<<grid, ImageTile::kThreads, ImageTile::shared_bytes(what.window), stream>>>(what);
  return cudaGetLastError();
}

}  // namespace cutout::cuda
