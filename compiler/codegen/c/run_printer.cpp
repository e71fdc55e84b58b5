#include "codegen/c/node_names.h"
#include "codegen/c/program_printer.h"
#include "support/diagnostic.h"

namespace quernel::codegen {
namespace {

struct Definition {
  const char* name;
  const char* text;
};

constexpr Definition kDefinitions[] = {
    {"qnl_floor_divide", R"(static inline int64_t qnl_floor_divide(int64_t a, int64_t b) {
  return a / b - (a % b != 0 && (a % b < 0) != (b < 0));
}
)"},
    {"qnl_modulo", R"(static inline int64_t qnl_modulo(int64_t a, int64_t b) {
  return a % b + ((a % b != 0 && (a % b < 0) != (b < 0)) ? b : 0);
}
)"},
    {"qnl_smaller", R"(static inline int64_t qnl_smaller(int64_t a, int64_t b) {
  return a < b ? a : b;
}
)"},
    {"qnl_larger", R"(static inline int64_t qnl_larger(int64_t a, int64_t b) {
  return a > b ? a : b;
}
)"},
};

std::string number(int64_t value) {
  if (value == INT64_MIN) return "INT64_MIN";
  std::string digits = std::to_string(value);
  if (value < INT32_MIN + int64_t{1} || value > INT32_MAX) digits = "INT64_C(" + digits + ")";
  return value < 0 ? "(" + digits + ")" : digits;
}

}  // namespace

std::string run_prelude_for(const std::string& text) {
  std::string result;
  for (const Definition& d : kDefinitions)
    if (text.find(std::string(d.name) + "(") != std::string::npos) result += d.text;
  return result;
}

void RunPrinter::line(const std::string& text) {
  out_ += std::string(static_cast<size_t>(2 * indent_), ' ') + text + "\n";
}

std::string RunPrinter::symbol_name(uint32_t symbol) {
  symbols_.insert(symbol);
  return "symbol_" + std::to_string(symbol);
}

std::string RunPrinter::amount(const Amount& amount) {
  if (amount.expression < 0) return number(amount.value);
  const PostfixCode& code = program_.expressions[static_cast<size_t>(amount.expression)];
  std::vector<std::string> stack;
  for (size_t i = 0; i < code.size(); i += 2) {
    if (code[i] == 0 || code[i] == 1) {
      stack.push_back(code[i] == 0 ? number(code[i + 1]) : symbol_name(static_cast<uint32_t>(code[i + 1])));
      continue;
    }
    std::string b = stack.back(), a = stack[stack.size() - 2];
    stack.pop_back();
    auto infix = [&](const char* op) { return "((int64_t)" + a + " " + op + " " + b + ")"; };
    auto call = [&](const char* f) { return std::string(f) + "(" + a + ", " + b + ")"; };
    switch (code[i]) {
      case 2:
        stack.back() = infix("+");
        break;
      case 3:
        stack.back() = infix("-");
        break;
      case 4:
        stack.back() = infix("*");
        break;
      case 5:
        stack.back() = call("qnl_floor_divide");
        break;
      case 6:
        stack.back() = call("qnl_modulo");
        break;
      case 7:
        stack.back() = call("qnl_smaller");
        break;
      case 8:
        stack.back() = call("qnl_larger");
        break;
      default:
        QUERNEL_UNREACHABLE("an expression's opcode is unknown");
    }
  }
  return stack.back();
}

std::string RunPrinter::pointer(const StaticEntry& entry, const Place& place, const std::string& type,
                                bool is_const) {
  std::string base;
  switch (place.space) {
    case Space::kConstants:
      return weights_.pointer(place.offset, type);
    case Space::kWorkspace:
      base = program_.regions[place.index].identifier;
      pointers_.insert(base);
      base = "memory->" + base;
      break;
    case Space::kState:
      pointers_.insert("state");
      base = "memory->state";
      break;
    case Space::kInput:
      uses_inputs_ = true;
      base = "inputs->" + entry.inputs[place.index].identifier;
      break;
    case Space::kOutput:
      uses_outputs_ = true;
      base = "outputs->" + entry.outputs[place.index].identifier;
      break;
  }
  std::string constness = is_const ? "const " : "";
  std::string bytes = "(" + constness + "void*)" + base;
  if (place.offset != 0)
    bytes = "(" + constness + "void*)((" + constness + "uint8_t*)" + base + " + " +
            std::to_string(place.offset) + ")";
  return "(" + constness + type + "*)" + bytes;
}

void RunPrinter::call(const StaticEntry& entry, const Step& step) {
  const loop::Kernel& kernel = kernels_[step.kernel];
  if (!step.name.empty()) line("/* " + node_names_in_comment(step.name) + " */");
  if (step.may_fail)
    line("if (" + amount(step.workgroups) + " < 0) return " + std::to_string(kStaticNoElements) + ";");
  std::string text = program_.kernels[step.kernel].symbol + "(", separator;
  std::string break_line = "\n" + std::string(static_cast<size_t>(2 * indent_ + 4), ' ');
  size_t width = text.size();
  auto add = [&](const std::string& argument) {
    if (width + argument.size() > 100) {
      text += (separator.empty() ? "" : ",") + break_line + argument;
      width = argument.size();
    } else {
      text += separator + argument;
      width += argument.size() + 2;
    }
    separator = ", ";
  };
  for (size_t i = 0; i < step.bindings.size(); ++i) {
    const loop::BufferNode& b = *kernel.buffers[i];
    add(pointer(entry, step.bindings[i], c_memory_type(b.dtype), b.access == loop::Access::kRead));
  }
  for (const Amount& symbol : step.symbols) add(amount(symbol));
  if (printed_.kernels[step.kernel].scratch_bytes != 0)
    add(pointer(entry, program_.scratch, "unsigned char", false));
  line(text + ");");
}

void RunPrinter::check(uint32_t index) {
  const StaticSymbol& symbol = program_.symbols[index];
  std::string name = symbol_name(index), wrong;
  auto add = [&](const std::string& condition) { wrong += (wrong.empty() ? "" : " || ") + condition; };
  if (symbol.min != INT64_MIN) add(name + " < " + number(symbol.min));
  if (symbol.max != INT64_MAX) add(name + " > " + number(symbol.max));
  if (symbol.multiple_of != 1) add(name + " % " + number(symbol.multiple_of) + " != 0");
  if (!wrong.empty()) line("if (" + wrong + ") return " + std::to_string(kStaticSymbolOutOfRange) + ";");
}

// A u64 that has no i64 is out of range.
void RunPrinter::read_symbol(const StaticEntry& entry, const Step& step) {
  std::string name = symbol_name(step.symbol);
  std::string value = "*" + pointer(entry, step.bindings[0], c_memory_type(step.dtype), true);
  if (step.dtype == DType::kU64)
    line("if (" + value + " > INT64_MAX) return " + std::to_string(kStaticSymbolOutOfRange) + ";");
  if (step.dtype == DType::kBool) value += " != 0";
  line(name + " = (int64_t)(" + value + ");");
  check(step.symbol);
}

void RunPrinter::loop(const StaticEntry& entry, uint32_t index) {
  const Step& step = entry.steps[index];
  std::string name = symbol_name(step.symbol), condition, count = "count_" + std::to_string(index);
  line("{");
  ++indent_;
  if (step.has_count) line("const int64_t " + count + " = " + amount(step.count) + ";");
  if (step.has_count) condition = name + " < " + count;
  if (step.has_condition) condition += (condition.empty() ? "" : " && ") + amount(step.condition) + " != 0";
  line("for (" + name + " = 0; " + condition + "; ++" + name + ") {");
  ++indent_;
  check(step.symbol);
  steps(entry, index + 1, step.end);
  --indent_;
  line("}");
  --indent_;
  line("}");
}

void RunPrinter::steps(const StaticEntry& entry, uint32_t begin, uint32_t end) {
  for (uint32_t s = begin; s < end;) {
    const Step& step = entry.steps[s];
    switch (step.kind) {
      case StepKind::kCall:
        call(entry, step);
        break;
      case StepKind::kReadSymbol:
        read_symbol(entry, step);
        break;
      case StepKind::kLoop:
        loop(entry, s);
        s = step.end;
        continue;
      case StepKind::kBranch:
        line("if (" + amount(step.condition) + " != 0) {");
        ++indent_;
        steps(entry, s + 1, step.else_begin);
        --indent_;
        if (step.else_begin < step.end) {
          line("} else {");
          ++indent_;
          steps(entry, step.else_begin, step.end);
          --indent_;
        }
        line("}");
        s = step.end;
        continue;
    }
    ++s;
  }
}

void RunPrinter::store_shapes(const StaticEntry& entry) {
  for (const StaticTensor& output : entry.outputs) {
    if (output.shape_identifier.empty()) continue;
    uses_outputs_ = true;
    line("if (outputs->" + output.shape_identifier + ") {");
    for (size_t d = 0; d < output.shape.size(); ++d)
      line("  outputs->" + output.shape_identifier + "[" + std::to_string(d) +
           "] = " + amount(output.shape[d]) + ";");
    line("}");
  }
}

std::string RunPrinter::run_function(const StaticEntry& entry) {
  out_.clear();
  symbols_.clear();
  pointers_.clear();
  uses_inputs_ = uses_outputs_ = false;
  steps(entry, 0, static_cast<uint32_t>(entry.steps.size()));
  store_shapes(entry);
  const std::string& id = entry.identifier;
  std::string text = "int32_t " + id + "_run(const " + program_.identifier + "_memory* memory, const " + id +
                     "_inputs* inputs,\n" + std::string(id.size() + 13, ' ') + "const " + id +
                     "_outputs* outputs) {\n";
  for (uint32_t symbol : symbols_) text += "  int64_t symbol_" + std::to_string(symbol) + " = 0;\n";
  if (pointers_.empty()) text += "  (void)memory;\n";
  if (!uses_inputs_) text += "  (void)inputs;\n";
  if (!uses_outputs_) text += "  (void)outputs;\n";
  return text + out_ + "  return 0;\n}\n";
}

std::string RunPrinter::reset_function() {
  if (program_.state_bytes == 0) return {};
  std::string arrays, body;
  for (const StaticState& state : program_.states) {
    if (state.tensor.bytes == 0) continue;
    std::string initial = program_.identifier + "_initial_" + state.tensor.identifier, value = "0";
    if (!state.initial.empty()) {
      arrays += program_.macro + "_WEIGHTS_SECTION static const uint8_t " + initial + "[" +
                std::to_string(state.initial.size()) + "] = {";
      for (size_t i = 0; i < state.initial.size(); ++i)
        arrays +=
            (i % 24 == 0 ? "\n    " : " ") + std::to_string(std::to_integer<int>(state.initial[i])) + ",";
      arrays += "};\n";
      value = initial + "[i]";
    }
    body += "  for (i = 0; i < " + std::to_string(state.tensor.bytes) + "u; ++i) state[" +
            std::to_string(state.offset) + "u + i] = " + value + ";\n";
  }
  std::string text =
      arrays + "void " + program_.identifier + "_reset(const " + program_.identifier + "_memory* memory) {\n";
  if (body.empty()) return text + "  (void)memory;\n}\n";
  return text + "  uint8_t* const state = (uint8_t*)memory->state;\n  uint32_t i;\n" + body + "}\n";
}

}  // namespace quernel::codegen
