// One loop-IR kernel as a GLSL compute shader, after schemas/kernel_abi.h: an invocation computes its lane of
// every vector (distribution.h). The kernel must have passed check_kernel and loop/passes.
#pragma once

#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "codegen/llvm/elementary_functions.h"
#include "codegen/spirv/distribution.h"
#include "loop/index_ranges.h"
#include "loop/ir.h"
#include "support/expected.h"
#include "targets/target.h"

namespace quernel::codegen {

struct Shader {
  std::string text;
  int invocations = 1;
  int64_t shared_bytes = 0;
};

class ShaderPrinter {
 public:
  // Index buffers of the kernel's own that hold values of 32 bits only.
  using NarrowBuffers = std::unordered_set<const loop::BufferNode*>;
  ShaderPrinter(const loop::Kernel& kernel, const Target& target, NarrowBuffers narrow = {});
  // What no shader can say is unsupported.
  Expected<Shader> print();
  // After print(): the buffers that can be narrow.
  NarrowBuffers narrow_buffers() const;

 private:
  // shader_printer.cpp: the module and statements
  std::string interface();
  std::string split_access(const loop::BufferNode& b, const std::string& view) const;
  void begin_statement(std::initializer_list<loop::Expr> roots = {});
  void statement(const loop::StmtNode& s);
  void print_for(const loop::StmtNode& s);
  void print_if(const loop::StmtNode& s);
  void print_let(const loop::StmtNode& s);
  void print_alloc(const loop::BufferNode& b);
  void print_store(const loop::StmtNode& s);
  bool reads_other_elements(const loop::StmtNode& s) const;
  void open(const std::string& head);
  void close();
  void line(const std::string& text);
  std::string declare(const std::string& wanted);
  void refuse(const std::string& what);

  // Which exchanged buffers were read and written since the last barrier.
  struct Exchange {
    std::set<const loop::BufferNode*> read, written;
    // Elements of what was written, where they are known.
    std::map<const loop::BufferNode*, std::set<int64_t>> places;
    void join(const Exchange& other);
    bool conflicts_with(const Exchange& later) const;
    void forget_own();  // buffers of the kernel's own
  };
  // All that a statement accesses.
  Exchange accesses(const loop::StmtNode& s) const;
  void read_exchanged(const loop::Expr& e, Exchange& result,
                      std::unordered_set<const loop::ExprNode*>& seen) const;
  // A barrier, if what is accessed now conflicts with what was since the last one.
  void order(const Exchange& now);
  Exchange since_barrier_, of_statement_;

  // shader_expr.cpp. `lane`: which lane of a vector is meant, an int of GLSL; kLane is the invocation's own.
  static constexpr const char* kLane = "lane";
  std::string value(const loop::Expr& e, const std::string& lane = kLane);
  std::string atom(const loop::Expr& e, const std::string& lane = kLane);  // a name or a number
  std::string name(const loop::Expr& e, const std::string& lane, const std::string& text);
  std::string print_expr(const loop::Expr& e, const std::string& lane);
  std::string constant(const loop::ExprNode& e);
  std::string load(const loop::ExprNode& e, const std::string& lane);
  std::string element(const loop::BufferNode& b, const loop::Expr& index, const std::string& lane);
  std::string unary(const loop::ExprNode& e, const std::string& lane);
  std::string binary(const loop::Expr& e, const std::string& lane);
  std::string bool_binary(BinaryOp op, const std::string& a, const std::string& b);
  std::string integer_binary(const loop::Expr& e, const std::string& lane);
  std::string mul_acc(const loop::ExprNode& e, const std::string& lane);
  std::string dot(const loop::ExprNode& e, const std::string& lane);
  std::string cast(const loop::ExprNode& e, const std::string& lane);
  std::string bit_cast(const loop::ExprNode& e, const std::string& lane);
  // A function of ElementaryFunctions on texts of the operands.
  std::string call(const loop::ExprNode& e, const std::vector<std::string>& operands);
  // The low 32 bits of an i64, as an int: all that an address needs.
  std::string low_word(const loop::Expr& e, const std::string& lane);
  std::string wrapped(DType dtype, const std::string& text);
  std::string symbol(int index);
  std::string element_type(const loop::BufferNode& b) const;
  static bool may_be_split(const loop::BufferNode& b);
  std::string define(const std::string& type, const std::string& text);
  // All values that `e` is computed from fit into an int.
  bool fits_32_bits(const loop::Expr& e);
  std::string value_type(const loop::Expr& e);

  // shader_reduce.cpp
  std::string reduce_lanes(const loop::ExprNode& e);
  // The function `name` of the first `lanes` invocations' values.
  std::string fold_in_memory(const std::string& name, BinaryOp op, DType dtype, int lanes);
  std::string fold_in_subgroups(const std::string& name, BinaryOp op, DType dtype, int lanes);
  std::string fold(BinaryOp op, DType dtype, const std::string& a, const std::string& b);
  std::string lane_array(const std::string& kind, DType dtype, int copies);
  // Lane reductions below `e`, computed where all invocations are.
  void reduce_first(const loop::Expr& e);

  const loop::Kernel& kernel_;
  const Target& target_;
  bool uses_subgroups_ = false;
  ElementaryFunctions functions_;
  Distribution distribution_;
  NarrowBuffers narrow_, wide_;  // wide: something longer is stored there
  Diagnostics errors_;
  std::string out_, shared_, reductions_;
  int64_t shared_bytes_ = 0;
  int indent_ = 0;
  std::set<std::string> reduced_, lane_arrays_;
  std::unordered_map<const loop::VarNode*, std::string> vars_;
  std::unordered_map<const loop::VarNode*, bool> narrow_vars_;
  std::unordered_map<const loop::BufferNode*, std::string> buffers_;
  loop::IndexRanges ranges_;
  std::unordered_map<const loop::ExprNode*, bool> fits_memo_;
  // Names of what has been computed in the present statement, by node and lane.
  std::map<std::pair<const loop::ExprNode*, std::string>, std::string> names_, low_words_;
  std::unordered_map<const loop::ExprNode*, int> uses_;
  std::unordered_set<std::string> taken_;
  int next_name_ = 0;
};

// `kernel` as a shader.
Expected<Shader> print_shader(const loop::Kernel& kernel, const Target& target);

// GLSL's type for values of a dtype: narrow floats are their bits.
std::string glsl_type(DType dtype);

}  // namespace quernel::codegen
