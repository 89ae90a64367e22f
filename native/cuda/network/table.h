#pragma once

#include <cstddef>
#include <cstdint>

namespace cutout::cuda {

/// A batch of maps on the device, [images][height][width][channels] of float16 or float32. The
/// channels of a pixel lie side by side; the others are elements apart.
struct DeviceMap {
  void* data = nullptr;  // of the first channel of pixel (0, 0) of the first image
  int images = 1;
  int width = 0;
  int height = 0;
  int channels = 0;
  int pixel = 0;             // elements from one pixel to the next
  int row = 0;               // elements from one row to the next
  std::ptrdiff_t image = 0;  // elements from one image to the next
};

/// Taps of a convolution's window at most.
inline constexpr int kMostTaps = 32;

/// Size, steps and place of the window of a convolution, in pixels of its input.
struct Window {
  int height = 0;
  int width = 0;
  int stride = 1;
  int dilation = 1;
  int top = 0;   // rows of zeros before the first
  int left = 0;  // columns of zeros before the first
};

/// sum(input * weight) + bias, 0 where that is negative if `relu`, + `added`.
struct Convolution {
  DeviceMap input;               // float16; channels a multiple of 16, or 4
  const std::uint16_t* weights;  // float16 [outputs][window's height][width][input's channels]
  const float* bias;             // [outputs]
  Window window;
  bool relu;
  /// float16, or float32 where `to_floats`; channels a multiple of 16.
  DeviceMap output;
  bool to_floats;
  /// float16, of the output's size; without data nothing is added. Not with 4 channels or floats.
  DeviceMap added;
  int tile;  // how it is divided among the GPU's processors: one of NetworkTable::tiles
};

/// The operations of a convolutional network on maps of float16, with sums in float32, of
/// libcutout_cuda.so; for GPUs of compute capability 8.0 or newer. All work is queued on the
/// stream. Each function returns 0 or an error of CUDA. In the tests the same functions are loops
/// on the host.
struct NetworkTable {
  static constexpr int kWrongTile = 1;  // cudaErrorInvalidValue

  /// Planes of float32 [channels][height][width] of one image as one of the maps of `output`, whose
  /// further channels become 0.
  int (*take_planes)(const float* planes, int channels, int image, DeviceMap output, void* stream);
  /// kWrongTile for a tile that does not fit the convolution; at least one does.
  int (*convolve)(Convolution what, void* stream);
  int tiles;  // ways to divide a convolution, from 0 on; which is the fastest depends on the GPU
  /// The largest value of each window of side * side pixels inside the map.
  int (*max_pool)(DeviceMap input, int side, int stride, DeviceMap output, void* stream);
  /// Bilinear enlargement by a whole factor, at the pixels' centres.
  int (*enlarge_map)(DeviceMap input, int factor, DeviceMap output, void* stream);
  /// a + b, 0 where that is negative if `relu`.
  int (*add_maps)(DeviceMap a, DeviceMap b, bool relu, DeviceMap output, void* stream);
  int (*copy_map)(DeviceMap input, DeviceMap output, void* stream);
  /// The first channel of one image of a map of float32 as a plane of `factor` times the size,
  /// enlarged bilinearly at the pixels' centres.
  int (*give_plane)(DeviceMap input, int image, int factor, float* plane, void* stream);

  /// What is queued on the stream from begin_graph() on is recorded instead of run; end_graph()
  /// makes it one object, which launch_graph() runs.
  int (*begin_graph)(void* stream);
  int (*end_graph)(void** graph, void* stream);
  int (*launch_graph)(void* graph, void* stream);
  int (*destroy_graph)(void* graph);

  /// The time that work between the two takes on the device, in milliseconds; stop_clock() waits
  /// for it and ends the clock.
  int (*start_clock)(void** clock, void* stream);
  int (*stop_clock)(void* clock, float* ms, void* stream);
};

}  // namespace cutout::cuda
