// Builds small loop-IR kernels as the loop passes would hand them over: explicit vectors, serial loops.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "loop/ir.h"

namespace quernel::test {

struct KernelMaker {
  loop::Kernel kernel;

  explicit KernelMaker(std::string name) { kernel.name = std::move(name); }
  loop::Buffer global(DType dtype, int64_t size, loop::Access access = loop::Access::kRead) {
    auto b = std::make_shared<loop::BufferNode>();
    b->binding = static_cast<int>(kernel.buffers.size());
    b->name = std::to_string(b->binding).insert(0, 1, 'b');
    b->dtype = dtype;
    b->size = size;
    b->access = access;
    kernel.buffers.push_back(b);
    return b;
  }
  loop::Buffer output(DType dtype, int64_t size) { return global(dtype, size, loop::Access::kWrite); }
  loop::Buffer local(DType dtype, int64_t size, loop::Scope scope) {
    auto b = std::make_shared<loop::BufferNode>();
    b->name = std::to_string(counter_++).insert(0, 1, 'm');
    b->dtype = dtype;
    b->size = size;
    b->scope = scope;
    b->access = loop::Access::kReadWrite;
    return b;
  }
  loop::Var var(loop::Type type = loop::kIndexType) {
    return std::make_shared<loop::VarNode>(loop::VarNode{std::to_string(counter_++).insert(0, 1, 'v'), type});
  }
  loop::Var grid(loop::Expr extent) {
    loop::Var v = var();
    kernel.grid.push_back({v, std::move(extent)});
    return v;
  }
  loop::Expr symbol(const std::string& name) {
    kernel.symbols.push_back(name);
    return loop::symbol_ref(static_cast<int>(kernel.symbols.size()) - 1);
  }

 private:
  int counter_ = 0;
};

// `lanes` elements from `base` on: a ramp, or the scalar itself.
inline loop::Expr lanes_from(loop::Expr base, int lanes) {
  return lanes == 1 ? base : loop::ramp(base, 1, lanes);
}

// out[i] = f(in0[i], in1[i], ...) for `count` elements, a multiple of `lanes`; the output is the last buffer.
inline loop::Kernel elementwise(const std::string& name, const std::vector<DType>& inputs, DType out,
                                int64_t count, int lanes,
                                const std::function<loop::Expr(const std::vector<loop::Expr>&)>& f) {
  KernelMaker maker(name);
  std::vector<loop::Buffer> buffers;
  for (DType dtype : inputs) buffers.push_back(maker.global(dtype, count));
  loop::Buffer result = maker.output(out, count);
  loop::Var i = maker.var();
  loop::Expr index = lanes_from(loop::var_ref(i) * loop::const_index(lanes), lanes);
  std::vector<loop::Expr> values;
  for (const loop::Buffer& b : buffers) values.push_back(loop::load(b, index, lanes));
  maker.kernel.body = loop::for_loop(i, loop::const_index(count / lanes), loop::AxisKind::kSerial,
                                     loop::store(result, index, f(values)));
  return maker.kernel;
}

}  // namespace quernel::test
