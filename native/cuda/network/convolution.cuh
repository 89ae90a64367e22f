#pragma once

#include <algorithm>
#include <cstdint>
#include <cuda_fp16.h>
#include <iterator>

#include "cuda/network/table.h"

namespace cutout::cuda {

__device__ __forceinline__ std::uint32_t shared_address(const void* memory) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(memory));
}

/// The caches that a copy goes through: the first too where its neighbours read the same soon.
enum class Through { kL1, kL2 };

/// Copies 16 bytes to shared memory in the background, or zeros where not `there`.
template <Through kThrough>
__device__ __forceinline__ void copy_16(std::uint32_t to, const void* from, bool there) {
#if __CUDA_ARCH__ >= 800
  if constexpr (kThrough == Through::kL1) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 16, %2;\n" ::"r"(to), "l"(from),
                 "r"(there ? 16 : 0));
  } else {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(to), "l"(from),
                 "r"(there ? 16 : 0));
  }
#endif
}

__device__ __forceinline__ void end_copies() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;\n");
#endif
}

/// Waits until at most `kLeft` groups of copies are on their way.
template <int kLeft>
__device__ __forceinline__ void wait_for_copies() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;\n" ::"n"(kLeft));
#endif
}

/// Four matrices of 8 x 8 float16, of which lane l names row l % 8 of matrix l / 8.
__device__ __forceinline__ void load_matrices(std::uint32_t (&into)[4], std::uint32_t from) {
#if __CUDA_ARCH__ >= 800
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
               : "=r"(into[0]), "=r"(into[1]), "=r"(into[2]), "=r"(into[3])
               : "r"(from));
#endif
}

/// sums [16][8] += a [16][16] * b [16][8].
__device__ __forceinline__ void multiply(float (&sums)[4], const std::uint32_t (&a)[4],
                                         std::uint32_t b0, std::uint32_t b1) {
#if __CUDA_ARCH__ >= 800
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};\n"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#endif
}

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

/// Copies the stages of a block into shared memory, one after the other: each thread one chunk of
/// some rows of both matrices. Lives in registers.
template <typename T>
struct StageCopies {
  static constexpr int kRowStep = T::kThreads / T::kChunks;
  static constexpr int kRows = T::kPixels / kRowStep;  // of the left matrix
  static constexpr int kColumns = (T::kOutputs + kRowStep - 1) / kRowStep;  // of the right one

  const Convolution& what;
  const int chunk;
  const int first_row;
  const int first_output;       // of the block
  const __half* windows[kRows];  // where the window of each pixel begins
  unsigned inside[kRows];  // kMostTaps bits: the window's taps that lie inside the map
  const __half* columns[kColumns];  // the next weights of each output
  bool made[kColumns];              // whether there is such an output

  // What the next stage copies.
  int tap = 0;
  int tap_column = 0;
  int channel = 0;
  std::ptrdiff_t in_window = 0;  // from a window's beginning to the tap

  __device__ __forceinline__ StageCopies(const Convolution& convolution, const BlockPixels& pixels,
                                         int block, int block_output)
      : what(convolution),
        chunk(static_cast<int>(threadIdx.x) % T::kChunks),
        first_row(static_cast<int>(threadIdx.x) / T::kChunks),
        first_output(block_output) {
    find_windows(pixels, block);
    find_weights();
  }

  __device__ __forceinline__ const __half* maps() const {
    return static_cast<const __half*>(what.input.data);
  }
  __device__ __forceinline__ int row_weights() const {
    return what.window.height * what.window.width * what.input.channels;
  }

  __device__ __forceinline__ void find_windows(const BlockPixels& pixels, int block) {
    const Window window = what.window;
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      int image = 0;
      int x = 0;
      int y = 0;
      const bool there = pixels.find<T::kPixels>(block, first_row + i * kRowStep, image, x, y);
      const int column = x * window.stride - window.left;
      const int row = y * window.stride - window.top;
      windows[i] = maps() + image * what.input.image +
                   static_cast<std::ptrdiff_t>(row) * what.input.row +
                   static_cast<std::ptrdiff_t>(column) * what.input.pixel + 8 * chunk;
      unsigned in_row = 0;  // of the taps of one row
      for (int tap = 0, at = column; there && tap < window.width; ++tap, at += window.dilation)
        in_row |= at >= 0 && at < what.input.width ? 1U << tap : 0U;
      inside[i] = 0;
      for (int tap = 0, at = row; tap < window.height; ++tap, at += window.dilation)
        inside[i] |= at >= 0 && at < what.input.height ? in_row << (tap * window.width) : 0U;
    }
  }

  __device__ __forceinline__ void find_weights() {
    const auto* const weights = reinterpret_cast<const __half*>(what.weights);
#pragma unroll
    for (int i = 0; i < kColumns; ++i) {
      const int n = first_row + i * kRowStep;
      made[i] = n < T::kOutputs && first_output + n < what.output.channels;
      columns[i] =
          weights + (made[i] ? static_cast<std::ptrdiff_t>(first_output + n) * row_weights() : 0) +
          8 * chunk;
    }
  }

  /// Begins to copy the next stage to the address of its place.
  __device__ __forceinline__ void copy_next(std::uint32_t left) {
    const std::uint32_t right = left + T::kLeftBytes;
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      const bool there = (inside[i] >> tap & 1U) != 0;
      copy_16<Through::kL1>(left + chunk_offset<T::kChunks>(first_row + i * kRowStep, chunk),
                            there ? windows[i] + in_window + channel : maps(), there);
    }
#pragma unroll
    for (int i = 0; i < kColumns; ++i) {
      const int n = first_row + i * kRowStep;
      if (n < T::kOutputs)
        copy_16<Through::kL2>(right + chunk_offset<T::kChunks>(n, chunk), columns[i], made[i]);
      columns[i] += T::kDepth;
    }
    advance();
  }

  __device__ __forceinline__ void advance() {
    const Window window = what.window;
    channel += T::kDepth;
    if (channel < what.input.channels) return;
    channel = 0;
    ++tap;
    in_window += static_cast<std::ptrdiff_t>(window.dilation) * what.input.pixel;
    if (++tap_column < window.width) return;
    tap_column = 0;
    in_window += static_cast<std::ptrdiff_t>(window.dilation) *
                 (what.input.row - static_cast<std::ptrdiff_t>(window.width) * what.input.pixel);
  }
};

/// The sums of a warp: kWarpPixels x kWarpOutputs, in products of 16 x 8. Lives in registers.
template <typename T>
struct WarpSums {
  static constexpr int kTall = T::kWarpPixels / 16;
  static constexpr int kWide = T::kWarpOutputs / 16;

  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int first_pixel =
      static_cast<int>(threadIdx.x) / 32 / T::kWarpsAcross * T::kWarpPixels;  // in the block
  const int first_output = static_cast<int>(threadIdx.x) / 32 % T::kWarpsAcross * T::kWarpOutputs;
  float sums[kTall][2 * kWide][4] = {};

  /// Adds the products of the stage at the address.
  __device__ __forceinline__ void add(std::uint32_t left) {
    const std::uint32_t right = left + T::kLeftBytes;
#pragma unroll
    for (int k = 0; k < T::kDepth / 16; ++k) {
      std::uint32_t a[kTall][4];
      std::uint32_t b[kWide][4];
#pragma unroll
      for (int i = 0; i < kTall; ++i) {
        load_matrices(a[i], left + chunk_offset<T::kChunks>(first_pixel + 16 * i + lane % 16,
                                                            2 * k + lane / 16));
      }
#pragma unroll
      for (int j = 0; j < kWide; ++j) {
        load_matrices(b[j], right + chunk_offset<T::kChunks>(
                                        first_output + 16 * j + lane / 16 * 8 + lane % 8,
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

  /// Calls `store(m, n, values)` with the two neighbouring outputs n and n + 1 of pixel m, of the
  /// block: a lane has those of pixels lane / 4 and lane / 4 + 8 of each product.
  template <typename Store>
  __device__ __forceinline__ void finish(const Convolution& what, int block_output,
                                         const Store& store) const {
#pragma unroll
    for (int i = 0; i < kTall; ++i) {
#pragma unroll
      for (int j = 0; j < 2 * kWide; ++j) {
        const int n = first_output + 8 * j + lane % 4 * 2;
        if (block_output + n >= what.output.channels) continue;
        const float bias[2] = {what.bias[block_output + n], what.bias[block_output + n + 1]};
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          float values[2] = {sums[i][j][2 * half] + bias[0], sums[i][j][2 * half + 1] + bias[1]};
          if (what.relu) {
            values[0] = fmaxf(values[0], 0);
            values[1] = fmaxf(values[1], 0);
          }
          store(first_pixel + 16 * i + lane / 4 + 8 * half, n, values);
        }
      }
    }
  }
};

/// Offset in elements of an output of a pixel in a map.
__device__ __forceinline__ std::ptrdiff_t offset_in(const DeviceMap& map, int image, int x, int y,
                                                    int output) {
  return image * map.image + static_cast<std::ptrdiff_t>(y) * map.row + x * map.pixel + output;
}

/// Writes the outputs of a block from shared memory, 8 of a pixel at a time, after adding the map
/// that is to be added to them.
template <typename T>
__device__ __forceinline__ void write_stored(const Convolution& what, const BlockPixels& pixels,
                                             int block, int first_output, const __half* stored) {
  constexpr int kStored = T::kOutputs / 8;  // chunks of a pixel
  for (int at = static_cast<int>(threadIdx.x); at < T::kPixels * kStored; at += T::kThreads) {
    const int m = at / kStored;
    const int n = at % kStored * 8;
    int image = 0;
    int x = 0;
    int y = 0;
    if (first_output + n >= what.output.channels ||
        !pixels.find<T::kPixels>(block, m, image, x, y))
      continue;
    uint4 value = *reinterpret_cast<const uint4*>(stored + m * T::kStoredRow + n);
    if (what.added.data != nullptr) {
      const uint4 other = *reinterpret_cast<const uint4*>(
          static_cast<const __half*>(what.added.data) +
          offset_in(what.added, image, x, y, first_output + n));
      auto* const a = reinterpret_cast<__half2*>(&value);
      const auto* const b = reinterpret_cast<const __half2*>(&other);
#pragma unroll
      for (int i = 0; i < 4; ++i) a[i] = __hadd2(a[i], b[i]);
    }
    *reinterpret_cast<uint4*>(static_cast<__half*>(what.output.data) +
                              offset_in(what.output, image, x, y, first_output + n)) = value;
  }
}

template <typename T>
__global__ void __launch_bounds__(T::kThreads) convolve_tile(const Convolution what,
                                                            const BlockPixels pixels) {
  extern __shared__ __align__(128) unsigned char shared[];
  const int block = static_cast<int>(blockIdx.x);
  const int first_output = static_cast<int>(blockIdx.y) * T::kOutputs;
  StageCopies<T> copies(what, pixels, block, first_output);
  WarpSums<T> warp;
  const auto address_of = [&](int stage) {
    return shared_address(shared) + stage * T::kStageBytes;
  };
  const int steps = copies.row_weights() / T::kDepth;
#pragma unroll
  for (int stage = 0; stage < T::kStages - 1; ++stage) {
    if (stage < steps) copies.copy_next(address_of(stage));
    end_copies();
  }
  for (int step = 0; step < steps; ++step) {
    wait_for_copies<T::kStages - 2>();
    __syncthreads();
    if (step + T::kStages - 1 < steps)
      copies.copy_next(address_of((step + T::kStages - 1) % T::kStages));
    end_copies();
    warp.add(address_of(step % T::kStages));
  }
  wait_for_copies<0>();
  __syncthreads();

  if (what.to_floats) {
    warp.finish(what, first_output, [&](int m, int n, const float(&values)[2]) {
      int image = 0;
      int x = 0;
      int y = 0;
      if (!pixels.find<T::kPixels>(block, m, image, x, y)) return;
      float* const to = static_cast<float*>(what.output.data) +
                        offset_in(what.output, image, x, y, first_output + n);
      to[0] = values[0];
      to[1] = values[1];
    });
    return;
  }
  auto* const stored = reinterpret_cast<__half*>(shared);
  warp.finish(what, first_output, [&](int m, int n, const float(&values)[2]) {
    *reinterpret_cast<__half2*>(stored + m * T::kStoredRow + n) =
        __floats2half2_rn(values[0], values[1]);
  });
  __syncthreads();
  write_stored<T>(what, pixels, block, first_output, stored);
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

/// Loads the weights of a block's outputs into shared memory, as [taps][4][kOutputs].
__device__ __forceinline__ void load_weights(const Convolution& what, int first_output, int taps,
                                             float* weights) {
  for (int at = static_cast<int>(threadIdx.x); at < taps * 4 * ImageTile::kOutputs;
       at += ImageTile::kThreads) {
    const int n = first_output + at % ImageTile::kOutputs;
    weights[at] = __half2float(
        reinterpret_cast<const __half*>(what.weights)[n * taps * 4 + at / ImageTile::kOutputs]);
  }
}

/// The channels of a pixel of the image, 0 outside of it; `from` is its pixel (0, 0).
__device__ __forceinline__ void load_pixel(const DeviceMap& map, const __half* from, int row,
                                           int column, float (&values)[4]) {
  if (row < 0 || row >= map.height || column < 0 || column >= map.width) return;
  const uint2 loaded = *reinterpret_cast<const uint2*>(
      from + static_cast<std::ptrdiff_t>(row) * map.row + column * map.pixel);
  const float2 low = __half22float2(*reinterpret_cast<const __half2*>(&loaded.x));
  const float2 high = __half22float2(*reinterpret_cast<const __half2*>(&loaded.y));
  values[0] = low.x;
  values[1] = low.y;
  values[2] = high.x;
  values[3] = high.y;
}

using ImageSums = float[ImageTile::kPixels][ImageTile::kOutputs];

/// Adds the products of one tap, whose weights are given.
__device__ __forceinline__ void add_tap(const float (&values)[ImageTile::kPixels][4],
                                        const float* weights, ImageSums& sums) {
#pragma unroll
  for (int c = 0; c < 4; ++c) {
    const float4* const of = reinterpret_cast<const float4*>(weights + c * ImageTile::kOutputs);
#pragma unroll
    for (int n = 0; n < ImageTile::kOutputs; n += 4) {
      const float4 four = of[n / 4];
#pragma unroll
      for (int i = 0; i < ImageTile::kPixels; ++i) {
        sums[i][n] = fmaf(values[i][c], four.x, sums[i][n]);
        sums[i][n + 1] = fmaf(values[i][c], four.y, sums[i][n + 1]);
        sums[i][n + 2] = fmaf(values[i][c], four.z, sums[i][n + 2]);
        sums[i][n + 3] = fmaf(values[i][c], four.w, sums[i][n + 3]);
      }
    }
  }
}

/// Writes the outputs of a pixel.
__device__ __forceinline__ void write_pixel(const Convolution& what,
                                            const float (&sums)[ImageTile::kOutputs], int image,
                                            int x, int y, int first_output) {
  uint4 made[ImageTile::kOutputs / 8];
  auto* const pairs = reinterpret_cast<__half2*>(made);
#pragma unroll
  for (int n = 0; n < ImageTile::kOutputs; n += 2) {
    const float low = what.relu ? fmaxf(sums[n], 0.0F) : sums[n];
    const float high = what.relu ? fmaxf(sums[n + 1], 0.0F) : sums[n + 1];
    pairs[n / 2] = __floats2half2_rn(low, high);
  }
  auto* const to = reinterpret_cast<uint4*>(static_cast<__half*>(what.output.data) +
                                            offset_in(what.output, image, x, y, first_output));
  to[0] = made[0];
  to[1] = made[1];
}

__global__ void __launch_bounds__(ImageTile::kThreads) convolve_image(const Convolution what) {
  constexpr int kPixels = ImageTile::kPixels;
  constexpr int kOutputs = ImageTile::kOutputs;
  extern __shared__ __align__(128) unsigned char shared[];
  auto* const weights = reinterpret_cast<float*>(shared);
  const int first_output = static_cast<int>(blockIdx.y) * kOutputs;
  const Window window = what.window;
  const int taps = window.height * window.width;
  load_weights(what, first_output, taps, weights);
  __syncthreads();
  const int across = (what.output.width + kPixels - 1) / kPixels;
  const std::ptrdiff_t place =
      static_cast<std::ptrdiff_t>(blockIdx.x) * ImageTile::kThreads + threadIdx.x;
  const auto x = static_cast<int>(place % across) * kPixels;
  const auto y = static_cast<int>(place / across % what.output.height);
  const auto image = static_cast<int>(place / across / what.output.height);
  if (image >= what.output.images) return;
  ImageSums sums;
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
    for (int i = 0; i < kPixels; ++i)
      load_pixel(what.input, from, row, left + i * window.stride, values[i]);
    add_tap(values, weights + tap * 4 * kOutputs, sums);
    left += window.dilation;
    if (++in_row < window.width) continue;
    in_row = 0;
    left -= window.width * window.dilation;
    row += window.dilation;
  }
#pragma unroll
  for (int i = 0; i < kPixels; ++i) {
    if (x + i < what.output.width) write_pixel(what, sums[i], image, x + i, y, first_output);
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
