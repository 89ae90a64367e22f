#pragma once

#include <cuda_fp16.h>

#include "cuda/network/table.h"

/// Everything of a network but its convolutions. A thread has 8 channels of a pixel.
namespace cutout::cuda {

inline constexpr int kMapThreads = 256;

/// 8 channels of float16.
struct Half8 {
  uint4 bits;

  __device__ __half2& pair(int i) { return reinterpret_cast<__half2*>(&bits)[i]; }
  __device__ const __half2& pair(int i) const { return reinterpret_cast<const __half2*>(&bits)[i]; }
};

__device__ __forceinline__ Half8* half8_at(const DeviceMap& map, int image, int x, int y, int channel) {
  return reinterpret_cast<Half8*>(static_cast<__half*>(map.data) + image * map.image +
                                  static_cast<std::ptrdiff_t>(y) * map.row + x * map.pixel + channel);
}

/// Calls body(image, x, y, channel) for every 8 channels of a map.
template <typename Body>
__global__ void __launch_bounds__(kMapThreads) for_eights(const DeviceMap map, const Body body) {
  const int groups = map.channels / 8;
  const std::ptrdiff_t at = static_cast<std::ptrdiff_t>(blockIdx.x) * kMapThreads + threadIdx.x;
  const auto channel = static_cast<int>(at % groups) * 8;
  const std::ptrdiff_t pixel = at / groups;
  const auto x = static_cast<int>(pixel % map.width);
  const std::ptrdiff_t line = pixel / map.width;
  const auto y = static_cast<int>(line % map.height);
  const auto image = static_cast<int>(line / map.height);
  if (image < map.images) body(image, x, y, channel);
}

template <typename Body>
cudaError_t for_each_half8(const DeviceMap& map, const Body& body, cudaStream_t stream) {
  const std::ptrdiff_t count = static_cast<std::ptrdiff_t>(map.images) * map.width * map.height *
                               (map.channels / 8);
  for_eights<<<static_cast<unsigned>((count + kMapThreads - 1) / kMapThreads), kMapThreads, 0,
               stream>>>(map, body);
  return cudaGetLastError();
}

/// Where a sample of an enlargement lies between two pixels.
struct Between {
  int first;
  int second;
  float share;  // of the second

  __device__ Between(int at, int factor, int length) {
    const float place =
        fmaxf((static_cast<float>(at) + 0.5F) / static_cast<float>(factor) - 0.5F, 0.0F);
    first = min(static_cast<int>(place), length - 1);
    second = min(first + 1, length - 1);
    share = place - static_cast<float>(first);
  }
};

__device__ __forceinline__ float mixed(float a, float b, float share) { return a + (b - a) * share; }

struct MaxPoolBody {
  DeviceMap input;
  DeviceMap output;
  int side;
  int stride;

  __device__ void operator()(int image, int x, int y, int channel) const {
    const int right = min(x * stride + side, input.width);
    const int bottom = min(y * stride + side, input.height);
    Half8 largest = *half8_at(input, image, x * stride, y * stride, channel);
    for (int row = y * stride; row < bottom; ++row) {
      for (int column = x * stride; column < right; ++column) {
        const Half8 other = *half8_at(input, image, column, row, channel);
#pragma unroll
        for (int i = 0; i < 4; ++i) largest.pair(i) = __hmax2(largest.pair(i), other.pair(i));
      }
    }
    *half8_at(output, image, x, y, channel) = largest;
  }
};

struct EnlargeMapBody {
  DeviceMap input;
  DeviceMap output;
  int factor;

  __device__ void operator()(int image, int x, int y, int channel) const {
    const Between across(x, factor, input.width);
    const Between down(y, factor, input.height);
    const Half8 a = *half8_at(input, image, across.first, down.first, channel);
    const Half8 b = *half8_at(input, image, across.second, down.first, channel);
    const Half8 c = *half8_at(input, image, across.first, down.second, channel);
    const Half8 d = *half8_at(input, image, across.second, down.second, channel);
    Half8 made;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float2 pa = __half22float2(a.pair(i));
      const float2 pb = __half22float2(b.pair(i));
      const float2 pc = __half22float2(c.pair(i));
      const float2 pd = __half22float2(d.pair(i));
      made.pair(i) = __floats2half2_rn(
          mixed(mixed(pa.x, pb.x, across.share), mixed(pc.x, pd.x, across.share), down.share),
          mixed(mixed(pa.y, pb.y, across.share), mixed(pc.y, pd.y, across.share), down.share));
    }
    *half8_at(output, image, x, y, channel) = made;
  }
};

struct AddMapsBody {
  DeviceMap a;
  DeviceMap b;
  DeviceMap output;
  bool relu;

  __device__ void operator()(int image, int x, int y, int channel) const {
    Half8 sum = *half8_at(a, image, x, y, channel);
    const Half8 other = *half8_at(b, image, x, y, channel);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      sum.pair(i) = __hadd2(sum.pair(i), other.pair(i));
      if (relu) sum.pair(i) = __hmax2(sum.pair(i), __half2half2(__float2half(0.0F)));
    }
    *half8_at(output, image, x, y, channel) = sum;
  }
};

struct CopyMapBody {
  DeviceMap input;
  DeviceMap output;

  __device__ void operator()(int image, int x, int y, int channel) const {
    *half8_at(output, image, x, y, channel) = *half8_at(input, image, x, y, channel);
  }
};

__global__ void __launch_bounds__(kMapThreads) take_planes(const float* planes, int channels,
                                                           const DeviceMap map) {
  const int size = map.width * map.height;
  const int pixel = static_cast<int>(blockIdx.x) * kMapThreads + static_cast<int>(threadIdx.x);
  if (pixel >= size) return;
  __half* const to = static_cast<__half*>(map.data) +
                     static_cast<std::ptrdiff_t>(pixel / map.width) * map.row +
                     pixel % map.width * map.pixel;
  for (int c = 0; c < map.channels; ++c)
    to[c] = __float2half(c < channels ? planes[static_cast<std::ptrdiff_t>(c) * size + pixel] : 0.0F);
}

__global__ void __launch_bounds__(kMapThreads) give_plane(const DeviceMap map, int factor,
                                                          float* plane) {
  const int width = map.width * factor;
  const int pixel = static_cast<int>(blockIdx.x) * kMapThreads + static_cast<int>(threadIdx.x);
  if (pixel >= width * map.height * factor) return;
  const Between across(pixel % width, factor, map.width);
  const Between down(pixel / width, factor, map.height);
  const auto at = [&](int x, int y) {
    return static_cast<const float*>(map.data)[static_cast<std::ptrdiff_t>(y) * map.row +
                                               x * map.pixel];
  };
  plane[pixel] =
      mixed(mixed(at(across.first, down.first), at(across.second, down.first), across.share),
            mixed(at(across.first, down.second), at(across.second, down.second), across.share),
            down.share);
}

}  // namespace cutout::cuda
