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
      dtype_(dtype),
      lanes_(plan.lanes) {
  // Vectors are stored aligned where lines begin to hold elements of the image: in the first one, and from
  // one line to the next.
  int64_t first = line_columns(0, columns_.begin);
  int64_t shift = columns_.step > 1 ? first - line_columns(1, columns_.begin) : 0;
  int64_t tiles = schedule::column_tile_count(plan).value();
  int64_t seen = tiles * plan.tile_n() + (window_of(columns_) - 1) * columns_.window_step / columns_.step;
  lead_ = -first & (lanes_ - 1);
  line_ = whole_vectors(std::max(seen, line_columns(0, columns_.end))) + (shift & (lanes_ - 1));
  row_ = whole_vectors(lead_ + line_ * columns_.step);
  for (int axis : plan.staged->planes) planes_ *= plan.axes[axis].extent.value();
}

int64_t StagedImage::window_of(const schedule::Slide& slide) const {
  return slide.window < 0 ? 1 : plan_.axes[slide.window].extent.value();
}

// Rows of the image that so many rows of the output see.
int64_t StagedImage::image_rows(int64_t rows) const {
  return (rows - 1) * rows_.step + (window_of(rows_) - 1) * rows_.window_step + 1;
}

// Columns of line c before `column`.
int64_t StagedImage::line_columns(int64_t c, int64_t column) const {
  return std::max<int64_t>((column - c + columns_.step - 1) / columns_.step, 0);
}

int64_t StagedImage::bytes(int64_t rows) const {
  return planes_ * image_rows(rows) * row_ * element_size(dtype_);
}

Stmt StagedImage::allocate(int64_t rows) {
  lines_ = image_rows(rows);
  buffer_ = local_buffer("image", dtype_, planes_ * lines_ * row_, loop::Scope::kShared);
  return zeros(index(0), planes_ * lines_ * row_);
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
  Stmt stmt = copy_plane(image, from, first, number * index(lines_ * row_));
  for (size_t i = planes.size(); i-- > 0;)
    stmt = loop::for_loop(planes[i], index(plan_.axes[plan_.staged->planes[i]].extent.value()),
                          AxisKind::kSerial, stmt);
  return stmt;
}

Stmt StagedImage::copy_plane(const loop::Buffer& image, const Expr& origin, const Expr& first,
                             const Expr& plane) const {
  loop::Var r = index_var("r");
  Expr row = first * index(rows_.step) + loop::var_ref(r);
  Expr from = origin + row * index(rows_.stride), to = plane + loop::var_ref(r) * index(row_);
  std::vector<Stmt> copies;
  for (int64_t c = 0; c < columns_.step; ++c) {
    Expr line = to + index(lead_ + c * line_);
    int64_t begin = line_columns(c, columns_.begin), end = line_columns(c, columns_.end), count = end - begin;
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
                        loop::if_then(exists, loop::block(std::move(copies)), zeros(to, row_)));
}

Expr StagedImage::row_offset(const Expr& row) const { return row * index(rows_.step * row_) + index(lead_); }

Expr StagedImage::window_offset(int axis, const Expr& position) const {
  if (axis == rows_.window) return position * index(rows_.window_step * row_);
  const std::vector<int>& planes = plan_.staged->planes;
  if (auto plane = std::find(planes.begin(), planes.end(), axis); plane != planes.end()) {
    int64_t size = lines_ * row_;
    while (++plane != planes.end()) size *= plan_.axes[*plane].extent.value();
    return position * index(size);
  }
  Expr column = position * index(columns_.window_step);
  if (columns_.step == 1) return column;
  return loop::binary(BinaryOp::k_fmod, column, index(columns_.step)) * index(line_) +
         loop::binary(BinaryOp::k_idiv, column, index(columns_.step));
}

}  // namespace quernel::lower
