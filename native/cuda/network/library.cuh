#pragma once

#include <cuda_runtime.h>

#include "cuda/network/convolution.cuh"
#include "cuda/network/maps.cuh"
#include "cuda/network/table.h"

namespace cutout::cuda {

/// A call of which a failure is no end: CUDA keeps the last error of a thread, and the check of its
/// next launch would find it.
inline int recoverable(cudaError_t error) {
  if (error != cudaSuccess) (void)cudaGetLastError();
  return static_cast<int>(error);
}

inline cudaStream_t as_stream(void* stream) { return static_cast<cudaStream_t>(stream); }

/// Returns one image of a batch.
inline DeviceMap image_of(DeviceMap map, int image, std::size_t element) {
  map.data = static_cast<unsigned char*>(map.data) +
             image * map.image * static_cast<std::ptrdiff_t>(element);
  map.images = 1;
  return map;
}

/// The functions of a table that record a stream's work as graphs, and time it.
inline void add_graphs(NetworkTable& table) {
  table.begin_graph = [](void* stream) {
    return recoverable(
        cudaStreamBeginCapture(as_stream(stream), cudaStreamCaptureModeThreadLocal));
  };
  table.end_graph = [](void** graph, void* stream) {
    cudaGraph_t recorded = nullptr;
    cudaError_t error = cudaStreamEndCapture(as_stream(stream), &recorded);
    cudaGraphExec_t made = nullptr;
    if (error == cudaSuccess) error = cudaGraphInstantiate(&made, recorded, 0);
    if (recorded != nullptr) (void)cudaGraphDestroy(recorded);
    *graph = made;
    return recoverable(error);
  };
  table.launch_graph = [](void* graph, void* stream) {
    return recoverable(cudaGraphLaunch(static_cast<cudaGraphExec_t>(graph), as_stream(stream)));
  };
  table.start_clock = [](void** clock, void* stream) {
    cudaEvent_t start = nullptr;
    cudaError_t error = cudaEventCreate(&start);
    if (error == cudaSuccess) error = cudaEventRecord(start, as_stream(stream));
    *clock = start;
    return recoverable(error);
  };
  table.stop_clock = [](void* clock, float* ms, void* stream) {
    auto* const start = static_cast<cudaEvent_t>(clock);
    if (start == nullptr) return static_cast<int>(cudaErrorInvalidResourceHandle);
    cudaEvent_t end = nullptr;
    cudaError_t error = cudaEventCreate(&end);
    if (error == cudaSuccess) error = cudaEventRecord(end, as_stream(stream));
    if (error == cudaSuccess) error = cudaEventSynchronize(end);
    if (error == cudaSuccess) error = cudaEventElapsedTime(ms, start, end);
    if (end != nullptr) (void)cudaEventDestroy(end);
    (void)cudaEventDestroy(start);
    return recoverable(error);
  };
  table.destroy_graph = [](void* graph) {
    return static_cast<int>(cudaGraphExecDestroy(static_cast<cudaGraphExec_t>(graph)));
  };
}

/// Returns the table whose functions work on the device that the calling thread has named.
inline NetworkTable network_table() {
  NetworkTable table{};
  table.take_planes = [](const float* planes, int channels, int image, DeviceMap output,
                         void* stream) {
    const int blocks = (output.width * output.height + kMapThreads - 1) / kMapThreads;
    take_planes<<<static_cast<unsigned>(blocks), kMapThreads, 0, as_stream(stream)>>>(
        planes, channels, image_of(output, image, sizeof(__half)));
    return static_cast<int>(cudaGetLastError());
  };
  table.convolve = [](Convolution what, void* stream) {
    return static_cast<int>(convolve(what, as_stream(stream)));
  };
  table.tiles = kTileCount;
  table.max_pool = [](DeviceMap input, int side, int stride, DeviceMap output, void* stream) {
    return static_cast<int>(
        for_each_half8(output, MaxPoolBody{input, output, side, stride}, as_stream(stream)));
  };
  table.enlarge_map = [](DeviceMap input, int factor, DeviceMap output, void* stream) {
    return static_cast<int>(
        for_each_half8(output, EnlargeMapBody{input, output, factor}, as_stream(stream)));
  };
  table.add_maps = [](DeviceMap a, DeviceMap b, bool relu, DeviceMap output, void* stream) {
    return static_cast<int>(for_each_half8(output, AddMapsBody{a, b, output, relu}, as_stream(stream)));
  };
  table.copy_map = [](DeviceMap input, DeviceMap output, void* stream) {
    return static_cast<int>(for_each_half8(input, CopyMapBody{input, output}, as_stream(stream)));
  };
  table.give_plane = [](DeviceMap input, int image, int factor, float* plane, void* stream) {
    const int size = input.width * input.height * factor * factor;
    give_plane<<<static_cast<unsigned>((size + kMapThreads - 1) / kMapThreads), kMapThreads, 0,
                 as_stream(stream)>>>(image_of(input, image, sizeof(float)), factor, plane);
    return static_cast<int>(cudaGetLastError());
  };
  add_graphs(table);
  return table;
}

}  // namespace cutout::cuda
