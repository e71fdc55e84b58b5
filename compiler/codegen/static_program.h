// A model as a program without a runtime, as plain data. The archive with its header and the C form are
// generated from it. bundle/build_static_program fills it and has checked it: all indices are valid, all
// ranges are inside their blocks, and names are distinct C identifiers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "support/dtype.h"
#include "support/scale_rounding.h"

namespace quernel::codegen {

// A number known at compile time, or an expression over symbols.
struct Amount {
  int64_t value = 0;
  int32_t expression = -1;  // index in StaticProgram::expressions; replaces `value`
};

// The block that holds the bytes of a binding.
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

// A run-time integer that a step sets: min <= value <= max, a multiple of multiple_of.
struct StaticSymbol {
  std::string name;
  int64_t min = 0, max = 0, multiple_of = 1;
};

// Postfix code over 64-bit integers, two words per step {opcode, operand}: 0 push constant, 1 push symbol, 2
// add, 3 subtract, 4 multiply, 5 floor-divide, 6 modulo, 7 minimum, 8 maximum. Division and modulo round
// toward negative infinity; no divisor is zero.
using PostfixCode = std::vector<int64_t>;

struct StaticTensor {
  std::string name;        // as in the model
  std::string identifier;  // a C identifier: the member of the structs
  std::string
      shape_identifier;  // of the member that receives the dims of a shape with expressions, else empty
  DType dtype = DType::kF32;
  // Only outputs have expressions; their `bytes` are then an upper bound.
  std::vector<Amount> shape;
  uint64_t bytes = 0;
  // Inputs and outputs: in the workspace, all of them or none; else the pointer of that index in the struct.
  Place place;
  float scale = 0;  // real = scale * (integer - zero_point); 0: integers stand for themselves
  int32_t zero_point = 0;
  ScaleRounding rounding = ScaleRounding::kEven;  // of a real number that becomes an integer
};

enum class StepKind : uint8_t {
  kCall,  // runs `workgroups` workgroups of a kernel
  // Sets `symbol` to the element of type `dtype` at bindings[0]; a u64 of 2^63 or more is out of range.
  kReadSymbol,
  // Runs the steps from the next one up to `end`, with `symbol` = 0, 1, 2…, while it is less than `count`
  // (evaluated on entry) and `condition` (evaluated before each iteration) is not zero. Afterwards the symbol
  // is the number of iterations.
  kLoop,
  // If `condition` is not zero, runs the steps from the next one up to `else_begin`, else the steps from
  // there up to `end`.
  kBranch,
};

struct Step {
  StepKind kind = StepKind::kCall;
  uint32_t kernel = 0;          // call: index in StaticProgram::kernels
  Amount workgroups;            // call
  bool may_fail = false;        // call: if workgroups is negative, the run ends with kStaticNoElements
  std::vector<Place> bindings;  // in the order of qnl_kernel_args::bindings
  std::vector<Amount> symbols;  // call: qnl_kernel_args::symbols
  uint32_t symbol = 0;          // read_symbol, loop
  DType dtype = DType::kF32;    // read_symbol
  uint32_t end = 0, else_begin = 0;
  bool has_count = false, has_condition = false;  // loop: at least one of them; branch: a condition
  Amount count, condition;
  std::string name;         // the model's nodes that it computes, for people
  uint64_t live_bytes = 0;  // of the workspace while it runs; 0 inside loops and branches
};

struct StaticEntry {
  std::string name;           // as in the bundle
  std::string identifier;     // prefix of its C names: the program's, with its own name if there are several
  std::string model_sha256;   // of the model's file; empty: unknown
  int64_t multiply_adds = 0;  // of contractions in a run; an estimate if a run decides about sizes
  std::vector<StaticTensor> inputs, outputs;
  std::vector<Step> steps;
};

// Memory that a run needs; its contents are undefined between runs.
struct StaticRegion {
  std::string name;        // "workspace", or as --memory names it
  std::string identifier;  // the member of the memory struct
  uint64_t bytes = 0;      // used by the program, scratch included
  uint64_t capacity = 0;   // given by --memory; 0: no limit
};

struct StaticState {
  StaticTensor tensor;
  uint64_t offset = 0;                 // in the state block
  std::span<const std::byte> initial;  // empty: zeros
};

struct StaticConstant {
  uint64_t offset = 0;  // in the constants; ascending, disjoint; bytes between constants are zero
  std::span<const std::byte> bytes;
};

struct StaticKernel {
  std::string name;            // for people
  std::string symbol;          // a qnl_kernel_fn
  uint64_t scratch_bytes = 0;  // 0: none; else it is lent StaticProgram::scratch
  uint64_t stack_bytes = 0;    // upper bound; 0: unknown
};

// Blocks of memory begin at multiples of this.
inline constexpr uint64_t kStaticAlignment = 64;

struct StaticProgram {
  std::string producer;    // "quernel 0.1.0"
  std::string target;      // as --target names it
  std::string name;        // as the user gave it
  std::string identifier;  // the name as a C identifier: prefix of all C names
  std::string macro;       // the same in upper case: prefix of all macros
  std::vector<StaticSymbol> symbols;
  std::vector<PostfixCode> expressions;
  std::vector<StaticKernel> kernels;
  std::vector<StaticRegion> regions;  // at least one; entry points share them
  Place scratch;                      // scratch for kernels with scratch_bytes
  uint64_t constants_bytes = 0, state_bytes = 0;
  std::vector<StaticConstant> constants;  // views of data that the caller keeps alive
  std::vector<StaticState> states;
  std::vector<StaticEntry> entries;
};

// Codes that a run function returns in addition to those of kernel_abi.h.
inline constexpr int32_t kStaticSymbolOutOfRange = 16;
// No elements to choose a result from, such as the largest of none.
inline constexpr int32_t kStaticNoElements = 17;

}  // namespace quernel::codegen
