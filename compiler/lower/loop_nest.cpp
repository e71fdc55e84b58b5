#include "lower/loop_nest.h"

#include <algorithm>
#include <cmath>

#include "schedule/byte_lookup.h"

namespace quernel::lower {

using loop::AxisKind;
using loop::Expr;
using loop::Stmt;

loop::Var index_var(const std::string& name) { return fresh_var(name, loop::kIndexType); }

loop::Expr named(std::vector<loop::Stmt>& body, const char* name, loop::Expr value) {
  loop::Var var = fresh_var(name, value->type);
  body.push_back(loop::let(var, std::move(value)));
  return loop::var_ref(var);
}

loop::Stmt serial_loop(const char* name, loop::Expr extent,
                       const std::function<loop::Stmt(loop::Expr)>& body) {
  loop::Var var = index_var(name);
  return loop::for_loop(var, std::move(extent), loop::AxisKind::kSerial, body(loop::var_ref(var)));
}

loop::Buffer local_buffer(const char* name, DType dtype, int64_t size, loop::Scope scope) {
  auto buffer = std::make_shared<loop::BufferNode>();
  buffer->name = fresh_name(name);
  buffer->dtype = dtype;
  buffer->size = size;
  buffer->scope = scope;
  buffer->access = loop::Access::kReadWrite;
  return buffer;
}

Stmt vector_loop(const std::string& name, const Expr& extent, int lanes, const Target& target,
                 const std::function<Stmt(Expr)>& body, AxisKind steps) {
  int64_t n = -1;
  bool known = loop::as_const_int(extent, &n);
  if (known && n == 1) return body(index(0));
  if (lanes <= 1) {
    loop::Var i = index_var(name);
    return loop::for_loop(i, extent, steps, body(loop::var_ref(i)));
  }
  std::vector<Stmt> parts;
  Expr full = loop::binary(BinaryOp::k_idiv, extent, index(lanes));
  Expr done = full * index(lanes), tail = extent - done;
  if (!known || n >= lanes) {
    bool once = known && n / lanes == 1;
    loop::Var i = index_var(name), l = index_var(name + "_lane");
    Expr position = (once ? index(0) : loop::var_ref(i) * index(lanes)) + loop::var_ref(l);
    Stmt inner = loop::for_loop(l, index(lanes), AxisKind::kVector, body(position));
    parts.push_back(once ? inner : loop::for_loop(i, full, steps, inner));
  }
  if (!known || n % lanes != 0) {
    loop::Var l = index_var(name + "_tail");
    Expr position = done + loop::var_ref(l);
    if (target.has_masks && (steps == AxisKind::kUnrolled || !(known && n % lanes == 1))) {
      Stmt masked =
          loop::for_loop(l, index(lanes), AxisKind::kVector,
                         loop::if_then(loop::binary(BinaryOp::k_lt, loop::var_ref(l), tail), body(position)));
      parts.push_back(known ? masked : loop::if_then(loop::binary(BinaryOp::k_gt, tail, index(0)), masked));
    } else {
      parts.push_back(loop::for_loop(l, tail, AxisKind::kSerial, body(position)));
    }
  }
  return parts.size() == 1 ? parts[0] : loop::block(std::move(parts));
}

Stmt outer_loops(Context& context, const Shape& extents, int64_t inner_work, int64_t target_work,
                 const std::function<Stmt(const std::vector<Expr>&)>& body) {
  std::vector<Expr> positions(extents.size());
  struct Serial {
    loop::Var var;
    Expr extent;
  };
  std::vector<Serial> serial;  // innermost first
  std::vector<loop::GridAxis> grid;
  auto add_grid = [&](const std::string& name, const Dim& extent) {
    loop::Var var = index_var(name);
    grid.push_back({var, context.symbols(extent)});
    context.workgroups = context.workgroups * extent;
    return loop::var_ref(var);
  };
  int64_t work = std::max<int64_t>(inner_work, 1);
  for (size_t i = extents.size(); i-- > 0;) {
    const Dim& n = extents[i];
    std::string name = "i" + std::to_string(i), grid_name = "g" + std::to_string(i);
    if (n == Dim(1)) {
      positions[i] = index(0);
      continue;
    }
    int64_t room = target_work == kNoWorkgroups ? kNoWorkgroups : std::max<int64_t>(1, target_work / work);
    if (room == kNoWorkgroups || (n.is_const() && room >= n.value())) {
      serial.push_back({index_var(name), context.symbols(n)});
      positions[i] = loop::var_ref(serial.back().var);
      if (room != kNoWorkgroups) work *= n.value();
    } else if (room == 1) {
      positions[i] = add_grid(grid_name, n);
      work = target_work;
    } else {
      // Chunks of equal size where the extent is known; else full ones but for the last.
      int64_t chunk = room;
      if (n.is_const()) {
        int64_t chunks = (n.value() + room - 1) / room;
        chunk = (n.value() + chunks - 1) / chunks;
      }
      Expr outer = add_grid(grid_name, ceildiv(n, chunk));
      loop::Var inner = index_var(name);
      Expr extent = floormod(n, chunk) == Dim(0) ? index(chunk)
                                                 : loop::binary(BinaryOp::k_min, index(chunk),
                                                                context.symbols(n) - outer * index(chunk));
      serial.push_back({inner, extent});
      positions[i] = outer * index(chunk) + loop::var_ref(inner);
      work = n.is_const() ? target_work : work * std::min(chunk, std::max<int64_t>(n.estimate(), 1));
    }
  }
  Stmt stmt = body(positions);
  for (const Serial& s : serial) stmt = loop::for_loop(s.var, s.extent, AxisKind::kSerial, stmt);
  context.kernel.grid.insert(context.kernel.grid.begin(), grid.rbegin(), grid.rend());
  return stmt;
}

GridPart take_grid(Context& context, Stmt body) {
  GridPart part{std::move(body), std::move(context.kernel.grid), context.workgroups};
  context.kernel.grid.clear();
  context.workgroups = 1;
  return part;
}

Stmt join_grids(Context& context, std::vector<GridPart> parts) {
  if (parts.size() == 1) {
    context.kernel.grid = std::move(parts[0].grid);
    context.workgroups = parts[0].workgroups;
    return loop::block({parts[0].body});
  }
  std::vector<Stmt> body;
  bool is_split =
      std::any_of(parts.begin(), parts.end(), [](const GridPart& part) { return !part.grid.empty(); });
  if (!is_split) {
    for (GridPart& part : parts) body.push_back(std::move(part.body));
    return loop::block(std::move(body));
  }
  loop::Var workgroup = index_var("part");
  Dim first = 0;
  for (GridPart& part : parts) {
    Expr number = loop::var_ref(workgroup) - context.symbols(first);
    // The positions along the part's axes, the last of which is the fastest.
    std::vector<Stmt> own;
    for (size_t i = part.grid.size(); i-- > 0;) {
      const loop::GridAxis& axis = part.grid[i];
      own.push_back(
          loop::let(axis.var, i == 0 ? number : loop::binary(BinaryOp::k_fmod, number, axis.extent)));
      if (i > 0) number = named(own, "outer", loop::binary(BinaryOp::k_idiv, number, axis.extent));
    }
    own.push_back(std::move(part.body));
    Dim end = first + part.workgroups;
    Expr is_own = loop::binary(BinaryOp::k_and,
                               loop::binary(BinaryOp::k_ge, loop::var_ref(workgroup), context.symbols(first)),
                               loop::binary(BinaryOp::k_lt, loop::var_ref(workgroup), context.symbols(end)));
    body.push_back(loop::if_then(is_own, loop::block(std::move(own))));
    first = end;
  }
  context.kernel.grid = {{workgroup, context.symbols(first)}};
  context.workgroups = first;
  return loop::block(std::move(body));
}

DType widest_dtype(const Context& context) {
  DType widest = DType::kBool;
  auto consider = [&](DType d) {
    if (d != DType::kI64 && d != DType::kU64 && element_size(d) > element_size(widest)) widest = d;
  };
  for (const schedule::Binding& b : context.item.bindings)
    if (b.value != kNoValue) consider(context.graph().dtype(b.value));
  bool looks_up = false;
  for (const std::vector<int>* nodes : {&context.group.nodes, &context.group.inlined})
    for (int n : *nodes) {
      const Node& node = context.graph().nodes[n];
      consider(context.graph().dtype(node.output));
      looks_up = looks_up || schedule::is_byte_lookup(context.graph(), node);
    }
  // A table's vectors are of bytes; other narrow elements are computed as words.
  if (looks_up && element_size(widest) == 1 && !is_packed(widest)) return widest;
  return element_size(widest) < 4 ? DType::kF32 : widest;
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

// A constant that the axis is divided by somewhere in `e`, not the extent, of which it is a divisor.
std::optional<int64_t> digit_of(const IndexExpr& e, int axis, int64_t extent, int64_t least) {
  switch (e.kind()) {
    case IndexExpr::Kind::kConst:
    case IndexExpr::Kind::kAxis:
      return std::nullopt;
    case IndexExpr::Kind::kAdd: {
      std::optional<int64_t> left = digit_of(e.lhs(), axis, extent, least);
      return left ? left : digit_of(e.rhs(), axis, extent, least);
    }
    case IndexExpr::Kind::kMul:
      return digit_of(e.lhs(), axis, extent, least);
    default:
      break;
  }
  if (e.lhs().kind() != IndexExpr::Kind::kAxis || e.lhs().axis_index() != axis || !e.value().is_const())
    return digit_of(e.lhs(), axis, extent, least);
  int64_t m = e.value().value();
  return m >= least && m < extent && extent % m == 0 ? std::optional(m) : std::nullopt;
}
}  // namespace

Shape split_axes(Shape extents, std::vector<std::vector<IndexExpr>>& indices, int64_t least,
                 std::vector<IndexExpr> accesses, const AccessProbe& probe) {
  int cost = digits(accesses);
  bool refused = false;  // the last trial
  for (size_t i = 0; i < extents.size() && cost > 0; ++i) {
    if (!extents[i].is_const()) continue;
    std::optional<int64_t> inner;
    for (size_t a = 0; a < accesses.size() && !inner; ++a)
      inner = digit_of(accesses[a], static_cast<int>(i), extents[i].value(), least);
    if (!inner) continue;
    // Axis i becomes i and i+1.
    Shape trial = extents;
    trial[i] = extents[i].value() / *inner;
    trial.insert(trial.begin() + static_cast<std::ptrdiff_t>(i) + 1, Dim(*inner));
    std::vector<IndexExpr> renamed;
    for (size_t k = 0; k < extents.size(); ++k)
      renamed.push_back(IndexExpr::axis(static_cast<int>(k > i ? k + 1 : k)));
    renamed[i] = renamed[i] * *inner + IndexExpr::axis(static_cast<int>(i) + 1);
    std::vector<std::vector<IndexExpr>> rewritten = indices;
    for (std::vector<IndexExpr>& list : rewritten)
      for (IndexExpr& e : list) e = simplify(substitute(e, renamed), trial);
    std::vector<IndexExpr> trial_accesses = probe(rewritten, trial);
    int trial_cost = digits(trial_accesses);
    refused = trial_cost >= cost;
    if (refused) continue;
    cost = trial_cost;
    extents = std::move(trial);
    indices = std::move(rewritten);
    accesses = std::move(trial_accesses);
  }
  if (refused) probe(indices, extents);
  return extents;
}

Shape merge_axes(Shape extents, const std::vector<int>& classes, std::vector<std::vector<IndexExpr>>& indices,
                 std::vector<int>& merged_classes, const AccessProbe& probe) {
  merged_classes = classes;
  auto is_one = [](const Dim& d) { return d == Dim(1); };
  if (std::find(extents.begin(), extents.end(), Dim(0)) != extents.end()) return extents;
  int cost = digits(probe(indices, extents));
  for (size_t i = extents.size(); i-- > 1;) {
    if (merged_classes[i - 1] != merged_classes[i] && !is_one(extents[i]) && !is_one(extents[i - 1]))
      continue;
    // Axis i-1 and i become one at i-1.
    Shape trial = extents;
    trial[i - 1] = trial[i - 1] * trial[i];
    trial.erase(trial.begin() + static_cast<std::ptrdiff_t>(i));
    std::vector<IndexExpr> renamed;
    for (size_t k = 0; k < extents.size(); ++k) {
      IndexExpr merged = IndexExpr::axis(static_cast<int>(i) - 1);
      if (k == i - 1)
        renamed.push_back(floordiv(merged, extents[i]));
      else if (k == i)
        renamed.push_back(is_one(extents[i - 1]) ? merged : floormod(merged, extents[i]));
      else
        renamed.push_back(IndexExpr::axis(static_cast<int>(k > i ? k - 1 : k)));
    }
    std::vector<std::vector<IndexExpr>> rewritten = indices;
    for (std::vector<IndexExpr>& list : rewritten)
      for (IndexExpr& e : list) e = simplify(substitute(e, renamed), trial);
    int trial_cost = digits(probe(rewritten, trial));
    if (trial_cost > cost) continue;
    cost = trial_cost;
    int kept = is_one(extents[i - 1]) ? merged_classes[i] : merged_classes[i - 1];
    extents = std::move(trial);
    indices = std::move(rewritten);
    merged_classes.erase(merged_classes.begin() + static_cast<std::ptrdiff_t>(i));
    merged_classes[i - 1] = kept;
  }
  return extents;
}

std::optional<Dim> stride_along(const IndexExpr& access, int axis, int axes) {
  if (!uses_axis(access, axis)) return Dim(0);
  std::optional<AffineForm> form = as_affine(access, axes);
  if (form) return form->coefficients[static_cast<size_t>(axis)];
  // Digits of other axes do not matter: split the sum and look at the terms that use this axis.
  if (access.kind() == IndexExpr::Kind::kAdd) {
    std::optional<Dim> a = stride_along(access.lhs(), axis, axes), b = stride_along(access.rhs(), axis, axes);
    return a && b ? std::optional(*a + *b) : std::nullopt;
  }
  return std::nullopt;
}

int elementwise_weight(const Context& context) {
  int weight = 0;
  for (const std::vector<int>* nodes : {&context.group.nodes, &context.group.inlined})
    for (int n : *nodes) {
      OpKind kind = context.graph().nodes[n].op;
      if (auto op = unary_op(kind); op && *op >= UnaryOp::k_exp && *op <= UnaryOp::k_erf)
        weight += 16;
      else if (kind == OpKind::k_pow)
        weight += 32;
      else if (is_elementwise(kind))
        weight += 1;
    }
  return weight;
}

}  // namespace quernel::lower
