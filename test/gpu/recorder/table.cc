#include <new>

#include "cuda/make_table.h"
#include "gpu/recorder/recorder.h"

// The table of libcutout_cuda.so: the calls of CUDA that native/cuda/library.cu makes, by those of
// the recorder.

extern "C" {
int cudaMalloc(void** memory, std::size_t bytes);
int cudaMallocHost(void** memory, std::size_t bytes);
int cudaFree(void* memory);
int cudaFreeHost(void* memory);
int cudaMemsetAsync(void* memory, int value, std::size_t bytes, void* stream);
int cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, int kind, void* stream);
int cudaStreamCreateWithFlags(void** stream, unsigned flags);
int cudaStreamSynchronize(void* stream);
int cudaGraphLaunch(void* graph, void* stream);
int cudaGetLastError();
const char* cudaGetErrorString(int error);
}

namespace cutout::test {

namespace {

/// libcutout_cuda.so has a runtime of its own: its errors are no last ones of ONNX Runtime's.
int apart(int error) {
  if (error != 0) (void)cudaGetLastError();
  return error;
}

/// Work that is recorded as a graph is not launched. A stream is used by one thread at a time.
thread_local bool records = false;

int launch() { return records ? 0 : apart(record(Call::kLaunch)); }

struct Executor {
  explicit Executor(void*) {}
  template <cuda::Launchable Kernel>
  void run(int blocks_x, int blocks_y, const Kernel&) {
    constexpr int kInvalidConfiguration = 9;
    if (error == 0) error = cuda::fits_grid(blocks_x, blocks_y) ? launch() : kInvalidConfiguration;
  }
  [[nodiscard]] int result() const { return error; }
  int error = 0;
};

template <typename... Arguments>
int launch_for(Arguments...) {
  return launch();
}

cuda::NetworkTable network() {
  cuda::NetworkTable table{};
  table.take_planes = launch_for;
  table.convolve = launch_for;
  table.tiles = 1;
  table.max_pool = launch_for;
  table.enlarge_map = launch_for;
  table.add_maps = launch_for;
  table.copy_map = launch_for;
  table.give_plane = launch_for;
  table.begin_graph = [](void*) {
    records = true;
    return 0;
  };
  table.end_graph = [](void** graph, void*) {
    static char made;
    records = false;
    *graph = &made;
    return 0;
  };
  table.launch_graph = [](void* graph, void* stream) {
    return apart(cudaGraphLaunch(graph, stream));
  };
  table.destroy_graph = [](void*) { return 0; };
  table.start_clock = [](void** clock, void*) {
    *clock = nullptr;
    return 0;
  };
  table.stop_clock = [](void*, float* ms, void*) {
    *ms = 1;
    return apart(record(Call::kEventWait));
  };
  return table;
}

cuda::Table whole() {
  cuda::Table table = cuda::make_table<Executor>();
  table.error_text = cudaGetErrorString;
  table.device_count = [](int* count) {
    *count = 1;
    return 0;
  };
  table.use_device = [](int) { return 0; };
  table.create_stream = [](void** stream) { return cudaStreamCreateWithFlags(stream, 1); };
  table.destroy_stream = [](void*) { return 0; };
  table.allocate = [](std::size_t bytes, void** memory) {
    return apart(cudaMalloc(memory, bytes));
  };
  table.release = [](void* memory) { return apart(cudaFree(memory)); };
  table.allocate_pinned = [](std::size_t bytes, void** memory) {
    return apart(cudaMallocHost(memory, bytes));
  };
  table.release_pinned = [](void* memory) { return apart(cudaFreeHost(memory)); };
  table.clear = [](void* memory, std::size_t bytes, void* stream) {
    return apart(cudaMemsetAsync(memory, 0, bytes, stream));
  };
  table.copy_to_device = [](void* to, const void* from, std::size_t bytes, void* stream) {
    return apart(cudaMemcpyAsync(to, from, bytes, 1, stream));
  };
  table.copy_to_host = [](void* to, const void* from, std::size_t bytes, void* stream) {
    return apart(cudaMemcpyAsync(to, from, bytes, 2, stream));
  };
  table.copy_on_device = [](void* to, const void* from, std::size_t bytes, void* stream) {
    return apart(cudaMemcpyAsync(to, from, bytes, 3, stream));
  };
  table.synchronize = [](void* stream) { return apart(cudaStreamSynchronize(stream)); };
  table.network = network();
  return table;
}

}  // namespace

}  // namespace cutout::test

extern "C" __attribute__((visibility("default"))) const cutout::cuda::Table* cutout_cuda_table() {
  static const cutout::cuda::Table table = cutout::test::whole();
  return &table;
}
