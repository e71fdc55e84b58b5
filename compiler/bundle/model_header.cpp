#include "bundle/model_header.h"

#include <algorithm>
#include <cstdio>

#include "bundle/c_identifiers.h"
#include "bundle/c_types.h"
#include "bundle/quantize_functions.h"
#include "codegen/c/node_names.h"
#include "schemas/kernel_abi.h"
#include "schemas/printable.h"
#include "support/diagnostic.h"

namespace quernel::bundle {
namespace {

using codegen::StaticEntry;
using codegen::StaticProgram;
using codegen::StaticRegion;
using codegen::StaticTensor;

// Text of the model inside a comment.
std::string commented(std::string text) {
  text = printable(text);
  for (size_t at = 0; (at = text.find("*/", at)) != std::string::npos;) text.replace(at, 2, "* /");
  for (size_t at = 0; (at = text.find("/*", at)) != std::string::npos;) text.replace(at, 2, "/ *");
  return text;
}

// Nine digits tell all floats apart.
std::string c_float(float value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.9ef", static_cast<double>(value));
  return text;
}

std::string type_text(const StaticTensor& t) {
  std::string text(to_string(t.dtype));
  text += "[";
  for (size_t d = 0; d < t.shape.size(); ++d)
    text +=
        (d ? "," : "") + (t.shape[d].expression < 0 ? std::to_string(t.shape[d].value) : std::string("?"));
  return text + "]";
}

// An upper bound where a run computes the shape.
uint64_t element_count(const StaticTensor& t) {
  uint64_t count = 1;
  for (const codegen::Amount& d : t.shape) {
    if (d.expression >= 0) return t.bytes * 8 / static_cast<uint64_t>(bit_width(t.dtype));
    count *= static_cast<uint64_t>(d.value);
  }
  return count;
}

class HeaderWriter {
 public:
  HeaderWriter(const StaticProgram& program, const std::string& form, const std::optional<CodeFacts>& facts)
      : p_(program), form_(form), facts_(facts), macro_(program.macro) {}

  std::string run() {
    std::string guard = macro_ + "_H_";
    line("/* " + commented(p_.name) + " for " + p_.target + ", made by " + p_.producer +
         "; what is declared here is defined in " + commented(form_) + ".");
    line(" * Nothing in it allocates memory, calls a library or runs before main. */");
    line("#ifndef " + guard);
    line("#define " + guard);
    line();
    line("#include <stdint.h>");
    line();
    line("#ifdef __cplusplus");
    line("extern \"C\" {");
    line("#endif");
    line();
    line("/* Of the functions and structs below; another one means that callers have to change. */");
    define(macro_ + "_INTERFACE_VERSION", 1);
    line();
    write_sizes();
    write_codes();
    write_memory();
    text_ += rounding_functions(p_);
    for (const StaticEntry& entry : p_.entries) write_entry(entry);
    if (is_machine_code()) write_kernels();
    line("#ifdef __cplusplus");
    line("}");
    line("#endif");
    line();
    line("#endif");
    return std::move(text_);
  }

 private:
  void line(const std::string& text = {}) { text_ += text + "\n"; }
  void define(const std::string& name, const std::string& value) { line("#define " + name + " " + value); }
  void define(const std::string& name, uint64_t value) { define(name, std::to_string(value)); }

  std::string region_macro(const StaticRegion& region) const {
    return macro_ + "_" + upper_case(region.identifier);
  }

  void write_sizes() {
    line("/* Flash. */");
    define(macro_ + "_CONSTANTS_BYTES", p_.constants_bytes);
    if (is_machine_code()) define(macro_ + "_CODE_BYTES", facts_->code_bytes);
    line("/* RAM: what the members of " + p_.identifier + "_memory point to, each a multiple of " +
         std::to_string(codegen::kStaticAlignment) + " bytes, aligned to");
    line(" * " + macro_ + "_ALIGNMENT; beside it " +
         (has_io_in_workspace() ? "the stack; inputs and outputs are inside. */"
                                : "inputs, outputs and the stack. */"));
    define(macro_ + "_ALIGNMENT", codegen::kStaticAlignment);
    for (const StaticRegion& region : p_.regions) define(region_macro(region) + "_BYTES", region.bytes);
    define(macro_ + "_STATE_BYTES", p_.state_bytes);
    if (is_machine_code()) {
      line("/* The most that a call of a function below takes of the stack. */");
      define(macro_ + "_STACK_BYTES", facts_->stack_bytes);
    } else {
      write_estimates();
    }
    line();
  }

  static bool is_in_workspace(const StaticTensor& t) { return t.place.space == codegen::Space::kWorkspace; }
  // Of all entry points, or of none.
  bool has_io_in_workspace() const {
    return std::any_of(p_.entries.begin(), p_.entries.end(), [](const StaticEntry& entry) {
      return std::any_of(entry.inputs.begin(), entry.inputs.end(), is_in_workspace) ||
             std::any_of(entry.outputs.begin(), entry.outputs.end(), is_in_workspace);
    });
  }

  bool is_machine_code() const { return facts_ && !facts_->estimated; }

  void write_estimates() {
    line(
        "/* How much code and stack there is the C compiler decides (-fstack-usage says what functions "
        "take).");
    if (!facts_) {
      line(" * There is no estimate for " + p_.target + ". */");
      return;
    }
    line(" * These are what quernel's machine code for " + p_.target +
         " has (--emit static); the stack no less");
    line(" * than the arrays in the C. */");
    define(macro_ + "_CODE_ESTIMATE_BYTES", facts_->code_bytes);
    define(macro_ + "_STACK_ESTIMATE_BYTES", facts_->stack_bytes);
  }

  void write_codes() {
    line("/* What functions return. After anything but OK the contents of outputs are undefined. */");
    define(macro_ + "_OK", QNL_KERNEL_OK);
    line("/* some index in a tensor is wrong */");
    define(macro_ + "_INDEX_OUT_OF_RANGE", QNL_KERNEL_INDEX_OUT_OF_RANGE);
    define(macro_ + "_DIVISION_BY_ZERO", QNL_KERNEL_DIVISION_BY_ZERO);
    line("/* some size or count, or an index that is checked, is none that the model was compiled for */");
    define(macro_ + "_SIZE_OUT_OF_RANGE", codegen::kStaticSymbolOutOfRange);
    line("/* there are no elements of which one is the result, the largest for example */");
    define(macro_ + "_NO_ELEMENTS", codegen::kStaticNoElements);
    line();
  }

  void write_memory() {
    const std::string& id = p_.identifier;
    line("/* Memory that the caller lends. A member may be NULL where its size is 0. */");
    line("typedef struct " + id + "_memory {");
    for (const StaticRegion& region : p_.regions)
      line("  void* " + region.identifier + "; /* " + region_macro(region) +
           "_BYTES; contents mean nothing between runs */");
    if (p_.state_bytes != 0)
      line("  void* state; /* " + macro_ + "_STATE_BYTES, kept from run to run; made by " + id + "_reset */");
    line("} " + id + "_memory;");
    line();
    line(is_machine_code() ? "/* Static memory of these sizes, in sections .bss.<member>." + id +
                                 "; linked only where it is used. */"
                           : "/* Static memory of these sizes, for who links it. */");
    line("extern const " + id + "_memory " + id + "_static_memory;");
    line();
    if (p_.state_bytes == 0) return;
    line("/* Gives states their initial values; to be called before the first run. */");
    line("void " + id + "_reset(const " + id + "_memory* memory);");
    line();
    for (const codegen::StaticState& state : p_.states) {
      std::string prefix = macro_ + "_STATE_" + upper_case(state.tensor.identifier);
      line("/* State '" + commented(state.tensor.name) + "': " + type_text(state.tensor) +
           ", bytes from the " + "beginning of `state`. */");
      define(prefix + "_OFFSET", state.offset);
      define(prefix + "_BYTES", state.tensor.bytes);
    }
    line();
  }

  void write_tensor_macros(const std::string& prefix, const StaticTensor& t) {
    line("/* '" + commented(t.name) + "': " + type_text(t) +
         (t.shape_identifier.empty() ? "" : "; sizes are the most that a run makes") + " */");
    define(prefix + "_BYTES", t.bytes);
    define(prefix + "_ELEMENTS", element_count(t));
    define(prefix + "_RANK", t.shape.size());
    define(prefix + "_DTYPE", std::to_string(static_cast<int>(t.dtype)) + " /* " +
                                  std::string(to_string(t.dtype)) + ", as qnl_dtype numbers them */");
    if (t.scale != 0) {
      line("/* real = scale * (integer - zero point) */");
      define(prefix + "_SCALE", c_float(t.scale));
      define(prefix + "_ZERO_POINT", "(" + std::to_string(t.zero_point) + ")");
    }
    if (is_in_workspace(t)) {
      line("/* from the beginning of `" + p_.regions[t.place.index].identifier + "` */");
      define(prefix + "_OFFSET", t.place.offset);
    }
    if (t.shape.empty() || !t.shape_identifier.empty()) return;
    std::string shape;
    for (const codegen::Amount& d : t.shape) shape += (shape.empty() ? "{" : ", ") + std::to_string(d.value);
    define(prefix + "_SHAPE", shape + "}");
  }

  void write_struct(const StaticEntry& entry, const std::vector<StaticTensor>& tensors, bool outputs) {
    std::string name = entry.identifier + (outputs ? "_outputs" : "_inputs");
    std::string prefix = upper_case(entry.identifier) + (outputs ? "_OUTPUT" : "_INPUT");
    define(prefix + "_COUNT", tensors.size());
    for (const StaticTensor& t : tensors) write_tensor_macros(prefix + "_" + upper_case(t.identifier), t);
    line("typedef struct " + name + " {");
    bool empty = true;
    for (const StaticTensor& t : tensors) {
      empty &= is_in_workspace(t) && t.shape_identifier.empty();
      if (is_in_workspace(t)) continue;
      line("  " + std::string(outputs ? "" : "const ") + std::string(c_element_type(t.dtype)) + "* " +
           t.identifier + "; /* " + type_text(t) + ", " + std::to_string(t.bytes) + " bytes */");
    }
    for (const StaticTensor& t : tensors)
      if (!t.shape_identifier.empty())
        line("  int64_t* " + t.shape_identifier + "; /* gets its " + std::to_string(t.shape.size()) +
             " dims; may be NULL */");
    if (empty) line("  char none; /* C wants a member; the run function takes NULL, too */");
    line("} " + name + ";");
    for (const StaticTensor& t : tensors)
      if (is_in_workspace(t)) write_address(name.substr(0, name.size() - 1) + "_" + t.identifier, prefix, t);
    for (const StaticTensor& t : tensors)
      if (t.scale != 0) text_ += outputs ? dequantize_function(entry, t) : quantize_function(p_, entry, t);
    line();
  }

  void write_address(const std::string& name, const std::string& prefix, const StaticTensor& t) {
    std::string type(c_element_type(t.dtype)), region = p_.regions[t.place.index].identifier;
    line("/* Where the first element lies. */");
    line("static inline " + type + "* " + name + "_address(const " + p_.identifier + "_memory* memory) {");
    line("  return (" + type + "*)(void*)((uint8_t*)memory->" + region + " + " + prefix + "_" +
         upper_case(t.identifier) + "_OFFSET);");
    line("}");
  }

  void write_entry(const StaticEntry& entry) {
    if (p_.entries.size() > 1) {
      line("/* ---- entry point '" + commented(entry.name) + "' */");
      line();
    }
    std::string macro = upper_case(entry.identifier);
    if (!entry.model_sha256.empty()) {
      line("/* The file of the model, as sha256sum prints it. */");
      define(macro + "_MODEL_SHA256", "\"" + entry.model_sha256 + "\"");
    }
    line("/* Of matrix products and convolutions in a run; about, where a run decides about sizes. */");
    define(macro + "_MULTIPLY_ADDS", static_cast<uint64_t>(entry.multiply_adds));
    line();
    write_struct(entry, entry.inputs, false);
    write_struct(entry, entry.outputs, true);
    if (has_io_in_workspace()) {
      line(
          "/* Inputs are written into the memory before each run, which overwrites them. Outputs hold until "
          "something");
      line(" * else is written there. Runs of different memory may go on at the same time. */");
    } else {
      line(
          "/* Pointers are aligned to an element. Inputs, outputs and memory do not overlap, but inputs may "
          "one");
      line(" * another. Runs of different memory may go on at the same time. */");
    }
    const std::string& id = entry.identifier;
    line("int32_t " + id + "_run(const " + p_.identifier + "_memory* memory, const " + id +
         "_inputs* inputs,");
    line(std::string(id.size() + 13, ' ') + "const " + id + "_outputs* outputs);");
    line();
  }

  // In C the comments are on the kernels.
  void write_kernels() {
    if (p_.kernels.empty()) return;
    line(
        "/* Kernels by the names that debuggers and profiles show, and the model's nodes that their calls "
        "compute:");
    std::vector<std::vector<std::string>> nodes = codegen::nodes_of_kernels(p_);
    for (size_t k = 0; k < nodes.size(); ++k) {
      line(" * " + p_.kernels[k].symbol);
      for (const std::string& names : nodes[k]) line(" *   " + names);
    }
    line(" */");
    line();
  }

  const StaticProgram& p_;
  const std::string& form_;
  const std::optional<CodeFacts>& facts_;
  std::string macro_;
  std::string text_;
};

}  // namespace

std::string model_header(const StaticProgram& program, const std::string& form,
                         const std::optional<CodeFacts>& facts) {
  return HeaderWriter(program, form, facts).run();
}

}  // namespace quernel::bundle
