#include "low_precision/conv.h"

#include "core/cpu.h"
#include "low_precision/self_check.h"

#if defined(__x86_64__) && defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace cutout::low_precision {

namespace {

#if defined(__x86_64__) && defined(__linux__)

/// Linux lets a process use the tiles once it has asked.
bool tiles_granted() {
  constexpr long kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr long kTileData = 18;               // XFEATURE_XTILEDATA
  static const bool granted = syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
  return granted;
}

#endif

}  // namespace

ConvTask::ConvTask(const Conv& of, const Map& from, const Map& to, bool as_floats, float scale)
    : conv(&of),
      input(from),
      output(to),
      floats(as_floats),
      group_bytes(kLanes * (as_floats ? bytes_of(Type::kFloats) : of.element())),
      input_scale(scale) {
  offsets.reserve(of.chunks.size());
  for (const Chunk& chunk : of.chunks) {
    offsets.push_back(chunk.row * of.dilation * from.pitch +
                      chunk.column * of.dilation * from.stride + chunk.offset);
  }
}

Kernel kernel_for(const std::string& instruction_set) {
#if defined(__x86_64__) && defined(__linux__)
  if (instruction_set == "amx_int8" && tiles_granted()) return {&conv_amx, false};
  if (instruction_set == "amx_bf16" && tiles_granted()) return {&conv_amx_bf16, true};
  if (instruction_set == "avx512_bf16") return {&conv_avx512_bf16, true};
  if (instruction_set == "avx512_vnni") return avx512_vnni_kernel();
  if (instruction_set == "avx_vnni") return {&conv_avx_vnni, false};
  if (instruction_set == "avx512") return avx512_kernel();
  if (instruction_set == "avx2") return avx2_kernel();
#elif defined(__aarch64__)
  if (instruction_set == "i8mm") return {&conv_i8mm, false};
  if (instruction_set == "asimddp") return {&conv_asimddp, false};
#endif
  static_cast<void>(instruction_set);
  return {};
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
