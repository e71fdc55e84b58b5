// Long lines of scans, ArgMax and sorts, in blocks: what the steps of one line do in order, one workgroup
// does alone. Blocks are lines of their own; a second, short line combines them.
#include <algorithm>
#include <cmath>

#include "graph/passes/passes.h"
#include "graph/rewrite.h"

namespace quernel {
namespace {

// A line of `size` elements along `axis`, as blocks: that dim becomes two.
struct Blocks {
  size_t axis = 0;
  Dim size = 1, count = 1, block = 1;
  bool padded_in_front = false;
  Dim padding() const { return count * block - size; }
  // Blocks of a line of so many elements.
  int64_t count_of(int64_t elements) const { return (elements - 1) / block.value() + 1; }
};

// Of known sizes a block that divides the line needs no padding.
int64_t block_of(const Dim& size, int64_t wanted) {
  if (!size.is_const()) return wanted;
  for (int64_t block = wanted; block > wanted / 2; --block)
    if (size.value() % block == 0) return block;
  return wanted;
}

Shape with_dim(Shape shape, size_t axis, const Dim& size) {
  shape[axis] = size;
  return shape;
}

class Splitter {
 public:
  Splitter(GraphBuilder& build, const LongLines& limits) : build_(build), limits_(limits) {}

  // Elements of a line, as far as they count here.
  int64_t elements(ValueId x, size_t axis) const {
    const Dim& size = build_.graph().shape(x)[axis];
    return limits_.by_bounds ? std::min(size.bounds().hi, LongLines::kLongest) : size.estimate();
  }
  // Whether a line of so many elements is split where one of more than `longest` is too long.
  bool is_long(ValueId x, size_t axis, int64_t elements, int64_t longest) const {
    return elements > longest &&
           (limits_.by_bounds || lines(build_.graph().shape(x), axis) < LongLines::kManyLines);
  }

  ValueId scan(ValueId x, OpKind op, const Attributes& a, int64_t elements) {
    size_t axis = static_cast<size_t>(a.ints[0]);
    if (!is_long(x, axis, elements, limits_.longest)) return build_.add(op, {x}, a);
    bool accumulates = op == OpKind::k_scan_sum || op == OpKind::k_scan_prod;
    DType dtype = build_.graph().dtype(x), wide = accumulates ? a.accumulator : dtype;
    Blocks blocks = make_blocks(x, axis, limits_.block, a.reverse);
    ValueId parts = in_blocks(build_.cast(x, wide), blocks, 0);
    // What stands before each block, combined.
    ValueId totals = reduce(op, parts, axis + 1, wide);
    Attributes of_totals = a;
    of_totals.exclusive = true;
    of_totals.accumulator = wide;
    ValueId before = scan(totals, op, of_totals, blocks.count_of(elements));
    Attributes inside = of_totals;
    inside.exclusive = a.exclusive;
    inside.ints = {static_cast<int64_t>(axis) + 1};
    ValueId own = build_.add(op, {parts}, std::move(inside));
    if (!build_.ok()) return kNoValue;
    Shape column = with_dim(build_.graph().shape(own), axis + 1, 1);
    ValueId whole = build_.binary(combination(op), own, build_.reshape(before, column));
    return build_.cast(in_line(whole, blocks), dtype);
  }

  // The position of the extreme element, of shape x with dim `axis` of 1.
  ValueId arg(ValueId x, const Node& like, size_t axis, int64_t elements) {
    Attributes a = like.attributes;
    a.keepdims = true;
    a.dtype = DType::kI64;
    a.ints = {static_cast<int64_t>(axis)};
    if (!is_long(x, axis, elements, limits_.longest)) return build_.add(like.op, {x}, a);
    // Padding repeats the element at the end that loses a draw, so that it never wins one; but the first NaN
    // does, and may be a repeated one.
    Blocks blocks = make_blocks(x, axis, limits_.arg_block, a.select_last);
    ValueId parts = in_blocks(x, blocks, 0, PadMode::kEdge);
    a.ints = {static_cast<int64_t>(axis) + 1};
    ValueId inside = build_.add(like.op, {parts}, a);
    ValueId best = drop(gather(parts, inside, axis + 1), axis + 1);
    ValueId block = arg(best, like, axis, blocks.count_of(elements));
    ValueId place = gather(drop(inside, axis + 1), block, axis);
    place = build_.binary(BinaryOp::k_add, times(block, blocks.block), place);
    if (blocks.padding() == Dim(0)) return place;
    if (blocks.padded_in_front) place = build_.binary(BinaryOp::k_sub, place, number(blocks.padding()));
    place = build_.binary(BinaryOp::k_max, place, 0.0);
    return build_.binary(BinaryOp::k_min, place, number(blocks.size - 1));
  }

  // Whether the first of a line in sorted order are those of its blocks' first.
  bool takes_first_of_blocks(ValueId x, const Attributes& a, int64_t elements) const {
    if (!a.shape[0].is_const() || a.shape[0].value() == 0) return false;
    int64_t kept = a.shape[0].value();
    return kept <= limits_.most_kept &&
           is_long(x, static_cast<size_t>(a.ints[0]), elements, std::max(limits_.longest_sorted, 4 * kept));
  }
  ValueId first(ValueId x, const Attributes& a, int64_t elements) {
    size_t axis = static_cast<size_t>(a.ints[0]);
    if (!takes_first_of_blocks(x, a, elements)) return build_.add(OpKind::k_argsort, {x}, a);
    DType dtype = build_.graph().dtype(x);
    Attributes inside = a;
    x = greatest_first(x, inside);
    int64_t kept = a.shape[0].value();
    Blocks blocks = make_blocks(x, axis, std::max(limits_.sorted_block, 4 * kept), false);
    ValueId parts = in_blocks(x, blocks, last_value(dtype, inside.descending));
    inside.ints = {static_cast<int64_t>(axis) + 1};
    ValueId places = build_.add(OpKind::k_argsort, {parts}, inside);
    ValueId values = gather(parts, places, axis + 1);
    const Dim block_size = blocks.block;
    const int64_t count = blocks.count_of(elements);
    blocks.block = kept;
    ValueId candidates = in_row(values, blocks);
    inside.ints = a.ints;
    ValueId chosen = first(candidates, inside, count * kept);
    ValueId place = gather(in_row(places, blocks), chosen, axis);
    ValueId block = build_.binary(BinaryOp::k_idiv, chosen, static_cast<double>(kept));
    return build_.binary(BinaryOp::k_add, times(block, block_size), place);
  }

  // Whether the first of a line are looked for in groups of few elements.
  bool takes_first_of_groups(ValueId x, const Attributes& a, int64_t elements) const {
    size_t axis = static_cast<size_t>(a.ints[0]);
    if (!a.shape[0].is_const() || !build_.graph().shape(x)[axis].is_const()) return false;
    int64_t kept = a.shape[0].value();
    return kept > 0 && kept <= limits_.most_grouped && is_long(x, axis, elements, limits_.longest_sorted);
  }
  // Of k groups whose first elements go before those of others; of equal ones, those with lower positions.
  // Any other element goes behind these k. Groups and candidates are about as many.
  ValueId first_of_groups(ValueId x, const Attributes& a, int64_t elements) {
    size_t axis = static_cast<size_t>(a.ints[0]);
    int64_t along = a.ints[0], kept = a.shape[0].value();
    ValueId keys = sort_keys(x, !a.descending);
    auto wanted = static_cast<int64_t>(std::sqrt(static_cast<double>(elements) / static_cast<double>(kept)));
    Blocks groups = make_blocks(x, axis, wanted, false);
    const int64_t size = groups.block.value();
    ValueId parts = in_blocks(keys, groups, last_value(build_.graph().dtype(keys), true));
    ValueId best = build_.reduce(OpKind::k_reduce_max, parts, {along + 1}, false);
    ValueId chosen = build_.cast(build_.argsort(best, along, kept, true), DType::kI32);
    chosen = gather(chosen, build_.argsort(chosen, along, kept, false), axis);
    if (!build_.ok()) return kNoValue;
    Shape column = build_.graph().shape(chosen);
    column.insert(column.begin() + along + 1, Dim(1));
    ValueId of_group =
        build_.broadcast_to(build_.reshape(chosen, column), with_dim(column, axis + 1, groups.block));
    groups.count = kept;
    ValueId place = build_.argsort(in_row(gather(parts, of_group, axis), groups), along, kept, true);
    ValueId group = build_.binary(BinaryOp::k_idiv, place, static_cast<double>(size));
    ValueId first = times(build_.cast(gather(chosen, group, axis), DType::kI64), groups.block);
    return build_.binary(BinaryOp::k_add, first,
                         build_.binary(BinaryOp::k_fmod, place, static_cast<double>(size)));
  }

  // Whether whole lines are sorted by merging blocks, for which their size has to be known.
  bool merges_blocks(ValueId x, const Attributes& a) const {
    size_t axis = static_cast<size_t>(a.ints[0]);
    const Dim& size = build_.graph().shape(x)[axis];
    constexpr int64_t kMost = int64_t{1} << 30;  // positions have 32 bits
    return limits_.by_bounds && size.is_const() && size.value() > limits_.longest_sorted &&
           size.value() <= kMost;
  }
  // Sorted blocks, a power of two of them, become half as many twice as long until one is left: an element's
  // place among two blocks is the one in its own and as many as go before it in the other.
  ValueId merged(ValueId x, const Attributes& a) {
    size_t axis = static_cast<size_t>(a.ints[0]);
    const Shape shape = build_.graph().shape(x);
    int64_t size = shape[axis].value(), block = 1;
    while (block * 2 <= limits_.sorted_block) block *= 2;
    int64_t count = 1;
    while (count * block < size) count *= 2;
    Blocks blocks{axis, shape[axis], count, block, false};
    ValueId keys = sort_keys(x, !a.descending);
    ValueId line = in_row(in_blocks(keys, blocks, last_value(build_.graph().dtype(keys), true)), blocks);
    ValueId parts = in_blocks(line, {axis, count * block, count, block, false}, 0);
    ValueId places = build_.argsort(parts, static_cast<int64_t>(axis) + 1, block, true);
    ValueId order = build_.cast(places, DType::kI32);
    order = build_.binary(BinaryOp::k_add, order, numbers_along(parts, axis, block));
    for (; count > 1; count /= 2, block *= 2)
      order = merge_pairs(line, order, {axis, shape[axis], count, block, false});
    order = build_.cast(in_row(order, {axis, shape[axis], 1, block, false}), DType::kI64);
    return build_.slice(order, Shape(shape.size(), Dim(0)), with_dim(shape, axis, a.shape[0]));
  }

  // Booleans sorted: each goes where the count of those before it says.
  ValueId sorted_bools(ValueId x, const Attributes& a) {
    int64_t axis = a.ints[0];
    const Shape shape = build_.graph().shape(x);
    const Dim& size = shape[static_cast<size_t>(axis)];
    ValueId goes_first = a.descending ? x : build_.unary(UnaryOp::k_not, x);
    ValueId one = build_.cast(goes_first, DType::kI64);
    ValueId before = running_count(one, axis), total = build_.reduce(OpKind::k_reduce_sum, one, {axis}, true);
    Shape line(shape.size(), Dim(1));
    line[static_cast<size_t>(axis)] = size;
    ValueId position = build_.broadcast_to(build_.reshape(positions(size), line), shape);
    ValueId behind = build_.binary(BinaryOp::k_sub, build_.binary(BinaryOp::k_add, total, position), before);
    ValueId sorted = build_.scatter_unique(position, build_.where(goes_first, before, behind), axis);
    if (a.shape[0] == size) return sorted;
    return build_.slice(sorted, Shape(shape.size(), Dim(0)),
                        with_dim(shape, static_cast<size_t>(axis), a.shape[0]));
  }

 private:
  // Integers whose descending order is the one wanted; equal ones for zeros, NaN above all others.
  ValueId sort_keys(ValueId x, bool ascending) {
    DType dtype = build_.graph().dtype(x);
    if (dtype == DType::kBool) x = build_.cast(x, DType::kU8);
    if (is_float(dtype)) {
      if (element_size(dtype) < 4) x = build_.cast(x, DType::kF32);
      bool wide = dtype == DType::kF64;
      Attributes to_integers;
      to_integers.dtype = wide ? DType::kI64 : DType::kI32;
      ValueId number = build_.binary(BinaryOp::k_add, x, 0.0);  // -0 becomes 0
      ValueId bits = build_.add(OpKind::k_bitcast, {number}, to_integers);
      ValueId sign = build_.binary(BinaryOp::k_shr, bits, wide ? 63.0 : 31.0);
      ValueId highest = build_.unary(UnaryOp::k_bit_not,
                                     build_.full(to_integers.dtype, {}, std::ldexp(-1.0, wide ? 63 : 31)));
      ValueId key = build_.binary(BinaryOp::k_xor, bits, build_.binary(BinaryOp::k_and, sign, highest));
      x = build_.where(build_.unary(UnaryOp::k_is_nan, x), highest, key);
    }
    return ascending ? build_.unary(UnaryOp::k_bit_not, x) : x;
  }
  // 0, step, 2 step... of i32 along a dim of x, 1 elsewhere.
  ValueId numbers_along(ValueId x, size_t axis, int64_t step) {
    const Shape shape = build_.graph().shape(x);
    constexpr int64_t kMostConstants = 1 << 16;  // more would fill memory and the bundle
    if (shape[axis].value() > kMostConstants) {
      ValueId all =
          build_.reshape(positions(shape[axis]), with_dim(Shape(shape.size(), Dim(1)), axis, shape[axis]));
      return build_.cast(build_.binary(BinaryOp::k_mul, all, static_cast<double>(step)), DType::kI32);
    }
    std::vector<int64_t> values(static_cast<size_t>(shape[axis].value())), dims(shape.size(), 1);
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<int64_t>(i) * step;
    dims[axis] = shape[axis].value();
    return build_.cast(build_.constant(i64_tensor(std::move(dims), values)), DType::kI32);
  }
  // `order`: positions in the line, in blocks that are sorted.
  ValueId merge_pairs(ValueId line, ValueId order, const Blocks& b) {
    if (!build_.ok()) return kNoValue;
    size_t pair = b.axis, side = b.axis + 1, place = b.axis + 2;
    const Shape shape = build_.graph().shape(line);
    Shape pairs = with_dim(shape, b.axis, b.block);
    pairs.insert(pairs.begin() + static_cast<std::ptrdiff_t>(b.axis), {Dim(b.count.value() / 2), Dim(2)});
    ValueId in_line = build_.reshape(order, with_dim(shape, b.axis, b.count * b.block));
    ValueId keys = build_.reshape(gather(line, in_line, b.axis), pairs);
    keys = build_.add(OpKind::k_contiguous, {keys});
    ValueId others = build_.flip(keys, {static_cast<int64_t>(side)});
    // Of equal elements those of the first block go first.
    ValueId is_second = build_.cast(numbers_along(keys, side, 1), DType::kBool);
    auto before = [&](ValueId at) {
      ValueId other = gather(others, at, place);
      return build_.binary(
          BinaryOp::k_or, build_.binary(BinaryOp::k_gt, other, keys),
          build_.binary(BinaryOp::k_and, is_second, build_.binary(BinaryOp::k_eq, other, keys)));
    };
    ValueId found = build_.broadcast_to(build_.full(DType::kI32, Shape(pairs.size(), Dim(1)), 0), pairs);
    for (int64_t step = b.block.value() / 2; step > 0; step /= 2) {
      ValueId at = build_.binary(BinaryOp::k_add, found, static_cast<double>(step - 1));
      ValueId more =
          build_.binary(BinaryOp::k_mul, build_.cast(before(at), DType::kI32), static_cast<double>(step));
      found = build_.binary(BinaryOp::k_add, found, more);
    }
    found = build_.binary(BinaryOp::k_add, found, build_.cast(before(found), DType::kI32));
    ValueId to = build_.binary(BinaryOp::k_add, found, numbers_along(keys, place, 1));
    Shape merged = with_dim(shape, b.axis, b.block * 2);
    merged.insert(merged.begin() + static_cast<std::ptrdiff_t>(pair), Dim(b.count.value() / 2));
    ValueId updates = build_.reshape(order, merged);
    return build_.scatter_unique(updates, build_.reshape(to, merged), static_cast<int64_t>(pair) + 1);
  }

  // Integers from the greatest on, whose lowest value padding can have whatever the dtype.
  ValueId greatest_first(ValueId x, Attributes& a) {
    DType dtype = build_.graph().dtype(x);
    if (is_float(dtype) || a.descending) return x;
    a.descending = true;
    return build_.unary(dtype == DType::kBool ? UnaryOp::k_not : UnaryOp::k_bit_not, x);
  }
  // Lines that threads share; neighbours that a vector takes are one.
  static double lines(const Shape& shape, size_t axis) {
    constexpr double kVector = 16;
    double outer = 1, inner = 1;
    for (size_t d = 0; d < shape.size(); ++d)
      if (d != axis)
        (d < axis ? outer : inner) *= static_cast<double>(std::max<int64_t>(shape[d].estimate(), 1));
    return outer * std::max(inner / kVector, 1.0);
  }

  Blocks make_blocks(ValueId x, size_t axis, int64_t wanted, bool padded_in_front) const {
    const Dim& size = build_.graph().shape(x)[axis];
    int64_t block = block_of(size, wanted);
    return {axis, size, ceildiv(size, block), block, padded_in_front};
  }

  ValueId in_blocks(ValueId x, const Blocks& b, double fill, PadMode mode = PadMode::kConstant) {
    if (!build_.ok()) return kNoValue;
    Shape shape = build_.graph().shape(x);
    Shape none(shape.size(), Dim(0)), some = with_dim(none, b.axis, b.padding());
    x = build_.pad(x, b.padded_in_front ? some : none, b.padded_in_front ? none : some, mode, fill);
    shape[b.axis] = b.block;
    shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(b.axis), b.count);
    return build_.reshape(x, std::move(shape));
  }
  // Blocks of `b.block` elements one after the other.
  ValueId in_row(ValueId x, const Blocks& b) {
    if (!build_.ok()) return kNoValue;
    return build_.reshape(x, with_dim(dropped(x, b.axis), b.axis, b.count * b.block));
  }
  ValueId in_line(ValueId x, const Blocks& b) {
    x = in_row(x, b);
    if (!build_.ok() || b.padding() == Dim(0)) return x;
    const Shape shape = build_.graph().shape(x);
    Dim first = b.padded_in_front ? b.padding() : Dim(0);
    return build_.slice(x, with_dim(Shape(shape.size(), Dim(0)), b.axis, first),
                        with_dim(shape, b.axis, first + b.size));
  }
  Shape dropped(ValueId x, size_t axis) const {
    Shape shape = build_.graph().shape(x);
    shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(axis));
    return shape;
  }
  // Without dim `axis`, which is 1.
  ValueId drop(ValueId x, size_t axis) {
    return build_.ok() ? build_.reshape(x, dropped(x, axis)) : kNoValue;
  }

  ValueId gather(ValueId x, ValueId places, size_t axis) {
    Attributes a;
    a.ints = {static_cast<int64_t>(axis)};
    return build_.add(OpKind::k_gather_elements, {x, places}, std::move(a));
  }
  ValueId number(const Dim& value) {
    if (value.is_const()) return build_.full(DType::kI64, {}, static_cast<double>(value.value()));
    Attributes a;
    a.shape = {value};
    return build_.reshape(build_.add(OpKind::k_dims, {}, std::move(a)), {});
  }
  ValueId times(ValueId x, const Dim& factor) { return build_.binary(BinaryOp::k_mul, x, number(factor)); }

  ValueId reduce(OpKind scan, ValueId x, size_t axis, DType accumulator) {
    Attributes a;
    a.ints = {static_cast<int64_t>(axis)};
    a.accumulator = accumulator;
    OpKind op = scan == OpKind::k_scan_sum    ? OpKind::k_reduce_sum
                : scan == OpKind::k_scan_prod ? OpKind::k_reduce_prod
                : scan == OpKind::k_scan_max  ? OpKind::k_reduce_max
                                              : OpKind::k_reduce_min;
    return build_.add(op, {x}, std::move(a));
  }
  static BinaryOp combination(OpKind scan) {
    return scan == OpKind::k_scan_sum    ? BinaryOp::k_add
           : scan == OpKind::k_scan_prod ? BinaryOp::k_mul
           : scan == OpKind::k_scan_max  ? BinaryOp::k_max
                                         : BinaryOp::k_min;
  }
  // What nothing in a sorted line goes behind.
  static double last_value(DType dtype, bool descending) {
    if (is_float(dtype)) return descending ? -INFINITY : NAN;
    return is_signed_integer(dtype) ? -std::ldexp(1.0, bit_width(dtype) - 1) : 0;
  }

  ValueId running_count(ValueId x, int64_t axis) {
    if (!build_.ok()) return kNoValue;
    Attributes a;
    a.ints = {axis};
    a.exclusive = true;
    a.accumulator = DType::kI64;
    return scan(x, OpKind::k_scan_sum, a, elements(x, static_cast<size_t>(axis)));
  }
  // 0, 1, ... of i64: blocks and positions within one, where the size is known.
  ValueId positions(const Dim& size) {
    // Constants of a root of the size, unless that is out of proportion.
    constexpr int64_t kMostBlocks = 1 << 16;
    if (!size.is_const() || size.value() / limits_.block > kMostBlocks)
      return running_count(build_.full(DType::kI64, {size}, 1), 0);
    int64_t block = block_of(size, limits_.block), count = (size.value() + block - 1) / block;
    auto some = [&](int64_t n, int64_t step) {
      std::vector<int64_t> values(static_cast<size_t>(n));
      for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<int64_t>(i) * step;
      return build_.constant(i64_tensor({n}, values));
    };
    ValueId all =
        build_.binary(BinaryOp::k_add, build_.reshape(some(count, block), {count, 1}), some(block, 1));
    return build_.slice(build_.reshape(all, {count * block}), {0}, {size});
  }

  GraphBuilder& build_;
  const LongLines& limits_;
};

ValueId split(Rewriter& r, const Node& node, const LongLines& limits) {
  Splitter splitter(r.build, limits);
  const Attributes& a = node.attributes;
  bool is_arg = node.op == OpKind::k_reduce_argmax || node.op == OpKind::k_reduce_argmin;
  if (!is_scan(node.op) && !is_arg && node.op != OpKind::k_argsort) return kNoValue;
  ValueId x = r(node.inputs[0]);
  size_t axis = static_cast<size_t>(a.ints[0]);
  int64_t elements = splitter.elements(x, axis);
  if (is_arg) {
    if (!splitter.is_long(x, axis, elements, limits.longest)) return kNoValue;
    ValueId place = splitter.arg(x, node, axis, elements);
    return r.build.cast(r.build.reshape(place, r.old.shape(node.output)), r.old.dtype(node.output));
  }
  if (is_scan(node.op)) {
    if (!splitter.is_long(x, axis, elements, limits.longest)) return kNoValue;
    return splitter.scan(x, node.op, a, elements);
  }
  if (splitter.takes_first_of_blocks(x, a, elements)) return splitter.first(x, a, elements);
  if (splitter.takes_first_of_groups(x, a, elements)) return splitter.first_of_groups(x, a, elements);
  if (r.old.dtype(node.inputs[0]) == DType::kBool) {
    bool is_long = splitter.is_long(x, axis, elements, std::min(limits.longest, limits.longest_sorted));
    return is_long ? splitter.sorted_bools(x, a) : kNoValue;
  }
  return splitter.merges_blocks(x, a) ? splitter.merged(x, a) : kNoValue;
}

}  // namespace

Expected<Graph> split_long_lines(const Graph& graph, const LongLines& limits) {
  return rewrite(graph, [&](Rewriter& r, const Node& node) { return split(r, node, limits); });
}

}  // namespace quernel
