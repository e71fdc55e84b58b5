// RESIZE_BILINEAR and RESIZE_NEAREST_NEIGHBOR: elements by their places in each dim, and their weights.
#include <algorithm>
#include <cmath>

#include "frontends/tflite/operators.h"
#include "frontends/tflite/quantize.h"

namespace quernel::tflite_import {
namespace {

struct Resize {
  std::vector<int64_t> from, to;  // height and width
  bool align_corners, half_pixels;

  // How far apart in the operand neighbours of the result are.
  float scale(size_t i) const {
    return align_corners && to[i] > 1 ? static_cast<float>(from[i] - 1) / static_cast<float>(to[i] - 1)
                                      : static_cast<float>(from[i]) / static_cast<float>(to[i]);
  }
};

Expected<Resize> read_resize(NodeImport& n, bool align_corners, bool half_pixels) {
  QUERNEL_CHECK(n.expect_rank(0, 4, 4));
  Resize r{{}, {}, align_corners, half_pixels};
  if (align_corners && half_pixels)
    return n.bad_option("half_pixel_centers", "not together with align_corners", "both");
  for (int64_t axis : {1, 2}) {
    QUERNEL_TRY(int64_t size, n.dim(n.in(0), axis));
    r.from.push_back(size);
  }
  QUERNEL_TRY(r.to, n.ints_in(1, "the new size"));
  if (r.to.size() != 2 || std::min(r.to[0], r.to[1]) < 1 || std::max(r.to[0], r.to[1]) > (1 << 22) ||
      std::min(r.from[0], r.from[1]) < 1)
    return n.invalid("expected a new size of two dims of at least 1, found " + to_string(make_shape(r.to)));
  if (n.is_quantized(0) && !(n.in_quantization(0) == n.out_quantization(0)))
    return n.refuse("expected operands and result of one scale and zero point");
  return r;
}

ValueId take_places(NodeImport& n, ValueId x, const std::vector<int64_t>& places, size_t i) {
  int64_t count = static_cast<int64_t>(places.size());
  return n.build.take(x, n.build.constant(i64_tensor({count}, places)), static_cast<int64_t>(i) + 1);
}

// Two neighbours of each element in one dim.
struct Neighbours {
  std::vector<int64_t> lower, upper;
  std::vector<float> fraction;  // the weight of the upper one
};

Neighbours neighbours(const Resize& r, size_t i) {
  Neighbours result;
  for (int64_t o = 0; o < r.to[i]; ++o) {
    float at = r.half_pixels ? (static_cast<float>(o) + 0.5f) * r.scale(i) - 0.5f
                             : static_cast<float>(o) * r.scale(i);
    int64_t whole = static_cast<int64_t>(std::floor(at));
    result.lower.push_back(std::max<int64_t>(whole, 0));
    result.upper.push_back(std::min(whole + 1, r.from[i] - 1));
    result.fraction.push_back(at - static_cast<float>(result.lower.back()));
  }
  return result;
}

// Neighbours with integer weights, which sum up to `one`.
struct IntegerNeighbours {
  std::vector<int64_t> lower, upper, lower_weight, upper_weight;
  int64_t one = 1;
};

// `at`: the place of each element, in units of 1 / one.
IntegerNeighbours integer_neighbours(int64_t from, int64_t one, const std::vector<int64_t>& at) {
  IntegerNeighbours result;
  result.one = one;
  for (int64_t place : at) {
    int64_t lower = std::max<int64_t>(place < 0 ? 0 : place / one, 0);
    result.lower.push_back(lower);
    result.upper.push_back(std::clamp<int64_t>(place < 0 ? 0 : (place + one - 1) / one, 0, from - 1));
    result.upper_weight.push_back(place - one * lower);
    result.lower_weight.push_back(one - result.upper_weight.back());
  }
  return result;
}

// int8 and int16: places in units of 2^-10, as scales of that precision give them.
IntegerNeighbours short_neighbours(const Resize& r, size_t i) {
  constexpr int64_t kOne = 1 << 10;
  int64_t from = r.from[i], to = r.to[i];
  int64_t scale = (kOne * from + to / 2) / to;
  if (r.align_corners && to > 1) scale = (kOne * (from - 1) + (to - 1) / 2) / (to - 1);
  std::vector<int64_t> at;
  for (int64_t o = 0; o < to; ++o) at.push_back(r.half_pixels ? o * scale + scale / 2 - kOne / 2 : o * scale);
  return integer_neighbours(from, kOne, at);
}

// uint8: places as fractions, which are exact.
IntegerNeighbours exact_neighbours(const Resize& r, size_t i) {
  int64_t from = r.from[i], to = r.to[i];
  bool corners = r.align_corners && to > 1;
  int64_t one = corners ? to - 1 : r.half_pixels ? 2 * to : to;
  std::vector<int64_t> at;
  for (int64_t o = 0; o < to; ++o)
    at.push_back(corners ? o * (from - 1) : r.half_pixels ? (2 * o + 1) * from - to : o * from);
  return integer_neighbours(from, one, at);
}

ValueId integer_weights(NodeImport& n, const Resize& r, size_t i, const std::vector<int64_t>& weights) {
  Shape column{r.to[i], 1};
  if (i == 0) column.push_back(1);
  return n.build.reshape(n.build.constant(i64_tensor({r.to[i]}, weights)), column);
}

// Sums of four weighted elements, with one rounding half away from zero.
ValueId interpolate_integers(NodeImport& n, const Resize& r) {
  bool exact = n.dtype(n.in(0)) == DType::kU8;
  ValueId x = n.build.cast(n.in(0), DType::kI64);
  int64_t one = 1;
  for (size_t i = 0; i < 2; ++i) {
    IntegerNeighbours at = exact ? exact_neighbours(r, i) : short_neighbours(r, i);
    ValueId lower =
        n.binary(BinaryOp::k_mul, take_places(n, x, at.lower, i), integer_weights(n, r, i, at.lower_weight));
    ValueId upper =
        n.binary(BinaryOp::k_mul, take_places(n, x, at.upper, i), integer_weights(n, r, i, at.upper_weight));
    x = n.binary(BinaryOp::k_add, lower, upper);
    one *= at.one;
  }
  return n.build.cast(divide_rounding(n, x, n.scalar(DType::kI64, static_cast<double>(one))), n.out_dtype(0));
}

ValueId interpolate_reals(NodeImport& n, const Resize& r) {
  ValueId x = n.build.cast(n.in(0), DType::kF32);
  for (size_t i = 0; i < 2; ++i) {
    Neighbours at = neighbours(r, i);
    Shape column{r.to[i], 1};
    if (i == 0) column.push_back(1);
    ValueId lower = take_places(n, x, at.lower, i), upper = take_places(n, x, at.upper, i);
    ValueId weight = n.build.reshape(n.build.constant(f32_tensor({r.to[i]}, at.fraction)), column);
    x = n.binary(BinaryOp::k_add, lower,
                 n.binary(BinaryOp::k_mul, n.binary(BinaryOp::k_sub, upper, lower), weight));
  }
  return n.build.cast(x, n.out_dtype(0));
}

}  // namespace

Status import_resize_bilinear(NodeImport& n) {
  const auto& options = n.options<tflite::ResizeBilinearOptions>();
  QUERNEL_TRY(Resize r, read_resize(n, options.align_corners(), options.half_pixel_centers()));
  if (n.is_float(0)) return n.output(interpolate_reals(n, r));
  if (!n.is_quantized(0)) return n.no_kernel();
  return n.output(interpolate_integers(n, r));
}

Status import_resize_nearest_neighbor(NodeImport& n) {
  const auto& options = n.options<tflite::ResizeNearestNeighborOptions>();
  QUERNEL_TRY(Resize r, read_resize(n, options.align_corners(), options.half_pixel_centers()));
  ValueId x = n.in(0);
  for (size_t i = 0; i < 2; ++i) {
    std::vector<int64_t> places;
    for (int64_t o = 0; o < r.to[i]; ++o) {
      float at = (static_cast<float>(o) + (r.half_pixels ? 0.5f : 0.0f)) * r.scale(i);
      int64_t place = static_cast<int64_t>(r.align_corners ? std::round(at) : std::floor(at));
      places.push_back(std::clamp<int64_t>(place, 0, r.from[i] - 1));
    }
    x = take_places(n, x, places, i);
  }
  return n.output(x);
}

}  // namespace quernel::tflite_import
