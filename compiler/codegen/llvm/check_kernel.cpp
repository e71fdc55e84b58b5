#include "codegen/llvm/check_kernel.h"

#include <functional>
#include <unordered_set>

#include "loop/evaluate_scalar.h"

namespace quernel::codegen {
namespace {

using loop::ExprKind;
using loop::StmtKind;

// Register buffers and small shared ones live on the stack of a worker thread, large ones in scratch.
constexpr int64_t kLargestStackBytes = 1 << 20, kLargestScratchBytes = int64_t{1} << 30;
constexpr int64_t kScratchThreshold = 8 << 10;

class Checker {
 public:
  Checker(const loop::Kernel& kernel, const Target* gpu) : kernel_(kernel), gpu_(gpu) {}

  Diagnostics run() {
    for (const loop::Buffer& b : kernel_.buffers) buffer(*b);
    for (const loop::GridAxis& axis : kernel_.grid) expr(axis.extent);
    if (kernel_.body) statement(*kernel_.body);
    if (stack_bytes_ > kLargestStackBytes)
      refuse("shared and register buffers take " + std::to_string(stack_bytes_) +
             " bytes, expected at most " + std::to_string(kLargestStackBytes));
    if (scratch_bytes_ > kLargestScratchBytes)
      refuse("large shared buffers take " + std::to_string(scratch_bytes_) + " bytes, expected at most " +
             std::to_string(kLargestScratchBytes));
    return std::move(errors_);
  }

 private:
  void refuse(const std::string& what) {
    if (seen_.insert(what).second) errors_.push_back(unsupported("kernel '" + kernel_.name + "': " + what));
  }
  void broken(const std::string& what) {
    errors_.push_back(internal_error("kernel '" + kernel_.name + "': " + what, {}, "codegen-llvm"));
  }
  void dtype(DType d, const std::string& where) {
    // Lowering makes packed elements the bytes that hold them.
    if (bit_width(d) < 8) refuse("dtype " + std::string(to_string(d)) + where);
  }
  void buffer(const loop::BufferNode& b) { dtype(b.dtype, " of buffer '" + b.name + "'"); }

  void expr(const loop::Expr& e) {
    if (!e || !visited_.insert(e.get()).second) return;
    dtype(e->type.dtype, " of an expression");
    for (const loop::Expr& arg : e->args) expr(arg);
    if (e->kind == ExprKind::kUnary && !loop::unary_accepts(e->unary, e->args[0]->type.dtype))
      refuse("operation " + std::string(to_string(e->unary)) + " on " +
             std::string(to_string(e->args[0]->type.dtype)));
    bool folds = e->kind == ExprKind::kBinary || e->kind == ExprKind::kReduceLanes;
    if (folds && !loop::binary_accepts(e->binary, e->args[0]->type.dtype))
      refuse("operation " + std::string(to_string(e->binary)) + " on " +
             std::string(to_string(e->args[0]->type.dtype)));
  }

  void statement(const loop::StmtNode& s) {
    if (s.kind == StmtKind::kFor &&
        (s.axis == loop::AxisKind::kVector || s.axis == loop::AxisKind::kUnrolled))
      broken("loop '" + s.var->name + "' is still to be vectorised or unrolled");
    if (s.kind == StmtKind::kAlloc) {
      buffer(*s.buffer);
      (lives_in_scratch(*s.buffer) ? scratch_bytes_ : stack_bytes_) +=
          byte_size(s.buffer->dtype, s.buffer->size);
    }
    if (s.matrices) matrices(s);
    expr(s.extent);
    expr(s.condition);
    expr(s.index);
    expr(s.value);
    for (const loop::Stmt& child : s.body)
      if (child) statement(*child);
  }

  void matrices(const loop::StmtNode& s) {
    if (s.kind == StmtKind::kMultiplyMatrices) {
      const DType dtype = s.matrices->b.buffer->dtype;
      if (!gpu_ || gpu_->matrix_steps(dtype) == 0)
        broken("products of matrices of " + std::string(to_string(dtype)) + " are for GPUs that have them");
    } else if (!gpu_) {
      broken("matrix sums are for GPUs that have them");
    }
  }

  const loop::Kernel& kernel_;
  const Target* gpu_;
  Diagnostics errors_;
  int64_t stack_bytes_ = 0, scratch_bytes_ = 0;
  std::unordered_set<std::string> seen_;
  std::unordered_set<const loop::ExprNode*> visited_;
};

}  // namespace

bool lives_in_scratch(const loop::BufferNode& buffer) {
  return buffer.scope == loop::Scope::kShared && byte_size(buffer.dtype, buffer.size) > kScratchThreshold;
}

uint64_t scratch_bytes(const loop::Kernel& kernel) {
  std::function<uint64_t(const loop::StmtNode&)> sum = [&](const loop::StmtNode& s) {
    uint64_t bytes = 0;
    if (s.kind == StmtKind::kAlloc && lives_in_scratch(*s.buffer))
      bytes = (static_cast<uint64_t>(byte_size(s.buffer->dtype, s.buffer->size)) + 63) / 64 * 64;
    for (const loop::Stmt& child : s.body)
      if (child) bytes += sum(*child);
    return bytes;
  };
  return kernel.body ? sum(*kernel.body) : 0;
}

Status check_kernel(const loop::Kernel& kernel, const Target* gpu) {
  Diagnostics errors = Checker(kernel, gpu).run();
  if (errors.empty()) return {};
  return errors;
}

}  // namespace quernel::codegen
