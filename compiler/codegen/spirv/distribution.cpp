#include "codegen/spirv/distribution.h"

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "loop/print.h"

namespace quernel::codegen {
namespace {

// Elements that every invocation may have a copy of.
constexpr int64_t kLargestReplicated = 64;

using loop::ExprKind;
using loop::StmtKind;

struct Accesses {
  bool is_own = false;  // allocated by the kernel
  int loads = 0, stores = 0;
  bool vector_stores = false;
  bool aligned = true;  // all in vectors of one length at constant multiples of it
  bool by_lane = true;  // the same, at multiples that a run tells: each lane has elements of its own
  int lanes = 0;
  std::string index;  // of all accesses, while they are the same
  bool same_index = true;
};

bool is_multiple(const loop::Expr& e, int64_t of) {
  int64_t n = 0;
  if (loop::as_const_int(e, &n)) return n % of == 0;
  if (e->kind != ExprKind::kBinary || e->type.dtype != DType::kI64) return false;
  bool a = is_multiple(e->args[0], of), b = is_multiple(e->args[1], of);
  if (e->binary == BinaryOp::k_mul) return a || b;
  return (e->binary == BinaryOp::k_add || e->binary == BinaryOp::k_sub) && a && b;
}

class Analysis {
 public:
  Distribution run(const loop::Kernel& kernel) {
    for (const loop::GridAxis& axis : kernel.grid) expression(axis.extent);
    if (kernel.body) statement(*kernel.body);
    for (const loop::BufferNode* b : order_) place(*b, accesses_.at(b));
    return std::move(result_);
  }

 private:
  Accesses& of(const loop::BufferNode* b) {
    auto [it, fresh] = accesses_.try_emplace(b);
    if (fresh) order_.push_back(b);
    return it->second;
  }

  void access(const loop::BufferNode* b, const loop::Expr& index, int lanes) {
    Accesses& a = of(b);
    int64_t n = 0;
    bool aligned = lanes > 1 && is_aligned_vector(index, &n) && (a.lanes == 0 || a.lanes == lanes);
    a.by_lane = a.by_lane && lanes > 1 && (a.lanes == 0 || a.lanes == lanes) &&
                index->kind == ExprKind::kRamp && index->stride == 1 && is_multiple(index->args[0], lanes);
    a.aligned = a.aligned && aligned;
    a.lanes = std::max(a.lanes, lanes);
    std::string text = loop::to_string(index);
    if (a.loads + a.stores > 1) a.same_index = a.same_index && lanes > 1 && text == a.index;
    a.index = text;
  }

  // `several`: elements that are put together to fewer wide ones; an invocation reads all of its own.
  void expression(const loop::Expr& e, bool several = false) {
    if (!e || !(several ? visited_in_parts_ : visited_).insert(e.get()).second) return;
    if (!several) result_.invocations = std::max(result_.invocations, e->type.lanes);
    if (e->kind == ExprKind::kLoad) {
      Accesses& a = of(e->buffer.get());
      ++a.loads;
      if (several) a.by_lane = false;
      access(e->buffer.get(), e->args[0], e->type.lanes);
    }
    for (const loop::Expr& arg : e->args)
      expression(arg, e->kind == ExprKind::kBitcast ? several || arg->type.lanes > e->type.lanes : several);
  }

  void statement(const loop::StmtNode& s) {
    if (s.kind == StmtKind::kAlloc) of(s.buffer.get()).is_own = true;
    for (const loop::Expr* e : {&s.extent, &s.condition, &s.index, &s.value}) expression(*e);
    if (s.kind == StmtKind::kStore) {
      int lanes = s.value->type.lanes;
      Accesses& a = of(s.buffer.get());
      ++a.stores;
      a.vector_stores = a.vector_stores || lanes > 1;
      access(s.buffer.get(), s.index, lanes);
    }
    if (s.matrices)
      for (const loop::MatrixPlace* place : {&s.matrices->a, &s.matrices->b}) matrix(s, *place);
    for (const loop::Stmt& child : s.body)
      if (child) statement(*child);
  }

  // Which invocation accesses which element is the device's matter.
  void matrix(const loop::StmtNode& s, const loop::MatrixPlace& place) {
    if (!place.buffer) return;
    expression(place.index);
    Accesses& a = of(place.buffer.get());
    ++(s.kind == StmtKind::kStoreMatrix ? a.stores : a.loads);
    a.aligned = a.by_lane = a.same_index = false;
    a.vector_stores = true;
  }

  void place(const loop::BufferNode& b, const Accesses& a) {
    bool alone = result_.invocations == 1;
    if (!a.is_own) {
      bool exchanges = a.stores > 1 && b.access != loop::Access::kWrite;
      exchanges = exchanges || (a.loads > 0 && a.stores > 0);
      if (!alone && exchanges && !a.same_index) result_.exchanged.insert(&b);
      return;
    }
    Placement placement = Placement::kShared;
    if (b.scope == loop::Scope::kMatrix) {
      result_.placements[&b] = Placement::kDistributed;
      return;
    }
    if (alone || (!a.vector_stores && b.size <= kLargestReplicated)) placement = Placement::kReplicated;
    if (!alone && a.aligned && a.lanes > 1) {
      placement = Placement::kDistributed;
      result_.lanes[&b] = a.lanes;
    }
    if (placement == Placement::kShared && !a.by_lane) result_.exchanged.insert(&b);
    result_.placements[&b] = placement;
  }

  Distribution result_;
  std::unordered_map<const loop::BufferNode*, Accesses> accesses_;
  std::vector<const loop::BufferNode*> order_;
  std::unordered_set<const loop::ExprNode*> visited_, visited_in_parts_;
};

}  // namespace

bool is_aligned_vector(const loop::Expr& index, int64_t* n) {
  int64_t base = 0;
  if (index->kind != ExprKind::kRamp || index->stride != 1) return false;
  if (!loop::as_const_int(index->args[0], &base) || base % index->type.lanes != 0) return false;
  *n = base / index->type.lanes;
  return true;
}

Distribution distribute(const loop::Kernel& kernel) { return Analysis().run(kernel); }

}  // namespace quernel::codegen
