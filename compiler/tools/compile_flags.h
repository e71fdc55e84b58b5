// The options that every command which compiles shares: targets, free dims, values of inputs, and what
// developers switch.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "quernel/compiler.h"

namespace CLI {
class App;
}

namespace quernel::tools {

struct CompileFlags {
  std::vector<std::string> targets, dims, input_shapes, input_values, states, entry_points, only_entry_points,
      custom_ops, place, float_weights, keep_inputs, like, external_dirs;
  std::vector<std::string> disabled_passes, print_after;
  std::string stop_after, dump_dir, tuning, device_profile,
      precision = "f32", weights, activations = "f32", state_dtype = "f32", duplicate_names = "constants",
      rounding, signature, io;
  bool verify_each = false, checked = false, allow_large = false;
};

void add_target_flags(CLI::App& app, CompileFlags& flags);  // --target, --place, --precision
void add_tuning_flag(CLI::App& app, CompileFlags& flags);   // --tuning
void add_shape_flags(CLI::App& app,
                     CompileFlags& flags);  // --dim, --input-shape, --input-value, --external-data
void add_model_flags(CLI::App& app, CompileFlags& flags);      // --custom-op, --keep-input, …
void add_choice_flags(CLI::App& app, CompileFlags& flags);     // --like, --checked, --rounding, --io
void add_entry_flags(CLI::App& app, CompileFlags& flags);      // --state, --entry, --only-entry
void add_signature_flag(CLI::App& app, CompileFlags& flags);   // --entry of verify and test
void add_developer_flags(CLI::App& app, CompileFlags& flags);  // --disable-pass, --print-after, --dump-dir…

// What the flags say; a message of one line when they, or the files of --input-value and --custom-op, cannot
// be understood (exit code kUsage).
Expected<CompileOptions> compile_options(const CompileFlags& flags);

}  // namespace quernel::tools
