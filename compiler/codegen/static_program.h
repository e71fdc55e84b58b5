// A model as a program without a runtime, as plain data: what the static form (an archive and a header) and
// the C form are generated from. Filled by bundle/static_program, which has checked it: all indices are
// valid, all ranges lie inside their blocks, names are C identifiers and differ.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "support/dtype.h"

namespace quernel::codegen {

// A number that is known now, or an expression over symbols.
struct Amount {
  int64_t value = 0;
  int32_t expression = -1;  // of StaticProgram::expressions; replaces `value`
};

// Where the bytes of a binding lie.
enum class Space : uint8_t {
  kConstants,  // the constants; index 0
  kWorkspace,  // a memory region of the workspace, by index
  kState,      // the state block; index 0
  kInput,      // an input of the entry point, by index
  kOutput,     // an output of the entry point, by index
};
struct Place {
  Space space = Space::kConstants;
  uint32_t index = 0;
  uint64_t offset = 0;
};

// A run-time integer, min <= value <= max and a multiple of multiple_of, that a step sets.
struct StaticSymbol {
  std::string name;
  int64_t min = 0, max = 0, multiple_of = 1;
};

// Postfix code over 64-bit integers, two words per step {opcode, operand}: 0 push constant, 1 push symbol, 2
// add, 3 subtract, 4 multiply, 5 floor-divide, 6 modulo, 7 minimum, 8 maximum. Division and modulo round
// toward negative infinity; no divisor is zero.
using PostfixCode = std::vector<int64_t>;

struct StaticTensor {
  std::string name;        // as the model has it
  std::string identifier;  // a C identifier: the member of the structs
  std::string
      shape_identifier;  // of the member that receives the dims of a shape with expressions, else empty
  DType dtype = DType::kF32;
  std::vector<Amount> shape;  // expressions in outputs only, whose `bytes` are then the most they can need
  uint64_t bytes = 0;
};

enum class StepKind : uint8_t {
  kCall,        // runs `workgroups` workgroups of a kernel
  kReadSymbol,  // sets `symbol` to the element of type `dtype` at bindings[0]; a u64 over 2^63 is out of
                // range
  // Runs the steps from the next one up to `end`, with `symbol` = 0, 1, 2…, while it is less than `count`
  // (evaluated on entry) and `condition` (evaluated before each iteration) is not zero. Afterwards the symbol
  // is the number of iterations.
  kLoop,
  // Where `condition` is not zero runs the steps from the next one up to `else_begin`, else those from there
  // up to `end`.
  kBranch,
};

struct Step {
  StepKind kind = StepKind::kCall;
  uint32_t kernel = 0;    // call: of StaticProgram::kernels
  Amount workgroups;      // call
  bool may_fail = false;  // call: where there are fewer than 0 workgroups the run ends with kStaticNoElements
  std::vector<Place> bindings;  // in the order of qnl_kernel_args::bindings
  std::vector<Amount> symbols;  // call: qnl_kernel_args::symbols
  uint32_t symbol = 0;          // read_symbol, loop
  DType dtype = DType::kF32;    // read_symbol
  uint32_t end = 0, else_begin = 0;
  bool has_count = false, has_condition = false;  // loop: at least one of them; branch: a condition
  Amount count, condition;
  std::string name;         // what it computes, for people: the model's nodes
  uint64_t live_bytes = 0;  // of the workspace, while it runs; 0 inside loops and branches
};

struct StaticEntry {
  std::string name;        // as the bundle has it
  std::string identifier;  // prefix of its C names: the program's, with its own name where there are several
  std::vector<StaticTensor> inputs, outputs;
  std::vector<Step> steps;
};

// Memory that a run needs and whose contents mean nothing between runs.
struct StaticRegion {
  std::string name;        // "workspace", or as --memory says it
  std::string identifier;  // the member of the memory struct
  uint64_t bytes = 0;      // used by the program, scratch included
  uint64_t capacity = 0;   // that --memory gives it; 0: no limit
};

struct StaticState {
  StaticTensor tensor;
  uint64_t offset = 0;                 // in the state block
  std::span<const std::byte> initial;  // empty: zeros
};

struct StaticConstant {
  uint64_t offset = 0;  // in the constants; ascending, disjoint; bytes between them are zero
  std::span<const std::byte> bytes;
};

struct StaticKernel {
  std::string name;            // for people
  std::string symbol;          // a qnl_kernel_fn
  uint64_t scratch_bytes = 0;  // 0: none; else it gets StaticProgram::scratch
  uint64_t stack_bytes = 0;    // upper bound; 0 where it is not known
};

// Blocks of memory begin at multiples of this.
inline constexpr uint64_t kStaticAlignment = 64;

struct StaticProgram {
  std::string producer;    // "quernel 0.1.0"
  std::string target;      // as --target names it
  std::string name;        // as the user gave it
  std::string identifier;  // the same as a C identifier: prefix of all C names
  std::vector<StaticSymbol> symbols;
  std::vector<PostfixCode> expressions;
  std::vector<StaticKernel> kernels;
  std::vector<StaticRegion> regions;  // at least one; entry points share them
  Place scratch;                      // what kernels with scratch_bytes are lent
  uint64_t constants_bytes = 0, state_bytes = 0;
  std::vector<StaticConstant> constants;  // views of data that the caller keeps alive
  std::vector<StaticState> states;
  std::vector<StaticEntry> entries;
};

// Codes that a run function returns beside those of kernel_abi.h.
inline constexpr int32_t kStaticSymbolOutOfRange = 16;
inline constexpr int32_t kStaticNoElements = 17;  // to choose a result from: the largest of none

}  // namespace quernel::codegen
