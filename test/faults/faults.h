#pragma once

#include <cstdint>

/// Allocations and threads that fail on command. Linked with --wrap (CMakeLists.txt): requests of
/// the objects of this program or addon fail, those of libraries do not.
namespace cutout::test {

enum class Failing {
  kOne,   // that one only
  kRest,  // that one and all later ones
};

/// The allocation number `which` from now on fails, 0 being the next; on any thread.
void fail_allocation(std::int64_t which, Failing failing);
/// As fail_allocation(), for starting threads.
void fail_thread(std::int64_t which, Failing failing);
/// Ends the failures; returns the number of allocations since fail_allocation().
std::int64_t fail_nothing();

}  // namespace cutout::test
