#include "lower/staged_image.h"

#include <algorithm>
#include <bit>

namespace quernel::lower {

using loop::AxisKind;
using loop::Expr;
using loop::Stmt;

StagedImage::StagedImage(const schedule::ContractionPlan& plan, DType dtype)
    : plan_(plan),
      rows_(plan.staged->rows),
      columns_(plan.staged->columns),
      layout_(schedule::image_layout(plan)),
      dtype_(dtype),
      lanes_(plan.lanes) {}

Stmt StagedImage::allocate(int64_t rows) {
  lines_ = schedule::image_rows(plan_, rows);
  buffer_ = local_buffer("image", dtype_, layout_.elements(lines_), loop::Scope::kShared);
  return zeros(index(0), layout_.elements(lines_));
}

// A loop over `count` pieces of `width` neighbours each.
Stmt StagedImage::pieces(int64_t count, int64_t width, const std::function<Stmt(Expr)>& body) const {
  constexpr int64_t kFew = 4;
  loop::Var i = index_var("i"), l = index_var("l");
  Stmt lanes = width == 1 ? body(loop::var_ref(i))
                          : loop::for_loop(l, index(width), AxisKind::kVector,
                                           body(loop::var_ref(i) * index(width) + loop::var_ref(l)));
  return loop::for_loop(i, index(count), count <= kFew ? AxisKind::kUnrolled : AxisKind::kSerial, lanes);
}

// `count`: a multiple of the lanes.
Stmt StagedImage::zeros(const Expr& first, int64_t count) const {
  Expr zero = is_float(dtype_) ? loop::const_float(dtype_, 0) : loop::const_int(dtype_, 0);
  return pieces(count / lanes_, lanes_, [&](const Expr& i) { return loop::store(buffer_, first + i, zero); });
}

Stmt StagedImage::copy(const loop::Buffer& image, const Expr& origin, const Expr& first) const {
  std::vector<loop::Var> planes;
  Expr from = origin, number = index(0);
  for (int axis : plan_.staged->planes) {
    const schedule::ContractionPlan::Axis& plane = plan_.axes[axis];
    planes.push_back(index_var("plane"));
    from = from + loop::var_ref(planes.back()) * index((plan_.elementwise ? plane.a : plane.b).value());
    number = number * index(plane.extent.value()) + loop::var_ref(planes.back());
  }
  Stmt stmt = copy_plane(image, from, first, number * index(lines_ * layout_.row));
  for (size_t i = planes.size(); i-- > 0;)
    stmt = loop::for_loop(planes[i], index(plan_.axes[plan_.staged->planes[i]].extent.value()),
                          AxisKind::kSerial, stmt);
  return stmt;
}

Stmt StagedImage::copy_plane(const loop::Buffer& image, const Expr& origin, const Expr& first,
                             const Expr& plane) const {
  loop::Var r = index_var("r");
  Expr row = first * index(rows_.step) + loop::var_ref(r);
  Expr from = origin + row * index(rows_.stride), to = plane + loop::var_ref(r) * index(layout_.row);
  std::vector<Stmt> copies;
  for (int64_t c = 0; c < columns_.step; ++c) {
    Expr line = to + index(layout_.lead + c * layout_.line);
    int64_t begin = schedule::line_columns(columns_, c, columns_.begin),
            end = schedule::line_columns(columns_, c, columns_.end), count = end - begin;
    if (count <= 0) continue;
    auto width = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(count)));
    width = std::min<int64_t>(lanes_, width);
    auto copy_from = [&](int64_t start, int64_t vectors) {
      copies.push_back(pieces(vectors, width, [&](const Expr& i) {
        Expr position = index(start) + i;
        Expr column = position * index(columns_.step) + index(c);
        return loop::store(buffer_, line + position,
                           loop::load(image, from + column * index(columns_.stride)));
      }));
    };
    copy_from(begin, count / width);
    if (count % width != 0) copy_from(end - width, 1);  // what overlaps is the same
  }
  Expr exists = loop::binary(BinaryOp::k_and, loop::binary(BinaryOp::k_le, index(rows_.begin), row),
                             loop::binary(BinaryOp::k_lt, row, index(rows_.end)));
  return loop::for_loop(r, index(lines_), AxisKind::kSerial,
                        loop::if_then(exists, loop::block(std::move(copies)), zeros(to, layout_.row)));
}

Expr StagedImage::row_offset(const Expr& row) const {
  return row * index(rows_.step * layout_.row) + index(layout_.lead);
}

Expr StagedImage::window_offset(int axis, const Expr& position) const {
  if (axis == rows_.window) return position * index(rows_.window_step * layout_.row);
  const std::vector<int>& planes = plan_.staged->planes;
  if (auto plane = std::find(planes.begin(), planes.end(), axis); plane != planes.end()) {
    int64_t size = lines_ * layout_.row;
    while (++plane != planes.end()) size *= plan_.axes[*plane].extent.value();
    return position * index(size);
  }
  Expr column = position * index(columns_.window_step);
  if (columns_.step == 1) return column;
  return loop::binary(BinaryOp::k_fmod, column, index(columns_.step)) * index(layout_.line) +
         loop::binary(BinaryOp::k_idiv, column, index(columns_.step));
}

}  // namespace quernel::lower
