#include "low_precision/conv.h"

namespace cutout::low_precision {

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

}  // namespace cutout::low_precision
