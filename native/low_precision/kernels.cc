#include "low_precision/kernels.h"

#include <algorithm>
#include <array>

#include "core/cpu.h"
#include "low_precision/self_check.h"

#if defined(__x86_64__) && defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace cutout::low_precision {

namespace {

struct Entry {
  const char* instruction_set;
  Kernel (*kernel)();
};

#if defined(__x86_64__) && defined(__linux__)

/// The kernel where Linux lets the process use the tiles, for which it has to ask once.
template <Kernel (*kKernel)()>
Kernel with_tiles() {
  constexpr long kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr long kTileData = 18;               // XFEATURE_XTILEDATA
  static const bool granted = syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
  return granted ? kKernel() : Kernel{};
}

constexpr std::array kEntries{
    Entry{"amx_int8", &with_tiles<&conv_amx>},
    Entry{"avx512_vnni", &conv_avx512_vnni},
    Entry{"avx_vnni", &conv_avx_vnni},
    Entry{"avx512", &conv_avx512},
    Entry{"avx2", &conv_avx2},
    Entry{"amx_bf16", &with_tiles<&conv_amx_bf16>},
    Entry{"avx512_bf16", &conv_avx512_bf16},
};
#elif defined(__aarch64__)
constexpr std::array kEntries{
    Entry{"i8mm", &conv_i8mm},
    Entry{"asimddp", &conv_asimddp},
};
#else
constexpr std::array<Entry, 0> kEntries{};
#endif

}  // namespace

Kernel kernel_for(const std::string& instruction_set) {
  const auto* const found = std::ranges::find_if(kEntries, [&instruction_set](const Entry& entry) {
    return instruction_set == entry.instruction_set;
  });
  return found == kEntries.end() ? Kernel{} : found->kernel();
}

const Kernels& kernels() {
  static const Kernels known = [] {
    Kernels found;
    for (const std::string& name : instruction_sets()) {
      const Kernel kernel = kernel_for(name);
      if (kernel.run == nullptr) continue;
      const bool good = !kernel.bf16 || multiplies_bf16(kernel.run);
      (!good ? found.refused : kernel.bf16 ? found.bf16 : found.int8).push_back(name);
    }
    return found;
  }();
  return known;
}

}  // namespace cutout::low_precision
