// The source of the kernel itself, with the tiles of tiles.h.
#if defined(__x86_64__)

#include "emulated_tiles.h"
#include "tiles.h"

#define conv_amx_bf16 conv_emulated_amx_bf16
#include "low_precision/conv_amx_bf16.cc"

#endif
