#include "lower/loop_nest.h"

#include <algorithm>
#include <cmath>

#include "lower/lower.h"

namespace quernel::lower {

using loop::AxisKind;
using loop::Expr;
using loop::Stmt;

loop::Var index_var(const std::string& name) { return fresh_var(name, loop::kIndexType); }

Stmt vector_loop(const std::string& name, int64_t extent, int lanes, const Target& target,
                 const std::function<Stmt(Expr)>& body) {
  if (lanes <= 1 || extent == 1) {
    if (extent == 1) return body(index(0));
    loop::Var i = index_var(name);
    return loop::for_loop(i, index(extent), AxisKind::kSerial, body(loop::var_ref(i)));
  }
  std::vector<Stmt> parts;
  int64_t full = extent / lanes, tail = extent % lanes;
  if (full > 0) {
    loop::Var i = index_var(name), l = index_var(name + "_lane");
    Expr position = (full > 1 ? loop::var_ref(i) * index(lanes) : index(0)) + loop::var_ref(l);
    Stmt inner = loop::for_loop(l, index(lanes), AxisKind::kVector, body(position));
    parts.push_back(full > 1 ? loop::for_loop(i, index(full), AxisKind::kSerial, inner) : inner);
  }
  if (tail > 0) {
    loop::Var l = index_var(name + "_tail");
    Expr position = index(full * lanes) + loop::var_ref(l);
    if (target.has_masks && tail > 1)
      parts.push_back(loop::for_loop(
          l, index(lanes), AxisKind::kVector,
          loop::if_then(loop::binary(BinaryOp::k_lt, loop::var_ref(l), index(tail)), body(position))));
    else
      parts.push_back(loop::for_loop(l, index(tail), AxisKind::kSerial, body(position)));
  }
  return parts.size() == 1 ? parts[0] : loop::block(std::move(parts));
}

Stmt outer_loops(loop::Kernel& kernel, const std::vector<int64_t>& extents, int64_t inner_work,
                 int64_t target_work, const std::function<Stmt(const std::vector<Expr>&)>& body) {
  std::vector<Expr> positions(extents.size());
  struct Serial {
    loop::Var var;
    Expr extent;
  };
  std::vector<Serial> serial;  // innermost first
  std::vector<loop::GridAxis> grid;
  int64_t work = std::max<int64_t>(inner_work, 1);
  for (size_t i = extents.size(); i-- > 0;) {
    int64_t n = extents[i];
    std::string name = "i" + std::to_string(i);
    if (n == 1) {
      positions[i] = index(0);
      continue;
    }
    int64_t room = std::max<int64_t>(1, target_work / work);
    if (room >= n) {
      serial.push_back({index_var(name), index(n)});
      positions[i] = loop::var_ref(serial.back().var);
      work *= n;
    } else if (room == 1) {
      loop::Var var = index_var("g" + std::to_string(i));
      grid.push_back({var, index(n)});
      positions[i] = loop::var_ref(var);
      work = target_work;
    } else {
      int64_t chunks = (n + room - 1) / room, chunk = (n + chunks - 1) / chunks;
      chunks = (n + chunk - 1) / chunk;
      loop::Var outer = index_var("g" + std::to_string(i));
      grid.push_back({outer, index(chunks)});
      loop::Var inner = index_var(name);
      Expr extent = n % chunk == 0 ? index(chunk)
                                   : loop::binary(BinaryOp::k_min, index(chunk),
                                                  index(n) - loop::var_ref(outer) * index(chunk));
      serial.push_back({inner, extent});
      positions[i] = loop::var_ref(outer) * index(chunk) + loop::var_ref(inner);
      work = target_work;
    }
  }
  Stmt stmt = body(positions);
  for (const Serial& s : serial) stmt = loop::for_loop(s.var, s.extent, AxisKind::kSerial, stmt);
  kernel.grid.insert(kernel.grid.begin(), grid.rbegin(), grid.rend());
  return stmt;
}

Expr extreme_value(DType dtype, bool lowest) {
  if (dtype == DType::kBool) return loop::const_int(dtype, lowest ? 0 : 1);
  if (is_float(dtype)) return loop::const_float(dtype, lowest ? -INFINITY : INFINITY);
  int bits = bit_width(dtype);
  if (is_unsigned_integer(dtype))
    return loop::const_bits({dtype, 1}, lowest ? 0 : (bits == 64 ? ~0ull : (1ull << bits) - 1));
  int64_t low = bits == 64 ? INT64_MIN : -(int64_t{1} << (bits - 1));
  return loop::const_int(dtype, lowest ? low : -(low + 1));
}

namespace {
int digits(const IndexExpr& e) {
  switch (e.kind()) {
    case IndexExpr::Kind::kConst:
    case IndexExpr::Kind::kAxis:
      return 0;
    case IndexExpr::Kind::kAdd:
      return digits(e.lhs()) + digits(e.rhs());
    case IndexExpr::Kind::kMul:
      return digits(e.lhs());
    default:
      return 1 + digits(e.lhs());
  }
}
int digits(const std::vector<IndexExpr>& es) {
  int n = 0;
  for (const IndexExpr& e : es) n += digits(e);
  return n;
}
}  // namespace

std::vector<int64_t> merge_axes(
    std::vector<int64_t> extents, const std::vector<int>& classes,
    std::vector<std::vector<IndexExpr>>& indices, std::vector<int>& merged_classes,
    const std::function<std::vector<IndexExpr>(const std::vector<std::vector<IndexExpr>>&,
                                               const std::vector<int64_t>&)>& probe) {
  merged_classes = classes;
  if (std::find(extents.begin(), extents.end(), 0) != extents.end()) return extents;
  int cost = digits(probe(indices, extents));
  for (size_t i = extents.size(); i-- > 1;) {
    if (merged_classes[i - 1] != merged_classes[i] && extents[i] != 1 && extents[i - 1] != 1) continue;
    // Axis i-1 and i become one at i-1.
    std::vector<int64_t> trial = extents;
    trial[i - 1] *= trial[i];
    trial.erase(trial.begin() + static_cast<std::ptrdiff_t>(i));
    std::vector<IndexExpr> renamed;
    for (size_t k = 0; k < extents.size(); ++k) {
      IndexExpr merged = IndexExpr::axis(static_cast<int>(i) - 1);
      if (k == i - 1)
        renamed.push_back(floordiv(merged, extents[i]));
      else if (k == i)
        renamed.push_back(extents[i - 1] == 1 ? merged : floormod(merged, extents[i]));
      else
        renamed.push_back(IndexExpr::axis(static_cast<int>(k > i ? k - 1 : k)));
    }
    std::vector<std::vector<IndexExpr>> rewritten = indices;
    for (std::vector<IndexExpr>& list : rewritten)
      for (IndexExpr& e : list) e = simplify(substitute(e, renamed), trial);
    int trial_cost = digits(probe(rewritten, trial));
    if (trial_cost > cost) continue;
    cost = trial_cost;
    int kept = extents[i - 1] == 1 ? merged_classes[i] : merged_classes[i - 1];
    extents = std::move(trial);
    indices = std::move(rewritten);
    merged_classes.erase(merged_classes.begin() + static_cast<std::ptrdiff_t>(i));
    merged_classes[i - 1] = kept;
  }
  return extents;
}

std::optional<int64_t> stride_along(const IndexExpr& access, int axis, int axes) {
  if (!uses_axis(access, axis)) return 0;
  std::optional<AffineForm> form = as_affine(access, axes);
  if (form) return form->coefficients[static_cast<size_t>(axis)];
  // Digits of other axes do not matter: split the sum and look at the terms that use this axis.
  if (access.kind() == IndexExpr::Kind::kAdd) {
    std::optional<int64_t> a = stride_along(access.lhs(), axis, axes),
                           b = stride_along(access.rhs(), axis, axes);
    return a && b ? std::optional(*a + *b) : std::nullopt;
  }
  return std::nullopt;
}

loop::Kernel lower_item(const schedule::Schedule& schedule, const schedule::Item& item,
                        const Target& target) {
  const schedule::Group& group = schedule.groups[item.group];
  restart_names();
  Context context{schedule, item, group, target, make_buffers(schedule, item), {}};
  context.kernel.buffers = context.buffers.buffers;
  switch (group.kind) {
    case schedule::GroupKind::kMap:
      return lower_map(std::move(context));
    case schedule::GroupKind::kReduce:
      return lower_reduce(std::move(context));
    case schedule::GroupKind::kContract:
      return lower_contract(std::move(context));
    case schedule::GroupKind::kCat:
      return lower_cat(std::move(context));
    case schedule::GroupKind::kOrdered: {
      OpKind op = schedule.graph.nodes[group.anchor].op;
      return is_scan(op)      ? lower_scan(std::move(context))
             : is_scatter(op) ? lower_scatter(std::move(context))
                              : lower_sort(std::move(context));
    }
  }
  return {};
}

}  // namespace quernel::lower
