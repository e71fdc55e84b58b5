#include "frontends/tflite/node_import.h"

#include <algorithm>

#include "graph/quantized.h"

namespace quernel::tflite_import {
namespace {

constexpr int32_t kLeftOut = -1;

bool stands_for_reals(DType dtype) {
  return dtype == DType::kI8 || dtype == DType::kU8 || dtype == DType::kI16 || dtype == DType::kI4 ||
         dtype == DType::kU4;
}

// Whether a table of options has any field.
bool has_fields(const void* table) {
  return table && unknown_field(*static_cast<const flatbuffers::Table*>(table), 0);
}

}  // namespace

NodeImport::NodeImport(const ModelFile& model_file, const tflite::SubGraph& sub, const tflite::Operator& node,
                       GraphBuilder& builder, ConstantFolder& fold)
    : ImportedNode(builder, fold),
      file(model_file),
      subgraph(sub),
      op(node),
      kind(operator_of(model_file, node)) {
  for (int32_t tensor : elements(op.inputs()))
    input_names.push_back(tensor == kLeftOut ? std::string() : text(sub.tensors()->Get(tensor)->name()));
  for (int32_t tensor : elements(op.outputs()))
    output_names.push_back(text(sub.tensors()->Get(tensor)->name()));
  outputs.resize(output_names.size(), kNoValue);
}

// ---- tensors

const tflite::Tensor* NodeImport::in_tensor(int i) const {
  if (!op.inputs() || i >= static_cast<int>(op.inputs()->size())) return nullptr;
  int32_t tensor = op.inputs()->Get(static_cast<uint32_t>(i));
  return tensor == kLeftOut ? nullptr : subgraph.tensors()->Get(static_cast<uint32_t>(tensor));
}

void NodeImport::expect_operand(int i) const {
  if (i >= static_cast<int>(in_quantization_.size()))
    build.fail(invalid("expected operand " + std::to_string(i) + ", found " +
                       std::to_string(in_quantization_.size()) + " operands"));
}
void NodeImport::expect_result(int i) const {
  if (i >= output_count())
    build.fail(invalid("expected result " + std::to_string(i) + ", found " + std::to_string(output_count()) +
                       " results"));
}

const tflite::Tensor& NodeImport::out_tensor(int i) const {
  expect_result(i);
  return *subgraph.tensors()->Get(static_cast<uint32_t>(op.outputs()->Get(static_cast<uint32_t>(i))));
}

std::vector<int64_t> NodeImport::declared_shape(int i) const {
  std::vector<int32_t> dims = elements(out_tensor(i).shape());
  return {dims.begin(), dims.end()};
}

Status NodeImport::read_quantization() {
  using Op = tflite::BuiltinOperator;
  bool may_have_none = kind == Op::CALL || kind == Op::IF || kind == Op::WHILE;
  if (outputs.empty() && !may_have_none) return invalid("expected at least one result, found none");
  for (int i = 0; i < static_cast<int>(input_names.size()); ++i) {
    const tflite::Tensor* tensor = in_tensor(i);
    Quantization q;
    if (tensor) {
      QUERNEL_TRY(q, quantization_of(*tensor, build.location()));
    }
    in_quantization_.push_back(std::move(q));
  }
  for (int i = 0; i < output_count(); ++i) {
    QUERNEL_TRY(Quantization q, quantization_of(out_tensor(i), build.location()));
    DType dtype = DType::kF32;
    if (!tflite_import::is_complex(out_tensor(i))) {
      QUERNEL_TRY(dtype, dtype_of(out_tensor(i).type(), build.location()));
    }
    out_quantization_.push_back(std::move(q));
    out_dtypes_.push_back(dtype);
  }
  return {};
}

bool NodeImport::is_quantized(int i) const {
  return has(i) && stands_for_reals(dtype(in(i))) && in_quantization(i).is_given();
}

bool NodeImport::is_output_quantized(int i) const {
  return stands_for_reals(out_dtype(i)) && out_quantization(i).is_given();
}

// ---- options

const void* NodeImport::no_options() {
  struct Table {
    flatbuffers::voffset_t vtable_bytes = 4, table_bytes = 4;
    flatbuffers::soffset_t to_vtable = 4;
  };
  static const Table kTable;
  return &kTable.to_vtable;
}

void NodeImport::wrong_options() {
  build.fail(invalid("expected options of the operator's own kind, found those of another one"));
}

void NodeImport::check_fields(std::optional<int> unknown) {
  if (unknown)
    build.fail(
        refuse("the options have field " + std::to_string(*unknown) + ", which is newer than this importer",
               "the field may change the result, so it is not ignored; convert the model with an older "
               "converter"));
}

std::vector<uint8_t> NodeImport::custom_options() {
  custom_read_ = true;
  if (op.custom_options() && op.custom_options()->size() > 0) return elements(op.custom_options());
  large_custom_read_ = true;
  if (op.large_custom_options_offset() < kFirstOffset) return {};
  const uint8_t* begin = file.bytes.data() + op.large_custom_options_offset();
  return {begin, begin + op.large_custom_options_size()};
}

// ---- checks

Status NodeImport::expect_dtypes(int i, std::initializer_list<DType> dtypes) const {
  if (std::find(dtypes.begin(), dtypes.end(), dtype(in(i))) != dtypes.end()) return {};
  std::string legal;
  for (DType dtype : dtypes) legal += (legal.empty() ? "" : ", ") + std::string(to_string(dtype));
  return refuse("operand " + std::to_string(i) + ": expected " + legal + ", found " +
                std::string(to_string(dtype(in(i)))));
}

Status NodeImport::expect_rank(int i, int least, int most) const {
  if (rank(in(i)) >= least && rank(in(i)) <= most) return {};
  std::string expected = std::to_string(least) + (least == most ? "" : " to " + std::to_string(most));
  return invalid("operand " + std::to_string(i) + ": expected a shape of rank " + expected + ", found " +
                 to_string(shape(in(i))));
}

Status NodeImport::expect_per_tensor(int i) const {
  if (in_quantization(i).is_per_tensor()) return {};
  return refuse("operand " + std::to_string(i) + ": expected integers with one scale");
}

Status NodeImport::expect_output_per_tensor(int i) const {
  if (out_quantization(i).is_per_tensor()) return {};
  return refuse("result " + std::to_string(i) + ": expected integers with one scale");
}

Diagnostic NodeImport::bad_option(const std::string& name, const std::string& expected,
                                  const std::string& found) const {
  return refuse("option '" + name + "': expected " + expected + ", found " + found);
}

Diagnostic NodeImport::no_kernel() const {
  std::string dtypes;
  for (ValueId v : inputs)
    dtypes += (dtypes.empty() ? "" : ", ") +
              (v == kNoValue ? std::string("none") : std::string(to_string(dtype(v))));
  return refuse("the operator is not supported with operands of " + dtypes,
                "convert the model with other types for this operator");
}

// ---- real values

Shape shape_of_scales(ImportedNode& n, ValueId x, const Quantization& q) {
  if (q.axis >= n.rank(x))
    n.build.fail(n.invalid("expected values with dim " + std::to_string(q.axis) +
                           ", whose indices have scales, found " + to_string(n.shape(x))));
  Shape column(static_cast<size_t>(n.rank(x) - q.axis), Dim(1));
  column[0] = static_cast<int64_t>(q.scales.size());
  return column;
}

ValueId dequantize(ImportedNode& n, ValueId x, const Quantization& q) {
  // Of one scale, or one per index of a dim.
  auto spread = [&](ValueId parameter) {
    return n.build.reshape(parameter, q.is_per_tensor() ? Shape{} : shape_of_scales(n, x, q));
  };
  ValueId integers = n.build.cast(x, DType::kI32);
  if (std::any_of(q.zero_points.begin(), q.zero_points.end(), [](int64_t zero) { return zero != 0; })) {
    std::vector<int32_t> zeros(q.zero_points.begin(), q.zero_points.end());
    int64_t count = static_cast<int64_t>(zeros.size());
    integers = n.binary(BinaryOp::k_sub, integers,
                        spread(n.build.constant(make_tensor(DType::kI32, {count}, zeros))));
  }
  int64_t count = static_cast<int64_t>(q.scales.size());
  return n.binary(BinaryOp::k_mul, n.build.cast(integers, DType::kF32),
                  spread(n.build.constant(f32_tensor({count}, q.scales))));
}

ValueId dequantize_blocks(ImportedNode& n, ValueId x, const Quantization& q, ValueId scales) {
  Shape dims = n.shape(x), blocks = dims;
  Dim columns = dims.empty() ? Dim(1) : dims.back();
  if (dims.empty() || !columns.is_const() || columns.value() % q.block != 0)
    return n.build.fail(n.invalid("expected rows of whole blocks of " + std::to_string(q.block) + ", found " +
                                  to_string(dims)));
  blocks.back() = columns.value() / q.block;
  if (!(element_count(blocks) == element_count(n.shape(scales))))
    return n.build.fail(n.invalid("expected a scale for each of the blocks " + to_string(blocks) +
                                  ", found " + to_string(n.shape(scales))));
  std::vector<int64_t> groups(dims.size(), 1);
  groups.back() = q.block;
  scales = n.build.reshape(scales, blocks);
  const bool stays = is_packed(n.dtype(x)) || is_byte(n.dtype(x));
  return stays ? n.build.dequantize(x, scales, kNoValue, groups)
               : dequantized(n.build, x, scales, kNoValue, groups);
}

ValueId NodeImport::real(int i) {
  ValueId x = in(i);
  if (is_float(i)) return build.cast(x, DType::kF32);
  if (!is_quantized(i) && !(dtype(x) == DType::kI32 && in_quantization(i).is_given()))
    return build.fail(no_kernel());
  const Quantization& q = in_quantization(i);
  return q.block > 0 ? dequantize_blocks(*this, x, q, value_of(q.block_scales)) : dequantize(*this, x, q);
}

// ---- ends

Status NodeImport::set_outputs(std::vector<ValueId> values) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (i < values.size()) outputs[i] = values[i];
    if (outputs[i] == kNoValue)
      return refuse("output " + std::to_string(i) + " '" + output_names[i] + "' is not supported",
                    "remove the uses of this output from the model");
    if (dtype(outputs[i]) != out_dtypes_[i])
      return invalid("result " + std::to_string(i) + ": the file says " +
                     std::string(to_string(out_dtypes_[i])) + ", but operands like these give " +
                     std::string(to_string(dtype(outputs[i]))));
  }
  bool unread = (!options_read_ && has_fields(op.builtin_options())) ||
                (!options2_read_ && has_fields(op.builtin_options_2())) ||
                (!custom_read_ && op.custom_options() && op.custom_options()->size() > 0) ||
                (!large_custom_read_ && op.large_custom_options_size() > 0) || unknown_field(op);
  if (unread)
    return refuse(
        "the operator has options that are not known",
        "they may change the result, so they are not ignored; convert the model with an older converter");
  return {};
}

}  // namespace quernel::tflite_import
