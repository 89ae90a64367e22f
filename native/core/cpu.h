#pragma once

#include <string>
#include <vector>

namespace cutout {

/// Instruction sets of this processor that the operating system enables, of those that choose a
/// network's form, for 8 bits, for bf16 and the others, each best first: "amx_int8", "avx512_vnni",
/// "avx_vnni", "amx_bf16" (with AVX-512 BF16), "avx512_bf16", "avx512", "avx2" on x86-64; "i8mm",
/// "asimddp", "asimd" on Arm. Names as in Linux's /proc/cpuinfo, but "avx512" for F, BW, CD, DQ and
/// VL together. Empty on other processors.
std::vector<std::string> instruction_sets();

/// Whether one of them multiplies bytes and adds the products in 32 bits.
bool has_dot_products();

}  // namespace cutout
