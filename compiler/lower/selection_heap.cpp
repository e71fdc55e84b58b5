#include "lower/selection_heap.h"

#include <bit>

#include "schedule/selection.h"

namespace quernel::lower {
namespace {

using loop::Expr;
using loop::Stmt;

constexpr int64_t kKeyPlace = 32;

Expr highest(DType key) { return loop::const_int(key, key == DType::kI64 ? INT64_MAX : INT32_MAX); }
Expr lowest(DType key) { return loop::const_int(key, key == DType::kI64 ? INT64_MIN : INT32_MIN); }

// Levels of the tree below its root.
int64_t depth_of(int64_t capacity) { return std::bit_width(static_cast<uint64_t>(capacity)) - 1; }

// Bits of floats are in order as integers where the sign is clear, and in the opposite order where it is set.
Expr float_key(const Expr& x, DType key) {
  Expr bits = loop::bitcast({key, 1}, x), zero = loop::const_int(key, 0);
  Expr is_zero = binary(BinaryOp::k_eq, x, loop::const_float(x->type.dtype, 0));
  bits = loop::select(is_zero, zero, bits);
  Expr is_negative = binary(BinaryOp::k_lt, bits, zero);
  Expr ordered = loop::select(is_negative, binary(BinaryOp::k_xor, bits, highest(key)), bits);
  return loop::select(loop::unary(UnaryOp::k_is_nan, x), highest(key), ordered);
}

}  // namespace

Expr sort_key(const Expr& x, bool descending) {
  DType dtype = x->type.dtype, of_key = element_size(dtype) > 4 ? DType::kI64 : DType::kI32;
  Expr key;
  if (is_float(dtype))
    key = float_key(dtype == DType::kF64 ? x : loop::cast(DType::kF32, x), of_key);
  else if (dtype == DType::kU32 || dtype == DType::kU64)
    key = binary(BinaryOp::k_xor, loop::bitcast({of_key, 1}, x), lowest(of_key));
  else
    key = loop::cast(of_key, x);
  return descending ? loop::unary(UnaryOp::k_bit_not, key) : key;
}

using Element = SelectionHeap::Element;

SelectionHeap::SelectionHeap(loop::Buffer buffer, Expr begin, int64_t capacity, int words, bool unrolled)
    : buffer_(std::move(buffer)),
      begin_(std::move(begin)),
      capacity_(capacity),
      words_(words),
      unrolled_(unrolled) {}

Element SelectionHeap::element(const Expr& key, const Expr& position) const {
  Expr wide = loop::cast(DType::kI64, key);
  if (words_ == 2) return {wide, position};
  return {binary(BinaryOp::k_or, binary(BinaryOp::k_shl, wide, index(kKeyPlace)), position), nullptr};
}

Element SelectionHeap::same(int64_t word) const { return {index(word), words_ == 2 ? index(word) : nullptr}; }
Element SelectionHeap::last_of_all() const { return same(INT64_MAX); }

Expr SelectionHeap::position(const Element& element) const {
  return words_ == 2 ? element.position : binary(BinaryOp::k_and, element.key, index(UINT32_MAX));
}

Expr SelectionHeap::last_key(DType dtype) const {
  Expr key = at(index(0)).key;
  return loop::cast(dtype, words_ == 2 ? key : binary(BinaryOp::k_shr, key, index(kKeyPlace)));
}

Element SelectionHeap::at(const Expr& place) const {
  if (words_ == 1) return {loop::load(buffer_, begin_ + place), nullptr};
  Expr first = begin_ + place * index(2);
  return {loop::load(buffer_, first), loop::load(buffer_, first + index(1))};
}

Element SelectionHeap::named_at(std::vector<Stmt>& body, const char* name, const Expr& place) const {
  Element element = at(place);
  element.key = named(body, name, element.key);
  if (words_ == 2) element.position = named(body, "position", element.position);
  return element;
}

Stmt SelectionHeap::put(const Expr& place, const Element& element) const {
  if (words_ == 1) return loop::store(buffer_, begin_ + place, element.key);
  Expr first = begin_ + place * index(2);
  return loop::block(
      {loop::store(buffer_, first, element.key), loop::store(buffer_, first + index(1), element.position)});
}

Expr SelectionHeap::is_greater(const Element& a, const Element& b) const {
  Expr above = binary(BinaryOp::k_gt, a.key, b.key);
  if (words_ == 1) return above;
  Expr behind = binary(BinaryOp::k_and, binary(BinaryOp::k_eq, a.key, b.key),
                       binary(BinaryOp::k_gt, a.position, b.position));
  return binary(BinaryOp::k_or, above, behind);
}
Element SelectionHeap::greater(const Element& a, const Element& b) const {
  if (words_ == 1) return {binary(BinaryOp::k_max, a.key, b.key), nullptr};
  Expr is_a = is_greater(a, b);
  return {loop::select(is_a, a.key, b.key), loop::select(is_a, a.position, b.position)};
}
Element SelectionHeap::smaller(const Element& a, const Element& b) const {
  if (words_ == 1) return {binary(BinaryOp::k_min, a.key, b.key), nullptr};
  Expr is_b = is_greater(a, b);
  return {loop::select(is_b, b.key, a.key), loop::select(is_b, b.position, a.position)};
}

// Down the greater children to the last level, whatever the element is, so that a step waits for nothing but
// the children. On that path those above the element go up a place: what a place gets is its child where that
// is above the element, else the element where what was here is, else what was here.
Stmt SelectionHeap::sift(const Expr& place, const Expr& levels, const Element& element, bool unrolled) const {
  loop::Buffer hole = local_buffer("hole", DType::kI64, 1, loop::Scope::kRegister), here[2];
  std::vector<Stmt> body{loop::alloc(hole), loop::store(hole, index(0), place)};
  for (int w = 0; w < words_; ++w) {
    here[w] = local_buffer("here", DType::kI64, 1, loop::Scope::kRegister);
    body.insert(body.end(), {loop::alloc(here[w]), loop::store(here[w], index(0), index(INT64_MAX))});
  }
  auto stays = [&](std::vector<Stmt>& step) {
    Element before{loop::load(here[0], index(0)), words_ == 2 ? loop::load(here[1], index(0)) : nullptr};
    if (words_ == 2) before = {named(step, "key", before.key), named(step, "position", before.position)};
    return smaller(before, element);
  };
  loop::Var level = index_var("level");
  auto go_down = [&] {
    std::vector<Stmt> step;
    Expr parent = named(step, "parent", loop::load(hole, index(0)));
    Expr child = named(step, "child", parent * index(2) + index(1));
    Element left = named_at(step, "left", child), right = named_at(step, "right", child + index(1));
    Expr is_right = is_greater(right, left);
    if (words_ == 2) is_right = named(step, "is_right", is_right);
    step.push_back(loop::store(hole, index(0), child + loop::cast(DType::kI64, is_right)));
    Element above = words_ == 1 ? greater(left, right)
                                : Element{loop::select(is_right, right.key, left.key),
                                          loop::select(is_right, right.position, left.position)};
    above.key = named(step, "greater", above.key);
    if (words_ == 2) above.position = named(step, "position", above.position);
    step.push_back(put(parent, greater(above, stays(step))));
    step.push_back(loop::store(here[0], index(0), above.key));
    if (words_ == 2) step.push_back(loop::store(here[1], index(0), above.position));
    return loop::block(std::move(step));
  };
  body.push_back(loop::for_loop(level, levels, unrolled ? loop::AxisKind::kUnrolled : loop::AxisKind::kSerial,
                                go_down()));
  Element rest = stays(body);
  body.push_back(put(loop::load(hole, index(0)), rest));
  return loop::block(std::move(body));
}

Stmt SelectionHeap::make() const {
  int64_t slots = schedule::selection_slots(capacity_);
  int64_t depth = depth_of(capacity_);
  Stmt fill = serial_loop("f", index(slots - capacity_),
                          [&](const Expr& f) { return put(index(capacity_) + f, same(INT64_MIN)); });
  // Level by level, the last one but one first.
  Stmt order = serial_loop("above", index(depth), [&](const Expr& above) {
    std::vector<Stmt> level;
    Expr nodes = named(level, "nodes", binary(BinaryOp::k_shl, index(1), index(depth - 1) - above));
    level.push_back(serial_loop("h", nodes, [&](const Expr& h) {
      std::vector<Stmt> body;
      Expr place = named(body, "place", nodes - index(1) + h);
      Element element = named_at(body, "element", place);
      body.push_back(sift(place, above + index(1), element));
      return loop::block(std::move(body));
    }));
    return loop::block(std::move(level));
  });
  return loop::block({std::move(fill), std::move(order)});
}

Stmt SelectionHeap::replace_last(const Element& element) const {
  return sift(index(0), index(depth_of(capacity_)), element, unrolled_);
}

Stmt SelectionHeap::take(const std::function<Stmt(Expr, Element)>& taken) const {
  return serial_loop("e", index(capacity_), [&](const Expr& e) {
    std::vector<Stmt> body;
    Expr end = named(body, "end", index(capacity_ - 1) - e);
    body.push_back(taken(end, at(index(0))));
    Element element = named_at(body, "element", end);
    body.push_back(put(end, same(INT64_MIN)));
    body.push_back(replace_last(element));
    return loop::block(std::move(body));
  });
}

}  // namespace quernel::lower
