#pragma once

#include <cstddef>
#include <cstdint>

#include "core/image_view.h"
#include "cuda/network/table.h"
#include "matte/math/mask_constraint.h"
#include "matte/math/uncertainty.h"

namespace cutout::cuda {

/// Changes with every change of Table or of a type in it.
inline constexpr int kTableVersion = 11;

// Memory of these types is the device's.

/// Straight RGBA8, alpha in the top byte. `stride`: pixels from one row to the next.
struct Pixels {
  std::uint32_t* data;
  int width;
  int height;
  int stride;
};

/// Taps of image/taps.h.
struct FilterTaps {
  const int* first;
  const int* count;
  const float* weights;
  int stride;
  int outputs;
};

/// Says for each pixel of one axis of the image which is the network pixel at or before its centre,
/// the share `t` of the next one, and the spline's weights of network pixels base - 1 .. base + 2
/// (matte/refine.h).
struct GuideTaps {
  const int* base;
  const float* t;
  const float* spline[4];
  int outputs;
};

/// Says for each network pixel of one axis which are the pixels of a mask and the blocks that it
/// lies between (matte/mask_constraint.h).
struct MaskTaps {
  const LinearTap* mask;
  const LinearTap* blocks;
  int outputs;
};

/// Colour = (sum over taps + gray - mean) * scale.
struct Normalisation {
  float mean[3];
  float scale[3];
};

/// matte/guide.h.
struct GuidePlanes {
  const float* planes[3];
  float scale[3];
  float offset[3];
  int width;
  int height;
};

/// matte/colour_sampling.h.
struct SampledPlanes {
  const float* alpha;
  const float* confidence;
  const float* sampled;
};

/// Pixels of alpha > 0, alpha >= 128 and alpha 255.
struct AlphaSummary {
  int left;
  int top;
  int right;  // last column
  int bottom;
  std::uint32_t foreground;
  std::uint32_t opaque;
};

/// The runs of an image that are neither opaque nor transparent throughout (kernels/edge_runs.h).
struct EdgeRuns {
  static constexpr int kRun = 32;  // pixels of a row
  // States; kFirst + i: run i of `pixels`.
  static constexpr std::uint32_t kOpaque = 0;
  static constexpr std::uint32_t kTransparent = 1;
  static constexpr std::uint32_t kFirst = 2;

  std::uint32_t* count;
  std::uint32_t* states;
  std::uint32_t* pixels;
  std::uint32_t capacity;  // runs that `pixels` has room for
};

/// Functions of libcutout_cuda.so, and of the host executor in the tests. Each returns 0 or an
/// error of CUDA, whose text error_text() gives. All work is queued on `stream`; null is the
/// default stream. Memory, streams and work belong to the device that the calling thread has named
/// last with use_device(). No kernel allocates; scratch belongs to the caller, its size is in the
/// header of the kernel (native/cuda/kernels/).
///
/// | function           | CPU                      | agreement with the CPU                            |
/// |--------------------|--------------------------|---------------------------------------------------|
/// | probability        | to_probability           | within 3e-7 on a GPU, equal on the host           |
/// | all others         | named in kernels/        | bit-equal                                         |
struct Table {
  int version;

  const char* (*error_text)(int error);
  int (*device_count)(int* count);
  int (*use_device)(int number);
  int (*create_stream)(void** stream);
  int (*destroy_stream)(void* stream);
  int (*allocate)(std::size_t bytes, void** memory);
  int (*release)(void* memory);
  /// Memory of the host that the device reads and writes by itself.
  int (*allocate_pinned)(std::size_t bytes, void** memory);
  int (*release_pinned)(void* memory);
  /// Sets bytes to 0.
  int (*clear)(void* memory, std::size_t bytes, void* stream);
  int (*copy_to_device)(void* device, const void* host, std::size_t bytes, void* stream);
  int (*copy_to_host)(void* host, const void* device, std::size_t bytes, void* stream);
  int (*copy_on_device)(void* to, const void* from, std::size_t bytes, void* stream);
  /// Waits for the work of the stream, and returns its first error.
  int (*synchronize)(void* stream);

  int (*network_input)(Pixels image, FilterTaps rows, FilterTaps columns, Normalisation how,
                       float* scratch, float* out, void* stream);
  int (*probability)(float* values, std::size_t count, bool logit, std::uint32_t* not_finite,
                     void* stream);
  int (*sum_uncertainty)(const float* p, int width, Box area, int block, UncertaintySums* sums,
                         void* stream);
  int (*constrain)(float* p, const std::uint8_t* mask, int mask_width, MaskTaps rows,
                   MaskTaps columns, void* scratch, std::uint8_t* marked, void* stream);
  int (*restore_marked)(float* p, const float* constrained, int width, int height,
                        const std::uint8_t* marked, void* stream);
  int (*filter_components)(float* p, int width, Box area, int* scratch, void* stream);
  int (*resize_plane)(const float* plane, int width, FilterTaps rows, FilterTaps columns,
                      float* scratch, float* out, void* stream);
  int (*sample_colours)(GuidePlanes guide, const float* p, float* pyramid, float* scratch,
                        float* samples, void* stream);
  int (*reduce)(Pixels image, FilterTaps rows, FilterTaps columns, float* scratch, Pixels out,
                void* stream);
  int (*summarise)(Pixels image, Box region, AlphaSummary* summary, void* stream);
  int (*gather_edge_runs)(Pixels image, EdgeRuns runs, void* stream);
  int (*deblur)(GuidePlanes guide, const float* p, SampledPlanes samples, const float* blurs,
                void* scratch, float* alpha, float* confidence, float* for_colours, void* stream);
  int (*local_models)(GuidePlanes guide, const float* alpha, float* models, void* stream);
  int (*foreground_colours)(GuidePlanes guide, const float* alpha, float* pyramid, float* scratch,
                            float* colours, void* stream);
  int (*full_size)(Pixels image, Box part, Box roi, GuidePlanes guide, const float* alpha,
                   const float* confidence, const float* models, const float* colours,
                   float* channels, GuideTaps rows, GuideTaps columns, std::uint32_t hidden_mask,
                   void* stream);

  NetworkTable network;
};

/// The name of the function without parameters that returns the library's const Table*.
inline constexpr const char* kTableFunction = "cutout_cuda_table";

}  // namespace cutout::cuda
