#include "ops/support.h"

#include "graph/build.h"

namespace quernel::ops {
namespace {

constexpr int64_t kRows = 3, kColumns = 40;

DType bits_of(DType dtype) {
  switch (bit_width(dtype)) {
    case 4:
      return dtype == DType::kU4 ? DType::kI4 : DType::kU4;
    case 8:
      return dtype == DType::kU8 ? DType::kI8 : DType::kU8;
    case 16:
      return dtype == DType::kU16 ? DType::kI16 : DType::kU16;
    case 32:
      return dtype == DType::kU32 ? DType::kI32 : DType::kU32;
    default:
      return dtype == DType::kU64 ? DType::kI64 : DType::kU64;
  }
}

void fill_movement(OpKind op, SampleNode& sample) {
  Attributes& a = sample.attributes;
  switch (op) {
    case OpKind::k_reshape:
      a.shape = {kColumns, kRows};
      break;
    case OpKind::k_permute:
      a.ints = {1, 0};
      break;
    case OpKind::k_expand:
      sample.inputs[0].shape = {kRows, 1};
      a.shape = {kRows, kColumns};
      break;
    case OpKind::k_slice:
      a.starts = {1, 2}, a.stops = {kRows, kColumns}, a.steps = {1, 3};
      break;
    case OpKind::k_flip:
      a.ints = {1};
      break;
    case OpKind::k_pad:
      a.starts = {0, 1}, a.stops = {1, 2}, a.fill = 1;
      break;
    case OpKind::k_view:
      a.shape = {kRows, kColumns};
      a.map.indices = {IndexExpr::axis(0), IndexExpr::axis(1) + 1};
      a.map.guards = {{IndexExpr::axis(1) + 1, 0, kColumns}};
      a.fill = 1;
      break;
    default:
      break;
  }
}

Contraction product_of_matrices(DType dtype) {
  Contraction c;
  c.axes = {{"m", kRows, false}, {"n", kRows, false}, {"k", kColumns, true}};
  c.a = {IndexExpr::axis(0), IndexExpr::axis(2)};
  c.b = {IndexExpr::axis(1), IndexExpr::axis(2)};
  c.out = {IndexExpr::axis(0), IndexExpr::axis(1)};
  c.accumulator = default_accumulator(dtype);
  return c;
}

// Whether elements only move: their bits are not looked at.
bool moves_bits(OpKind op, std::string_view family) {
  return family == "movement" || family == "cat" || family == "gather" || family == "source" ||
         op == OpKind::k_where || op == OpKind::k_bitcast;
}

}  // namespace

std::optional<SampleNode> sample_node(OpKind op, DType dtype) {
  const TensorType x{dtype, {kRows, kColumns}};
  std::string_view family = op_info(op).family;
  SampleNode sample{{x}, {}};
  Attributes& a = sample.attributes;
  a.accumulator = default_accumulator(dtype);
  if (family == "unary") return sample;
  if (family == "binary") return sample.inputs.push_back(x), sample;
  if (family == "ternary") {
    sample.inputs = {op == OpKind::k_where ? TensorType{DType::kBool, x.shape} : x, x, x};
    return sample;
  }
  if (family == "convert") {
    a.dtype = op == OpKind::k_bitcast ? bits_of(dtype) : dtype == DType::kF32 ? DType::kI32 : DType::kF32;
    return sample;
  }
  if (family == "quantized") {
    const Shape groups{kRows, kColumns / 8};
    sample.inputs.insert(sample.inputs.end(), {{DType::kF32, groups}, {dtype, groups}});
    a.ints = {1, 8};
    return sample;
  }
  if (family == "quantized_rows") {
    const TensorType groups{DType::kF32, {kRows, kColumns / 8}};
    sample.inputs.insert(sample.inputs.end(), {groups, groups});
    a.ints = {8};
    return sample;
  }
  if (op == OpKind::k_constant) {
    sample.inputs.clear();
    std::vector<uint8_t> bytes(static_cast<size_t>(byte_size(dtype, kRows * kColumns)), 1);
    a.tensor = {dtype, {kRows, kColumns}, Bytes::own(std::move(bytes))};
    return sample;
  }
  if (family == "movement") return fill_movement(op, sample), sample;
  if (family == "cat") {
    sample.inputs.push_back(x);
    a.ints = {0};
    return sample;
  }
  if (family == "reduce" || family == "scan") {
    a.ints = {1};
    a.dtype = DType::kI64;
    return sample;
  }
  if (family == "sort") {
    a.ints = {1};
    a.shape = {kColumns};
    return sample;
  }
  if (family == "contract") {
    sample.inputs.push_back(x);
    a.contraction = product_of_matrices(dtype);
    return sample;
  }
  if (family == "gather" || family == "scatter") {
    bool elements = op == OpKind::k_gather_elements || op == OpKind::k_scatter_elements;
    bool tuples = op == OpKind::k_gather_nd || op == OpKind::k_scatter_nd;
    Shape indices = elements ? x.shape : tuples ? Shape{5, 1} : Shape{5};
    sample.inputs.push_back({DType::kI64, indices});
    if (family == "scatter") sample.inputs.push_back({dtype, elements ? x.shape : Shape{5, kColumns}});
    a.ints = {0};
    a.scatter = dtype == DType::kBool ? ScatterMode::kSet : ScatterMode::kAdd;
    return sample;
  }
  if (op == OpKind::k_custom) {
    a.custom = std::make_shared<CustomOp>(CustomOp{"support::Copy", "", {x}});
    return sample;
  }
  return {};
}

Support cpu_support(OpKind op, const SampleNode& sample, DType dtype) {
  const OpInfo& info = op_info(op);
  if (!info.infer(op, sample.inputs, sample.attributes)) return Support::kRefused;
  if (op == OpKind::k_constant || op == OpKind::k_custom) return Support::kNative;
  if (is_packed(dtype)) return Support::kWidened;
  bool narrow_float = is_float(dtype) && bit_width(dtype) < 32;
  return narrow_float && !moves_bits(op, info.family) ? Support::kWidened : Support::kNative;
}

std::string support_table() {
  std::string text =
      "# Core ops and dtypes\n\n"
      "Written by `quernel targets --ops`; `tests/conformance/ops` compiles and runs every cell. One table "
      "per device, "
      "the same for\nall its targets. N: native. W: widened, which is computed in f32 and rounded after "
      "every operation "
      "(f16, bf16, f8) or unpacked to\nbytes (i4, u4). Empty: refused at compile time. The dtype is that of "
      "the data: "
      "the compared values, the condition's branches, the\nsource of a conversion. Casts go to every "
      "dtype.\n\n## "
      "cpu\n\n| op |";
  std::string rule = "|---|";
  for (int d = 0; d < kDTypeCount; ++d) {
    text += " " + std::string(to_string(static_cast<DType>(d))) + " |";
    rule += "---|";
  }
  text += "\n" + rule + "\n";
  const OpKind ops[] = {
#define QUERNEL_OP(name, family) OpKind::k_##name,
#include "ops/ops.def"
  };
  for (OpKind op : ops) {
    if (!sample_node(op, DType::kF32)) continue;
    text += "| " + std::string(to_string(op)) + " |";
    for (int d = 0; d < kDTypeCount; ++d) {
      DType dtype = static_cast<DType>(d);
      Support support = cpu_support(op, *sample_node(op, dtype), dtype);
      text += support == Support::kNative ? " N |" : support == Support::kWidened ? " W |" : "  |";
    }
    text += "\n";
  }
  return text;
}

}  // namespace quernel::ops
