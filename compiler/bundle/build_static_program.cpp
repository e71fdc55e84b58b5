#include "bundle/build_static_program.h"

#include <algorithm>
#include <map>

#include "bundle/c_identifiers.h"

namespace quernel::bundle {
namespace {

using codegen::Amount;
using codegen::Place;
using codegen::Space;
using codegen::StaticEntry;
using codegen::StaticProgram;
using codegen::StaticTensor;
using codegen::Step;
using codegen::StepKind;

uint64_t align(uint64_t n) {
  return (n + codegen::kStaticAlignment - 1) / codegen::kStaticAlignment * codegen::kStaticAlignment;
}

// Where an arena lies in the program's memory.
struct Block {
  Space space = Space::kConstants;
  uint32_t index = 0;
  uint64_t offset = 0;
};

class Builder {
 public:
  Builder(const BundleContents& contents, const std::vector<std::string>& kernel_symbols)
      : contents_(contents), kernel_symbols_(kernel_symbols) {}

  Expected<StaticProgram> run(const std::string& name) {
    QUERNEL_ASSERT(contents_.variants.size() == 1);
    QUERNEL_CHECK(check());
    program_.producer = contents_.producer;
    program_.target = contents_.variants[0].target;
    program_.name = name;
    program_.identifier = c_identifier(name);
    program_.macro = upper_case(program_.identifier);
    for (const SizeExpression& expression : contents_.expressions)
      program_.expressions.push_back(expression.code);
    for (const Symbol& symbol : contents_.symbols)
      program_.symbols.push_back({symbol.name, symbol.min,
                                  symbol.max_expression < 0 ? symbol.max : constant(symbol.max_expression),
                                  symbol.multiple_of});
    add_memory();
    add_kernels();
    Identifiers scope;
    bool alone = contents_.entry_points.size() == 1;
    for (const EntryPoint& entry : contents_.entry_points)
      add_entry(entry, alone ? program_.identifier : program_.identifier + "_" + scope.add(entry.name));
    return std::move(program_);
  }

 private:
  Status check() const {
    Diagnostics errors;
    for (const Symbol& symbol : contents_.symbols)
      if (symbol.kind == SymbolKind::kBound)
        errors.push_back(unsupported("expected dims of fixed size, found the free dim '" + symbol.name + "'",
                                     {}, "fix it with --dim " + symbol.name + "=N"));
    for (const EntryPoint& entry : contents_.entry_points)
      for (const Item& item : entry.plans[0].items)
        if (item.kind == ItemKind::kHostCallback)
          errors.push_back(unsupported(
              "custom op '" + item.callback + "': expected one with a precompiled kernel for the target", {},
              "name the kernel's object in the file of --custom-op"));
    if (errors.empty()) return {};
    return errors;
  }

  bool is_constant(int32_t expression) const {
    const std::vector<int64_t>& code = contents_.expressions[static_cast<size_t>(expression)].code;
    for (size_t i = 0; i < code.size(); i += 2)
      if (code[i] == 1) return false;
    return true;
  }

  // The value of an expression without symbols.
  int64_t constant(int32_t expression) const {
    const std::vector<int64_t>& code = contents_.expressions[static_cast<size_t>(expression)].code;
    std::vector<int64_t> stack;
    for (size_t i = 0; i < code.size(); i += 2) {
      QUERNEL_ASSERT(code[i] != 1);
      if (code[i] == 0) {
        stack.push_back(code[i + 1]);
        continue;
      }
      int64_t b = stack.back(), a = stack[stack.size() - 2];
      stack.pop_back();
      stack.back() = apply(code[i], a, b);
    }
    return stack.back();
  }

  static int64_t apply(int64_t opcode, int64_t a, int64_t b) {
    auto floor_divide = [](int64_t x, int64_t y) { return x / y - (x % y != 0 && (x % y < 0) != (y < 0)); };
    switch (opcode) {
      case 2:
        return a + b;
      case 3:
        return a - b;
      case 4:
        return a * b;
      case 5:
        return floor_divide(a, b);
      case 6:
        return a - b * floor_divide(a, b);
      case 7:
        return std::min(a, b);
      case 8:
        return std::max(a, b);
    }
    QUERNEL_UNREACHABLE("an expression's opcode is unknown");
  }

  uint64_t bytes_of(const Arena& arena) const {
    return arena.bytes_expression < 0 ? arena.bytes : static_cast<uint64_t>(constant(arena.bytes_expression));
  }

  // Workspaces of several entry points lie over one another, states one behind the other.
  void add_memory() {
    Identifiers members;
    members.add("state");
    for (const MemoryRegion& region : contents_.regions)
      program_.regions.push_back({region.name, members.add(region.name), 0, region.capacity});
    blocks_.resize(contents_.arenas.size());
    for (size_t a = 0; a < contents_.arenas.size(); ++a) {
      const Arena& arena = contents_.arenas[a];
      if (arena.kind == ArenaKind::kConstants) {
        QUERNEL_ASSERT(program_.constants_bytes == 0);
        blocks_[a] = {Space::kConstants, 0, 0};
        program_.constants_bytes = arena.bytes;
        for (const ConstantPiece& piece : contents_.constants[static_cast<size_t>(arena.constants)].pieces) {
          QUERNEL_ASSERT(!piece.produce);
          program_.constants.push_back({piece.offset, piece.view});
        }
      } else if (arena.kind == ArenaKind::kWorkspace) {
        blocks_[a] = {Space::kWorkspace, arena.region, 0};
        uint64_t& bytes = program_.regions[arena.region].bytes;
        bytes = std::max(bytes, align(bytes_of(arena)));
      }
    }
    Identifiers scope;
    for (const Tensor& state : contents_.states) {
      blocks_[state.arena] = {Space::kState, 0, program_.state_bytes};
      const Arena& arena = contents_.arenas[state.arena];
      codegen::StaticState to{tensor(state, scope), program_.state_bytes, {}};
      if (arena.constants >= 0)
        to.initial = contents_.constants[static_cast<size_t>(arena.constants)].pieces[0].view;
      program_.states.push_back(std::move(to));
      program_.state_bytes += align(bytes_of(arena));
    }
  }

  // Their scratch is lent behind what the memory plan uses, in the first region with room.
  void add_kernels() {
    uint64_t scratch = 0;
    const std::vector<Kernel>& kernels = contents_.variants[0].kernels;
    QUERNEL_ASSERT(kernels.size() == kernel_symbols_.size());
    for (size_t k = 0; k < kernels.size(); ++k) {
      program_.kernels.push_back(
          {kernels[k].name, kernel_symbols_[k], kernels[k].scratch_bytes, kernels[k].stack_bytes});
      scratch = std::max(scratch, kernels[k].scratch_bytes);
    }
    uint32_t r = 0;
    auto has_room = [&](const codegen::StaticRegion& region) {
      return region.capacity == 0 || region.bytes + align(scratch) <= region.capacity;
    };
    while (r + 1 < program_.regions.size() && !has_room(program_.regions[r])) ++r;
    program_.scratch = {Space::kWorkspace, r, program_.regions[r].bytes};
    program_.regions[r].bytes += align(scratch);
  }

  StaticTensor tensor(const Tensor& from, Identifiers& scope) const {
    StaticTensor to;
    to.name = from.name;
    to.identifier = scope.add(from.name);
    to.dtype = from.dtype;
    to.scale = from.scale;
    to.zero_point = from.zero_point;
    to.rounding = from.rounding;
    for (size_t d = 0; d < from.shape.size(); ++d)
      to.shape.push_back({from.shape[d], from.shape_expressions.empty() ? -1 : from.shape_expressions[d]});
    if (std::any_of(to.shape.begin(), to.shape.end(), [](const Amount& d) { return d.expression >= 0; }))
      to.shape_identifier = scope.add("shape_of_" + to.identifier);
    bool in_workspace = contents_.arenas[from.arena].kind == ArenaKind::kWorkspace;
    to.bytes = in_workspace ? from.bytes : bytes_of(contents_.arenas[from.arena]);
    const Block& block = blocks_[from.arena];
    to.place = {block.space, block.index, block.offset + (in_workspace ? from.offset : 0)};
    return to;
  }

  void add_entry(const EntryPoint& from, std::string identifier) {
    StaticEntry entry;
    entry.name = from.name;
    entry.identifier = std::move(identifier);
    entry.model_sha256 = from.model_sha256;
    entry.multiply_adds = from.multiply_adds;
    Identifiers inputs, outputs;
    for (const Tensor& t : from.inputs) {
      if (contents_.arenas[t.arena].kind == ArenaKind::kInput)
        blocks_[t.arena] = {Space::kInput, static_cast<uint32_t>(entry.inputs.size()), 0};
      entry.inputs.push_back(tensor(t, inputs));
    }
    for (const Tensor& t : from.outputs) {
      if (contents_.arenas[t.arena].kind == ArenaKind::kOutput)
        blocks_[t.arena] = {Space::kOutput, static_cast<uint32_t>(entry.outputs.size()), 0};
      entry.outputs.push_back(tensor(t, outputs));
    }
    for (const Item& item : from.plans[0].items) entry.steps.push_back(step(item));
    program_.entries.push_back(std::move(entry));
  }

  Step step(const Item& item) const {
    Step step;
    auto amount = [](uint64_t value, int32_t expression) {
      return Amount{static_cast<int64_t>(value), expression};
    };
    switch (item.kind) {
      case ItemKind::kDispatch:
        step.kind = StepKind::kCall;
        step.kernel = item.kernel;
        step.workgroups = amount(item.workgroups, item.workgroups_expression);
        step.may_fail = item.may_fail;
        for (int32_t expression : item.symbols)
          step.symbols.push_back(is_constant(expression) ? Amount{constant(expression)}
                                                         : Amount{0, expression});
        break;
      case ItemKind::kReadSymbol:
        step.kind = StepKind::kReadSymbol;
        step.dtype = item.dtype;
        break;
      case ItemKind::kLoop:
      case ItemKind::kBranch:
        step.kind = item.kind == ItemKind::kLoop ? StepKind::kLoop : StepKind::kBranch;
        step.end = item.end;
        step.else_begin = item.else_begin;
        step.has_count = item.count_expression >= 0;
        step.has_condition = item.condition_expression >= 0;
        step.count.expression = item.count_expression;
        step.condition.expression = item.condition_expression;
        break;
      case ItemKind::kCopy:
      case ItemKind::kSynchronize:
      case ItemKind::kHostCallback:
        QUERNEL_UNREACHABLE("a schedule has an item that no schedule of a CPU has");
    }
    if (item.symbol >= 0) step.symbol = static_cast<uint32_t>(item.symbol);
    for (const Binding& binding : item.bindings) {
      const Block& block = blocks_[binding.arena];
      uint64_t offset = binding.offset_expression < 0
                            ? binding.offset
                            : static_cast<uint64_t>(constant(binding.offset_expression));
      step.bindings.push_back({block.space, block.index, block.offset + offset});
    }
    for (const std::string& node : item.source_nodes) step.name += (step.name.empty() ? "" : " ") + node;
    step.live_bytes = item.live_bytes;
    return step;
  }

  const BundleContents& contents_;
  const std::vector<std::string>& kernel_symbols_;
  StaticProgram program_;
  std::vector<Block> blocks_;  // per arena
};

}  // namespace

Expected<StaticProgram> build_static_program(const BundleContents& contents, const std::string& name,
                                             const std::vector<std::string>& kernel_symbols) {
  return Builder(contents, kernel_symbols).run(name);
}

namespace {

// A line per step of what is alive while it runs.
void add_account(const StaticEntry& entry, Diagnostics& errors) {
  uint64_t peak = 0;
  for (const Step& step : entry.steps) peak = std::max(peak, step.live_bytes);
  for (size_t i = 0; i < entry.steps.size(); ++i) {
    const Step& step = entry.steps[i];
    if (step.live_bytes == 0) continue;
    errors.push_back(invalid_input("'" + entry.name + "', item " + std::to_string(i) + ": " +
                                   std::to_string(step.live_bytes) + " bytes of workspace live" +
                                   (step.live_bytes == peak ? " (peak)" : "") + ": " + step.name));
  }
}

}  // namespace

Status check_memory(const StaticProgram& program, StackNeed stack, uint64_t max_ram) {
  Diagnostics errors;
  uint64_t workspace = 0;
  for (const codegen::StaticRegion& region : program.regions) {
    workspace += region.bytes;
    if (region.capacity != 0 && region.bytes > region.capacity)
      errors.push_back(invalid_input("memory '" + region.name + "': expected at most " +
                                         std::to_string(region.capacity) + " bytes, found a need of " +
                                         std::to_string(region.bytes),
                                     {}, "give --memory more, or another memory behind the last one"));
  }
  uint64_t all = workspace + program.state_bytes + stack.bytes;
  if (max_ram != 0 && all > max_ram)
    errors.push_back(invalid_input(
        "expected at most " + std::to_string(max_ram) + " bytes of RAM, found a need of " +
        std::to_string(all) + ": workspace " + std::to_string(workspace) + ", states " +
        std::to_string(program.state_bytes) +
        (stack.bytes == 0
             ? ", stack not known"
             : ", stack " + std::to_string(stack.bytes) + (stack.estimated ? " (estimated)" : ""))));
  if (errors.empty()) return {};
  for (const StaticEntry& entry : program.entries) add_account(entry, errors);
  return errors;
}

std::string static_kernel_prefix(const std::string& name) { return c_identifier(name) + "_kernel_"; }

}  // namespace quernel::bundle
