// The parts of print_program.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "codegen/c/print_kernels.h"
#include "codegen/static_program.h"
#include "loop/ir.h"

namespace quernel::codegen {

// Prints constants as arrays of the type with which the first kernel reads them: C restricts reading them as
// another type.
class WeightsPrinter {
 public:
  WeightsPrinter(const StaticProgram& program, const std::vector<loop::Kernel>& kernels);
  std::string declarations() const;
  std::string definitions() const;
  // Returns a pointer to `type` ("float", "int8_t"…) at an offset in the constants.
  std::string pointer(uint64_t offset, const std::string& type) const;

 private:
  struct Array {
    std::string name, type;
    int element_bytes = 1;
    const StaticConstant* constant = nullptr;
  };
  const Array* find(uint64_t offset) const;
  const StaticProgram& program_;
  std::map<uint64_t, Array> arrays_;  // by offset
};

// Prints run functions: the steps of entry points as statements.
class RunPrinter {
 public:
  RunPrinter(const StaticProgram& program, const std::vector<loop::Kernel>& kernels, const CKernels& printed,
             const WeightsPrinter& weights)
      : program_(program), kernels_(kernels), printed_(printed), weights_(weights) {}
  std::string run_function(const StaticEntry& entry);
  std::string reset_function();

 private:
  void line(const std::string& text);
  void steps(const StaticEntry& entry, uint32_t begin, uint32_t end);
  void call(const StaticEntry& entry, const Step& step);
  void read_symbol(const StaticEntry& entry, const Step& step);
  void loop(const StaticEntry& entry, uint32_t index);
  void check(uint32_t symbol);
  void store_shapes(const StaticEntry& entry);
  std::string pointer(const StaticEntry& entry, const Place& place, const std::string& type, bool is_const);
  std::string amount(const Amount& amount);
  std::string symbol_name(uint32_t symbol);

  const StaticProgram& program_;
  const std::vector<loop::Kernel>& kernels_;
  const CKernels& printed_;
  const WeightsPrinter& weights_;
  std::string out_;
  int indent_ = 1;
  std::set<uint32_t> symbols_;      // of the current function
  std::set<std::string> pointers_;  // members of `memory` that the function uses
  bool uses_inputs_ = false, uses_outputs_ = false;
};

// Returns per kernel whether, in all its calls, no written buffer overlaps another one.
std::vector<std::vector<bool>> buffers_without_overlap(const StaticProgram& program,
                                                       const std::vector<loop::Kernel>& kernels);

// Returns the type of an element in memory.
std::string c_memory_type(DType dtype);
// Returns the functions that the text of run functions calls.
std::string run_prelude_for(const std::string& text);

}  // namespace quernel::codegen
