#include "codegen/llvm/program_emitter.h"

#include <llvm/IR/IntrinsicInst.h>

#include <algorithm>
#include <tuple>

#include "support/diagnostic.h"

namespace quernel::codegen {
namespace {

// Words of a table: the number of workgroups and, in the low bits, of symbols and of bindings; per binding the offset
// and, in the low bits, the base; the symbols.
constexpr unsigned kLowBits = 6;
constexpr uint64_t kLowLimit = uint64_t{1} << kLowBits, kHighLimit = uint64_t{1} << (32 - kLowBits);
constexpr uint64_t kWorkgroupLimit = kHighLimit >> kLowBits;

// Pointers that the struct has.
size_t pointer_count(const std::vector<StaticTensor>& tensors) {
  return static_cast<size_t>(std::count_if(tensors.begin(), tensors.end(), [](const StaticTensor& t) {
    return t.place.space != Space::kWorkspace;
  }));
}

}  // namespace

ProgramEmitter::ProgramEmitter(llvm::Module& module, const StaticProgram& program)
    : module_(module),
      context_(module.getContext()),
      program_(program),
      builder_(context_),
      i32_(builder_.getInt32Ty()),
      i64_(builder_.getInt64Ty()),
      pointer_(builder_.getPtrTy()),
      kernel_type_(llvm::FunctionType::get(i32_, {pointer_, i64_, i64_}, false)) {}

llvm::BasicBlock* ProgramEmitter::new_block(const char* name) {
  return llvm::BasicBlock::Create(context_, name, function_);
}

// Only what the header declares is visible outside of what the archive is linked into.
llvm::Function* ProgramEmitter::declare(const std::string& name, llvm::Type* result, size_t pointers,
                                        bool exported) {
  std::vector<llvm::Type*> parameters(pointers, pointer_);
  return llvm::Function::Create(
      llvm::FunctionType::get(result, parameters, false),
      exported ? llvm::GlobalValue::ExternalLinkage : llvm::GlobalValue::InternalLinkage, name, module_);
}

void ProgramEmitter::emit() {
  for (const StaticKernel& kernel : program_.kernels) {
    auto* f =
        llvm::cast<llvm::Function>(module_.getOrInsertFunction(kernel.symbol, kernel_type_).getCallee());
    f->setVisibility(llvm::GlobalValue::HiddenVisibility);
    kernels_.push_back(f);
  }
  for (const StaticEntry& entry : program_.entries) emit_entry(entry);
  if (program_.state_bytes != 0) emit_reset();
}

llvm::Constant* ProgramEmitter::constants() {
  if (constants_) return constants_;
  std::string bytes(program_.constants_bytes, '\0');
  for (const StaticConstant& c : program_.constants)
    std::copy_n(reinterpret_cast<const char*>(c.bytes.data()), c.bytes.size(), bytes.data() + c.offset);
  llvm::Constant* data = llvm::ConstantDataArray::getRaw(bytes, bytes.size(), builder_.getInt8Ty());
  constants_ = new llvm::GlobalVariable(module_, data->getType(), true, llvm::GlobalValue::InternalLinkage,
                                        data, program_.identifier + "_constants");
  constants_->setAlignment(llvm::Align(kStaticAlignment));
  return constants_;
}

unsigned ProgramEmitter::base_of(const Place& place) const {
  auto regions = static_cast<unsigned>(program_.regions.size());
  switch (place.space) {
    case Space::kConstants:
      return 0;
    case Space::kWorkspace:
      return 1 + place.index;
    case Space::kState:
      return 1 + regions;
    case Space::kInput:
      return 2 + regions + place.index;
    case Space::kOutput:
      return 2 + regions + static_cast<unsigned>(input_count_) + place.index;
  }
  QUERNEL_UNREACHABLE("a binding lies nowhere");
}

llvm::Value* ProgramEmitter::element(Value* array, llvm::Type* type, uint64_t index) {
  return index == 0 ? array : builder_.CreateConstInBoundsGEP1_64(type, array, index);
}

llvm::Value* ProgramEmitter::load_pointer(Value* array, uint64_t index) {
  return builder_.CreateLoad(pointer_, element(array, pointer_, index));
}

llvm::Value* ProgramEmitter::address(const Place& place) {
  return element(load_pointer(bases_, base_of(place)), builder_.getInt8Ty(), place.offset);
}

llvm::Value* ProgramEmitter::scratch_pointer(Value* bases) {
  bool needed = std::any_of(program_.kernels.begin(), program_.kernels.end(),
                            [](const StaticKernel& k) { return k.scratch_bytes != 0; });
  if (!needed) return llvm::ConstantPointerNull::get(pointer_);
  return element(load_pointer(bases, base_of(program_.scratch)), builder_.getInt8Ty(),
                 program_.scratch.offset);
}

void ProgramEmitter::emit_walk() {
  size_t most = 1, most_symbols = 0;
  for (const StaticEntry& entry : program_.entries)
    for (const Step& step : entry.steps) {
      if (!fits_table(step)) continue;
      most = std::max(most, step.bindings.size());
      most_symbols = std::max(most_symbols, step.symbols.size());
    }
  auto* type = llvm::FunctionType::get(i32_, {pointer_, pointer_, i32_, pointer_}, false);
  walk_ = llvm::Function::Create(type, llvm::GlobalValue::InternalLinkage, program_.identifier + "_walk",
                                 module_);
  llvm::IRBuilderBase::InsertPointGuard guard(builder_);
  llvm::Function* outer = function_;
  function_ = walk_;
  llvm::BasicBlock *entry = new_block("entry"), *call = new_block("call"), *bind = new_block("bind");
  llvm::BasicBlock *bound = new_block("bound"), *next = new_block("next"), *exit = new_block("exit");
  builder_.SetInsertPoint(entry);
  auto* array = llvm::ArrayType::get(pointer_, most);
  Value* bindings = builder_.CreateAlloca(array);
  Value* arguments = builder_.CreateAlloca(llvm::ArrayType::get(pointer_, 3));
  Value* symbols = most_symbols == 0 ? static_cast<Value*>(llvm::ConstantPointerNull::get(pointer_))
                                     : builder_.CreateAlloca(llvm::ArrayType::get(i64_, most_symbols));
  builder_.CreateStore(bindings, arguments);
  builder_.CreateStore(symbols, element(arguments, pointer_, 1));
  builder_.CreateStore(scratch_pointer(walk_->getArg(3)), element(arguments, pointer_, 2));
  builder_.CreateBr(call);

  builder_.SetInsertPoint(call);
  auto* kernels = builder_.CreatePHI(pointer_, 2);
  auto* words = builder_.CreatePHI(pointer_, 2);
  auto* left = builder_.CreatePHI(i32_, 2);
  kernels->addIncoming(walk_->getArg(0), entry);
  words->addIncoming(walk_->getArg(1), entry);
  left->addIncoming(walk_->getArg(2), entry);
  Value* head = builder_.CreateLoad(i32_, words);
  Value* count = builder_.CreateAnd(head, builder_.getInt32(kLowLimit - 1));
  builder_.CreateBr(bind);

  // Every kernel has a binding.
  builder_.SetInsertPoint(bind);
  auto* at = builder_.CreatePHI(pointer_, 2);
  auto* to = builder_.CreatePHI(pointer_, 2);
  auto* rest = builder_.CreatePHI(i32_, 2);
  at->addIncoming(words, call);
  to->addIncoming(bindings, call);
  rest->addIncoming(count, call);
  Value* word_at = element(at, i32_, 1);
  Value* word = builder_.CreateLoad(i32_, word_at);
  Value* base = builder_.CreateAnd(word, builder_.getInt32(kLowLimit - 1));
  llvm::Type* size = module_.getDataLayout().getIntPtrType(context_);
  Value* from = builder_.CreateLoad(
      pointer_, builder_.CreateInBoundsGEP(pointer_, walk_->getArg(3), builder_.CreateZExt(base, size)));
  Value* offset = builder_.CreateZExt(builder_.CreateLShr(word, kLowBits), size);
  builder_.CreateStore(builder_.CreateGEP(builder_.getInt8Ty(), from, offset), to);
  Value* less = builder_.CreateSub(rest, builder_.getInt32(1));
  at->addIncoming(word_at, bind);
  to->addIncoming(element(to, pointer_, 1), bind);
  rest->addIncoming(less, bind);
  builder_.CreateCondBr(builder_.CreateIsNull(less), bound, bind);

  builder_.SetInsertPoint(bound);
  if (most_symbols != 0) {
    Value* number = builder_.CreateAnd(builder_.CreateLShr(head, kLowBits), builder_.getInt32(kLowLimit - 1));
    std::tie(bound, word_at) = emit_symbols(word_at, symbols, number);
  }
  Value* workgroups = builder_.CreateZExt(builder_.CreateLShr(head, 2 * kLowBits), i64_);
  Value* kernel = builder_.CreateLoad(pointer_, kernels);
  Value* code = builder_.CreateCall(kernel_type_, kernel, {arguments, builder_.getInt64(0), workgroups});
  builder_.CreateCondBr(builder_.CreateIsNull(code), next, exit);

  builder_.SetInsertPoint(next);
  Value* fewer = builder_.CreateSub(left, builder_.getInt32(1));
  kernels->addIncoming(element(kernels, pointer_, 1), next);
  words->addIncoming(element(word_at, i32_, 1), next);
  left->addIncoming(fewer, next);
  builder_.CreateCondBr(builder_.CreateIsNull(fewer), exit, call);

  builder_.SetInsertPoint(exit);
  auto* result = builder_.CreatePHI(i32_, 2);
  result->addIncoming(code, bound);
  result->addIncoming(code, next);
  builder_.CreateRet(result);
  function_ = outer;
}

std::pair<llvm::BasicBlock*, llvm::Value*> ProgramEmitter::emit_symbols(Value* before, Value* symbols,
                                                                        Value* count) {
  llvm::BasicBlock *from = builder_.GetInsertBlock(), *next = new_block("symbols"),
                   *copy = new_block("symbol");
  llvm::BasicBlock* ready = new_block("ready");
  builder_.CreateBr(next);
  builder_.SetInsertPoint(next);
  auto* word = builder_.CreatePHI(pointer_, 2);
  auto* to = builder_.CreatePHI(pointer_, 2);
  auto* left = builder_.CreatePHI(i32_, 2);
  word->addIncoming(before, from);
  to->addIncoming(symbols, from);
  left->addIncoming(count, from);
  builder_.CreateCondBr(builder_.CreateIsNull(left), ready, copy);
  builder_.SetInsertPoint(copy);
  Value* word_at = element(word, i32_, 1);
  builder_.CreateStore(builder_.CreateSExt(builder_.CreateLoad(i32_, word_at), i64_), to);
  word->addIncoming(word_at, copy);
  to->addIncoming(element(to, i64_, 1), copy);
  left->addIncoming(builder_.CreateSub(left, builder_.getInt32(1)), copy);
  builder_.CreateBr(next);
  builder_.SetInsertPoint(ready);
  return {ready, word};
}

bool ProgramEmitter::fits_table(const Step& step) const {
  if (step.kind != StepKind::kCall || step.workgroups.expression >= 0) return false;
  if (step.workgroups.value < 0 || static_cast<uint64_t>(step.workgroups.value) >= kWorkgroupLimit)
    return false;
  if (step.bindings.empty() || step.bindings.size() >= kLowLimit || step.symbols.size() >= kLowLimit)
    return false;
  auto fits_word = [](const Amount& symbol) {
    return symbol.expression < 0 && symbol.value >= INT32_MIN && symbol.value <= INT32_MAX;
  };
  if (!std::all_of(step.symbols.begin(), step.symbols.end(), fits_word)) return false;
  return std::all_of(step.bindings.begin(), step.bindings.end(), [&](const Place& place) {
    return place.offset < kHighLimit && base_of(place) < kLowLimit;
  });
}

void ProgramEmitter::emit_table(const StaticEntry& entry, uint32_t begin, uint32_t end) {
  if (!walk_) emit_walk();
  std::vector<llvm::Constant*> kernels;
  std::vector<uint32_t> words;
  for (uint32_t s = begin; s < end; ++s) {
    const Step& step = entry.steps[s];
    kernels.push_back(kernels_[step.kernel]);
    auto word = [&](uint64_t high, uint64_t low) {
      words.push_back(static_cast<uint32_t>(high << kLowBits | low));
    };
    word(static_cast<uint64_t>(step.workgroups.value) << kLowBits | step.symbols.size(),
         step.bindings.size());
    for (const Place& place : step.bindings) word(place.offset, base_of(place));
    for (const Amount& symbol : step.symbols) words.push_back(static_cast<uint32_t>(symbol.value));
  }
  std::string name = entry.identifier + "_table_" + std::to_string(tables_++);
  auto constant = [&](llvm::Constant* data, const std::string& what) {
    return new llvm::GlobalVariable(module_, data->getType(), true, llvm::GlobalValue::InternalLinkage, data,
                                    name + what);
  };
  auto* list =
      constant(llvm::ConstantArray::get(llvm::ArrayType::get(pointer_, kernels.size()), kernels), "_kernels");
  auto* code = constant(llvm::ConstantDataArray::get(context_, words), "_words");
  fail_unless_ok(builder_.CreateCall(walk_, {list, code, builder_.getInt32(end - begin), bases_}));
}

// Storage of what calls get, in the entry block.
void ProgramEmitter::prepare_frame(const StaticEntry& entry) {
  size_t bindings = 0, symbols = 0;
  for (const Step& step : entry.steps) {
    if (step.kind == StepKind::kReadSymbol || step.kind == StepKind::kLoop)
      symbols_.emplace(step.symbol, nullptr);
    if (step.kind != StepKind::kCall || fits_table(step)) continue;
    bindings = std::max(bindings, step.bindings.size() + 1);
    symbols = std::max(symbols, step.symbols.size());
  }
  for (auto& [symbol, memory] : symbols_) {
    memory = builder_.CreateAlloca(i64_, nullptr, program_.symbols[symbol].name);
    builder_.CreateStore(builder_.getInt64(0), memory);
  }
  if (bindings == 0) return;
  bindings_ = builder_.CreateAlloca(llvm::ArrayType::get(pointer_, bindings));
  arguments_ = builder_.CreateAlloca(llvm::ArrayType::get(pointer_, 3));
  symbol_arguments_ = llvm::ConstantPointerNull::get(pointer_);
  if (symbols != 0) symbol_arguments_ = builder_.CreateAlloca(llvm::ArrayType::get(i64_, symbols));
}

void ProgramEmitter::emit_entry(const StaticEntry& entry) {
  function_ = declare(entry.identifier + "_run", i32_, 3, true);
  input_count_ = pointer_count(entry.inputs);
  symbols_.clear();
  failed_ = new_block("failed");
  builder_.SetInsertPoint(failed_);
  failure_ = builder_.CreatePHI(i32_, 2);
  builder_.CreateRet(failure_);

  llvm::BasicBlock* first = llvm::BasicBlock::Create(context_, "entry", function_, failed_);
  builder_.SetInsertPoint(first);
  size_t regions = program_.regions.size(), count = 2 + regions + input_count_ + pointer_count(entry.outputs);
  bases_ = builder_.CreateAlloca(llvm::ArrayType::get(pointer_, count), nullptr, "bases");
  prepare_frame(entry);
  size_t next = 0;
  auto append = [&](Value* base) { builder_.CreateStore(base, element(bases_, pointer_, next++)); };
  append(program_.constants_bytes != 0 ? constants() : llvm::ConstantPointerNull::get(pointer_));
  for (size_t i = 0; i < regions; ++i) append(load_pointer(function_->getArg(0), i));
  append(program_.state_bytes != 0 ? load_pointer(function_->getArg(0), regions)
                                   : llvm::ConstantPointerNull::get(pointer_));
  for (size_t i = 0; i < input_count_; ++i) append(load_pointer(function_->getArg(1), i));
  for (size_t i = 0; i < pointer_count(entry.outputs); ++i) append(load_pointer(function_->getArg(2), i));
  if (bindings_) {
    builder_.CreateStore(bindings_, arguments_);
    builder_.CreateStore(symbol_arguments_, element(arguments_, pointer_, 1));
    builder_.CreateStore(scratch_pointer(bases_), element(arguments_, pointer_, 2));
  }
  emit_steps(entry, 0, static_cast<uint32_t>(entry.steps.size()));
  store_shapes(entry);
  builder_.CreateRet(builder_.getInt32(0));
  if (failure_->getNumIncomingValues() == 0) failed_->eraseFromParent();
  bindings_ = nullptr;
}

void ProgramEmitter::emit_steps(const StaticEntry& entry, uint32_t begin, uint32_t end) {
  for (uint32_t s = begin; s < end;) {
    const Step& step = entry.steps[s];
    uint32_t next = s + 1;
    if (fits_table(step)) {
      while (next < end && fits_table(entry.steps[next])) ++next;
      emit_table(entry, s, next);
    } else if (step.kind == StepKind::kCall) {
      emit_call(step);
    } else if (step.kind == StepKind::kReadSymbol) {
      emit_read_symbol(step);
    } else {
      step.kind == StepKind::kLoop ? emit_loop(entry, s) : emit_branch(entry, s);
      next = step.end;
    }
    s = next;
  }
}

void ProgramEmitter::emit_call(const Step& step) {
  for (size_t i = 0; i < step.bindings.size(); ++i)
    builder_.CreateStore(address(step.bindings[i]), element(bindings_, pointer_, i));
  for (size_t i = 0; i < step.symbols.size(); ++i)
    builder_.CreateStore(amount(step.symbols[i]), element(symbol_arguments_, i64_, i));
  Value* workgroups = amount(step.workgroups);
  if (step.may_fail) fail_if(builder_.CreateICmpSLT(workgroups, builder_.getInt64(0)), kStaticNoElements);
  fail_unless_ok(builder_.CreateCall(kernels_[step.kernel], {arguments_, builder_.getInt64(0), workgroups}));
}

// A u64 that has no i64 becomes negative, which no symbol that is read from one may be: outside of the range.
void ProgramEmitter::emit_read_symbol(const Step& step) {
  auto bits = static_cast<unsigned>(std::max(8, bit_width(step.dtype)));
  Value* number =
      builder_.CreateAlignedLoad(builder_.getIntNTy(bits), address(step.bindings[0]), llvm::Align(1));
  if (step.dtype == DType::kBool) number = builder_.CreateIsNotNull(number);
  if (step.dtype == DType::kU64)
    fail_if(builder_.CreateICmpSLT(number, builder_.getInt64(0)), kStaticSymbolOutOfRange);
  set_symbol(
      step.symbol,
      is_signed_integer(step.dtype) ? builder_.CreateSExt(number, i64_) : builder_.CreateZExt(number, i64_),
      true);
}

void ProgramEmitter::emit_loop(const StaticEntry& entry, uint32_t index) {
  const Step& step = entry.steps[index];
  Value* count = step.has_count ? amount(step.count) : nullptr;
  llvm::BasicBlock *header = new_block("loop"), *body = new_block("body"), *after = new_block("after");
  llvm::BasicBlock* before = builder_.GetInsertBlock();
  builder_.CreateBr(header);
  builder_.SetInsertPoint(header);
  auto* i = builder_.CreatePHI(i64_, 2);
  i->addIncoming(builder_.getInt64(0), before);
  set_symbol(step.symbol, i, false);
  if (count) {
    llvm::BasicBlock* within = new_block("within");
    builder_.CreateCondBr(builder_.CreateICmpSLT(i, count), within, after);
    builder_.SetInsertPoint(within);
  }
  if (step.has_condition)
    builder_.CreateCondBr(builder_.CreateIsNotNull(amount(step.condition)), body, after);
  else
    builder_.CreateBr(body);
  builder_.SetInsertPoint(body);
  set_symbol(step.symbol, i, true);
  emit_steps(entry, index + 1, step.end);
  i->addIncoming(builder_.CreateAdd(i, builder_.getInt64(1)), builder_.GetInsertBlock());
  builder_.CreateBr(header);
  builder_.SetInsertPoint(after);
}

void ProgramEmitter::emit_branch(const StaticEntry& entry, uint32_t index) {
  const Step& step = entry.steps[index];
  llvm::BasicBlock *then = new_block("then"), *otherwise = new_block("else"), *after = new_block("after");
  builder_.CreateCondBr(builder_.CreateIsNotNull(amount(step.condition)), then, otherwise);
  builder_.SetInsertPoint(then);
  emit_steps(entry, index + 1, step.else_begin);
  builder_.CreateBr(after);
  builder_.SetInsertPoint(otherwise);
  emit_steps(entry, step.else_begin, step.end);
  builder_.CreateBr(after);
  builder_.SetInsertPoint(after);
}

void ProgramEmitter::store_shapes(const StaticEntry& entry) {
  size_t slot = pointer_count(entry.outputs);
  for (const StaticTensor& output : entry.outputs) {
    if (output.shape_identifier.empty()) continue;
    Value* shape = load_pointer(function_->getArg(2), slot++);
    llvm::BasicBlock *wanted = new_block("shape"), *after = new_block("after");
    builder_.CreateCondBr(builder_.CreateIsNull(shape), after, wanted);
    builder_.SetInsertPoint(wanted);
    for (size_t d = 0; d < output.shape.size(); ++d)
      builder_.CreateStore(amount(output.shape[d]), element(shape, i64_, d));
    builder_.CreateBr(after);
    builder_.SetInsertPoint(after);
  }
}

void ProgramEmitter::fail_if(Value* condition, int32_t code) {
  llvm::BasicBlock* on = new_block("on");
  failure_->addIncoming(builder_.getInt32(static_cast<uint32_t>(code)), builder_.GetInsertBlock());
  builder_.CreateCondBr(condition, failed_, on);
  builder_.SetInsertPoint(on);
}

void ProgramEmitter::fail_unless_ok(Value* code) {
  llvm::BasicBlock* on = new_block("on");
  failure_->addIncoming(code, builder_.GetInsertBlock());
  builder_.CreateCondBr(builder_.CreateIsNull(code), on, failed_);
  builder_.SetInsertPoint(on);
}

void ProgramEmitter::set_symbol(uint32_t index, Value* value, bool check) {
  const StaticSymbol& symbol = program_.symbols[index];
  if (check) {
    Value* wrong = builder_.CreateOr(
        builder_.CreateICmpSLT(value, builder_.getInt64(static_cast<uint64_t>(symbol.min))),
        builder_.CreateICmpSGT(value, builder_.getInt64(static_cast<uint64_t>(symbol.max))));
    if (symbol.multiple_of != 1)
      wrong =
          builder_.CreateOr(wrong, builder_.CreateIsNotNull(builder_.CreateSRem(
                                       value, builder_.getInt64(static_cast<uint64_t>(symbol.multiple_of)))));
    fail_if(wrong, kStaticSymbolOutOfRange);
  }
  builder_.CreateStore(value, symbols_.at(index));
}

llvm::Value* ProgramEmitter::amount(const Amount& amount) {
  if (amount.expression < 0) return builder_.getInt64(static_cast<uint64_t>(amount.value));
  return expression(program_.expressions[static_cast<size_t>(amount.expression)]);
}

llvm::Value* ProgramEmitter::expression(const PostfixCode& code) {
  std::vector<Value*> stack;
  for (size_t i = 0; i < code.size(); i += 2) {
    if (code[i] == 0) {
      stack.push_back(builder_.getInt64(static_cast<uint64_t>(code[i + 1])));
    } else if (code[i] == 1) {
      stack.push_back(builder_.CreateLoad(i64_, symbols_.at(static_cast<uint32_t>(code[i + 1]))));
    } else {
      Value* b = stack.back();
      stack.pop_back();
      stack.back() = combine(code[i], stack.back(), b);
    }
  }
  return stack.back();
}

llvm::Value* ProgramEmitter::checked(unsigned intrinsic, Value* a, Value* b) {
  Value* both = builder_.CreateBinaryIntrinsic(intrinsic, a, b);
  if (auto* folded = llvm::dyn_cast<llvm::Constant>(both)) return folded->getAggregateElement(0u);
  fail_if(builder_.CreateExtractValue(both, 1), kStaticSymbolOutOfRange);
  return builder_.CreateExtractValue(both, 0);
}

llvm::Value* ProgramEmitter::combine(int64_t opcode, Value* a, Value* b) {
  llvm::Constant* zero = builder_.getInt64(0);
  auto rounds_down = [&](Value* rest) {
    return builder_.CreateAnd(builder_.CreateICmpNE(rest, zero),
                              builder_.CreateICmpSLT(builder_.CreateXor(rest, b), zero));
  };
  if (opcode == 5 || opcode == 6) {
    // -1 is refused beside 0: the least integer has no negative.
    Value* wrong = builder_.CreateOr(builder_.CreateICmpEQ(b, zero),
                                     builder_.CreateICmpEQ(b, llvm::ConstantInt::getSigned(i64_, -1)));
    auto* known = llvm::dyn_cast<llvm::ConstantInt>(wrong);
    if (!known || known->isOne()) fail_if(wrong, kStaticSymbolOutOfRange);
  }
  switch (opcode) {
    case 2:
      return checked(llvm::Intrinsic::sadd_with_overflow, a, b);
    case 3:
      return checked(llvm::Intrinsic::ssub_with_overflow, a, b);
    case 4:
      return checked(llvm::Intrinsic::smul_with_overflow, a, b);
    case 5: {
      Value* down = rounds_down(builder_.CreateSRem(a, b));
      return builder_.CreateSub(builder_.CreateSDiv(a, b), builder_.CreateZExt(down, i64_));
    }
    case 6: {
      Value* rest = builder_.CreateSRem(a, b);
      return builder_.CreateAdd(rest, builder_.CreateSelect(rounds_down(rest), b, zero));
    }
    case 7:
      return builder_.CreateSelect(builder_.CreateICmpSLT(a, b), a, b);
    case 8:
      return builder_.CreateSelect(builder_.CreateICmpSGT(a, b), a, b);
  }
  QUERNEL_UNREACHABLE("an expression's opcode is unknown");
}

// Byte by byte: it runs once.
void ProgramEmitter::emit_reset() {
  function_ = declare(program_.identifier + "_reset", builder_.getVoidTy(), 1, true);
  builder_.SetInsertPoint(new_block("entry"));
  llvm::Type* byte = builder_.getInt8Ty();
  Value* block = load_pointer(function_->getArg(0), program_.regions.size());
  for (const StaticState& state : program_.states) {
    if (state.tensor.bytes == 0) continue;
    llvm::GlobalVariable* initial = nullptr;
    if (!state.initial.empty()) {
      llvm::StringRef bytes(reinterpret_cast<const char*>(state.initial.data()), state.initial.size());
      llvm::Constant* data = llvm::ConstantDataArray::getRaw(bytes, bytes.size(), byte);
      initial = new llvm::GlobalVariable(module_, data->getType(), true, llvm::GlobalValue::InternalLinkage,
                                         data, program_.identifier + "_initial_" + state.tensor.identifier);
    }
    llvm::BasicBlock *before = builder_.GetInsertBlock(), *loop = new_block("loop"),
                     *after = new_block("after");
    Value* to = element(block, byte, state.offset);
    builder_.CreateBr(loop);
    builder_.SetInsertPoint(loop);
    auto* i = builder_.CreatePHI(i64_, 2);
    i->addIncoming(builder_.getInt64(0), before);
    Value* value = builder_.getInt8(0);
    if (initial) value = builder_.CreateLoad(byte, builder_.CreateInBoundsGEP(byte, initial, i));
    builder_.CreateStore(value, builder_.CreateInBoundsGEP(byte, to, i));
    Value* next = builder_.CreateAdd(i, builder_.getInt64(1));
    i->addIncoming(next, loop);
    builder_.CreateCondBr(builder_.CreateICmpULT(next, builder_.getInt64(state.tensor.bytes)), loop, after);
    builder_.SetInsertPoint(after);
  }
  builder_.CreateRetVoid();
}

void emit_static_memory(llvm::Module& module, const StaticProgram& program) {
  llvm::LLVMContext& context = module.getContext();
  auto* pointer = llvm::PointerType::get(context, 0);
  std::vector<llvm::Constant*> members;
  auto member = [&](const std::string& name, uint64_t bytes) {
    if (bytes == 0) return members.push_back(llvm::ConstantPointerNull::get(pointer));
    auto* type = llvm::ArrayType::get(llvm::Type::getInt8Ty(context), bytes);
    auto* memory =
        new llvm::GlobalVariable(module, type, false, llvm::GlobalValue::InternalLinkage,
                                 llvm::ConstantAggregateZero::get(type), program.identifier + "_" + name);
    memory->setAlignment(llvm::Align(kStaticAlignment));
    memory->setSection(".bss." + name + "." + program.identifier);
    members.push_back(memory);
  };
  for (const StaticRegion& region : program.regions) member(region.identifier, region.bytes);
  if (program.state_bytes != 0) member("state", program.state_bytes);
  auto* type = llvm::ArrayType::get(pointer, members.size());
  new llvm::GlobalVariable(module, type, true, llvm::GlobalValue::ExternalLinkage,
                           llvm::ConstantArray::get(type, members), program.identifier + "_static_memory");
}

}  // namespace quernel::codegen
