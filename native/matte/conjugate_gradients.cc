#include "matte/conjugate_gradients.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <vector>

#include "core/large_memory.h"
#include "core/simd.h"
#include "matte/math/deblur.h"
#include "matte/tiles.h"

namespace cutout {

namespace {

constexpr std::size_t kTileGrain = 16;

CUTOUT_SIMD void add_products(const float* __restrict a, const float* __restrict b, int n,
                              float* __restrict lanes) {
  int i = 0;
  for (; i + kSumLanes <= n; i += kSumLanes) {
    for (int l = 0; l < kSumLanes; ++l) lanes[l] += a[i + l] * b[i + l];
  }
  for (int l = 0; i + l < n; ++l) lanes[l] += a[i + l] * b[i + l];
}

/// One step along `direction`; `residual` / `diagonal` goes to `conditioned`.
CUTOUT_SIMD void step_row(float step, const float* __restrict direction,
                          const float* __restrict product, const float* __restrict diagonal, int n,
                          float* __restrict alpha, float* __restrict residual,
                          float* __restrict conditioned) {
  for (int i = 0; i < n; ++i) {
    alpha[i] += step * direction[i];
    residual[i] -= step * product[i];
    conditioned[i] = residual[i] / diagonal[i];
  }
}

CUTOUT_SIMD void next_direction_row(float beta, const float* __restrict conditioned, int n,
                                    float* __restrict direction) {
  for (int i = 0; i < n; ++i) direction[i] = conditioned[i] + beta * direction[i];
}

/// One search.
class ConjugateGradients {
 public:
  ConjugateGradients(const Guide& guide, const MattingEnergy& energy, ThreadPool& pool)
      : energy_(energy),
        guide_(guide),
        pool_(pool),
        residual_(make_large_array<float>(guide.size())),
        product_(make_large_array<float>(guide.size())),
        sums_(energy.tiles().size()) {}

  void run(float* alpha, float* direction) {
    for_tiles([&](std::size_t tile, MattingEnergy::Scratch& scratch) {
      energy_.descent(tile, scratch, residual_.get());
    });
    double pixels = 0;
    for (const Tile& tile : energy_.tiles()) {
      pixels += static_cast<double>(tile.right - tile.left) * (tile.bottom - tile.top);
    }
    const double tolerance = deblur::tolerance(pixels);
    double rz = advance(0.0F, direction, alpha);  // residual . conditioned
    next_direction(0.0F, direction);
    for (int i = 0; i < deblur::kMaxIterations && rz > tolerance; ++i) {
      for_tiles([&](std::size_t tile, MattingEnergy::Scratch& scratch) {
        energy_.multiply(tile, direction, scratch, product_.get());
        sums_[tile] = dot(tile, direction, product_.get());
      });
      const double curvature = total();
      if (!(curvature > 0)) break;
      const double next = advance(static_cast<float>(rz / curvature), direction, alpha);
      next_direction(static_cast<float>(next / rz), direction);
      rz = next;
    }
  }

 private:
  template <typename Run>
  void for_tiles(const Run& run) {
    pool_.parallel_for(energy_.tiles().size(), 1, [&](std::size_t begin, std::size_t end) {
      const auto scratch = std::make_unique_for_overwrite<MattingEnergy::Scratch>();
      for (std::size_t i = begin; i < end; ++i) run(i, *scratch);
    });
  }

  double dot(std::size_t index, const float* a, const float* b) const {
    const Tile& tile = energy_.tiles()[index];
    std::array<float, kSumLanes> lanes{};
    for (int y = tile.top; y < tile.bottom; ++y) {
      const std::size_t at = guide_.at(tile.left, y);
      add_products(a + at, b + at, tile.right - tile.left, lanes.data());
    }
    return sum_of_lanes(lanes.data());
  }

  /// Adds up rows of tiles, in a fixed order that a device follows.
  [[nodiscard]] double total() const {
    double sum = 0;
    double row = 0;
    int top = 0;
    for (std::size_t i = 0; i < sums_.size(); ++i) {
      const int tiles = energy_.tiles()[i].top / kTile;
      if (tiles != top) {
        sum += row;
        row = 0;
        top = tiles;
      }
      row += sums_[i];
    }
    return sum + row;
  }

  /// Steps along the direction; product_ becomes the conditioned residual. Returns their product.
  double advance(float step, const float* direction, float* alpha) {
    pool_.parallel_for(energy_.tiles().size(), 1, [&](std::size_t begin, std::size_t end) {
      std::array<float, kTile> diagonal{};
      std::array<float, kTile> conditioned{};
      for (std::size_t i = begin; i < end; ++i) {
        const Tile& tile = energy_.tiles()[i];
        const int n = tile.right - tile.left;
        for (int y = tile.top; y < tile.bottom; ++y) {
          const std::size_t at = guide_.at(tile.left, y);
          energy_.diagonal(i, y, diagonal.data());
          if (step == 0.0F) std::fill_n(product_.get() + at, n, 0.0F);
          step_row(step, direction + at, product_.get() + at, diagonal.data(), n, alpha + at,
                   residual_.get() + at, conditioned.data());
          std::copy_n(conditioned.data(), n, product_.get() + at);
        }
        sums_[i] = dot(i, residual_.get(), product_.get());
      }
    });
    return total();
  }

  void next_direction(float beta, float* direction) {
    pool_.for_each(energy_.tiles().size(), kTileGrain, [&](std::size_t i) {
      const Tile& tile = energy_.tiles()[i];
      for (int y = tile.top; y < tile.bottom; ++y) {
        const std::size_t at = guide_.at(tile.left, y);
        next_direction_row(beta, product_.get() + at, tile.right - tile.left, direction + at);
      }
    });
  }

  const MattingEnergy& energy_;
  const Guide& guide_;
  ThreadPool& pool_;
  LargeArray<float> residual_;
  LargeArray<float> product_;
  std::vector<double> sums_;  // of each tile
};

}  // namespace

void minimise(const MattingEnergy& energy, const Guide& guide, ThreadPool& pool, float* alpha,
              float* direction) {
  ConjugateGradients(guide, energy, pool).run(alpha, direction);
}

}  // namespace cutout
