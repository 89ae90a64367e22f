#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "scalar/matte.h"

namespace cutout::test {

void constrain_scalar(std::span<float> p, const SubjectMask& mask, const Box& view, int image_width,
                      int image_height, int width, int height) {
  /// Calls visit(first, weight), then the same of the sample after it, for a value between samples
  /// whose centres are at i + 1/2.
  const auto linearly = [](double at, int count, auto&& visit) {
    const double centre = std::min(std::max(at - 0.5, 0.0), count - 1.0);
    const double first = std::floor(centre);
    visit(static_cast<int>(first), 1 - (centre - first));
    visit(std::min(static_cast<int>(first) + 1, count - 1), centre - first);
  };
  const auto index = [width](int x, int y) {
    return static_cast<std::size_t>(y) * static_cast<std::size_t>(width) +
           static_cast<std::size_t>(x);
  };
  std::vector<int> m(p.size());
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      const double across = view.left + (x + 0.5) * view.width / width;
      const double down = view.top + (y + 0.5) * view.height / height;
      double sum = 0;
      linearly(down * mask.height / image_height, mask.height, [&](int row, double of_row) {
        double in_row = 0;
        linearly(across * mask.width / image_width, mask.width, [&](int column, double of_column) {
          const int at = row * mask.width + column;
          in_row += mask.values[static_cast<std::size_t>(at)] * of_column;
        });
        sum += in_row * of_row;
      });
      m[index(x, y)] = static_cast<int>(std::lround(sum));
    }
  }
  const auto in = [&m](std::size_t i) { return m[i] >= 0.95 * 255; };
  const auto out = [&m](std::size_t i) { return m[i] <= 0.05 * 255; };

  const int k = std::max(1, std::max(width, height) / 256);
  const int columns = (width + k - 1) / k;
  const int rows = (height + k - 1) / k;
  std::vector<double> b;
  std::vector<double> c;
  for (int row = 0; row < rows; ++row) {
    for (int column = 0; column < columns; ++column) {
      /// Calls visit(index) for the network pixels up to `far` blocks away.
      const auto around = [&](int far, auto&& visit) {
        for (int y = std::max(0, (row - far) * k); y < std::min(height, (row + far + 1) * k); ++y) {
          for (int x = std::max(0, (column - far) * k); x < std::min(width, (column + far + 1) * k);
               ++x) {
            visit(index(x, y));
          }
        }
      };
      double ins = 0;
      double outs = 0;
      around(4, [&](std::size_t i) {
        ins += in(i) ? 1 : 0;
        outs += out(i) ? 1 : 0;
      });
      b.push_back(ins + outs == 0 ? 0.5 : ins / (ins + outs));
      ins = outs = 0;
      double in_p = 0;
      double out_p = 0;
      around(8, [&](std::size_t i) {
        const auto value = static_cast<double>(p[i]);
        ins += in(i) ? 1 : 0;
        in_p += in(i) ? value : 0;
        outs += out(i) ? 1 : 0;
        out_p += out(i) ? value : 0;
      });
      const double apart = ins == 0 || outs == 0 ? 1 : in_p / ins - out_p / outs;
      c.push_back(std::clamp((apart - 0.25) / 0.5, 0.0, 1.0));
    }
  }
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      const auto of_blocks = [&](const std::vector<double>& values) {
        double sum = 0;
        linearly((y + 0.5) / k, rows, [&](int row, double of_row) {
          linearly((x + 0.5) / k, columns, [&](int column, double of_column) {
            sum += of_row * of_column * values[static_cast<std::size_t>(row * columns + column)];
          });
        });
        return sum;
      };
      double s = 0;
      for (int dy = -2; dy <= 2; ++dy) {
        for (int dx = -2; dx <= 2; ++dx) {
          s += m[index(std::clamp(x + dx, 0, width - 1), std::clamp(y + dy, 0, height - 1))];
        }
      }
      s /= 25.0 * 255;
      const std::size_t i = index(x, y);
      const double share = of_blocks(b);
      const double agreement = of_blocks(c);
      const double low = in(i) ? std::clamp(4 * share - 3, 0.0, 1.0) : 0;
      const double high = out(i) ? std::clamp(4 * share, 0.0, 1.0) : 1;
      const double mixed = agreement * static_cast<double>(p[i]) + (1 - agreement) * s;
      p[i] = static_cast<float>(std::clamp(mixed, low, high));
    }
  }
}

}  // namespace cutout::test
