// The transforms of Winograd's algorithm as kernels of their own: each element of the iteration space, a tile
// and a channel, reads one square of values and stores another.
#include "lower/loop_nest.h"
#include "lower/winograd_transforms.h"

namespace quernel::lower {
namespace {

using loop::Expr;
using loop::Stmt;

class WinogradTransformLowering {
 public:
  explicit WinogradTransformLowering(Context& context)
      : c_(context),
        g_(context.graph()),
        node_(g_.nodes[context.group.anchor]),
        is_input_(node_.op == OpKind::k_winograd_input),
        tile_(node_.attributes.ints[0]) {}

  void run() {
    const Shape& points = g_.shape(is_input_ ? node_.output : node_.inputs[0]);
    tiles_ = {points.begin() + 1, points.end()};
    Shape outer(tiles_.begin(), tiles_.end() - 1);
    const Dim& channels = tiles_.back();
    c_.kernel.body = outer_loops(c_, outer, std::max<int64_t>(channels.estimate(), 1),
                                 c_.group.work.group_work, [&](const std::vector<Expr>& at) {
                                   return vector_loop("c", c_.symbols(channels), c_.target.lanes(4),
                                                      c_.target, [&](Expr channel) {
                                                        std::vector<Expr> place = at;
                                                        place.push_back(std::move(channel));
                                                        return square_at(place);
                                                      });
                                 });
  }

 private:
  Evaluator evaluator_at(const std::vector<Expr>& place, const Shape& extents) {
    Evaluator e = c_.evaluator();
    for (size_t i = 0; i < place.size(); ++i) e.axes.push_back({place[i], extents[i]});
    return e;
  }
  // The index of the point of row i and column j of a square, at the tile and channel that the axes are.
  std::vector<IndexExpr> point(int64_t i, int64_t j) const {
    return {i * (tile_ + 2) + j, IndexExpr::axis(0), IndexExpr::axis(1), IndexExpr::axis(2),
            IndexExpr::axis(3)};
  }

  Stmt square_at(const std::vector<Expr>& place) {
    Evaluator e = evaluator_at(place, tiles_);
    int64_t side = tile_ + 2;
    Square square(static_cast<size_t>(side));
    for (int64_t i = 0; i < side; ++i)
      for (int64_t j = 0; j < side; ++j) {
        std::vector<IndexExpr> at =
            is_input_ ? std::vector<IndexExpr>{IndexExpr::axis(0), IndexExpr::axis(1) * Dim(tile_) + i,
                                               IndexExpr::axis(2) * Dim(tile_) + j, IndexExpr::axis(3)}
                      : point(i, j);
        square[i].push_back(e.evaluate(node_.inputs[0], at));
      }
    Straight s;
    s.statements = std::move(e.statements);
    if (!is_input_) {
      square = transform_output(s, square);
      for (int64_t i = 0; i < tile_; ++i)
        for (int64_t j = 0; j < tile_; ++j) s.statements.push_back(store_pixel(place, i, j, square[i][j]));
      return loop::block(std::move(s.statements));
    }
    square = transform_input(s, square);
    for (int64_t i = 0; i < side; ++i)
      for (int64_t j = 0; j < side; ++j) {
        Evaluator result = evaluator_at(place, tiles_);
        result.axes.insert(result.axes.begin(), {index(i * side + j), side * side});
        s.statements.push_back(store_outputs(result, square[i][j]));
      }
    return loop::block(std::move(s.statements));
  }

  // The group's outputs at the point that the axes of `e` are.
  Stmt store_outputs(Evaluator& e, const Expr& value) {
    std::vector<IndexExpr> at;
    for (size_t i = 0; i < e.axes.size(); ++i) at.push_back(IndexExpr::axis(static_cast<int>(i)));
    e.provide(node_.output, value);
    std::vector<Expr> values;
    for (ValueId v : c_.group.outputs) values.push_back(e.evaluate(v, at));
    for (size_t i = 0; i < values.size(); ++i) e.store(c_.group.outputs[i], at, values[i]);
    return loop::block(std::move(e.statements));
  }

  Stmt store_pixel(const std::vector<Expr>& place, int64_t i, int64_t j, const Expr& value) {
    const Shape& image = g_.shape(node_.output);
    Expr y = place[1] * index(tile_) + index(i), x = place[2] * index(tile_) + index(j);
    Evaluator e = evaluator_at({place[0], y, x, place[3]}, image);
    Stmt stmt = store_outputs(e, value);
    auto within = [&](const Expr& position, const Dim& tiles, const Dim& extent) {
      if (tiles * tile_ == extent) return;
      stmt = loop::if_then(loop::binary(BinaryOp::k_lt, position, c_.symbols(extent)), stmt);
    };
    within(x, tiles_[2], image[2]);
    within(y, tiles_[1], image[1]);
    return stmt;
  }

  Context& c_;
  const Graph& g_;
  const Node& node_;
  bool is_input_;
  int64_t tile_;
  Shape tiles_;  // [batch, rows, columns, channels]
};

}  // namespace

void lower_winograd_transform(Context& context) { WinogradTransformLowering(context).run(); }

}  // namespace quernel::lower
