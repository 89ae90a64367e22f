// Labels of connected components (native/cuda/kernels/union_find.h), against a flood fill.
#include "cuda/kernels/union_find.h"

#include "stress/cuda/host_executor.h"
#include "stress/cuda/kernels.h"

namespace cutout::test {

namespace {

/// Classes of network pixels: noise of two classes at which components are largest and most
/// winding, or combs whose teeth are joined at one end.
struct Classes {
  int width;
  int height;
  std::vector<int> values;

  explicit Classes(Cases& cases) : width(cases.pick(1, 100)), height(cases.pick(1, 40)) {
    const bool combs = cases.pick(0, 3) == 0;
    const int filled = cases.pick(30, 70);
    for (int y = 0; y < height; ++y) {
      for (int x = 0; x < width; ++x) {
        const bool tooth = x % 2 == 0 || y == height - 1;
        const bool inside = combs ? tooth : cases.pick(1, 100) <= filled;
        values.push_back(!inside ? 0 : combs || cases.pick(1, 20) > 1 ? 1 : 2);
      }
    }
  }

  [[nodiscard]] int at(int x, int y) const {
    return values[static_cast<std::size_t>(y * width + x)];
  }
};

/// For the kernels; borrows the classes.
struct ClassOf {
  const int* values;
  int width;
  CUTOUT_HD int operator()(int x, int y) const { return values[y * width + x]; }
};

std::vector<int> flood_filled(const Classes& classes, bool corners) {
  std::vector<int> labels(classes.values.size(), -1);
  const auto label = [&](int x, int y) -> int& {
    return labels[static_cast<std::size_t>(y * classes.width + x)];
  };
  for (int y = 0; y < classes.height; ++y) {
    for (int x = 0; x < classes.width; ++x) {
      if (classes.at(x, y) == 0 || label(x, y) >= 0) continue;
      const int root = y * classes.width + x;
      label(x, y) = root;
      std::vector<int> waiting{root};
      while (!waiting.empty()) {
        const int i = waiting.back();
        waiting.pop_back();
        for (int dy = -1; dy <= 1; ++dy) {
          for (int dx = -1; dx <= 1; ++dx) {
            const int nx = i % classes.width + dx;
            const int ny = i / classes.width + dy;
            if (!corners && dx != 0 && dy != 0) continue;
            if (nx < 0 || ny < 0 || nx >= classes.width || ny >= classes.height) continue;
            if (classes.at(nx, ny) != classes.at(x, y) || label(nx, ny) >= 0) continue;
            label(nx, ny) = root;
            waiting.push_back(ny * classes.width + nx);
          }
        }
      }
    }
  }
  return labels;
}

template <Order kOrder>
std::vector<int> labelled(const Classes& classes, bool corners) {
  std::vector<int> labels(classes.values.size());
  HostExecutor<kOrder> on(nullptr);
  cuda::label_components(on, ClassOf{classes.values.data(), classes.width}, classes.width,
                         classes.height, corners, labels.data());
  return labels;
}

}  // namespace

int wrong_labels(int cases) {
  Cases inputs;
  int wrong = 0;
  for (int i = 0; i < cases; ++i) {
    const Classes classes(inputs);
    const bool corners = i % 2 == 0;
    const std::vector<int> expected = flood_filled(classes, corners);
    wrong += labelled<Order::kForwards>(classes, corners) == expected ? 0 : 1;
    wrong += labelled<Order::kBackwards>(classes, corners) == expected ? 0 : 1;
    wrong += labelled<Order::kShuffled>(classes, corners) == expected ? 0 : 1;
  }
  return wrong;
}

}  // namespace cutout::test
