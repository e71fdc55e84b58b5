// The transforms of Winograd's algorithm (support/winograd_matrices.h names the source) for 3x3 windows on
// images, channels last:
//   winograd_input [tile]       [batch, tile * rows + 2, tile * columns + 2, channels]
//                               -> [(tile + 2)^2, batch, rows, columns, channels]
//   winograd_output [tile y x]  [(tile + 2)^2, batch, ceil(y / tile), ceil(x / tile), channels]
//                               -> [batch, y, x, channels]
#include "ops/families.h"

namespace quernel::ops {

Expected<TensorType> infer_winograd(OpKind op, const Types& inputs, const Attributes& a) {
  const TensorType& x = inputs[0];
  bool input = op == OpKind::k_winograd_input;
  if (a.ints.size() != (input ? 1u : 3u) || (a.ints[0] != 2 && a.ints[0] != 4))
    return invalid_input(input ? "expected the side of tiles, 2 or 4"
                               : "expected the side of tiles, 2 or 4, rows and columns");
  int64_t tile = a.ints[0], points = (tile + 2) * (tile + 2);
  if (x.dtype != DType::kF32) return unsupported("expected f32, found " + to_string(x));
  if (input) {
    if (x.shape.size() != 4) return invalid_input("expected an image of four dims, found " + to_string(x));
    Shape shape{points, x.shape[0], 0, 0, x.shape[3]};
    for (size_t d : {1, 2}) {
      const Dim& n = x.shape[d];
      if (!n.is_const() || n.value() <= 2 || (n.value() - 2) % tile != 0)
        return invalid_input("expected rows and columns of whole tiles of " + std::to_string(tile) +
                             " and two more, found " + to_string(x));
      shape[d + 1] = (n.value() - 2) / tile;
    }
    return TensorType{x.dtype, shape};
  }
  int64_t y = a.ints[1], width = a.ints[2];
  if (y < 1 || width < 1) return invalid_input("expected at least one row and column");
  auto tiles = [&](int64_t n) { return Dim((n + tile - 1) / tile); };
  if (x.shape.size() != 5 || !(x.shape[0] == Dim(points)) || !(x.shape[2] == tiles(y)) ||
      !(x.shape[3] == tiles(width)))
    return invalid_input("expected " + std::to_string(points) + " points of " + to_string(tiles(y)) + " by " +
                         to_string(tiles(width)) + " tiles, found " + to_string(x));
  return TensorType{x.dtype, {x.shape[1], y, width, x.shape[4]}};
}

}  // namespace quernel::ops
