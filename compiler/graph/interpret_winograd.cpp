// The transforms of Winograd's algorithm, each a product of matrices in f64 on both sides of a tile.
#include "graph/interpret_parts.h"
#include "support/winograd_matrices.h"

namespace quernel::interpreter {
namespace {

// m d m^T for a square of values.
winograd::Matrix both_ways(const winograd::Matrix& m, const winograd::Matrix& square) {
  winograd::Matrix result(m.size(), std::vector<double>(m.size(), 0));
  for (size_t i = 0; i < m.size(); ++i)
    for (size_t j = 0; j < m.size(); ++j)
      for (size_t k = 0; k < square.size(); ++k)
        for (size_t l = 0; l < square.size(); ++l) result[i][j] += m[i][k] * square[k][l] * m[j][l];
  return result;
}

}  // namespace

Expected<Tensor> run_winograd(const Node& node, const Operands& operands, const ResultType& type) {
  const Tensor& x = *operands[0];
  bool input = node.op == OpKind::k_winograd_input;
  int64_t tile = node.attributes.ints[0], side = tile + 2;
  // The image and the values of its points; the other one is computed.
  const std::vector<int64_t>&image = input ? x.dims : type.dims, &points = input ? type.dims : x.dims;
  const winograd::Matrix& m = input ? winograd::input_transform(static_cast<int>(tile))
                                    : winograd::output_transform(static_cast<int>(tile));
  std::vector<double> values(static_cast<size_t>(x.count())), results(static_cast<size_t>(type.count()));
  load(x, 0, x.count(), values.data());
  auto pixel = [&](int64_t b, int64_t y, int64_t x_, int64_t c) {
    return static_cast<size_t>(((b * image[1] + y) * image[2] + x_) * image[3] + c);
  };
  auto point = [&](int64_t p, int64_t b, int64_t ty, int64_t tx, int64_t c) {
    return static_cast<size_t>((((p * points[1] + b) * points[2] + ty) * points[3] + tx) * points[4] + c);
  };
  winograd::Matrix square(static_cast<size_t>(side), std::vector<double>(static_cast<size_t>(side)));
  for (int64_t b = 0; b < points[1]; ++b)
    for (int64_t ty = 0; ty < points[2]; ++ty)
      for (int64_t tx = 0; tx < points[3]; ++tx)
        for (int64_t c = 0; c < points[4]; ++c) {
          for (int64_t i = 0; i < side; ++i)
            for (int64_t j = 0; j < side; ++j)
              square[i][j] = values[input ? pixel(b, ty * tile + i, tx * tile + j, c)
                                          : point(i * side + j, b, ty, tx, c)];
          winograd::Matrix result = both_ways(m, square);
          for (int64_t i = 0; i < static_cast<int64_t>(result.size()); ++i)
            for (int64_t j = 0; j < static_cast<int64_t>(result.size()); ++j) {
              if (input)
                results[point(i * side + j, b, ty, tx, c)] = result[i][j];
              else if (ty * tile + i < image[1] && tx * tile + j < image[2])
                results[pixel(b, ty * tile + i, tx * tile + j, c)] = result[i][j];
            }
        }
  std::vector<uint8_t> bytes(static_cast<size_t>(byte_size(type.dtype, type.count())));
  store(type.dtype, bytes.data(), 0, type.count(), results.data());
  return Tensor{type.dtype, type.dims, Bytes::own(std::move(bytes))};
}

}  // namespace quernel::interpreter
