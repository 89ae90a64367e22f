#pragma once

#include <array>
#include <cstddef>

/// A library in the place of CUDA's runtime, its driver, cuDNN and cuBLAS, for machines without a
/// GPU: memory of the device lies on the host, nothing is computed, and every call is counted. Also
/// has the table of libcutout_cuda.so, whose kernels are counted in the same way.
namespace cutout::test {

/// Calls that work on a device or wait for it. Each can be made to fail.
enum class Call {
  kAllocate,
  kAllocatePinned,
  kUpload,
  kDownload,
  kCopyOnDevice,
  kFill,
  kLaunch,   // of a kernel
  kLibrary,  // of cuDNN or cuBLAS
  kGraph,    // launch of one
  kStreamWait,
  kDeviceWait,
  kEventWait,
  kCalls,  // their number
};

inline constexpr std::size_t kCallKinds = static_cast<std::size_t>(Call::kCalls);
inline constexpr std::array<const char*, kCallKinds> kCallNames = {
    "allocate", "allocatePinned", "upload", "download",   "copyOnDevice", "fill",
    "launch",   "library",        "graph",  "streamWait", "deviceWait",   "eventWait"};

struct Recorded {
  std::array<std::size_t, kCallKinds> calls{};
  std::array<std::size_t, kCallKinds> bytes{};
  std::size_t pageable = 0;  // copies from or to memory of the host that is not page-locked
  std::size_t outside = 0;   // copies and fills that are not inside memory of the device
  std::size_t defaults = 0;  // work on the default stream, which other streams wait for
};

/// What was called since the last time.
Recorded take_recorded();

/// Makes the n-th call of a kind from now on fail, 1 being the next, with an error of CUDA; with
/// `lost` every call fails from there on. With 0 none fails.
void fail_call(Call kind, int nth, int error, bool lost);

/// Whether that call has been made.
bool call_has_failed();

/// Counts a call; its error, 0 for none.
int record(Call kind, std::size_t bytes = 0);

}  // namespace cutout::test
