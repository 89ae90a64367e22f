#include "integer/conv.h"

#include "core/cpu.h"

#if defined(__x86_64__) && defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace cutout::integer {

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

ConvTask::ConvTask(const Conv& of, const Map& from, const Map& to, bool as_floats, float input_gain)
    : conv(&of), input(from), output(to), floats(as_floats), gain(input_gain) {
  offsets.reserve(of.chunks.size());
  for (const Chunk& chunk : of.chunks) {
    offsets.push_back(chunk.row * of.dilation * from.pitch +
                      chunk.column * of.dilation * from.stride + chunk.channel);
  }
}

ConvKernel kernel_for(const std::string& instruction_set) {
#if defined(__x86_64__) && defined(__linux__)
  if (instruction_set == "amx_int8") return tiles_granted() ? &conv_amx : nullptr;
  if (instruction_set == "avx512_vnni") return &conv_avx512_vnni;
  if (instruction_set == "avx_vnni") return &conv_avx_vnni;
#endif
  static_cast<void>(instruction_set);
  return nullptr;
}

std::vector<std::string> kernels() {
  std::vector<std::string> found;
  for (const std::string& name : instruction_sets()) {
    if (kernel_for(name) != nullptr) found.push_back(name);
  }
  return found;
}

}  // namespace cutout::integer
