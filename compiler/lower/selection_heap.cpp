#include "lower/selection_heap.h"

#include <bit>

namespace quernel::lower {
namespace {

using loop::Expr;
using loop::Stmt;

Expr smaller(Expr a, Expr b) { return binary(BinaryOp::k_min, std::move(a), std::move(b)); }
Expr i32(int64_t value) { return loop::const_int(DType::kI32, value); }

constexpr int64_t kKeyPlace = 32;

// Levels of the tree below its root.
int64_t depth_of(int64_t capacity) { return std::bit_width(static_cast<uint64_t>(capacity)) - 1; }

// Bits of floats are in order as integers where the sign is clear, and in the opposite order where it is set.
Expr float_key(const Expr& x) {
  Expr bits = loop::bitcast({DType::kI32, 1}, x);
  Expr is_zero = binary(BinaryOp::k_eq, x, loop::const_float(DType::kF32, 0));
  bits = loop::select(is_zero, i32(0), bits);
  Expr is_negative = binary(BinaryOp::k_lt, bits, i32(0));
  Expr ordered = loop::select(is_negative, binary(BinaryOp::k_xor, bits, i32(INT32_MAX)), bits);
  return loop::select(loop::unary(UnaryOp::k_is_nan, x), i32(INT32_MAX), ordered);
}

}  // namespace

Expr sort_key(const Expr& x, bool descending) {
  DType dtype = x->type.dtype;
  Expr key;
  if (is_float(dtype))
    key = float_key(loop::cast(DType::kF32, x));
  else if (dtype == DType::kU32)
    key = binary(BinaryOp::k_xor, loop::bitcast({DType::kI32, 1}, x), i32(INT32_MIN));
  else
    key = loop::cast(DType::kI32, x);
  return descending ? loop::unary(UnaryOp::k_bit_not, key) : key;
}

SelectionHeap::SelectionHeap(loop::Buffer buffer, Expr begin, int64_t capacity, bool unrolled)
    : buffer_(std::move(buffer)), begin_(std::move(begin)), capacity_(capacity), unrolled_(unrolled) {}

Expr SelectionHeap::element(const Expr& key, const Expr& position) {
  Expr high = binary(BinaryOp::k_shl, loop::cast(DType::kI64, key), index(kKeyPlace));
  return binary(BinaryOp::k_or, high, position);
}

Expr SelectionHeap::position(const Expr& element) {
  return binary(BinaryOp::k_and, element, index(UINT32_MAX));
}

Expr SelectionHeap::last_key() const {
  return loop::cast(DType::kI32, binary(BinaryOp::k_shr, at(index(0)), index(kKeyPlace)));
}

Expr SelectionHeap::at(const Expr& place) const { return loop::load(buffer_, begin_ + place); }

Stmt SelectionHeap::put(const Expr& place, const Expr& element) const {
  return loop::store(buffer_, begin_ + place, element);
}

// Down the greater children to the last level, whatever the element is, so that a step waits for nothing but
// the children. On that path those above the element go up a place: what a place gets is its child where that
// is above the element, else the element where what was here is, else what was here.
Stmt SelectionHeap::sift(const Expr& place, const Expr& levels, const Expr& element, bool unrolled) const {
  loop::Buffer hole = local_buffer("hole", DType::kI64, 1, loop::Scope::kRegister),
               here = local_buffer("here", DType::kI64, 1, loop::Scope::kRegister);
  auto stays = [&](const Expr& before) { return smaller(before, element); };
  std::vector<Stmt> body{loop::alloc(hole), loop::store(hole, index(0), place), loop::alloc(here),
                         loop::store(here, index(0), index(INT64_MAX))};
  loop::Var level = index_var("level");
  auto go_down = [&] {
    std::vector<Stmt> step;
    Expr parent = named(step, "parent", loop::load(hole, index(0)));
    Expr child = named(step, "child", parent * index(2) + index(1));
    Expr left = named(step, "left", at(child)), right = named(step, "right", at(child + index(1)));
    Expr is_right = loop::cast(DType::kI64, binary(BinaryOp::k_gt, right, left));
    step.push_back(loop::store(hole, index(0), child + is_right));
    Expr greater = named(step, "greater", binary(BinaryOp::k_max, left, right));
    step.push_back(put(parent, binary(BinaryOp::k_max, greater, stays(loop::load(here, index(0))))));
    step.push_back(loop::store(here, index(0), greater));
    return loop::block(std::move(step));
  };
  body.push_back(loop::for_loop(level, levels, unrolled ? loop::AxisKind::kUnrolled : loop::AxisKind::kSerial,
                                go_down()));
  body.push_back(put(loop::load(hole, index(0)), stays(loop::load(here, index(0)))));
  return loop::block(std::move(body));
}

Stmt SelectionHeap::make() const {
  int64_t slots = schedule::selection_slots(capacity_);
  int64_t depth = depth_of(capacity_);
  Stmt fill = serial_loop("f", index(slots - capacity_),
                          [&](const Expr& f) { return put(index(capacity_) + f, index(INT64_MIN)); });
  // Level by level, the last one but one first.
  Stmt order = serial_loop("above", index(depth), [&](const Expr& above) {
    std::vector<Stmt> level;
    Expr nodes = named(level, "nodes", binary(BinaryOp::k_shl, index(1), index(depth - 1) - above));
    level.push_back(serial_loop("h", nodes, [&](const Expr& h) {
      std::vector<Stmt> body;
      Expr place = named(body, "place", nodes - index(1) + h);
      Expr element = named(body, "element", at(place));
      body.push_back(sift(place, above + index(1), element));
      return loop::block(std::move(body));
    }));
    return loop::block(std::move(level));
  });
  return loop::block({std::move(fill), std::move(order)});
}

Stmt SelectionHeap::replace_last(const Expr& element) const {
  return sift(index(0), index(depth_of(capacity_)), element, unrolled_);
}

Stmt SelectionHeap::take(const std::function<Stmt(Expr, Expr)>& taken) const {
  return serial_loop("e", index(capacity_), [&](const Expr& e) {
    std::vector<Stmt> body;
    Expr end = named(body, "end", index(capacity_ - 1) - e);
    body.push_back(taken(end, at(index(0))));
    Expr element = named(body, "element", at(end));
    body.push_back(put(end, index(INT64_MIN)));
    body.push_back(replace_last(element));
    return loop::block(std::move(body));
  });
}

}  // namespace quernel::lower
