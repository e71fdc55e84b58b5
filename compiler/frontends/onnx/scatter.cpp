// Scatters, and operators that are one: cache updates and the inverse of max pools.
#include "frontends/onnx/scatter.h"
#include "frontends/onnx/operators.h"
#include "frontends/onnx/run_time_checks.h"
#include "frontends/onnx/window.h"

namespace quernel::onnx_import {
namespace {

constexpr int64_t kMaxSize = int64_t{1} << 31;  // of a window, and of a dim that it moves along

// Sums and products of several updates are wide.
Expected<ScatterMode> read_mode(NodeImport& n) {
  if (n.opset < 16) return ScatterMode::kSet;
  std::string name = n.attr_string("reduction", "none");
  if (name == "none") return ScatterMode::kSet;
  if (name == "add" || name == "mul") n.compute_wide();
  if (name == "add") return ScatterMode::kAdd;
  if (name == "mul") return ScatterMode::kMul;
  if (n.opset >= 18 && name == "max") return ScatterMode::kMax;
  if (n.opset >= 18 && name == "min") return ScatterMode::kMin;
  return n.invalid("attribute 'reduction': expected none, add, mul, max or min, found '" + name + "'");
}

// Of others the scatter says what is wrong.
bool is_index(DType dtype) { return dtype == DType::kI32 || dtype == DType::kI64; }

}  // namespace

Status import_scatter_elements(NodeImport& n) {
  QUERNEL_TRY(int64_t axis, n.axis(n.attr_int("axis", 0), n.rank(n.in(0))));
  QUERNEL_TRY(ScatterMode mode, read_mode(n));
  if (is_index(n.dtype(n.in(1))))
    QUERNEL_CHECK(check_indices(n, n.in(1), n.shape(n.in(0))[static_cast<size_t>(axis)]));
  return n.output(n.build.scatter(OpKind::k_scatter_elements, n.in(0), n.in(1), n.in(2), axis, mode));
}

Status import_scatter_nd(NodeImport& n) {
  QUERNEL_TRY(ScatterMode mode, read_mode(n));
  if (is_index(n.dtype(n.in(1)))) QUERNEL_CHECK(check_index_tuples(n, n.in(1), n.shape(n.in(0)), 0));
  return n.output(n.build.scatter(OpKind::k_scatter_nd, n.in(0), n.in(1), n.in(2), 0, mode));
}

ValueId write_rows(NodeImport& n, ValueId cache, ValueId update, ValueId starts, int64_t axis, bool wraps) {
  Shape rows(static_cast<size_t>(n.rank(cache)), Dim(1)), first = rows;
  size_t along = static_cast<size_t>(axis);
  rows[along] = n.shape(update)[along];
  ValueId position = n.build.reshape(n.positions(DType::kI64, rows[along]), rows);
  if (starts != kNoValue) {
    first[0] = n.shape(cache)[0];
    position = n.binary(BinaryOp::k_add, n.build.reshape(n.build.cast(starts, DType::kI64), first), position);
  }
  if (wraps) position = n.binary(BinaryOp::k_mod, position, n.number(DType::kI64, n.shape(cache)[along]));
  position = n.build.broadcast_to(position, n.shape(update));
  return n.build.scatter(OpKind::k_scatter_elements, cache, position, update, axis, ScatterMode::kSet);
}

// past_cache with the update's rows at write_indices[batch] … along the axis; circular ones wrap around.
Status import_tensor_scatter(NodeImport& n) {
  ValueId cache = n.in(0), update = n.in(1);
  int rank = n.rank(cache);
  QUERNEL_TRY(int64_t axis, n.axis(n.attr_int("axis", -2), rank));
  std::string mode = n.attr_string("mode", "linear");
  if (mode != "linear" && mode != "circular")
    return n.invalid("attribute 'mode': expected linear or circular, found '" + mode + "'");
  if (axis == 0) return n.invalid("attribute 'axis': expected an axis after the batch");
  if (n.rank(update) != rank)
    return n.invalid("expected an update of rank " + std::to_string(rank) + ", found " +
                     to_string(n.shape(update)));
  size_t along = static_cast<size_t>(axis);
  if (mode == "linear" && n.has(2)) {
    ValueId last = n.binary(BinaryOp::k_add, n.in(2), n.number(n.dtype(n.in(2)), n.shape(update)[along] - 1));
    QUERNEL_CHECK(check_indices(n, last, n.shape(cache)[along]));
  }
  return n.output(write_rows(n, cache, update, n.in(2), axis, mode == "circular"));
}

// The indices number the elements of the tensor that the pool took; a larger output_shape puts it into a
// corner.
Status import_max_unpool(NodeImport& n) {
  ValueId x = n.in(0);
  QUERNEL_TRY(std::vector<int64_t> dims, n.dims(x));
  std::optional<std::vector<int64_t>> kernel = n.attr_ints("kernel_shape");
  if (dims.size() < 3 || !kernel || kernel->size() != dims.size() - 2)
    return n.invalid("expected an input [N,C,D...] and a kernel_shape of its rank less 2, found " +
                     to_string(n.shape(x)));
  QUERNEL_TRY(std::vector<int64_t> strides, read_window_steps(n, "strides", kernel->size()));
  QUERNEL_TRY(WindowPads pads, read_window_pads(n, kernel->size()));
  std::vector<int64_t> pooled = dims;
  for (size_t i = 0; i < kernel->size(); ++i) {
    int64_t size = (*kernel)[i];
    if (size < 1 || size > kMaxSize || dims[i + 2] > kMaxSize)
      return n.invalid("attribute 'kernel_shape': expected values of at least 1 and below 2^31");
    pooled[i + 2] = (dims[i + 2] - 1) * strides[i] + size - pads.before[i] - pads.after[i];
    if (pooled[i + 2] < 0) return n.invalid("expected a window that leaves elements");
  }
  std::optional<int64_t> count = element_count(pooled), updates = element_count(dims);
  if (!count || !updates) return n.refuse("a tensor of more elements than fit 63 bits");
  ValueId empty = n.full(n.dtype(x), {Dim(*count)}, 0);
  // A window without elements has the index -1, which names none: beyond the end, a scatter ignores it.
  ValueId none = n.binary(BinaryOp::k_eq, n.in(1), -1.0);
  QUERNEL_CHECK(check_indices(n, n.build.where(none, n.scalar(DType::kI64, 0), n.in(1)), *count));
  ValueId places = n.build.where(none, n.build.constant(i64_tensor({}, {*count})), n.in(1));
  ValueId flat = n.build.scatter(OpKind::k_scatter_elements, empty, n.reshape(places, {*updates}),
                                 n.reshape(x, {*updates}), 0, ScatterMode::kSet);
  ValueId result = n.reshape(flat, pooled);
  if (!n.has(2)) return n.output(result);
  QUERNEL_TRY(std::vector<int64_t> wanted, n.ints_in(2, "output_shape"));
  if (wanted.size() != pooled.size())
    return n.invalid("expected an output_shape of " + std::to_string(pooled.size()) + " dims, found " +
                     std::to_string(wanted.size()));
  Shape before(wanted.size(), Dim(0)), after = before;
  for (size_t d = 0; d < wanted.size(); ++d) {
    if (wanted[d] < pooled[d])
      return n.invalid("expected an output_shape of at least " + to_string(make_shape(pooled)) + ", found " +
                       to_string(make_shape(wanted)));
    after[d] = wanted[d] - pooled[d];
  }
  return n.output(n.build.pad(result, before, after));
}

}  // namespace quernel::onnx_import
