#pragma once

#include <array>
#include <vector>

#include "core/large_memory.h"
#include "core/thread_pool.h"
#include "matte/guide.h"
#include "matte/patch.h"
#include "matte/tiles.h"

namespace cutout {

/// What the energy is about: planes of the guide's size, borrowed.
struct EnergyTerms {
  const float* output;             // p, 0..1
  const float* start;              // alpha to begin with; exactly 0 or 1 where it is known
  const float* sample_confidence;  // c
  const float* sampled_alpha;      // t
  const std::uint8_t* uncertain;   // 1: alpha is sought
};

/// The quadratic energy of alpha, in sums over network pixels i and windows k of 7 x 7 around each:
///
///   E = sum_i (1 - c_i) (H alpha - p)_i^2 + c_i (alpha_i - t_i)^2
///     + sum_i (1 - f_i) (alpha_i - start_i)^2
///     + kSmoothness / 49 sum_k f_k min_(a, b) (sum_(i in k) (alpha_i - a . I_i - b)^2
///                                              + 49 kEpsilon |a|^2)
///
/// These are the data term, the sampling prior, the fidelity to the start and the smoothness term.
/// H is the network's blur (patch.h). The last line is the matting Laplacian (Levin 2006): alpha is
/// a linear function of colour in every window. f, fineness(), is 0 where the output is soft though
/// the network is not: the image is out of focus, its grain would be taken for an edge, and the
/// output is alpha already. Alpha is fixed where it is known and beyond the image, where image and
/// start repeat their border.
///
/// | limit     |                                                                                        |
/// |-----------|----------------------------------------------------------------------------------------|
/// | tiles     | hold all uncertain network pixels                                                        |
/// | scratch   | 11 floats for each network pixel of a tile and 3 around it; 220 kB for each thread     |
/// | threads   | const functions may run at the same time on different tiles                            |
class MattingEnergy {
 public:
  /// Scratch of a thread; not initialised.
  struct Scratch {
    std::array<Patch, 3> colours;
    std::array<Patch, 5> model;
    Patch products;
    Patch value;
    Patch lines;
    Patch sums;
    Patch blurred;
    Patch changes;
  };

  MattingEnergy(const Guide& guide, const EnergyTerms& terms, const BlurWeights& blur,
                std::vector<Tile> tiles, ThreadPool& pool);

  /// -1/2 of the gradient at the start, 0 where alpha is known.
  void descent(std::size_t tile, Scratch& scratch, float* out) const;
  /// 1/2 of the Hessian times `direction`, which is 0 where alpha is known.
  void multiply(std::size_t tile, const float* direction, Scratch& scratch, float* out) const;
  /// Approximation of the diagonal of 1/2 of the Hessian, for n network pixels of a tile's row.
  void diagonal(std::size_t tile, int y, float* out) const;
  /// f of n network pixels of a tile's row.
  [[nodiscard]] const float* fineness(std::size_t tile, int y) const;

  [[nodiscard]] const std::vector<Tile>& tiles() const { return tiles_; }

 private:
  void prepare(std::size_t tile, Scratch& scratch);
  /// A channel's offset in colours less the middle, which the windows' models are about.
  [[nodiscard]] float offset(std::size_t channel) const;
  void smooth(std::size_t tile, Scratch& scratch) const;
  template <typename Row>
  void sum_terms(std::size_t tile, float share, Scratch& scratch, const Row& row) const;
  void data_gradient(const Tile& tile, float share, Scratch& scratch) const;

  const Guide& guide_;
  EnergyTerms terms_;
  BlurWeights blur_;
  float blur_diagonal_;
  std::vector<Tile> tiles_;
  std::vector<std::size_t> starts_;  // of each tile's windows
  LargeArray<float> windows_;
};

}  // namespace cutout
