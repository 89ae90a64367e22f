#include "faults/faults.h"

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <limits>
#include <memory>
#include <new>
#include <system_error>
#include <thread>
#include <utility>

namespace cutout::test {

namespace {

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

struct Countdown {
  std::atomic<std::int64_t> first{kNever};
  std::atomic<std::int64_t> last{kNever};
  std::atomic<std::int64_t> seen{0};

  void arm(std::int64_t which, Failing failing) {
    disarm();
    seen = 0;
    last = failing == Failing::kOne ? which : kNever;
    first = which;
  }
  void disarm() {
    first = kNever;
    last = kNever;
  }
  bool fails() {
    const std::int64_t now = seen++;
    return now >= first && now <= last;
  }
};

constinit Countdown allocations;
constinit Countdown threads;

}  // namespace

void fail_allocation(std::int64_t which, Failing failing) { allocations.arm(which, failing); }

void fail_thread(std::int64_t which, Failing failing) { threads.arm(which, failing); }

std::int64_t fail_nothing() {
  allocations.disarm();
  threads.disarm();
  return allocations.seen;
}

}  // namespace cutout::test

using cutout::test::allocations;
using cutout::test::threads;

extern "C" {

using State = std::unique_ptr<std::thread::_State>;

// Names of the Itanium C++ ABI: operator new and std::thread::_M_start_thread.
void* __real__Znwm(std::size_t bytes);
void* __real__ZnwmSt11align_val_t(std::size_t bytes, std::align_val_t alignment);
void* __real__ZnwmRKSt9nothrow_t(std::size_t bytes, const std::nothrow_t& tag);
void* __real__ZnwmSt11align_val_tRKSt9nothrow_t(std::size_t bytes, std::align_val_t alignment,
                                                const std::nothrow_t& tag);
void __real__ZNSt6thread15_M_start_threadESt10unique_ptrINS_6_StateESt14default_deleteIS1_EEPFvvE(
    std::thread* self, State state, void (*depend)());

void* __wrap__Znwm(std::size_t bytes) {
  if (allocations.fails()) throw std::bad_alloc();
  return __real__Znwm(bytes);
}

void* __wrap__ZnwmSt11align_val_t(std::size_t bytes, std::align_val_t alignment) {
  if (allocations.fails()) throw std::bad_alloc();
  return __real__ZnwmSt11align_val_t(bytes, alignment);
}

void* __wrap__ZnwmRKSt9nothrow_t(std::size_t bytes, const std::nothrow_t& tag) {
  if (allocations.fails()) return nullptr;
  return __real__ZnwmRKSt9nothrow_t(bytes, tag);
}

void* __wrap__ZnwmSt11align_val_tRKSt9nothrow_t(std::size_t bytes, std::align_val_t alignment,
                                                const std::nothrow_t& tag) {
  if (allocations.fails()) return nullptr;
  return __real__ZnwmSt11align_val_tRKSt9nothrow_t(bytes, alignment, tag);
}

void __wrap__ZNSt6thread15_M_start_threadESt10unique_ptrINS_6_StateESt14default_deleteIS1_EEPFvvE(
    std::thread* self, State state, void (*depend)()) {
  if (threads.fails()) {
    throw std::system_error(EAGAIN, std::generic_category());
  }
  __real__ZNSt6thread15_M_start_threadESt10unique_ptrINS_6_StateESt14default_deleteIS1_EEPFvvE(
      self, std::move(state), depend);
}

}  // extern "C"
