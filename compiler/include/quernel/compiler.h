// The compiler's public interface: a model file in, a bundle out. Everything else under compiler/ is private.
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
#include "graph/place_rule.h"
#include "graph/states.h"
#include "graph/tensor.h"
#include "support/expected.h"
#include "support/onnx_choices.h"

namespace quernel {

// One of several entry points of a bundle.
struct EntryPointOptions {
  std::string name;
  std::string model;                    // its own model file; empty: the one given to compile
  std::map<std::string, int64_t> dims;  // beside, or instead of, those of CompileOptions
  std::map<std::string, Symbol> dim_ranges;
};

// What is written.
enum class Emit {
  kBundle,  // a bundle, for the runtime
  kStatic,  // firmware: <output>.a, <output>.h, and the CMake package <output>-config.cmake
  kC,       // the same as C99: <output>.c, <output>.h, <output>_weights.c, <output>_memory.c
};

// Memory that a program without a runtime may use.
struct MemoryOption {
  std::string name;
  uint64_t bytes = 0;
};

struct CompileOptions {
  Emit emit = Emit::kBundle;
  // Of Emit::kStatic and kC: where the workspace may lie, fastest first (none: in one memory without limit),
  // and how much workspace, states and stack may take together (0: no limit). What does not fit is invalid
  // input.
  std::vector<MemoryOption> memory;
  uint64_t max_ram = 0;
  std::vector<std::string> targets = {"native"};             // names of presets; one variant each
  std::map<std::string, int64_t> dims;                       // fixes named free dims
  std::map<std::string, Symbol> dim_ranges;                  // min, max and multiple_of of others
  std::map<std::string, std::vector<int64_t>> input_shapes;  // fixes whole inputs
  bool declared_shapes_yield = false;  // where the model declares another shape, input_shapes holds
  // Values of inputs. Where an operator needs one at compile time (a Reshape's shape), the input becomes a
  // constant and is no input of the bundle any more; the others stay inputs.
  std::map<std::string, Tensor> input_values;
  // Shell patterns: initializers that the model lists as inputs, too, and that stay inputs. A pattern that
  // matches none is invalid input; all others are constants.
  std::vector<std::string> keep_inputs;
  DuplicateNames duplicate_names = DuplicateNames::kConstants;
  bool allow_large = false;  // no limits of what loops, branches and functions become when they are inlined
  // Inputs that are kept from run to run; they and their outputs leave the signature. input_values has their
  // initial values, else they begin as zeros. Entry points share those that have one name.
  std::vector<StatePair> states;
  // How large weights are stored: kF32 (as they are), kF16 or kBF16, rounded to nearest. Arithmetic stays
  // f32.
  DType precision = DType::kF32;
  // Random numbers instead of large weights, from this seed (graph/random_weights.h).
  std::optional<uint64_t> random_weights;
  // Targets that are a GPU with a processor beside it: where nodes run; the last rule that names one decides.
  // Nodes that none names run where that is estimated to be fastest.
  std::vector<PlaceRule> place;
  std::vector<CustomOpDescription> custom_ops;  // operators to import as custom ops
  OnnxChoices choices;                          // where ONNX leaves one, or has none
  std::vector<std::string> external_dirs;       // where a model's external data may lie besides its folder
  std::vector<EntryPointOptions> entry_points;  // none: the model is the only one
  // Shell patterns: entry points whose name matches none of them are left out, and their models not read. A
  // pattern that matches no name is invalid input. None: all are built.
  std::vector<std::string> only_entry_points;
  int threads = 0;  // code generation threads; 0: one per core
  // A file of tiling choices, as `quernel tune` writes them (schedule/tiling.h); contractions that it does
  // not name are tiled by estimate.
  std::string tuning_file;
  // Facts of the GPU to compile for: a file, as `quernel probe` writes it, or the name of a preset
  // (targets/device_profile.h).
  std::string device_profile;

  // For developers: passes by name (`quernel opt --list`).
  std::vector<std::string> disabled_passes;
  std::vector<std::string> print_after;  // pass names, or "all", or "changed"; printed to stderr
  std::string stop_after;                // the pass (of graph or loops) to end after; no bundle is written
  bool verify_each = false;              // verify the IR after every pass (always on in debug builds)
  std::string dump_dir;  // numbered files: graph after each pass, schedule, loop IR, LLVM IR, assembly

  // Called when a stage begins, with its name; for progress display.
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
  std::string name;              // as the model has it
  std::string identifier;        // the member of the struct
  std::string shape_identifier;  // the member that receives the dims, where a run computes them; else empty
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;  // -1 where a run computes the dim
  uint64_t bytes = 0;          // the most it can need
};
// What Emit::kStatic or Emit::kC wrote; flash is kernel_bytes + overhead_bytes +
// CompileReport::constant_bytes.
struct StaticReport {
  // C, whose compiler decides how much code and stack there is: these are of machine code for the same
  // target, the stack no less than the arrays in the C; bytes of code are 0 where there is no such code.
  bool estimated = false;
  std::vector<std::string> files;
  uint64_t kernel_bytes = 0;         // code and tables of kernels
  uint64_t overhead_bytes = 0;       // code and tables beside them
  std::vector<MemoryUse> memory;     // workspace and, where there are any, states
  uint64_t stack_bytes = 0;          // the most that a run takes
  std::vector<std::string> helpers;  // arithmetic functions that the target's compiler library has to have
  std::vector<StaticTensorReport> inputs, outputs;  // of the first entry point
};

struct CompileReport {
  std::vector<StageTime> stages;
  std::vector<std::string> notes;
  std::vector<std::string> fixed_inputs;     // those that input_values made constants
  std::vector<std::string> random_outputs;   // those computed from random numbers
  std::vector<std::string> fourier_outputs;  // those that a Fourier transform gives
  bool stopped = false;                      // at stop_after: no bundle was written, the figures below are 0
  uint64_t file_bytes = 0, code_bytes = 0, constant_bytes = 0, workspace_bytes = 0;
  std::optional<StaticReport> program;      // file_bytes are those of the archive, code_bytes of both kinds
  int kernels = 0;                          // distinct ones, of the first variant
  int dispatches = 0;                       // items of the first variant, of all entry points
  std::vector<std::string> kernel_classes;  // of the kernels of the first variant, by their numbers
  // Products that contractions add up in a run of the first entry point (graph/multiply_adds.h); an estimate
  // where sizes or iterations are not known.
  int64_t multiply_adds = 0;
};

// Compiles the model (.onnx, or .qg: graph IR text) and writes the bundle, or what options.emit says; on
// failure, and where stop_after ends it, nothing is written.
Expected<CompileReport> compile(const std::string& model, const std::string& output,
                                const CompileOptions& options);

// Imports and schedules without generating code; what `quernel check` runs. Returns notes.
Expected<std::vector<std::string>> check(const std::string& model, const CompileOptions& options);

}  // namespace quernel
