#pragma once

#include <cstdint>

/// Allocations and threads that fail on command. Linked with --wrap (CMakeLists.txt): what the
/// objects of this program or addon ask for by themselves fails, not what a library asks for.
namespace cutout::test {

enum class Failing {
  kOne,   // the one
  kRest,  // it and all after it
};

/// The allocation number `which` from now on fails, 0 being the next; of any thread.
void fail_allocation(std::int64_t which, Failing failing);
/// Likewise the start of a thread.
void fail_thread(std::int64_t which, Failing failing);
/// Nothing fails any more; how many allocations there were since fail_allocation().
std::int64_t fail_nothing();

}  // namespace cutout::test
