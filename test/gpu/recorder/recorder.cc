#include "gpu/recorder/recorder.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#define EXPORTED extern "C" __attribute__((visibility("default")))

namespace cutout::test {

namespace {

constexpr std::size_t kMemory = std::size_t{80} << 30;
constexpr std::size_t kAlignment = 256;

using Blocks = std::map<const std::byte*, std::size_t>;  // bytes by address

struct State {
  std::mutex mutex;  // guards all of it
  Recorded recorded;
  Blocks device;
  Blocks pinned;
  std::size_t used = 0;
  Call failing = Call::kCalls;
  int nth = 0;
  int error = 0;
  bool stays = false;
  bool failed = false;
};

State& state() {
  static State& instance = *new State;  // libraries call until the process ends
  return instance;
}

/// Errors stay the last one of a thread until somebody reads it, as CUDA's do.
thread_local int last_error = 0;

bool holds(const Blocks& blocks, const void* memory, std::size_t bytes) {
  const auto* const at = static_cast<const std::byte*>(memory);
  auto block = blocks.upper_bound(at);
  if (block == blocks.begin()) return false;
  --block;
  return at + bytes <= block->first + block->second;
}

int allocate(Call kind, Blocks State::*blocks, void** memory, std::size_t bytes) {
  if (const int error = record(kind, bytes); error != 0) return error;
  const std::size_t whole = (bytes / kAlignment + 1) * kAlignment;
  *memory = std::aligned_alloc(kAlignment, whole);
  // Nothing is computed: what is read of it is always the same.
  std::memset(*memory, 0, whole);
  State& s = state();
  const std::lock_guard lock(s.mutex);
  (s.*blocks)[static_cast<const std::byte*>(*memory)] = bytes;
  if (kind == Call::kAllocate) s.used += bytes;
  return 0;
}

int release(Blocks State::*blocks, void* memory) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  const auto block = (s.*blocks).find(static_cast<const std::byte*>(memory));
  if (block != (s.*blocks).end()) {
    if (blocks == &State::device) s.used -= block->second;
    (s.*blocks).erase(block);
    std::free(memory);
  }
  return s.failed && s.stays ? s.error : 0;
}

void note_stream(const void* stream) {
  const std::lock_guard lock(state().mutex);
  if (stream == nullptr) ++state().recorded.defaults;
}

void note_place(const void* memory, std::size_t bytes) {
  const std::lock_guard lock(state().mutex);
  if (!holds(state().device, memory, bytes)) ++state().recorded.outside;
}

void note_host(const void* memory, std::size_t bytes) {
  const std::lock_guard lock(state().mutex);
  if (!holds(state().pinned, memory, bytes)) ++state().recorded.pageable;
}

enum CopyKind { kHostToHost, kHostToDevice, kDeviceToHost, kDeviceToDevice };

int copy(void* to, const void* from, std::size_t bytes, int kind) {
  static constexpr Call kCalls[] = {Call::kUpload, Call::kUpload, Call::kDownload,
                                    Call::kCopyOnDevice};
  if (const int error = record(kCalls[kind % 4], bytes); error != 0) return error;
  if (kind == kHostToDevice || kind == kDeviceToDevice) note_place(to, bytes);
  if (kind == kDeviceToHost || kind == kDeviceToDevice) note_place(from, bytes);
  if (kind == kHostToDevice) note_host(from, bytes);
  if (kind == kDeviceToHost) note_host(to, bytes);
  std::memmove(to, from, bytes);
  return 0;
}

int fill(void* memory, int value, std::size_t bytes) {
  if (const int error = record(Call::kFill, bytes); error != 0) return error;
  note_place(memory, bytes);
  std::memset(memory, value, bytes);
  return 0;
}

}  // namespace

int record(Call kind, std::size_t bytes) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  ++s.recorded.calls[static_cast<std::size_t>(kind)];
  s.recorded.bytes[static_cast<std::size_t>(kind)] += bytes;
  const bool now = kind == s.failing && !s.failed && --s.nth == 0;
  if (now) s.failed = true;
  if (!now && !(s.failed && s.stays)) return 0;
  return last_error = s.error;
}

Recorded take_recorded() {
  const std::lock_guard lock(state().mutex);
  return std::exchange(state().recorded, {});
}

void fail_call(Call kind, int nth, int error, bool lost) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  s.failing = nth > 0 ? kind : Call::kCalls;
  s.nth = nth;
  s.error = error;
  s.stays = lost;
  s.failed = false;
}

bool call_has_failed() {
  const std::lock_guard lock(state().mutex);
  return state().failed;
}

}  // namespace cutout::test

using namespace cutout::test;

// What ONNX Runtime's provider asks for. Those without an answer succeed and do nothing.

#define SUCCEEDS(name) \
  EXPORTED int name() { return 0; }
#define MAKES(name)                \
  EXPORTED int name(void** made) { \
    static char something;         \
    *made = &something;            \
    return 0;                      \
  }
#define COMPUTES(name) \
  EXPORTED int name() { return record(Call::kLibrary); }

struct Dim3 {
  unsigned x, y, z;
};

// The driver.
SUCCEEDS(cuInit)
SUCCEEDS(cuTensorMapEncodeTiled)
EXPORTED int cuDriverGetVersion(int* version) { return *version = 13000, 0; }
EXPORTED int cuDeviceGetCount(int* count) { return *count = 1, 0; }
EXPORTED int cuDeviceGet(int* device, int number) { return *device = number, 0; }
EXPORTED int cuDeviceGetName(char* name, int length, int) {
  std::snprintf(name, static_cast<std::size_t>(length), "Recorder");
  return 0;
}
EXPORTED int cuDeviceGetAttribute(int* value, int which, int) {
  return *value = which == 75 ? 9 : 0, 0;
}
EXPORTED int cuDeviceTotalMem_v2(std::size_t* bytes, int) { return *bytes = kMemory, 0; }

// The runtime: devices and errors.
SUCCEEDS(cudaSetDevice)
EXPORTED int cudaGetDeviceCount(int* count) { return *count = 1, 0; }
EXPORTED int cudaGetDevice(int* device) { return *device = 0, 0; }
EXPORTED int cudaDriverGetVersion(int* version) { return *version = 13000, 0; }
EXPORTED int cudaRuntimeGetVersion(int* version) { return *version = 13000, 0; }
EXPORTED int cudaGetLastError() { return std::exchange(last_error, 0); }
EXPORTED int cudaPeekAtLastError() { return last_error; }
/// Names and texts of the errors that the program asks for.
EXPORTED const char* cudaGetErrorName(int error) {
  return error == 2     ? "cudaErrorMemoryAllocation"
         : error == 719 ? "cudaErrorLaunchFailure"
                        : "cudaErrorInvalidDeviceFunction";
}
EXPORTED const char* cudaGetErrorString(int error) {
  return error == 2     ? "out of memory"
         : error == 719 ? "unspecified launch failure"
                        : "invalid device function";
}
EXPORTED int cudaDeviceGetAttribute(int* value, int which, int) {
  static const std::map<int, int> answers = {{1, 1024}, {8, 48 << 10},   {10, 32},
                                             {16, 132}, {39, 2048},      {75, 9},
                                             {76, 0},   {81, 228 << 10}, {97, 227 << 10}};
  const auto found = answers.find(which);
  *value = found == answers.end() ? 1 : found->second;
  return 0;
}
/// Places of cudaDeviceProp of CUDA 13.
EXPORTED int cudaGetDeviceProperties(char* properties, int) {
  std::memset(properties, 0, 1008);
  std::strcpy(properties, "Recorder");
  const auto set = [&](int at, auto value) { std::memcpy(properties + at, &value, sizeof value); };
  set(288, kMemory);
  set(296, std::size_t{48} << 10);  // shared memory of a block
  set(304, 65536);                  // registers
  set(308, 32);                     // threads of a warp, of a block
  set(320, 1024);
  for (const int at : {324, 328}) set(at, 1024);
  set(332, 64);
  for (const int at : {336, 340, 344}) set(at, 65535);
  set(360, 9);  // compute capability 9.0
  set(384, 132);
  set(604, 2048);
  set(624, std::size_t{228} << 10);
  set(672, std::size_t{227} << 10);
  return 0;
}

// Memory.
EXPORTED int cudaMalloc(void** memory, std::size_t bytes) {
  return allocate(Call::kAllocate, &State::device, memory, bytes);
}
EXPORTED int cudaMallocFromPoolAsync(void** memory, std::size_t bytes, void*, void*) {
  return cudaMalloc(memory, bytes);
}
EXPORTED int cudaMallocHost(void** memory, std::size_t bytes) {
  return allocate(Call::kAllocatePinned, &State::pinned, memory, bytes);
}
EXPORTED int cudaHostAlloc(void** memory, std::size_t bytes, unsigned) {
  return cudaMallocHost(memory, bytes);
}
EXPORTED int cudaFree(void* memory) { return release(&State::device, memory); }
EXPORTED int cudaFreeAsync(void* memory, void*) { return cudaFree(memory); }
EXPORTED int cudaFreeHost(void* memory) { return release(&State::pinned, memory); }
EXPORTED int cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  const std::lock_guard lock(state().mutex);
  *total = kMemory;
  *free = kMemory - state().used;
  return 0;
}
EXPORTED int cudaMemcpy(void* to, const void* from, std::size_t bytes, int kind) {
  note_stream(nullptr);
  return copy(to, from, bytes, kind);
}
EXPORTED int cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, int kind,
                             void* stream) {
  note_stream(stream);
  return copy(to, from, bytes, kind);
}
EXPORTED int cudaMemset(void* memory, int value, std::size_t bytes) {
  note_stream(nullptr);
  return fill(memory, value, bytes);
}
EXPORTED int cudaMemsetAsync(void* memory, int value, std::size_t bytes, void* stream) {
  note_stream(stream);
  return fill(memory, value, bytes);
}
EXPORTED int cudaMemcpy2DAsync(void*, std::size_t, const void*, std::size_t, std::size_t width,
                               std::size_t height, int, void* stream) {
  note_stream(stream);
  return record(Call::kCopyOnDevice, width * height);
}
EXPORTED int cudaPointerGetAttributes(void* attributes, const void* memory) {
  struct Attributes {
    int type, device;
    const void *on_device, *on_host;
  };
  const std::lock_guard lock(state().mutex);
  const bool there = holds(state().device, memory, 0);
  const Attributes found{there ? 2 : holds(state().pinned, memory, 0) ? 1 : 0, 0, memory, memory};
  std::memcpy(attributes, &found, sizeof found);
  return 0;
}
SUCCEEDS(cudaMemcpyFromSymbol)
MAKES(cudaMemPoolCreate)
SUCCEEDS(cudaMemPoolDestroy)
EXPORTED int cudaMemPoolGetAttribute(void*, int, void* value) {
  std::memset(value, 0, sizeof(std::uint64_t));
  return 0;
}
SUCCEEDS(cudaMemPoolSetAttribute)
SUCCEEDS(cudaMemPoolTrimTo)

// Streams, events and graphs.
EXPORTED int cudaStreamCreate(void** stream) {
  static std::atomic<std::uintptr_t> streams = 0x1000;  // 1 and 2 are CUDA's own
  *stream = reinterpret_cast<void*>(++streams);
  return 0;
}
EXPORTED int cudaStreamCreateWithFlags(void** stream, unsigned) { return cudaStreamCreate(stream); }
SUCCEEDS(cudaStreamDestroy)
SUCCEEDS(cudaStreamWaitEvent)
SUCCEEDS(cudaStreamBeginCapture)
MAKES(cudaEventCreate)
MAKES(cudaEventCreateWithFlags)
SUCCEEDS(cudaEventDestroy)
SUCCEEDS(cudaEventRecord)
EXPORTED int cudaEventSynchronize(void*) { return record(Call::kEventWait); }
EXPORTED int cudaEventElapsedTime(float* ms, void*, void*) { return *ms = 1, 0; }
EXPORTED int cudaStreamIsCapturing(void*, int* status) { return *status = 0, 0; }
EXPORTED int cudaStreamEndCapture(void*, void** graph) { return *graph = nullptr, 0; }
/// As long for a batch as for one image, so that batches are worth it.
EXPORTED int cudaStreamSynchronize(void*) {
  std::this_thread::sleep_for(std::chrono::microseconds(200));
  return record(Call::kStreamWait);
}
EXPORTED int cudaDeviceSynchronize() { return record(Call::kDeviceWait); }
EXPORTED int cudaLaunchHostFunc(void*, void (*function)(void*), void* data) {
  function(data);
  return 0;
}
MAKES(cudaGraphInstantiate)
SUCCEEDS(cudaGraphDestroy)
SUCCEEDS(cudaGraphExecDestroy)
EXPORTED int cudaGraphLaunch(void*, void* stream) {
  note_stream(stream);
  return record(Call::kGraph);
}

// Kernels.
EXPORTED int cudaLaunchKernel(const void*, Dim3, Dim3, void**, std::size_t, void* stream) {
  note_stream(stream);
  return record(Call::kLaunch);
}
EXPORTED int __cudaLaunchKernel(const void* kernel, Dim3 grid, Dim3 block, void** arguments,
                                std::size_t shared, void* stream) {
  return cudaLaunchKernel(kernel, grid, block, arguments, shared, stream);
}
EXPORTED int cudaLaunchCooperativeKernel(const void* kernel, Dim3 grid, Dim3 block,
                                         void** arguments, std::size_t shared, void* stream) {
  return cudaLaunchKernel(kernel, grid, block, arguments, shared, stream);
}
struct LaunchConfiguration {
  Dim3 grid, block;
  std::size_t shared;
  void* stream;
};
EXPORTED int cudaLaunchKernelExC(const LaunchConfiguration* how, const void* kernel, void**) {
  return cudaLaunchKernel(kernel, how->grid, how->block, nullptr, how->shared, how->stream);
}
thread_local LaunchConfiguration configuration;
EXPORTED unsigned __cudaPushCallConfiguration(Dim3 grid, Dim3 block, std::size_t shared,
                                              void* stream) {
  configuration = {grid, block, shared, stream};
  return 0;
}
EXPORTED int __cudaPopCallConfiguration(Dim3* grid, Dim3* block, std::size_t* shared,
                                        void** stream) {
  *grid = configuration.grid;
  *block = configuration.block;
  *shared = configuration.shared;
  *stream = configuration.stream;
  return 0;
}
EXPORTED int __cudaGetKernel(const void** kernel, const void* function) {
  return *kernel = function, 0;
}
EXPORTED int cudaFuncGetAttributes(void* attributes, const void*) {
  std::memset(attributes, 0, 56);
  return 0;
}
EXPORTED int cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void*, int,
                                                                    std::size_t, unsigned) {
  return *blocks = 1, 0;
}
EXPORTED int cudaGetDriverEntryPointByVersion(const char*, void** entry, unsigned, std::uint64_t,
                                              int* result) {
  *entry = nullptr;
  if (result != nullptr) *result = 1;  // not found
  return 0;
}
EXPORTED void** __cudaRegisterFatBinary(void*) {
  static void* handle = nullptr;
  return &handle;
}
SUCCEEDS(__cudaRegisterFatBinaryEnd)
SUCCEEDS(__cudaUnregisterFatBinary)
SUCCEEDS(__cudaRegisterFunction)
SUCCEEDS(__cudaRegisterVar)
SUCCEEDS(cudaFuncSetAttribute)
SUCCEEDS(cudaKernelSetAttributeForDevice)
MAKES(cudaLibraryGetKernel)
MAKES(cudaLibraryLoadData)
SUCCEEDS(cudaLibraryUnload)

// cuBLAS.
MAKES(cublasCreate_v2)
SUCCEEDS(cublasDestroy_v2)
SUCCEEDS(cublasSetStream_v2)
SUCCEEDS(cublasSetMathMode)
EXPORTED int cublasGetMathMode(void*, int* mode) { return *mode = 0, 0; }
EXPORTED const char* cublasGetStatusName(int) { return "recorded"; }
EXPORTED const char* cublasGetStatusString(int) { return "recorded"; }
COMPUTES(cublasDcopy_v2)
COMPUTES(cublasDgeam)
COMPUTES(cublasDgemmBatched)
COMPUTES(cublasDgemmStridedBatched)
COMPUTES(cublasDgemm_v2)
COMPUTES(cublasDgetrfBatched)
COMPUTES(cublasDgetriBatched)
COMPUTES(cublasGemmBatchedEx)
COMPUTES(cublasGemmEx)
COMPUTES(cublasGemmStridedBatchedEx)
COMPUTES(cublasScopy_v2)
COMPUTES(cublasSgeam)
COMPUTES(cublasSgemmBatched)
COMPUTES(cublasSgemmStridedBatched)
COMPUTES(cublasSgemm_v2)
COMPUTES(cublasSgetrfBatched)
COMPUTES(cublasSgetriBatched)
COMPUTES(cublasSscal_v2)
MAKES(cublasLtCreate)
SUCCEEDS(cublasLtDestroy)
COMPUTES(cublasLtMatmul)
SUCCEEDS(cublasLtMatmulAlgoConfigSetAttribute)
SUCCEEDS(cublasLtMatmulAlgoGetHeuristic)
SUCCEEDS(cublasLtMatmulAlgoInit)
SUCCEEDS(cublasLtMatmulDescCreate)
SUCCEEDS(cublasLtMatmulDescDestroy)
SUCCEEDS(cublasLtMatmulDescSetAttribute)
SUCCEEDS(cublasLtMatmulPreferenceCreate)
SUCCEEDS(cublasLtMatmulPreferenceDestroy)
SUCCEEDS(cublasLtMatmulPreferenceSetAttribute)
SUCCEEDS(cublasLtMatrixLayoutCreate)
SUCCEEDS(cublasLtMatrixLayoutDestroy)
SUCCEEDS(cublasLtMatrixLayoutSetAttribute)
COMPUTES(cublasLtMatrixTransform)
SUCCEEDS(cublasLtMatrixTransformDescCreate)
SUCCEEDS(cublasLtMatrixTransformDescDestroy)

// cuDNN, whose convolutions are plans of its graph interface.
EXPORTED std::size_t cudnnGetVersion() { return 92000; }
EXPORTED std::size_t cudnnGetCudartVersion() { return 13000; }
MAKES(cudnnCreate)
SUCCEEDS(cudnnDestroy)
SUCCEEDS(cudnnSetStream)
EXPORTED int cudnnGetStream(void*, void** stream) { return *stream = nullptr, 0; }
EXPORTED const char* cudnnGetErrorString(int) { return "CUDNN_STATUS_EXECUTION_FAILED"; }
EXPORTED void cudnnGetLastErrorString(char* text, std::size_t) { *text = 0; }
EXPORTED int cudnnBackendCreateDescriptor(int, void** descriptor) {
  static char something;
  return *descriptor = &something, 0;
}
SUCCEEDS(cudnnBackendDestroyDescriptor)
SUCCEEDS(cudnnBackendFinalize)
SUCCEEDS(cudnnBackendInitialize)
SUCCEEDS(cudnnBackendSetAttribute)
COMPUTES(cudnnBackendExecute)
/// One of each descriptor and zeros for numbers: a plan without notes that needs no memory.
EXPORTED int cudnnBackendGetAttribute(void*, int, int type, std::int64_t wanted,
                                      std::int64_t* count, void* values) {
  constexpr int kDescriptor = 15;
  static const std::map<int, std::size_t> sizes = {{1, 4}, {3, 8}, {4, 4}, {5, 8}, {6, 8}, {23, 4}};
  const auto size = sizes.find(type);
  const bool given = type == kDescriptor || (size != sizes.end() && wanted > 0);
  if (count != nullptr) *count = given ? 1 : 0;
  if (given && size != sizes.end() && values != nullptr)
    std::memset(values, 0, size->second * static_cast<std::size_t>(wanted));
  return 0;
}
COMPUTES(cudnnActivationForward)
COMPUTES(cudnnAddTensor)
COMPUTES(cudnnBatchNormalizationForwardInference)
COMPUTES(cudnnBatchNormalizationForwardTraining)
COMPUTES(cudnnConvolutionBiasActivationForward)
COMPUTES(cudnnConvolutionForward)
COMPUTES(cudnnLRNCrossChannelForward)
COMPUTES(cudnnPoolingForward)
COMPUTES(cudnnRNNForward)
COMPUTES(cudnnReduceTensor)
COMPUTES(cudnnSoftmaxForward)
MAKES(cudnnCreateActivationDescriptor)
MAKES(cudnnCreateConvolutionDescriptor)
MAKES(cudnnCreateDropoutDescriptor)
MAKES(cudnnCreateFilterDescriptor)
MAKES(cudnnCreateLRNDescriptor)
MAKES(cudnnCreatePoolingDescriptor)
MAKES(cudnnCreateRNNDataDescriptor)
MAKES(cudnnCreateRNNDescriptor)
MAKES(cudnnCreateReduceTensorDescriptor)
MAKES(cudnnCreateTensorDescriptor)
SUCCEEDS(cudnnDeriveBNTensorDescriptor)
SUCCEEDS(cudnnDestroyActivationDescriptor)
SUCCEEDS(cudnnDestroyConvolutionDescriptor)
SUCCEEDS(cudnnDestroyDropoutDescriptor)
SUCCEEDS(cudnnDestroyFilterDescriptor)
SUCCEEDS(cudnnDestroyLRNDescriptor)
SUCCEEDS(cudnnDestroyPoolingDescriptor)
SUCCEEDS(cudnnDestroyRNNDataDescriptor)
SUCCEEDS(cudnnDestroyRNNDescriptor)
SUCCEEDS(cudnnDestroyReduceTensorDescriptor)
SUCCEEDS(cudnnDestroyTensorDescriptor)
SUCCEEDS(cudnnDropoutGetStatesSize)
SUCCEEDS(cudnnFindConvolutionForwardAlgorithmEx)
SUCCEEDS(cudnnGetConvolutionForwardAlgorithm_v7)
SUCCEEDS(cudnnGetConvolutionForwardWorkspaceSize)
SUCCEEDS(cudnnGetRNNTempSpaceSizes)
SUCCEEDS(cudnnGetRNNWeightParams)
SUCCEEDS(cudnnGetReductionIndicesSize)
SUCCEEDS(cudnnGetReductionWorkspaceSize)
SUCCEEDS(cudnnGetTensorNdDescriptor)
SUCCEEDS(cudnnSetActivationDescriptor)
SUCCEEDS(cudnnSetConvolutionGroupCount)
SUCCEEDS(cudnnSetConvolutionMathType)
SUCCEEDS(cudnnSetConvolutionNdDescriptor)
SUCCEEDS(cudnnSetDropoutDescriptor)
SUCCEEDS(cudnnSetFilterNdDescriptor)
SUCCEEDS(cudnnSetLRNDescriptor)
SUCCEEDS(cudnnSetPoolingNdDescriptor)
SUCCEEDS(cudnnSetRNNDataDescriptor)
SUCCEEDS(cudnnSetRNNDescriptor_v8)
SUCCEEDS(cudnnSetReduceTensorDescriptor)
SUCCEEDS(cudnnSetTensorNdDescriptor)
