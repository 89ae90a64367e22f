#pragma once

#include "matte/math/probability.h"

namespace cutout {

inline constexpr int kJacobiSteps = 8;

/// The 2 x 2 system of F and B of one network pixel.
struct System {
  float a00, a01, a11;  // symmetric matrix
  float inverse_determinant;
};

CUTOUT_HD float weight_between(float a, float b) {
  constexpr float kSmooth = 1e-5F;  // weight of a neighbour where alpha is even, as published
  const float d = a - b;
  return kSmooth + (d < 0.0F ? -d : d);
}

struct Neighbours {
  float left, right, up, down;
};

CUTOUT_HD System system_of(float alpha, const Neighbours& w) {
  const float sum = (w.left + w.right) + (w.up + w.down);
  const float rest = 1.0F - alpha;
  System system{alpha * alpha + sum, alpha * rest, rest * rest + sum, 0.0F};
  system.inverse_determinant = 1.0F / (system.a00 * system.a11 - system.a01 * system.a01);
  return system;
}

CUTOUT_HD float right_side(float own, const Neighbours& w, const Neighbours& v) {
  return own + ((w.left * v.left + w.right * v.right) + (w.up * v.up + w.down * v.down));
}

CUTOUT_HD float solve_fore(const System& m, float b0, float b1) {
  return clamp01(m.inverse_determinant * (m.a11 * b0 - m.a01 * b1));
}

CUTOUT_HD float solve_back(const System& m, float b0, float b1) {
  return clamp01(m.inverse_determinant * (m.a00 * b1 - m.a01 * b0));
}

/// First estimate of a layer's colour at a network pixel.
CUTOUT_HD float first_guess(float colour, float weight, float coarse) {
  return colour * weight + (1.0F - weight) * coarse;
}

}  // namespace cutout
