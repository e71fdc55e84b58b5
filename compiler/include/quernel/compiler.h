// The compiler's public interface: a model file goes in, a bundle comes out. Everything else under compiler/
// is private.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "graph/custom_op.h"
#include "graph/dim.h"
#include "graph/duplicate_names.h"
#include "graph/io_types.h"
#include "graph/place_rule.h"
#include "graph/states.h"
#include "graph/tensor.h"
#include "graph/weight_format.h"
#include "support/expected.h"
#include "support/integer_rounding.h"
#include "support/model_about.h"
#include "support/onnx_choices.h"

namespace quernel {

// One entry point of a bundle that has several.
struct EntryPointOptions {
  std::string name;
  std::string model;                    // its model file; empty: the one given to compile()
  std::map<std::string, int64_t> dims;  // added to those of CompileOptions, which they override
  std::map<std::string, Symbol> dim_ranges;
};

// What compile() writes.
enum class Emit {
  kBundle,  // a bundle for the runtime
  kStatic,  // bare metal: <output>.a, <output>.h, and the CMake package <output>-config.cmake
  kC,       // the same program as C99: <output>.c, <output>.h, <output>_weights.c, <output>_memory.c
};

// A memory that a program without a runtime may use for its workspace.
struct MemoryOption {
  std::string name;
  uint64_t bytes = 0;
};

struct CompileOptions {
  Emit emit = Emit::kBundle;
  // For Emit::kStatic and kC. `memory`: where the workspace may lie, fastest first; none: one memory without
  // limit. `max_ram`: the most that workspace, states and stack may take together; 0: no limit. Where they take more,
  // wide layers are computed in strips of rows. A program that does not fit even then is invalid input.
  std::vector<MemoryOption> memory;
  uint64_t max_ram = 0;
  // For Emit::kStatic and kC: inputs and outputs are inside the workspace. An input's bytes are reused after its last use.
  bool io_in_workspace = false;
  std::vector<std::string> targets = {"native"};             // as find_target takes them; one variant each
  std::map<std::string, int64_t> dims;                       // values of free dims, by name
  std::map<std::string, Symbol> dim_ranges;                  // min, max and multiple_of of other free dims
  std::map<std::string, std::vector<int64_t>> input_shapes;  // whole shapes of inputs, by name
  bool declared_shapes_yield = false;  // input_shapes overrides shapes that the model declares
  // Values of inputs. An input whose value an operator needs at compile time (a Reshape's shape) becomes a
  // constant and leaves the signature. The others stay inputs.
  std::map<std::string, Tensor> input_values;
  // Shell patterns. Initializers that the model also lists as inputs stay inputs if a pattern matches their
  // name; all others become constants. A pattern without a match is invalid input.
  std::vector<std::string> keep_inputs;
  DuplicateNames duplicate_names = DuplicateNames::kConstants;
  bool allow_large = false;  // no limits on the size of inlined loops, branches and functions
  // Inputs that keep their values from run to run. They and their outputs leave the signature. input_values
  // holds initial values; the default is zeros. Entry points share states of the same name.
  std::vector<StatePair> states;
  DType state_dtype = DType::kF32;  // in which states of f32 are stored: kF32 (unchanged), kF16 or kBF16
  // The dtype in which large weights are stored: kF32 (unchanged), kF16 or kBF16, rounded to nearest.
  // Arithmetic is f32, but targets that multiply bf16 also round the operands of large weights to it.
  DType precision = DType::kF32;
  // Quantises f32 weights of products, except those of nodes whose names match a shell pattern (graph/quantize_weights.h).
  WeightFormat weights;
  std::vector<std::string> float_weights;
  // kI8: products with quantised weights round rows of activations to i8, in the blocks of the weights
  // (schedule/target_passes/quantize_activations.cpp). kF32: they are as the model computes them.
  DType activations = DType::kF32;
  bool scale_per_row = false;  // with kI8: a row has one scale, not one for each block of the weights
  // Replaces large weights by random numbers from this seed (graph/random_weights.h).
  std::optional<uint64_t> random_weights;
  // For targets that are a GPU with a companion CPU: where nodes run. The last rule that matches a node
  // decides. Other nodes are placed by estimated time.
  std::vector<PlaceRule> place;
  std::vector<CustomOpDescription> custom_ops;  // operators that are imported as custom ops
  OnnxChoices choices;                          // where ONNX leaves behaviour open
  // Of quantized TensorFlow Lite models (default: single); a model of another format refuses one.
  std::optional<IntegerRounding> rounding;
  // Dtypes of a quantized model's inputs and outputs (graph/io_types.h).
  IoTypes io = IoTypes::kModel;
  // The signature of a TensorFlow Lite model with several; empty: the first subgraph. An entry point's is its name.
  std::string signature;
  std::vector<std::string> external_dirs;       // further folders for a model's external data
  std::vector<EntryPointOptions> entry_points;  // empty: one, the model
  // Shell patterns. Only entry points whose name matches one are built; the models of the others are not
  // read. Empty: all are built. A pattern without a match is invalid input.
  std::vector<std::string> only_entry_points;
  int threads = 0;  // code generation threads; 0: one per core
  // A file of choices about kernels, as `quernel tune` writes it (schedule/choices.h). Kernels that it does
  // not name are as estimated.
  std::string tuning_file;
  // Facts about the GPU: a file, as `quernel probe` writes it, or the name of a built-in profile
  // (targets/device_profile.h).
  std::string device_profile;

  // For developers. Passes are named as `quernel opt --list` does.
  std::vector<std::string> disabled_passes;
  std::vector<std::string> print_after;  // pass names, or "all", or "changed"; printed to stderr
  std::string stop_after;                // compilation ends after this pass; no output is written
  bool verify_each = false;              // verify the IR after every pass (always on in debug builds)
  std::string dump_dir;                  // for numbered files: graphs, schedule, loop IR, LLVM IR, assembly

  // Called with a stage's name when the stage begins. For progress display.
  std::function<void(const std::string& stage)> on_stage;
};

struct StageTime {
  std::string name;
  double seconds = 0;
};

// A block of memory that a program without a runtime needs.
struct MemoryUse {
  std::string name;
  uint64_t bytes = 0;
};
// An input or output of a program without a runtime, as its header declares it.
struct StaticTensorReport {
  std::string name;              // in the model
  std::string identifier;        // member of the header's struct
  std::string shape_identifier;  // member that receives dims computed by a run; else empty
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;  // -1: a run computes the dim
  uint64_t bytes = 0;          // upper bound
  bool in_workspace = false;   // the struct has no such member: a function of the header gives the address
};
// A kernel of a program without a runtime.
struct StaticKernelReport {
  std::string symbol;                // of its function, a qnl_kernel_fn
  std::string name;                  // as `quernel inspect` prints it
  std::string kernel_class, choice;  // the same; the choice may be empty
  std::vector<std::string> nodes;    // of the model, that it computes
  uint64_t calls = 0;                // places that call it; those in loops count once
  uint64_t multiply_adds = 0;  // of its contractions, all calls together; an estimate if sizes are unknown
};
// What Emit::kStatic or Emit::kC wrote. Flash is kernel_bytes + overhead_bytes +
// CompileReport::constant_bytes.
struct StaticReport {
  // Emit::kC: sizes are those of machine code for the same target, because the C compiler decides about code
  // and stack. The stack is at least the size of the arrays in the C. Code sizes are 0 if no machine code was
  // made.
  bool estimated = false;
  std::vector<std::string> files;
  uint64_t kernel_bytes = 0;         // code and tables of kernels
  uint64_t overhead_bytes = 0;       // other code and tables: run functions
  std::vector<MemoryUse> memory;     // workspace, and states if there are any
  uint64_t stack_bytes = 0;          // upper bound for a run
  std::vector<std::string> helpers;  // arithmetic functions that the target's compiler library must have
  std::vector<StaticTensorReport> inputs, outputs;  // of the first entry point
  std::vector<StaticKernelReport> kernels;          // those that it calls
};

struct CompileReport {
  std::vector<StageTime> stages;
  std::vector<std::string> notes;
  std::vector<std::string> fixed_inputs;     // inputs that input_values made constants
  std::vector<std::string> random_outputs;   // outputs that depend on random numbers
  std::vector<std::string> fourier_outputs;  // outputs of Fourier transforms
  std::vector<QuantizedLayer> quantized;     // by CompileOptions::weights, each once
  bool stopped = false;                      // at stop_after: nothing was written, the figures below are 0
  uint64_t file_bytes = 0, code_bytes = 0, constant_bytes = 0, workspace_bytes = 0;
  std::optional<StaticReport> program;      // then file_bytes is the archive or the C; code_bytes: both kinds
  int kernels = 0;                          // distinct kernels of the first variant
  int dispatches = 0;                       // items of the first variant, all entry points
  std::vector<std::string> kernel_classes;  // of the first variant's kernels, in order
  // Multiply-adds of the contractions in a run of the first entry point (graph/multiply_adds.h). An estimate
  // if sizes or numbers of iterations are unknown.
  int64_t multiply_adds = 0;
};

// Compiles the model (.onnx, .tflite, or .qg: graph IR text) and writes what options.emit says. Writes nothing on
// failure or if stop_after ends the compilation.
Expected<CompileReport> compile(const std::string& model, const std::string& output,
                                const CompileOptions& options);

struct CheckReport {
  std::vector<std::string> notes;
  ModelAbout about;  // the model of the first entry point
};

// Imports and schedules the model without generating code, as `quernel check` does.
Expected<CheckReport> check(const std::string& model, const CompileOptions& options);

}  // namespace quernel
