#include "compile_flags.h"

#include <CLI/CLI.hpp>
#include <charconv>
#include <filesystem>

#include "input_values.h"
#include "pipeline/pipeline.h"

namespace quernel::tools {
namespace {

bool parse_integer(std::string_view text, int64_t* value) {
  auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), *value);
  return code == std::errc() && end == text.data() + text.size();
}

// "NAME=VALUE", split at the last '=': names may hold one, values never do.
bool split_assignment(const std::string& text, std::string* name, std::string* value) {
  size_t at = text.rfind('=');
  if (at == std::string::npos || at == 0) return false;
  *name = text.substr(0, at);
  *value = text.substr(at + 1);
  return true;
}

// "1x3x224x224" or "1,3,224,224"; "" is a scalar.
bool parse_shape(const std::string& text, std::vector<int64_t>* shape) {
  for (size_t at = 0; at < text.size();) {
    size_t end = text.find_first_of("x,", at);
    if (end == std::string::npos) end = text.size();
    int64_t dim;
    if (!parse_integer(std::string_view(text).substr(at, end - at), &dim) || dim < 0) return false;
    if (end + 1 == text.size()) return false;
    shape->push_back(dim);
    at = end + 1;
  }
  return true;
}

}  // namespace

void add_target_flags(CLI::App& app, CompileFlags& flags) {
  app.add_option("--target", flags.targets, "what to generate code for; may be repeated (default: native)")
      ->type_name("T")
      ->allow_extra_args(false);
  app.add_option("--place", flags.place,
                 "targets GPU/CPU: run nodes of these names on the CPU, or on the GPU; the last that "
                 "names a node decides (default: by estimate)")
      ->type_name("cpu:GLOB|gpu:GLOB")
      ->allow_extra_args(false);
  app.add_option("--precision", flags.precision,
                 "how large weights are stored: f32, f16 or bf16; arithmetic is f32, but targets with +bf16 "
                 "multiply bf16 (default: f32)")
      ->type_name("D");
  app.add_option("--weights", flags.weights,
                 "quantise f32 weights of products to 8 bits with a scale per column, or to 4 bits in blocks "
                 "of 32; or in "
                 "blocks of BLOCK elements along the sum")
      ->type_name("i8|i4[:BLOCK]");
  app.add_option("--activations", flags.activations,
                 "f32, or i8: products with quantised weights round rows of activations to i8, with a scale "
                 "per block of the weights, and multiply integers; i8:row: with a scale per row, which takes "
                 "fewer instructions and rounds more (default: f32)")
      ->type_name("f32|i8|i8:row");
  app.add_option("--float-weights", flags.float_weights,
                 "with --weights: nodes of these names keep their weights; may be repeated")
      ->type_name("GLOB")
      ->allow_extra_args(false);
  app.add_option(
         "--device-profile", flags.device_profile,
         "facts of the GPU to compile for: a file as `quernel probe` writes it, or a name that `quernel "
         "targets` lists")
      ->type_name("FILE|NAME");
}

void add_tuning_flag(CLI::App& app, CompileFlags& flags) {
  app.add_option("--tuning", flags.tuning,
                 "choices about kernels, as `quernel tune` writes and `quernel inspect --tuning` prints them")
      ->type_name("FILE");
}

void add_shape_flags(CLI::App& app, CompileFlags& flags) {
  app.add_option("--dim", flags.dims,
                 "fix a free dim of the model, or say its range: N=8, N=1..64, N=8..512/8")
      ->type_name("NAME=N")
      ->allow_extra_args(false);
  app.add_option("--input-shape", flags.input_shapes, "fix the whole shape of an input")
      ->type_name("NAME=1x3x224x224")
      ->allow_extra_args(false);
  app.add_option("--input-value", flags.input_values,
                 "the value of an input, .npy or .pb: a constant where an operator needs it at compile time")
      ->type_name("NAME=FILE")
      ->allow_extra_args(false);
  app.add_option("--external-data", flags.external_dirs,
                 "a folder that the model's external data may lie in; else links may not leave the model's")
      ->type_name("DIR")
      ->allow_extra_args(false);
}

void add_model_flags(CLI::App& app, CompileFlags& flags) {
  app.add_option("--custom-op", flags.custom_ops,
                 "a description of operators that functions of yours, or precompiled kernels, compute")
      ->type_name("FILE")
      ->allow_extra_args(false);
  app.add_option("--keep-input", flags.keep_inputs,
                 "an initializer that the model lists as an input, too, stays an input; may be repeated "
                 "(default: all are constants)")
      ->type_name("GLOB")
      ->allow_extra_args(false);
  app.add_option(
         "--duplicate-names", flags.duplicate_names,
         "where a model gives one name to several values: the last counts, of constants only, of all, "
         "or never (default: constants; equal ones are never refused)")
      ->type_name("constants|last|refuse");
  app.add_flag(
      "--allow-large", flags.allow_large,
      "lift the limits of what loops, branches and functions may become when they are inlined: 100000 "
      "nodes and 4 for each of the file's, 256 MiB of functions' constants; and of constants that are "
      "computed here: 128 MiB, or 16 times those of the file");
}

void add_choice_flags(CLI::App& app, CompileFlags& flags) {
  app.add_option("--like", flags.like,
                 "where ONNX leaves a choice, do as onnxruntime, or as it does in some points "
                 "(onnxruntime:align-corners,casts); compiler/ops/CHOICES.md lists them")
      ->type_name("onnxruntime[:CHOICE,…]")
      ->allow_extra_args(false);
  app.add_option("--rounding", flags.rounding,
                 "how quantized operators of a TensorFlow Lite model round: single, double (as TensorFlow "
                 "Lite Micro) or float32 (as LiteRT with XNNPACK) (default: single)")
      ->type_name("single|double|float32");
  app.add_option("--io", flags.io,
                 "inputs and outputs of a quantized model: f32, real numbers, or i8, the integers of the "
                 "quantizations next to them (default: as the model has them)")
      ->type_name("f32|i8");
  app.add_flag(
      "--checked", flags.checked,
      "an index out of range ends the run with an error that names its node (default: clamped or ignored)");
}

void add_entry_flags(CLI::App& app, CompileFlags& flags) {
  app.add_option(
         "--state", flags.states,
         "keep INPUT from run to run; a run makes it what OUTPUT is. One '*' in both stands for the same "
         "text")
      ->type_name("INPUT=OUTPUT")
      ->allow_extra_args(false);
  app.add_option("--state-dtype", flags.state_dtype,
                 "how states of f32 are stored: f32, f16 or bf16, each element rounded when it is written; "
                 "arithmetic "
                 "is f32 (default: f32)")
      ->type_name("D");
  app.add_option(
         "--entry", flags.entry_points,
         "an entry point, with dims (as --dim) and a model of its own; repeated: several in one bundle, "
         "which share weights and states; of a TensorFlow Lite model with several signatures, one of these")
      ->type_name("NAME[@MODEL][:DIM=N,…]")
      ->allow_extra_args(false);
  app.add_option("--only-entry", flags.only_entry_points,
                 "build only the entry points of these names; may be repeated (default: all)")
      ->type_name("GLOB")
      ->allow_extra_args(false);
}

void add_signature_flag(CLI::App& app, CompileFlags& flags) {
  app.add_option("--entry", flags.signature,
                 "a signature of a TensorFlow Lite model with several: only data sets that call it (default: "
                 "all, each "
                 "calls the one that tolerance.json names, else the first)")
      ->type_name("NAME");
}

void add_developer_flags(CLI::App& app, CompileFlags& flags) {
  const char* group = "For developers";
  app.add_option("--disable-pass", flags.disabled_passes,
                 "leave a pass out (`quernel opt --list` names them)")
      ->type_name("P")
      ->allow_extra_args(false)
      ->group(group);
  app.add_option("--print-after", flags.print_after, "print the IR after a pass, to stderr")
      ->type_name("P|all|changed")
      ->allow_extra_args(false)
      ->group(group);
  app.add_option("--dump-dir", flags.dump_dir, "numbered files of every stage, down to assembly")
      ->type_name("D")
      ->group(group);
  app.add_flag("--verify-each", flags.verify_each, "verify the IR after every pass")->group(group);
}

namespace {

// "8", "1..64" or "8..512/8". `Options` has dims and dim_ranges.
template <class Options>
bool parse_dim(const std::string& name, const std::string& value, Options& options) {
  size_t dots = value.find("..");
  if (dots == std::string::npos) return parse_integer(value, &options.dims[name]);
  Symbol range{name, 1, 1, 1, false, {}};
  std::string_view text = value;
  size_t slash = std::min(text.find('/'), text.size());
  bool read = parse_integer(text.substr(0, dots), &range.min) &&
              parse_integer(text.substr(dots + 2, slash - dots - 2), &range.max) &&
              (slash == text.size() || parse_integer(text.substr(slash + 1), &range.multiple_of));
  options.dim_ranges[name] = range;
  return read && range.min >= 0 && range.min <= range.max && range.max <= (int64_t{1} << 31) &&
         range.multiple_of >= 1;
}

// "decode", "decode:N=1,M=1..64" or "decode@decode.onnx:N=1".
bool parse_entry_point(const std::string& text, EntryPointOptions& entry) {
  size_t colon = text.rfind(':');
  std::string head = text.substr(0, colon);
  size_t at = std::min(head.find('@'), head.size());
  entry.name = head.substr(0, at);
  if (at < head.size()) entry.model = head.substr(at + 1);
  if (entry.name.empty() || (at < head.size() && entry.model.empty())) return false;
  for (size_t begin = colon; begin < text.size();) {
    size_t end = std::min(text.find(',', begin + 1), text.size());
    std::string name, value;
    if (!split_assignment(text.substr(begin + 1, end - begin - 1), &name, &value) ||
        !parse_dim(name, value, entry))
      return false;
    begin = end;
  }
  return true;
}

// "i8", "i4:64"
bool parse_weights(const std::string& text, WeightFormat& weights) {
  constexpr int64_t kSmallBlock = 32, kLargest = 65536;
  const size_t colon = text.find(':');
  const std::string dtype = text.substr(0, colon);
  if (dtype != "i8" && dtype != "i4") return false;
  weights.bits = dtype == "i8" ? 8 : 4;
  weights.block = dtype == "i8" ? 0 : kSmallBlock;
  if (colon == std::string::npos) return true;
  const std::string block = text.substr(colon + 1);
  const auto [end, error] = std::from_chars(block.data(), block.data() + block.size(), weights.block);
  return error == std::errc() && end == block.data() + block.size() && weights.block >= 16 &&
         weights.block <= kLargest && weights.block % 16 == 0;
}

}  // namespace

Expected<CompileOptions> compile_options(const CompileFlags& flags) {
  CompileOptions options;
  if (!flags.targets.empty()) options.targets = flags.targets;
  std::optional<DType> precision = parse_dtype(flags.precision);
  if (!precision || (*precision != DType::kF32 && *precision != DType::kF16 && *precision != DType::kBF16))
    return invalid_input("--precision: expected f32, f16 or bf16, found '" + flags.precision + "'");
  options.precision = *precision;
  if (!flags.weights.empty() && !parse_weights(flags.weights, options.weights))
    return invalid_input(
        "--weights: expected i8 or i4, or one of them with :BLOCK, a multiple of 16 up to 65536; found '" +
        flags.weights + "'");
  if (!flags.float_weights.empty() && flags.weights.empty())
    return invalid_input("--float-weights: expected --weights, too");
  options.float_weights = flags.float_weights;
  if (flags.activations != "f32" && flags.activations != "i8" && flags.activations != "i8:row")
    return invalid_input("--activations: expected f32, i8 or i8:row, found '" + flags.activations + "'");
  options.activations = flags.activations == "f32" ? DType::kF32 : DType::kI8;
  options.scale_per_row = flags.activations == "i8:row";
  std::string name, value;
  for (const std::string& text : flags.dims)
    if (!split_assignment(text, &name, &value) || !parse_dim(name, value, options))
      return invalid_input("--dim: expected NAME=N, NAME=MIN..MAX or NAME=MIN..MAX/MULTIPLE, found '" + text +
                           "'");
  for (const std::string& text : flags.input_shapes)
    if (!split_assignment(text, &name, &value) || !parse_shape(value, &options.input_shapes[name]))
      return invalid_input("--input-shape: expected NAME=1x3x224x224, found '" + text + "'");
  for (const std::string& text : flags.states) {
    StatePair& pair = options.states.emplace_back();
    if (!split_assignment(text, &pair.input, &pair.output) || pair.output.empty())
      return invalid_input("--state: expected INPUT=OUTPUT, found '" + text + "'");
  }
  std::optional<DType> state_dtype = parse_dtype(flags.state_dtype);
  if (!state_dtype ||
      (*state_dtype != DType::kF32 && *state_dtype != DType::kF16 && *state_dtype != DType::kBF16))
    return invalid_input("--state-dtype: expected f32, f16 or bf16, found '" + flags.state_dtype + "'");
  options.state_dtype = *state_dtype;
  for (const std::string& text : flags.entry_points)
    if (!parse_entry_point(text, options.entry_points.emplace_back()))
      return invalid_input("--entry: expected NAME[@MODEL][:DIM=N,DIM=MIN..MAX,…], found '" + text + "'");
  options.signature = flags.signature;
  options.only_entry_points = flags.only_entry_points;
  options.keep_inputs = flags.keep_inputs;
  options.allow_large = flags.allow_large;
  const std::string& names = flags.duplicate_names;
  if (names != "constants" && names != "last" && names != "refuse")
    return invalid_input("--duplicate-names: expected constants, last or refuse, found '" + names + "'");
  options.duplicate_names = names == "last"     ? DuplicateNames::kLast
                            : names == "refuse" ? DuplicateNames::kRefuse
                                                : DuplicateNames::kConstants;
  for (const std::string& path : flags.custom_ops) {
    QUERNEL_TRY(std::vector<CustomOpDescription> ops, read_custom_ops(path));
    for (CustomOpDescription& op : ops) {
      for (const CustomOpDescription& other : options.custom_ops)
        if (other.name == op.name)
          return invalid_input("--custom-op: '" + op.name + "' is described in two files");
      options.custom_ops.push_back(std::move(op));
    }
  }
  for (const std::string& text : flags.like)
    if (Status known = choose_like(text, options.choices); !known)
      return invalid_input("--like: " + known.errors()[0].message);
  options.choices.checked = flags.checked;
  if (!flags.rounding.empty()) {
    options.rounding = parse_integer_rounding(flags.rounding);
    if (!options.rounding)
      return invalid_input("--rounding: expected single, double or float32, found '" + flags.rounding + "'");
  }
  if (!flags.io.empty() && flags.io != "f32" && flags.io != "i8")
    return invalid_input("--io: expected f32 or i8, found '" + flags.io + "'");
  if (!flags.io.empty()) options.io = flags.io == "f32" ? IoTypes::kReal : IoTypes::kIntegers;
  for (const std::string& text : flags.place) {
    std::string where = text.substr(0, 4);
    if ((where != "cpu:" && where != "gpu:") || text.size() == 4)
      return invalid_input("--place: expected cpu:GLOB or gpu:GLOB, found '" + text + "'");
    options.place.push_back({text.substr(4), where == "cpu:"});
  }
  options.external_dirs = flags.external_dirs;
  options.tuning_file = flags.tuning;
  options.device_profile = flags.device_profile;
  options.disabled_passes = flags.disabled_passes;
  options.print_after = flags.print_after;
  options.stop_after = flags.stop_after;
  options.dump_dir = flags.dump_dir;
  options.verify_each = flags.verify_each;
  QUERNEL_CHECK(check_pass_names(options));
  // Both names and paths may hold '=': the first one behind which there is a file ends the name.
  for (const std::string& text : flags.input_values) {
    size_t at = text.find('=');
    std::error_code error;
    for (size_t next = at; next != std::string::npos; next = text.find('=', next + 1)) {
      if (!std::filesystem::exists(text.substr(next + 1), error)) continue;
      at = next;
      break;
    }
    if (at == std::string::npos || at == 0)
      return invalid_input("--input-value: expected NAME=FILE, found '" + text + "'");
    Expected<Tensor> tensor = read_input_value(text.substr(at + 1));
    if (!tensor) return invalid_input("--input-value: " + tensor.errors()[0].message);
    options.input_values[text.substr(0, at)] = std::move(*tensor);
  }
  return options;
}

}  // namespace quernel::tools
