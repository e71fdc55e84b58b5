// Prints one loop-IR kernel as a GLSL compute shader, as schemas/kernel_abi.h describes: an invocation
// computes its lane of every vector (distribution.h). Requires a kernel that has passed check_kernel and
// loop/passes.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "codegen/llvm/elementary_functions.h"
#include "codegen/spirv/distribution.h"
#include "codegen/text/c_like_printer.h"
#include "loop/ir.h"
#include "support/expected.h"
#include "targets/target.h"

namespace quernel::codegen {

struct Shader {
  std::string text;
  int invocations = 1;
  int64_t shared_bytes = 0;
};

class ShaderPrinter : private CLikePrinter {
 public:
  // The kernel's own index buffers that hold only 32-bit values.
  using NarrowBuffers = std::unordered_set<const loop::BufferNode*>;
  ShaderPrinter(const loop::Kernel& kernel, const Target& target, NarrowBuffers narrow = {});
  // Unsupported: what no shader can express.
  Expected<Shader> print();
  // After print(): returns the buffers that can be narrow.
  NarrowBuffers narrow_buffers() const;

 private:
  // shader_printer.cpp: the module and statements
  std::string interface();
  std::string split_access(const loop::BufferNode& b, const std::string& view) const;
  void begin_statement(std::initializer_list<loop::Expr> roots = {});
  void print_for(const loop::StmtNode& s) override;
  void print_if(const loop::StmtNode& s) override;
  void print_let(const loop::StmtNode& s) override;
  void print_alloc(const loop::BufferNode& b) override;
  void print_store(const loop::StmtNode& s) override;
  void print_barrier() override { line("barrier();"); }
  void print_matrices(const loop::StmtNode& s) override;
  bool reads_other_elements(const loop::StmtNode& s) const;
  std::string declare(const std::string& wanted);
  void refuse(const std::string& what);

  // The exchanged buffers read and written since the last barrier.
  struct Exchange {
    std::set<const loop::BufferNode*> read, written;
    // The elements written, if they are known.
    std::map<const loop::BufferNode*, std::set<int64_t>> places;
    void join(const Exchange& other);
    bool conflicts_with(const Exchange& later) const;
    void forget_own();  // the kernel's own buffers
  };
  // Returns everything that a statement accesses.
  Exchange accesses(const loop::StmtNode& s) const;
  void read_exchanged(const loop::Expr& e, Exchange& result,
                      std::unordered_set<const loop::ExprNode*>& seen) const;
  // Prints a barrier if the current accesses conflict with accesses since the last one.
  void order(const Exchange& now);
  Exchange since_barrier_, of_statement_;

  // shader_expr.cpp. Place::lane is a GLSL int; kLane is the invocation's own lane.
  static constexpr const char* kLane = "lane";
  static constexpr size_t kLongestExpression = 96;  // characters; longer expressions get a name
  std::string lane_value(const loop::Expr& e) {
    return value(e, scalar_place());
  }  // for the invocation's own lane
  std::string type_name(DType dtype) const override;
  std::string variable_type(const loop::Expr& e) override;
  bool fits_32_bits(const loop::Expr& e) override;
  std::string constant(const loop::ExprNode& e) override;
  std::string variable(const loop::ExprNode& e, const Place& at) override;
  std::string symbol(int index) override;
  std::string load(const loop::ExprNode& e, const Place& at) override;
  std::string element(const loop::BufferNode& b, const loop::Expr& index, const Place& at);
  std::string select(const loop::Expr& e, const Place& at) override;
  std::string bit_cast(const loop::ExprNode& e, const Place& at) override;
  std::string ramp(const loop::Expr& e, const Place& at) override;
  std::string interleave(const loop::ExprNode& e, const Place& at) override;
  std::string dot(const loop::ExprNode& e, const Place& at) override;
  std::string dot_2x2(const loop::ExprNode& e, const Place& at) override;
  std::string never(const std::string&) override { return "false"; }
  std::string complement(DType dtype, const std::string& x) override { return wrapped(dtype, "~" + x); }
  std::string compare(const loop::ExprNode& e, const std::string& a, const std::string& b) override;
  std::string wide_operand(const loop::Expr& e, const loop::Expr& operand, const std::string& text);
  std::string integer_infix(const loop::Expr& e, const char* op, const Place& at) override;
  std::string integer_extreme(const loop::Expr& e, const Place& at) override;
  std::string integer_call(const loop::Expr& e, const std::string& text) override;
  std::string fused_narrow(const loop::ExprNode& e, const Place& at) override;
  std::string half(const loop::Expr& e, const Place& at);
  std::string fused(DType dtype, const std::string& a, const std::string& b, const std::string& c) override;
  std::string integer_mul_acc(const loop::ExprNode& e, const std::string& a, const std::string& b,
                              const std::string& c) override;
  std::string zero(DType dtype) const override;
  std::string integer_cast(const loop::Expr& e, const std::string& x) override;
  std::string name_of(const loop::Expr& operation) override { return functions_.name_of(operation); }
  std::string argument(DType dtype, const std::string& x) override;
  std::string result(DType dtype, const std::string& text) override;
  // Returns the low 32 bits of an i64 as an int: enough for addresses.
  std::string low_word(const loop::Expr& e, const Place& at);
  std::string wrapped(DType dtype, const std::string& text);
  std::string element_type(const loop::BufferNode& b) const;
  static bool may_be_split(const loop::BufferNode& b);

  // shader_loads.cpp
  // An element among `count` neighbours of one type, which can be loaded at once. count 0: it is none.
  struct OneOfSeveral {
    int count = 0, which = 0;
    loop::Expr first;       // an index of the first lane
    std::string key, type;  // key: the same for all neighbours; type: GLSL's, for all
  };
  OneOfSeveral one_of_several(const loop::ExprNode& e) const;
  void find_neighbours(const loop::StmtNode& s);
  // Finds the elements of the kernel's own index buffers that are stored once, whose value is then known.
  void find_settled(const loop::StmtNode& s);
  loop::Expr settled(const loop::Expr& e) const;
  bool is_multiple_of(const loop::Expr& e, int64_t of) const;
  std::string identity(const loop::Expr& e) const;
  std::map<std::pair<const loop::BufferNode*, int64_t>, loop::Expr> settled_;
  std::unordered_set<const loop::BufferNode*> unsettled_;
  std::unordered_map<std::string, std::set<int>> neighbours_;  // those that the kernel loads, by key
  // What the current block, or one around it, has loaded at once.
  struct Loaded {
    int indent = 0;
    std::string name;
  };
  std::map<std::string, Loaded> loaded_;
  std::set<std::string> wide_views_;
  std::string views_;
  // Returns an element of several that are loaded at once; empty if it is none.
  std::string load_of_several(const loop::ExprNode& e, const Place& at);
  void forget_loaded();  // of the current block, at its end
  void close();

  // shader_reduce.cpp
  std::string reduce_lanes(const loop::ExprNode& e) override;
  // Applies the function `name` to the values of the first `lanes` invocations.
  std::string fold_in_memory(const std::string& name, BinaryOp op, DType dtype, int lanes);
  std::string fold_in_subgroups(const std::string& name, BinaryOp op, DType dtype, int lanes);
  std::string fold(BinaryOp op, DType dtype, const std::string& a, const std::string& b);
  std::string lane_array(const std::string& kind, DType dtype, int copies);
  // Computes the lane reductions below `e` at a point that all invocations reach.
  void reduce_first(const loop::Expr& e);

  // shader_matrices.cpp
  void find_matrices(const loop::StmtNode& s);
  std::string matrix_declarations() const;
  // Returns the place of an element of a matrix.
  std::string matrix_pointer(const loop::MatrixPlace& place, const std::string& row,
                             const std::string& column);
  void print_matrix_sums(const std::string& name);
  // The type of an element of a matrix in memory.
  std::string matrix_element() const;
  std::string matrix_extensions() const;
  std::optional<DType> multiplied_;  // the dtype of all matrices that are multiplied
  bool adds_halves_ = false;
  // The kernel's own buffers whose elements take no more bytes than elsewhere in memory: of such matrices, and of f16 that
  // the device computes with.
  std::unordered_set<const loop::BufferNode*> narrow_shared_;

  const Target& target_;
  bool uses_subgroups_ = false;
  ElementaryFunctions functions_;
  Distribution distribution_;
  NarrowBuffers narrow_, wide_;  // wide: a value of more than 32 bits is stored there
  Diagnostics errors_;
  std::string shared_, reductions_;
  int64_t shared_bytes_ = 0;
  std::set<std::string> reduced_, lane_arrays_;
  std::unordered_map<const loop::VarNode*, bool> narrow_vars_;
  // Names of the low words of the current statement, by node and lane.
  std::map<std::pair<const loop::ExprNode*, std::string>, std::string> low_words_;
};

// Returns `kernel` as a shader.
Expected<Shader> print_shader(const loop::Kernel& kernel, const Target& target);

// Returns GLSL's type for values of a dtype; narrow floats are their bits.
std::string glsl_type(DType dtype);

}  // namespace quernel::codegen
