// Products of matrices by cooperative matrices, whose shape the device chooses (schemas/kernel_abi.h).
#include "codegen/spirv/glsl_prelude.h"
#include "codegen/spirv/shader_printer.h"
#include "schemas/kernel_abi.h"

namespace quernel::codegen {

using loop::StmtKind;

namespace {

// A dtype of matrices in GLSL.
struct Form {
  DType dtype;
  const char* element;  // as which memory holds it, and through which matrices are loaded
  int component;        // of a and b, for `complete_matrix_types`
  const char* sum;
  int sum_component;
  const char* extensions;
  const char* capabilities;  // CooperativeMatrixKHR; of integers Int8; of bf16 its own two and Int16
  int signs;                 // the matrices of signed integers: a, b, the sums before and after; -1: floats
};
constexpr Form kForms[] = {
    {DType::kF16, "float16_t", 0, "float", 1, R"("SPV_KHR_cooperative_matrix")", "6022", -1},
    {DType::kBF16, "uint16_t", 1000141000, "float", 1, R"("SPV_KHR_cooperative_matrix", "SPV_KHR_bfloat16")",
     "6022, 5116, 5118, 22", -1},
    {DType::kI8, "int8_t", 3, "int", 5, R"("SPV_KHR_cooperative_matrix")", "6022, 39", 15},
    {DType::kU8, "uint8_t", 7, "uint", 9, R"("SPV_KHR_cooperative_matrix")", "6022, 39", 0},
};

const Form& form_of(DType dtype) {
  for (const Form& form : kForms)
    if (form.dtype == dtype) return form;
  QUERNEL_UNREACHABLE("no dtype of matrices");
}

// A view of storage buffers as elements of matrices, through which these are loaded.
constexpr const char* kElements = "qnl_elements";

// Types are completed by `complete_matrix_types`. Of OpCooperativeMatrixLoadKHR, StoreKHR and MulAddKHR, and
// OpCompositeConstruct. Sums are stored in memory of int whether or not they are signed.
constexpr const char* kDeclarations = R"(const uint qnl_tiles_down = QNL_SIDE / qnl_rows;
const uint qnl_tiles = qnl_tiles_down * (QNL_SIDE / qnl_columns) / qnl_subgroups;
const uint qnl_tall = qnl_tiles < qnl_tiles_down ? qnl_tiles : qnl_tiles_down;
const uint qnl_wide = qnl_tiles / qnl_tall;
#define QNL_A QNL_MATRIX(QNL_COMPONENT, 0)
#define QNL_B QNL_MATRIX(QNL_COMPONENT, 1)
#define QNL_SUMS QNL_MATRIX(QNL_SUM_COMPONENT, 2)
spirv_instruction(id = 4457) QNL_A qnl_load_a(spirv_by_reference QNL_ELEMENT from, uint order, uint stride, spirv_literal int access);
spirv_instruction(id = 4457) QNL_B qnl_load_b(spirv_by_reference QNL_ELEMENT from, uint order, uint stride, spirv_literal int access);
spirv_instruction(id = 4458) void qnl_store_sums(spirv_by_reference QNL_STORED to, QNL_SUMS sums, uint order, uint stride, spirv_literal int access);
spirv_instruction(id = 80) QNL_SUMS qnl_sums_of(QNL_SUM x);
)";

std::string number(int64_t n) { return std::to_string(n) + "u"; }

// MemoryLayout, 0 for rows one after another, 1 for columns, the stride of these, and the memory operands: 32 is
// NonPrivatePointer, for what barriers make visible. Requires that the other stride is 1.
std::string layout(const loop::MatrixPlace& place) {
  const bool by_columns = place.row_stride == 1, alone = place.buffer->access == loop::Access::kRead;
  return std::string(by_columns ? "1u" : "0u") + ", " +
         number(by_columns ? place.column_stride : place.row_stride) + (alone ? ", 0" : ", 32");
}

}  // namespace

void ShaderPrinter::find_matrices(const loop::StmtNode& s) {
  if (s.kind == StmtKind::kMultiplyMatrices) {
    const DType dtype = s.matrices->b.buffer->dtype;
    if (multiplied_ && *multiplied_ != dtype)
      refuse("products of matrices of " + std::string(to_string(*multiplied_)) + " and of " +
             std::string(to_string(dtype)));
    multiplied_ = dtype;
    for (const loop::MatrixPlace* place : {&s.matrices->a, &s.matrices->b})
      if (place->buffer->scope != loop::Scope::kGlobal) narrow_shared_.insert(place->buffer.get());
  }
  if (s.kind == StmtKind::kAlloc && target_.adds_f16 && s.buffer->dtype == DType::kF16) {
    adds_halves_ = true;
    narrow_shared_.insert(s.buffer.get());
  }
  for (const loop::Stmt& child : s.body)
    if (child) find_matrices(*child);
}

std::string ShaderPrinter::matrix_element() const { return form_of(*multiplied_).element; }

std::string ShaderPrinter::matrix_extensions() const {
  if (!multiplied_) return {};
  std::string text = kGlslMatrices;
  if (is_byte(*multiplied_)) text += "#extension GL_EXT_shader_explicit_arithmetic_types_int8 : require\n";
  if (*multiplied_ == DType::kBF16)
    text += "#extension GL_EXT_shader_explicit_arithmetic_types_int16 : require\n";
  return text;
}

std::string ShaderPrinter::matrix_declarations() const {
  if (!multiplied_) return {};
  const Form& form = form_of(*multiplied_);
  std::string text = "#define QNL_SIDE " + number(Target::kMatrixSide) + "\n";
  const std::pair<const char*, int> constants[] = {
      {"qnl_rows", 16}, {"qnl_columns", 16}, {"qnl_steps", 16}, {"qnl_subgroups", 2}};
  uint32_t id = QNL_SPIRV_MATRIX_SHAPE;
  for (const auto& [name, value] : constants)
    text += "layout(constant_id = " + std::to_string(id++) + ") const uint " + name + " = " + number(value) +
            ";\n";
  auto define = [&](const std::string& name, const std::string& value) {
    text += "#define " + name + " " + value + "\n";
  };
  define("QNL_MATRIX(component, use)", std::string("spirv_type(extensions = [") + form.extensions +
                                           "], capabilities = [" + form.capabilities +
                                           "], id = 4456, component, use)");
  define("QNL_COMPONENT", std::to_string(form.component));
  define("QNL_SUM_COMPONENT", std::to_string(form.sum_component));
  define("QNL_ELEMENT", form.element);
  define("QNL_SUM", form.sum);
  define("QNL_STORED", form.signs < 0 ? "float" : "int");
  text += kDeclarations;
  text +=
      std::string("spirv_instruction(id = 4459) QNL_SUMS qnl_multiply_add(QNL_A a, QNL_B b, QNL_SUMS sums") +
      (form.signs < 0 ? "" : ", spirv_literal int signs") + ");\n";
  return text + "layout(set = 0, binding = 0) readonly buffer Of_" + kElements + " { " + form.element +
         " at[]; } " + kElements + "[" + std::to_string(QNL_SPIRV_WINDOWS) + "];\n";
}

std::string ShaderPrinter::matrix_pointer(const loop::MatrixPlace& place, const std::string& row,
                                          const std::string& column) {
  const loop::BufferNode& b = *place.buffer;
  const std::string index = "uint(" + low_word(place.index, scalar_place()) + ") + (" + row + ") * " +
                            number(place.row_stride) + " + (" + column + ") * " + number(place.column_stride);
  if (b.scope != loop::Scope::kGlobal) return buffers_.at(&b) + "[" + index + "]";
  if (may_be_split(b)) refuse("a matrix in a binding of more than 128 MiB");
  const std::string binding = std::to_string(b.binding);
  return std::string(kElements) + "[window_" + binding + "].at[first_" + binding + " + " + index + "]";
}

// The matrices of sums of an invocation's subgroup: `qnl_tall` by `qnl_wide`, numbered column by column.
void ShaderPrinter::print_matrices(const loop::StmtNode& s) {
  const loop::MatrixOperands& m = *s.matrices;
  begin_statement({m.a.index, m.b.index});
  order(accesses(s));
  const bool multiplies = s.kind == StmtKind::kMultiplyMatrices;
  const int64_t steps = multiplies ? target_.matrix_steps(m.b.buffer->dtype) : 1;
  if (m.rows != Target::kMatrixSide || m.columns != Target::kMatrixSide || steps == 0 || m.steps % steps != 0)
    return refuse("a product of matrices of " + std::to_string(m.rows) + " x " + std::to_string(m.columns) +
                  " x " + std::to_string(m.steps));
  const std::string sums = buffers_.at(s.buffer.get()), down = "(qnl_first_row + i) * qnl_rows",
                    across = "(qnl_first_column + j) * qnl_columns";
  auto loop = [&](const char* var, const char* count) {
    open(std::string("[[unroll]] for (uint ") + var + " = 0u; " + var + " < " + count + "; ++" + var + ")");
  };
  if (!multiplies) {
    const std::string pointer = matrix_pointer(m.a, down, across);
    loop("j", "qnl_wide");
    loop("i", "qnl_tall");
    line("qnl_store_sums(" + pointer + ", " + sums + "[j * qnl_tall + i], " + layout(m.a) + ");");
    close();
    close();
    return;
  }
  const std::string a = matrix_pointer(m.a, down, "k"), b = matrix_pointer(m.b, "k", across);
  const int signs = form_of(m.b.buffer->dtype).signs;
  open("[[unroll]] for (uint k = 0u; k < " + number(m.steps) + "; k += qnl_steps)");
  line("QNL_B b[qnl_wide];");
  loop("j", "qnl_wide");
  line("b[j] = qnl_load_b(" + b + ", " + layout(m.b) + ");");
  close();
  loop("i", "qnl_tall");
  line("QNL_A a = qnl_load_a(" + a + ", " + layout(m.a) + ");");
  loop("j", "qnl_wide");
  line(sums + "[j * qnl_tall + i] = qnl_multiply_add(a, b[j], " + sums + "[j * qnl_tall + i]" +
       (signs < 0 ? "" : ", " + std::to_string(signs)) + ");");
  close();
  close();
  close();
}

void ShaderPrinter::print_matrix_sums(const std::string& name) {
  line("QNL_SUMS " + name + "[qnl_tiles];");
  open("[[unroll]] for (uint i = 0u; i < qnl_tiles; ++i)");
  line(name + "[i] = qnl_sums_of(QNL_SUM(0));");
  close();
}

}  // namespace quernel::codegen
