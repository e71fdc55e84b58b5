// Products of matrices by cooperative matrices, whose shape the device chooses (schemas/kernel_abi.h).
#include "codegen/spirv/shader_printer.h"
#include "schemas/kernel_abi.h"

namespace quernel::codegen {

using loop::StmtKind;

namespace {

// A view of storage buffers as f16, through which matrices are loaded.
constexpr const char* kHalves = "view_float16_t";

// Types are completed by `complete_matrix_types`. Of OpCooperativeMatrixLoadKHR, StoreKHR and MulAddKHR, and
// OpCompositeConstruct.
constexpr const char* kDeclarations = R"(const uint qnl_tiles_down = QNL_SIDE / qnl_rows;
const uint qnl_tiles = qnl_tiles_down * (QNL_SIDE / qnl_columns) / qnl_subgroups;
const uint qnl_tall = qnl_tiles < qnl_tiles_down ? qnl_tiles : qnl_tiles_down;
const uint qnl_wide = qnl_tiles / qnl_tall;
#define QNL_MATRIX(component, use) spirv_type(extensions = ["SPV_KHR_cooperative_matrix"], capabilities = [6022], id = 4456, component, use)
#define QNL_A QNL_MATRIX(0, 0)
#define QNL_B QNL_MATRIX(0, 1)
#define QNL_SUMS QNL_MATRIX(1, 2)
spirv_instruction(id = 4457) QNL_A qnl_load_a(spirv_by_reference float16_t from, uint order, uint stride, spirv_literal int access);
spirv_instruction(id = 4457) QNL_B qnl_load_b(spirv_by_reference float16_t from, uint order, uint stride, spirv_literal int access);
spirv_instruction(id = 4458) void qnl_store_sums(spirv_by_reference float to, QNL_SUMS sums, uint order, uint stride, spirv_literal int access);
spirv_instruction(id = 4459) QNL_SUMS qnl_multiply_add(QNL_A a, QNL_B b, QNL_SUMS sums);
spirv_instruction(id = 80) QNL_SUMS qnl_sums_of(float x);
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
    multiplies_matrices_ = true;
    for (const loop::MatrixPlace* place : {&s.matrices->a, &s.matrices->b})
      if (place->buffer->scope != loop::Scope::kGlobal) halves_.insert(place->buffer.get());
  }
  if (s.kind == StmtKind::kAlloc && target_.adds_f16 && s.buffer->dtype == DType::kF16)
    halves_.insert(s.buffer.get());
  for (const loop::Stmt& child : s.body)
    if (child) find_matrices(*child);
}

std::string ShaderPrinter::matrix_declarations() const {
  if (!multiplies_matrices_) return {};
  std::string text = "#define QNL_SIDE " + number(QNL_SPIRV_MATRIX_SIDE) + "\n";
  const std::pair<const char*, int> constants[] = {
      {"qnl_rows", 16}, {"qnl_columns", 16}, {"qnl_steps", 16}, {"qnl_subgroups", 2}};
  uint32_t id = QNL_SPIRV_MATRIX_SHAPE;
  for (const auto& [name, value] : constants)
    text += "layout(constant_id = " + std::to_string(id++) + ") const uint " + name + " = " + number(value) +
            ";\n";
  return text + kDeclarations + "layout(set = 0, binding = 0) readonly buffer Of_" + kHalves +
         " { float16_t at[]; } " + kHalves + "[" + std::to_string(QNL_SPIRV_WINDOWS) + "];\n";
}

std::string ShaderPrinter::matrix_pointer(const loop::MatrixPlace& place, const std::string& row,
                                          const std::string& column) {
  const loop::BufferNode& b = *place.buffer;
  const std::string index = "uint(" + low_word(place.index, scalar_place()) + ") + (" + row + ") * " +
                            number(place.row_stride) + " + (" + column + ") * " + number(place.column_stride);
  if (b.scope != loop::Scope::kGlobal) return buffers_.at(&b) + "[" + index + "]";
  if (may_be_split(b)) refuse("a matrix in a binding of more than 128 MiB");
  const std::string binding = std::to_string(b.binding);
  return std::string(kHalves) + "[window_" + binding + "].at[first_" + binding + " + " + index + "]";
}

// The matrices of sums of an invocation's subgroup: `qnl_tall` by `qnl_wide`, numbered column by column.
void ShaderPrinter::print_matrices(const loop::StmtNode& s) {
  const loop::MatrixOperands& m = *s.matrices;
  begin_statement({m.a.index, m.b.index});
  order(accesses(s));
  const bool multiplies = s.kind == StmtKind::kMultiplyMatrices;
  if (m.rows != QNL_SPIRV_MATRIX_SIDE || m.columns != QNL_SPIRV_MATRIX_SIDE ||
      m.steps % QNL_SPIRV_MATRIX_STEPS != 0)
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
  open("[[unroll]] for (uint k = 0u; k < " + number(m.steps) + "; k += qnl_steps)");
  line("QNL_B b[qnl_wide];");
  loop("j", "qnl_wide");
  line("b[j] = qnl_load_b(" + b + ", " + layout(m.b) + ");");
  close();
  loop("i", "qnl_tall");
  line("QNL_A a = qnl_load_a(" + a + ", " + layout(m.a) + ");");
  loop("j", "qnl_wide");
  line(sums + "[j * qnl_tall + i] = qnl_multiply_add(a, b[j], " + sums + "[j * qnl_tall + i]);");
  close();
  close();
  close();
}

void ShaderPrinter::print_matrix_sums(const std::string& name) {
  line("QNL_SUMS " + name + "[qnl_tiles];");
  open("[[unroll]] for (uint i = 0u; i < qnl_tiles; ++i)");
  line(name + "[i] = qnl_sums_of(0.0);");
  close();
}

}  // namespace quernel::codegen
