// Descriptions of custom ops: what operators that the compiler does not know take and give, read from a text
// file, one `op` after the other:
//
//   // Rows of x, each times its gain.
//   op "demo::ScaleRows" (x: f32[rows, n], gain: f32[rows]) -> (y: f32[rows, n])
//     kernel "x86-64-v3" "scale_rows.o" symbol "scale_rows"
//
// A name is the operator's domain, "::" and its type; without a domain the type alone. A dim of an input is a
// number, or a name that stands for whatever the model has there, the same everywhere. Dims of outputs are
// expressions over these names: "(n floordiv 2)", "min(n, 8)".
//
// Without a kernel, the application gives a function of the op's name. Each `kernel` names a target, an
// object file for it and for whatever runs its code (relative to the description's folder) and the function
// in that: a qnl_kernel_fn of schemas/kernel_abi.h, which is linked into the bundle's code. Its bindings are
// the operands, the attributes as text with a terminating zero, and the results, all dense; its symbols are
// the dims of all of these in order, the text's length among them. It runs as one workgroup.
//
// Attributes are text: "alpha=0.5;axes=[1,2];mode=\"linear\"", ascending by name. Values are integers;
// floats, which have a '.' or an exponent, or are inf, -inf or nan, and read back as the same f32; strings in
// quotes with \" \\ and \xHH; lists of one kind.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "graph/ir.h"
#include "support/expected.h"

namespace quernel {

struct CustomKernel {
  std::string target;  // as --target names it
  std::string object;  // path of a relocatable ELF file
  std::string symbol;  // a qnl_kernel_fn in it
};

struct CustomOpDescription {
  struct Argument {
    std::string name;  // for diagnostics
    TensorType type;   // over the description's own names, as symbols that may be 0
  };
  std::string name;
  std::vector<Argument> inputs, outputs;
  std::vector<CustomKernel> kernels;
};

// Reads a description file; its place is in every diagnostic.
Expected<std::vector<CustomOpDescription>> read_custom_ops(const std::string& path);
Expected<std::vector<CustomOpDescription>> parse_custom_ops(std::string_view text, const std::string& file);

// The type of each result where the op's operands have these shapes: dims of the description's inputs take
// their values from there. Invalid input where operands do not fit; of two dims that would have to be equal
// `unequal`, where it is given, hears first.
Expected<std::vector<TensorType>> custom_result_types(
    const CustomOpDescription& op, const std::vector<TensorType>& operands,
    const std::function<void(const Dim& a, const Dim& b)>& unequal = {});

}  // namespace quernel
