#include "lower/loop_nest.h"

#include <algorithm>
#include <cmath>

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
  const bool one_workgroup = target_work == Target::kAllWork;
  int64_t work = std::max<int64_t>(inner_work, 1);
  for (size_t i = extents.size(); i-- > 0;) {
    const Dim& n = extents[i];
    std::string name = "i" + std::to_string(i), grid_name = "g" + std::to_string(i);
    if (n == Dim(1)) {
      positions[i] = index(0);
      continue;
    }
    const int64_t room = std::max<int64_t>(1, target_work / work);
    if (one_workgroup || (n.is_const() && room >= n.value())) {
      serial.push_back({index_var(name), context.symbols(n)});
      positions[i] = loop::var_ref(serial.back().var);
      if (!one_workgroup) work *= n.value();
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

Expr extreme_value(DType dtype, bool lowest) {
  if (dtype == DType::kBool) return loop::const_int(dtype, lowest ? 0 : 1);
  if (is_float(dtype)) return loop::const_float(dtype, lowest ? -INFINITY : INFINITY);
  int bits = bit_width(dtype);
  if (is_unsigned_integer(dtype))
    return loop::const_bits({dtype, 1}, lowest ? 0 : (bits == 64 ? ~0ull : (1ull << bits) - 1));
  int64_t low = bits == 64 ? INT64_MIN : -(int64_t{1} << (bits - 1));
  return loop::const_int(dtype, lowest ? low : -(low + 1));
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
