// CenterCropPad, ReverseSequence and BitCast: the same elements elsewhere, or as another type.
#include "frontends/onnx/operators.h"

namespace quernel::onnx_import {

Status import_center_crop_pad(NodeImport& n) {
  ValueId x = n.in(0);
  int rank = n.rank(x);
  QUERNEL_TRY(Shape wanted, n.dims_in(1, "shape"));
  std::vector<int64_t> axes;
  for (int i = 0; i < rank; ++i) axes.push_back(i);
  if (auto given = n.attr_ints("axes")) {
    QUERNEL_TRY(axes, n.axes_in_range(*given, rank));
  }
  if (wanted.size() != axes.size())
    return n.invalid("expected " + std::to_string(axes.size()) + " sizes, found " +
                     std::to_string(wanted.size()));
  Shape starts(static_cast<size_t>(rank), Dim(0)), stops = n.shape(x), before = starts, after = starts,
                                                   result = stops;
  for (size_t i = 0; i < axes.size(); ++i) {
    const Dim size = stops[axes[i]], &want = wanted[i];
    if (always_lt(want, 0) || always_lt(int64_t{1} << 40, want))
      return n.invalid("expected sizes of at least 0 and below 2^40, found " + to_string(want));
    Dim cut = max(size - want, 0), grown = max(want - size, 0);
    starts[axes[i]] = floordiv(cut, 2);
    stops[axes[i]] = starts[axes[i]] + min(size, want);
    before[axes[i]] = floordiv(grown, 2);
    after[axes[i]] = grown - floordiv(grown, 2);
    result[axes[i]] = want;
  }
  return n.output(n.build.reshape(n.build.pad(n.build.slice(x, starts, stops), before, after), result));
}

// The first sequence_lens[b] elements of each row backwards, the others in place.
Status import_reverse_sequence(NodeImport& n) {
  ValueId x = n.in(0), lengths = n.in(1);
  int rank = n.rank(x);
  QUERNEL_TRY(int64_t batch_axis, n.axis(n.attr_int("batch_axis", 1), rank));
  QUERNEL_TRY(int64_t time_axis, n.axis(n.attr_int("time_axis", 0), rank));
  Shape shape = n.shape(x);
  if (n.rank(lengths) == 1) n.build.note_unequal(n.shape(lengths)[0], shape[batch_axis], true);
  if (batch_axis == time_axis || n.shape(lengths) != Shape{shape[batch_axis]})
    return n.invalid("expected two different axes and a length per row of " + to_string(shape) + ", found " +
                     to_string(n.shape(lengths)));
  Dim steps = shape[time_axis];
  Shape per_row(static_cast<size_t>(rank), Dim(1));
  per_row[batch_axis] = shape[batch_axis];
  ValueId length = n.build.reshape(lengths, per_row);
  ValueId here = n.positions(n.dtype(lengths), steps, static_cast<int>(rank - 1 - time_axis));
  ValueId mirrored = n.binary(BinaryOp::k_sub, n.binary(BinaryOp::k_sub, length, 1.0), here);
  ValueId index = n.build.where(n.binary(BinaryOp::k_lt, here, length), mirrored, here);
  Attributes along_time;
  along_time.ints = {time_axis};
  return n.output(
      n.build.add(OpKind::k_gather_elements, {x, n.build.broadcast_to(index, shape)}, std::move(along_time)));
}

Status import_bit_cast(NodeImport& n) {
  QUERNEL_TRY(DType dtype, dtype_from_onnx(static_cast<int>(n.attr_int("to", 0)), n.build.location()));
  if (bit_width(dtype) != bit_width(n.dtype(n.in(0))))
    return n.invalid("expected types of one width, found " + std::string(to_string(n.dtype(n.in(0)))) +
                     " and " + std::string(to_string(dtype)));
  Attributes to;
  to.dtype = dtype;
  return n.output(n.build.add(OpKind::k_bitcast, {n.in(0)}, std::move(to)));
}

}  // namespace quernel::onnx_import
