#include "random_kernel.h"

#include <random>

#include "loop/rewrite.h"

namespace quernel::loop {
namespace {

// Every store goes to `%y[flat index of the enclosing loops]`, so that no two iterations meet, or to an
// accumulator.
class Generator {
 public:
  explicit Generator(uint32_t seed) : random_(seed) {}

  Kernel kernel() {
    Kernel k;
    k.name = "random";
    dtype_ = pick(3) ? DType::kF32 : DType::kI32;
    x_ = buffer("x", dtype_, kInputSize, Access::kRead, 0);
    ids_ = buffer("ids", DType::kI64, kInputSize, Access::kRead, 1);
    y_ = buffer("y", dtype_, kOutputSize, Access::kReadWrite, 2);
    k.buffers = {x_, ids_, y_};
    for (int64_t axis = pick(3); axis > 0; --axis) {
      Var var = make_var(name("wg"));
      int64_t extent = 1 + pick(3);
      k.grid.push_back({var, const_index(extent)});
      enter(var, extent);
    }
    k.body = block(statements(3));
    return k;
  }

 private:
  static constexpr int64_t kInputSize = 97, kOutputSize = 1 << 13;
  struct Axis {
    Var var;
    int64_t extent;
  };

  int64_t pick(int64_t n) { return std::uniform_int_distribution<int64_t>(0, n - 1)(random_); }
  std::string name(const char* stem) { return stem + std::to_string(next_name_++); }
  void enter(const Var& var, int64_t extent) {
    axes_.push_back({var, extent});
    volume_ *= extent;
  }
  void leave() {
    volume_ /= axes_.back().extent;
    axes_.pop_back();
  }
  Buffer buffer(std::string name, DType dtype, int64_t size, Access access, int binding) {
    return std::make_shared<const BufferNode>(BufferNode{
        std::move(name), dtype, size, binding < 0 ? Scope::kRegister : Scope::kGlobal, binding, access});
  }

  // The position among all iterations of the enclosing loops, and one of the `kOutputSize / volume` regions.
  Expr own_index() {
    Expr index = const_index(pick(kOutputSize / volume_));
    index = index * const_index(volume_);
    for (const Axis& axis : axes_) {
      Expr flat = const_index(1);
      for (size_t i = static_cast<size_t>(&axis - axes_.data()) + 1; i < axes_.size(); ++i)
        flat = flat * const_index(axes_[i].extent);
      index = index + var_ref(axis.var) * flat;
    }
    return index;
  }

  Expr index_leaf() {
    if (axes_.empty() || pick(4) == 0) return const_index(pick(20) - 4);
    if (!index_lets_.empty() && pick(4) == 0)
      return var_ref(index_lets_[static_cast<size_t>(pick(static_cast<int64_t>(index_lets_.size())))]);
    return var_ref(axes_[static_cast<size_t>(pick(static_cast<int64_t>(axes_.size())))].var);
  }

  Expr index(int depth) {
    if (depth == 0) return index_leaf();
    Expr a = index(depth - 1), b = index(depth - 1);
    Expr c = const_index(1 + pick(9));
    switch (pick(12)) {
      case 0:
      case 1:
      case 2:
        return a + b;
      case 3:
        return a - b;
      case 4:
      case 5:
        return a * c;
      case 6:
        return binary(BinaryOp::k_idiv, a, c);
      case 7:
        return binary(BinaryOp::k_fdiv, a, c);
      case 8:
        return binary(BinaryOp::k_mod, a, c);
      case 9:
        return binary(BinaryOp::k_fmod, a, c);
      case 10:
        return binary(pick(2) ? BinaryOp::k_max : BinaryOp::k_min, a, b);
      default:
        return binary(BinaryOp::k_fdiv, a, c) * c + binary(BinaryOp::k_mod, a, c);
    }
  }

  Expr safe_index(int64_t size) { return binary(BinaryOp::k_mod, index(3), const_index(size)); }

  Expr condition() {
    constexpr BinaryOp kOps[] = {BinaryOp::k_lt, BinaryOp::k_le, BinaryOp::k_gt,
                                 BinaryOp::k_ge, BinaryOp::k_eq, BinaryOp::k_ne};
    Expr c = binary(kOps[pick(6)], index(2), index(1));
    if (pick(4) == 0) c = unary(UnaryOp::k_not, c);
    if (pick(4) == 0) c = binary(pick(2) ? BinaryOp::k_and : BinaryOp::k_or, c, condition());
    if (pick(5) == 0) c = binary(BinaryOp::k_lt, load(ids_, safe_index(kInputSize)), const_index(pick(10)));
    return c;
  }

  Expr zero() { return const_bits({dtype_, 1}, 0); }

  Expr value(int depth) {
    if (depth == 0) {
      switch (pick(6)) {
        case 0:
          return cast(dtype_, index(1));
        case 1: {  // a guard that is needed: the index may be anything
          Expr i = index(2);
          Expr inside = binary(BinaryOp::k_and, binary(BinaryOp::k_ge, i, const_index(0)),
                               binary(BinaryOp::k_lt, i, const_index(kInputSize)));
          return load_guarded(x_, i, inside, pick(2) ? zero() : cast(dtype_, index(1)));
        }
        case 2:
          if (!value_lets_.empty())
            return var_ref(value_lets_[static_cast<size_t>(pick(static_cast<int64_t>(value_lets_.size())))]);
          [[fallthrough]];
        case 3:
          if (!accumulators_.empty()) return load(accumulators_.back(), const_index(pick(kAccumulatorSize)));
          [[fallthrough]];
        default:
          return load(x_, safe_index(kInputSize));
      }
    }
    Expr a = value(depth - 1), b = value(depth - 1);
    switch (pick(6)) {
      case 0:
        return a + b;
      case 1:
        return a - b;
      case 2:
        return binary(BinaryOp::k_max, a, b);
      case 3:
        if (dtype_ == DType::kI32 && pick(2)) return dot(bitcast({DType::kU32, 1}, a), b, value(depth - 1));
        return mul_acc(a, const_int_value(1 + pick(3)), b);
      case 4:
        return select(condition(), a, b);
      default:
        return pick(2) ? a : unary(UnaryOp::k_neg, b);
    }
  }
  Expr const_int_value(int64_t v) { return cast(dtype_, const_index(v)); }

  std::vector<Stmt> statements(int depth) {
    std::vector<Stmt> body;
    size_t index_lets = index_lets_.size(), value_lets = value_lets_.size(),
           accumulators = accumulators_.size();
    for (int64_t count = 1 + pick(3); count > 0; --count) statement(depth, &body);
    body.push_back(store(y_, own_index(), value(1)));
    index_lets_.resize(index_lets);
    value_lets_.resize(value_lets);
    accumulators_.resize(accumulators);
    return body;
  }

  void statement(int depth, std::vector<Stmt>* body) {
    switch (depth == 0 ? 4 + pick(4) : pick(8)) {
      case 0:
      case 1:
      case 2:
        return loop(depth, body);
      case 3: {
        Stmt then = block(statements(depth - 1));
        body->push_back(if_then(condition(), then, pick(2) ? block(statements(depth - 1)) : nullptr));
        return;
      }
      case 4: {
        Var var = make_var(name("i"));
        body->push_back(let(var, index(2)));
        index_lets_.push_back(var);
        return;
      }
      case 5: {
        Var var = make_var(name("a"), {dtype_, 1});
        body->push_back(let(var, value(2)));
        value_lets_.push_back(var);
        return;
      }
      case 6:
        return reduction(body);
      default:
        body->push_back(store(y_, own_index(), value(2), pick(3) ? nullptr : condition()));
        return;
    }
  }

  void loop(int depth, std::vector<Stmt>* body) {
    constexpr AxisKind kKinds[] = {AxisKind::kSerial, AxisKind::kUnrolled, AxisKind::kVector,
                                   AxisKind::kVector};
    Var var = make_var(name("v"));
    int64_t extent = pick(10) == 0 ? pick(2) : 1 + pick(8);
    enter(var, std::max<int64_t>(extent, 1));
    Stmt inner = block(statements(depth - 1));
    leave();
    body->push_back(for_loop(var, const_index(extent), kKinds[pick(4)], inner));
  }

  // alloc, initialise, accumulate in a loop, and leave the result for the values that follow.
  void reduction(std::vector<Stmt>* body) {
    Buffer acc = buffer(name("acc"), dtype_, kAccumulatorSize, Access::kReadWrite, -1);
    body->push_back(alloc(acc));
    Var init = make_var(name("j"));
    body->push_back(for_loop(init, const_index(kAccumulatorSize),
                             pick(2) ? AxisKind::kUnrolled : AxisKind::kVector,
                             store(acc, var_ref(init), zero())));
    Var k = make_var(name("k")), j = make_var(name("j"));
    enter(k, 1 + pick(5));
    int64_t extent = axes_.back().extent;
    enter(j, kAccumulatorSize);
    Stmt update = store(acc, var_ref(j), load(acc, var_ref(j)) + value(1), pick(3) ? nullptr : condition());
    leave();
    leave();
    AxisKind inner = pick(2) ? AxisKind::kUnrolled : AxisKind::kVector;
    body->push_back(for_loop(k, const_index(extent), AxisKind::kReduction,
                             for_loop(j, const_index(kAccumulatorSize), inner, update)));
    accumulators_.push_back(acc);
  }

  static constexpr int64_t kAccumulatorSize = 4;
  std::mt19937 random_;
  int next_name_ = 0;
  DType dtype_ = DType::kF32;
  Buffer x_, ids_, y_;
  std::vector<Axis> axes_;
  int64_t volume_ = 1;
  std::vector<Var> index_lets_, value_lets_;
  std::vector<Buffer> accumulators_;
};

}  // namespace

Kernel random_kernel(uint32_t seed) { return Generator(seed).kernel(); }

}  // namespace quernel::loop
