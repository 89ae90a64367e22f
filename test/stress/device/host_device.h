#pragma once

#include <cstddef>

#include "cuda/table.h"

namespace cutout::test {

/// The kernels under the host executor as a device whose work is done when Lateness says, so that a
/// result that is used too early, or memory that is used again too early, is noticed. Memory begins
/// as NaN and is NaN before it is released. There are kHostDevices of them; work on a stream or
/// memory of another one than the calling thread's is the error 400. The functions may be called
/// from any thread.
const cuda::Table& host_device();

/// When work that is queued is done.
enum class Lateness {
  kAtWait,  // when its stream is waited for, as late as possible
  kAtOnce,  // in the call that queues it
  /// At any time between the two, whenever something is queued on any stream or one is waited for:
  /// a number of steps that the seed determines for one thread.
  kAnyTime,
};
/// kAtWait until it is called. No work is queued.
void set_lateness(Lateness lateness, unsigned seed = 1);

inline constexpr int kHostDevices = 4;
inline constexpr int kAnyDevice = -1;

/// What fails.
enum class Fault {
  kNothing,
  kMemory,  // memory of the device
  kPinned,  // page-locked memory
  kOnce,    // any one call
  kLost,    // all calls from one on
};

/// Makes the `call`-th call from now on fail, from 1 on; for memory, calls that allocate, and all
/// later ones of these too. Calls of other devices than this one are not counted. Ends an earlier
/// fault.
void fail_at(Fault fault, int call, int device = kAnyDevice);
/// Calls that the last fail_at() could have chosen, since then.
int calls_that_could_fail();

/// Work that was queued on a device so far.
std::size_t work_of_host_device(int device);

/// Bytes that were to be copied so far.
struct HostCopies {
  std::size_t to_device = 0;
  std::size_t to_host = 0;
};
HostCopies copied_by_host_device();

/// Blocks and streams that are not released.
std::size_t held_by_host_device();

/// Work that was queued and whose stream was not waited for since.
std::size_t queued_on_host_device();

}  // namespace cutout::test
