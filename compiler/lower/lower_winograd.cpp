// Convolutions by Winograd's algorithm (support/winograd_matrices.h names the source), in three steps per
// workgroup: a block of tiles is transformed into scratch; panel by panel of output channels, each point's
// products are summed over the channels in register tiles; the sums are transformed back and go through the
// epilogue. Positions outside the operand read as zero, so padding needs no copy.
#include "lower/loop_nest.h"
#include "lower/winograd_transforms.h"

namespace quernel::lower {
namespace {

using loop::AxisKind;
using loop::Expr;
using loop::Stmt;
using schedule::WinogradPlan;

class WinogradLowering {
 public:
  explicit WinogradLowering(Context& context)
      : c_(context),
        g_(context.graph()),
        node_(g_.nodes[context.group.anchor]),
        plan_(context.group.winograd),
        side_(plan_.tile + 2) {}

  void run() {
    input_ = c_.buffers.reads.at(schedule::resolve_operand(g_, node_, 0).base);
    transformed_ = local_buffer("inputs", DType::kF32, plan_.points() * plan_.block * plan_.channels,
                                loop::Scope::kShared);
    sums_ = local_buffer("sums", DType::kF32, plan_.points() * plan_.block * plan_.panel_n(),
                         loop::Scope::kShared);
    tiles_ = plan_.tiles_y * plan_.tiles_x;
    int64_t shares = (plan_.panels() + plan_.panels_per_group - 1) / plan_.panels_per_group;
    Shape grid{batch_extent(), plan_.groups, shares, (tiles_ + plan_.block - 1) / plan_.block};
    c_.kernel.body = outer_loops(c_, grid, 1, 1, [&](const std::vector<Expr>& at) { return group(at); });
  }

 private:
  Dim batch_extent() const { return plan_.form.batch < 0 ? Dim(1) : axis_extent(plan_.form.batch); }
  const Dim& axis_extent(int axis) const { return node_.attributes.contraction.axes[axis].extent; }

  static Stmt loop_over(const char* name, const Expr& extent, AxisKind kind,
                        const std::function<Stmt(Expr)>& body) {
    int64_t n = 0;
    if (loop::as_const_int(extent, &n) && n == 1) return body(index(0));
    loop::Var var = index_var(name);
    return loop::for_loop(var, extent, kind, body(loop::var_ref(var)));
  }

  Stmt group(const std::vector<Expr>& at) {
    batch_ = at[0], group_ = at[1];
    Expr first_panel = at[2] * index(plan_.panels_per_group), first_tile = at[3] * index(plan_.block);
    Expr panels = index(plan_.panels_per_group);
    if (plan_.panels() % plan_.panels_per_group != 0)
      panels = loop::binary(BinaryOp::k_min, panels, index(plan_.panels()) - first_panel);
    std::vector<Stmt> body{loop::alloc(transformed_), loop::alloc(sums_)};
    body.push_back(loop_over("t", index(plan_.block), AxisKind::kSerial,
                             [&](Expr t) { return transform_tile(first_tile + t, t); }));
    body.push_back(loop_over("panel", panels, AxisKind::kSerial, [&](Expr p) {
      Expr panel = first_panel + p;
      Stmt finish = loop_over("t", index(plan_.block), AxisKind::kSerial,
                              [&](Expr t) { return finish_tile(first_tile + t, t, panel); });
      return loop::block({multiply(panel), finish});
    }));
    return loop::block(std::move(body));
  }

  struct Place {
    Expr y, x;  // of the tile, in tiles
  };
  Place place_of(Straight& s, Expr tile) const {
    return {s.name("ty", loop::binary(BinaryOp::k_idiv, tile, index(plan_.tiles_x))),
            s.name("tx", loop::binary(BinaryOp::k_fmod, tile, index(plan_.tiles_x)))};
  }

  // A line of positions of the operand: clamped to where it has elements, and whether they had to be.
  struct Line {
    std::vector<Expr> offsets, inside;  // inside: null where always
  };
  Line line_of(Straight& s, Expr tile, int64_t tiles, int64_t begin, int64_t end, const Dim& stride) {
    Line line;
    Expr first = s.name("first", tile * index(plan_.tile));
    for (int64_t i = 0; i < side_; ++i) {
      Expr position = first + index(i);
      bool above = i >= begin, below = (tiles - 1) * plan_.tile + i < end;
      Expr inside;
      if (!above) inside = loop::binary(BinaryOp::k_ge, position, index(begin));
      if (!below) {
        Expr in = loop::binary(BinaryOp::k_lt, position, index(end));
        inside = inside ? loop::binary(BinaryOp::k_and, inside, in) : in;
      }
      if (!above) position = loop::binary(BinaryOp::k_max, position, index(begin));
      if (!below) position = loop::binary(BinaryOp::k_min, position, index(end - 1));
      line.offsets.push_back(s.name("at", position * c_.symbols(stride)));
      line.inside.push_back(inside ? s.name("in", inside) : nullptr);
    }
    return line;
  }

  // Step 1. Tiles past the last one repeat it; nothing reads their sums.
  Stmt transform_tile(Expr tile, const Expr& t) {
    Straight outer;
    if (tiles_ % plan_.block != 0) tile = loop::binary(BinaryOp::k_min, tile, index(tiles_ - 1));
    Place place = place_of(outer, outer.name("tile", tile));
    const schedule::WinogradForm& form = plan_.form;
    Line rows = line_of(outer, place.y, plan_.tiles_y, form.y_begin, form.y_end, plan_.y_stride);
    Line columns = line_of(outer, place.x, plan_.tiles_x, form.x_begin, form.x_end, plan_.x_stride);
    Expr base = outer.name("base", c_.symbols(plan_.offset) + batch_ * c_.symbols(plan_.batch_stride) +
                                       group_ * c_.symbols(plan_.group_stride));
    Expr zero = loop::const_float(DType::kF32, 0);
    Stmt channels = vector_loop("c", index(plan_.channels), plan_.lanes, c_.target, [&](Expr channel) {
      Straight s;
      Square square(side_);
      for (int64_t i = 0; i < side_; ++i)
        for (int64_t j = 0; j < side_; ++j) {
          Expr value = loop::load(input_, base + rows.offsets[i] + columns.offsets[j] + channel);
          Expr inside = rows.inside[i];
          if (columns.inside[j])
            inside = inside ? loop::binary(BinaryOp::k_and, inside, columns.inside[j]) : columns.inside[j];
          square[i].push_back(s.name("d", inside ? loop::select(inside, value, zero) : value));
        }
      square = transform_input(s, square);
      for (int64_t i = 0; i < side_; ++i)
        for (int64_t j = 0; j < side_; ++j) {
          Expr line = index((i * side_ + j) * plan_.block) + t;
          s.statements.push_back(
              loop::store(transformed_, line * index(plan_.channels) + channel, square[i][j]));
        }
      return loop::block(std::move(s.statements));
    });
    outer.statements.push_back(channels);
    return loop::block(std::move(outer.statements));
  }

  // Step 2: sums[point][tile][n] = sum over c of inputs[point][tile][c] * weights[group][panel][point][c][n].
  Stmt multiply(const Expr& panel) {
    return loop_over("point", index(plan_.points()), AxisKind::kSerial, [&](Expr point) {
      return loop_over("rows", index(plan_.block / plan_.tile_m), AxisKind::kSerial,
                       [&](Expr rows) { return register_tile(panel, point, rows); });
    });
  }

  // Loops over the elements of a register tile that the loop passes turn into copies and vectors.
  Stmt for_rows(const std::function<Stmt(Expr)>& body) {
    return loop_over("m", index(plan_.tile_m), AxisKind::kUnrolled, body);
  }
  Stmt for_columns(const std::function<Stmt(Expr)>& body) {
    return loop_over("v", index(plan_.tile_v), AxisKind::kUnrolled, [&](Expr v) {
      loop::Var l = index_var("l");
      return loop::for_loop(l, index(plan_.lanes), AxisKind::kVector,
                            body(v * index(plan_.lanes) + loop::var_ref(l)));
    });
  }

  Stmt register_tile(const Expr& panel, const Expr& point, const Expr& rows) {
    int64_t n = plan_.panel_n();
    loop::Buffer acc = local_buffer("acc", DType::kF32, plan_.tile_m * n, loop::Scope::kRegister);
    loop::Buffer weights = local_buffer("columns", DType::kF32, n, loop::Scope::kRegister);
    Expr first_row = point * index(plan_.block) + rows * index(plan_.tile_m);
    Expr a_base = first_row * index(plan_.channels);
    Expr b_base = ((group_ * index(plan_.panels()) + panel) * index(plan_.points()) + point) *
                  index(plan_.channels * n);
    std::vector<Stmt> body{loop::alloc(acc)};
    body.push_back(for_rows([&](Expr m) {
      return for_columns(
          [&](Expr i) { return loop::store(acc, m * index(n) + i, loop::const_float(DType::kF32, 0)); });
    }));
    body.push_back(loop_over("k", index(plan_.channels), AxisKind::kReduction, [&](Expr k) {
      std::vector<Stmt> step{loop::alloc(weights)};
      step.push_back(for_columns([&](Expr i) {
        Expr element = loop::load(c_.buffers.packed[0], b_base + k * index(n) + i);
        return loop::store(weights, i, loop::cast(DType::kF32, element));
      }));
      step.push_back(for_rows([&](Expr m) {
        loop::Var a = fresh_var("a", {DType::kF32, 1});
        Stmt element = loop::let(a, loop::load(transformed_, a_base + m * index(plan_.channels) + k));
        return loop::block(
            {element, for_columns([&](Expr i) {
               Expr slot = m * index(n) + i;
               return loop::store(
                   acc, slot, loop::mul_acc(loop::var_ref(a), loop::load(weights, i), loop::load(acc, slot)));
             })});
      }));
      return loop::block(std::move(step));
    }));
    body.push_back(for_rows([&](Expr m) {
      return for_columns([&](Expr i) {
        return loop::store(sums_, (first_row + m) * index(n) + i, loop::load(acc, m * index(n) + i));
      });
    }));
    return loop::block(std::move(body));
  }

  // Step 3.
  Stmt finish_tile(const Expr& tile, const Expr& t, const Expr& panel) {
    Straight outer;
    Place place = place_of(outer, tile);
    Stmt columns = for_vectors([&](Expr n) {
      Straight s;
      Square square(side_);
      for (int64_t i = 0; i < side_; ++i)
        for (int64_t j = 0; j < side_; ++j) {
          Expr line = index((i * side_ + j) * plan_.block) + t;
          square[i].push_back(s.name("s", loop::load(sums_, line * index(plan_.panel_n()) + n)));
        }
      square = transform_output(s, square);
      Expr column = panel * index(plan_.panel_n()) + n;
      for (int64_t i = 0; i < plan_.tile; ++i)
        for (int64_t j = 0; j < plan_.tile; ++j) {
          Expr y = place.y * index(plan_.tile) + index(i), x = place.x * index(plan_.tile) + index(j);
          s.statements.push_back(store_point(y, x, column, square[i][j]));
        }
      return loop::block(std::move(s.statements));
    });
    outer.statements.push_back(columns);
    Stmt stmt = loop::block(std::move(outer.statements));
    if (tiles_ % plan_.block == 0) return stmt;
    return loop::if_then(loop::binary(BinaryOp::k_lt, tile, index(tiles_)), stmt);
  }
  Stmt for_vectors(const std::function<Stmt(Expr)>& body) {
    return loop_over("v", index(plan_.tile_v), AxisKind::kSerial, [&](Expr v) {
      loop::Var l = index_var("l");
      return loop::for_loop(l, index(plan_.lanes), AxisKind::kVector,
                            body(v * index(plan_.lanes) + loop::var_ref(l)));
    });
  }

  Stmt store_point(const Expr& y, const Expr& x, const Expr& column, const Expr& sum) {
    const Contraction& c = node_.attributes.contraction;
    const schedule::WinogradForm& form = plan_.form;
    Evaluator e = c_.evaluator();
    for (size_t i = 0; i < c.axes.size(); ++i) {
      int axis = static_cast<int>(i);
      Expr value = axis == form.batch     ? batch_
                   : axis == form.group   ? group_
                   : axis == form.y       ? y
                   : axis == form.x       ? x
                   : axis == form.columns ? column
                                          : index(0);
      e.axes.push_back({value, c.axes[i].extent});
    }
    e.provide(node_.output, sum);
    std::vector<Expr> values;
    for (ValueId v : c_.group.outputs) values.push_back(e.evaluate(v, c.out));
    for (size_t i = 0; i < values.size(); ++i) e.store(c_.group.outputs[i], c.out, values[i]);
    Stmt stmt = loop::block(std::move(e.statements));
    Expr inside;
    auto require = [&](const Expr& position, int64_t covered, int axis) {
      int64_t extent = axis_extent(axis).value();
      if (covered == extent) return;
      Expr in = loop::binary(BinaryOp::k_lt, position, index(extent));
      inside = inside ? loop::binary(BinaryOp::k_and, inside, in) : in;
    };
    require(y, plan_.tiles_y * plan_.tile, form.y);
    require(x, plan_.tiles_x * plan_.tile, form.x);
    require(column, plan_.panels() * plan_.panel_n(), form.columns);
    return inside ? loop::if_then(inside, stmt) : stmt;
  }

  Context& c_;
  const Graph& g_;
  const Node& node_;
  const WinogradPlan& plan_;
  int64_t side_ = 4, tiles_ = 1;
  Expr batch_, group_;  // of the present workgroup
  loop::Buffer input_, transformed_, sums_;
};

}  // namespace

void lower_winograd(Context& context) { WinogradLowering(context).run(); }

}  // namespace quernel::lower
