// The function around a kernel, its loop over workgroups, and statements.
#include <llvm/IR/MDBuilder.h>

#include "codegen/llvm/check_kernel.h"
#include "codegen/llvm/kernel_emitter.h"
#include "support/diagnostic.h"

namespace quernel::codegen {

using loop::StmtKind;

KernelEmitter::KernelEmitter(llvm::Module& module, const InstructionSet& isa, const loop::Kernel& kernel,
                             std::string symbol)
    : module_(module),
      context_(module.getContext()),
      isa_(isa),
      kernel_(kernel),
      symbol_(std::move(symbol)),
      builder_(context_) {}

llvm::BasicBlock* KernelEmitter::new_block(const char* name) {
  return llvm::BasicBlock::Create(context_, name, function_);
}

// Every loop: no unrolling (it spills register tiles) and no vectorisation. Both were decided in loop IR.
llvm::MDNode* KernelEmitter::loop_metadata() {
  auto option = [&](const char* name, llvm::Metadata* value) -> llvm::Metadata* {
    if (!value) return llvm::MDNode::get(context_, llvm::MDString::get(context_, name));
    return llvm::MDNode::get(context_, {llvm::MDString::get(context_, name), value});
  };
  llvm::Metadata* off = llvm::ConstantAsMetadata::get(builder_.getFalse());
  llvm::MDNode* node = llvm::MDNode::getDistinct(
      context_, {nullptr, option("llvm.loop.unroll.disable", nullptr),
                 option("llvm.loop.vectorize.enable", off), option("llvm.loop.mustprogress", nullptr)});
  node->replaceOperandWith(0, node);
  return node;
}

// int32_t kernel(const qnl_kernel_args* args, uint64_t begin, uint64_t end): bindings and symbols are read
// once, then `for (wg = begin; wg < end; ++wg) body`, or just the body of a single workgroup where no call runs none.
uint64_t KernelEmitter::emit() {
  llvm::Type* i64 = builder_.getInt64Ty();
  llvm::Type* i32 = builder_.getInt32Ty();
  auto* type = llvm::FunctionType::get(i32, {builder_.getPtrTy(), i64, i64}, false);
  function_ = llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage, symbol_, module_);
  function_->setVisibility(llvm::GlobalValue::HiddenVisibility);
  function_->addParamAttr(0, llvm::Attribute::ReadOnly);
  function_->addParamAttr(0, llvm::Attribute::NoAlias);
  function_->getArg(0)->setName("args");
  function_->getArg(1)->setName("begin");
  function_->getArg(2)->setName("end");

  entry_ = new_block("entry");
  llvm::BasicBlock* setup = new_block("setup");

  // Allocas go into the otherwise empty entry block, whose terminator comes last.
  builder_.SetInsertPoint(setup);
  bind_arguments();
  emit_workgroups();
  builder_.CreateRet(builder_.getInt32(0));
  builder_.SetInsertPoint(entry_);
  builder_.CreateBr(setup);
  return scratch_bytes_;
}

llvm::Function* KernelEmitter::emit_function(const loop::Expr& value,
                                             const std::vector<loop::Var>& parameters) {
  std::vector<llvm::Type*> types;
  for (const loop::Var& parameter : parameters) types.push_back(value_type(parameter->type));
  auto* type = llvm::FunctionType::get(value_type(value->type), types, false);
  function_ = llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage, symbol_, module_);
  builder_.SetInsertPoint(new_block("entry"));
  for (size_t i = 0; i < parameters.size(); ++i)
    bind_variable(parameters[i], function_->getArg(static_cast<unsigned>(i)));
  builder_.CreateRet(expr(value));
  return function_;
}

// struct { void* const* bindings; const int64_t* symbols; void* scratch; }. Distinct bindings do not overlap, but for
// in-place use, where an element is read before it is written and by no one else: scopes may treat them as disjoint.
// Those of buffers that say that they overlap are left out.
void KernelEmitter::bind_arguments() {
  llvm::Type* pointer = builder_.getPtrTy();
  llvm::MDNode* nothing = llvm::MDNode::get(context_, {});
  auto load_invariant = [&](llvm::Type* type, Value* base, uint64_t index) {
    Value* address = builder_.CreateConstInBoundsGEP1_64(type, base, index);
    llvm::LoadInst* load = builder_.CreateLoad(type, address);
    load->setMetadata(llvm::LLVMContext::MD_invariant_load, nothing);
    return load;
  };
  Value* args = function_->getArg(0);
  size_t count = kernel_.buffers.size();
  llvm::MDBuilder metadata(context_);
  llvm::MDNode* domain = metadata.createAnonymousAliasScopeDomain("bindings");
  std::vector<llvm::Metadata*> scopes;
  for (const loop::Buffer& b : kernel_.buffers)
    scopes.push_back(metadata.createAnonymousAliasScope(domain, b->name));
  scopes.push_back(metadata.createAnonymousAliasScope(domain, "scratch"));
  auto set_scopes = [&](BufferSlot& slot, size_t i) {
    // Each access names the buffers that it does not touch, which LLVM compares with those of every other.
    constexpr size_t kMostScopes = 256;
    if (scopes.size() > kMostScopes) return;
    std::vector<llvm::Metadata*> others = scopes;
    const bool overlaps = i < count && kernel_.buffers[i]->overlaps;
    for (size_t other = scopes.size(); other-- > 0;)
      if (other == i || (overlaps && other < count && kernel_.buffers[other]->overlaps))
        others.erase(others.begin() + static_cast<std::ptrdiff_t>(other));
    slot.alias_scope = llvm::MDNode::get(context_, {scopes[i]});
    if (!others.empty()) slot.no_alias = llvm::MDNode::get(context_, others);
  };
  scratch_.pointer = load_invariant(pointer, args, 2);
  scratch_.pointer->setName("scratch");
  set_scopes(scratch_, count);
  if (count != 0) {
    Value* bindings = load_invariant(pointer, args, 0);
    for (size_t i = 0; i < count; ++i) {
      const loop::BufferNode& b = *kernel_.buffers[i];
      BufferSlot slot;
      slot.pointer = load_invariant(pointer, bindings, static_cast<uint64_t>(b.binding));
      slot.pointer->setName(b.name);
      set_scopes(slot, i);
      buffers_[&b] = slot;
    }
  }
  if (!kernel_.symbols.empty()) {
    Value* symbols = load_invariant(pointer, args, 1);
    for (size_t i = 0; i < kernel_.symbols.size(); ++i) {
      symbols_.push_back(load_invariant(builder_.getInt64Ty(), symbols, i));
      symbols_.back()->setName(kernel_.symbols[i]);
    }
  }
}

void KernelEmitter::emit_workgroups() {
  if (kernel_.grid.empty() && isa_.whole_kernels) {
    if (isa_.narrow_indices && kernel_.body) ranges_.bound_elements(*kernel_.body);
    if (kernel_.body) statement(*kernel_.body);
    return;
  }
  loop::Interval count = loop::Interval::of(1);
  for (const loop::GridAxis& axis : kernel_.grid) {
    ranges_.bound_loop(axis.var, axis.extent);
    count = count * ranges_(axis.extent);
  }
  bool narrow = isa_.narrow_indices && count.within(0, INT32_MAX);
  if (isa_.narrow_indices && kernel_.body) ranges_.bound_elements(*kernel_.body);
  Value* begin = narrow ? as_index(function_->getArg(1)) : function_->getArg(1);
  Value* end = narrow ? as_index(function_->getArg(2)) : function_->getArg(2);
  llvm::BasicBlock* header = new_block("workgroup");
  llvm::BasicBlock* exit = new_block("exit");
  builder_.CreateCondBr(builder_.CreateICmpULT(begin, end), header, exit);
  llvm::BasicBlock* before_loop = builder_.GetInsertBlock();

  builder_.SetInsertPoint(header);
  if (kernel_.grid.empty()) {  // one workgroup
    if (kernel_.body) statement(*kernel_.body);
    builder_.CreateBr(exit);
    builder_.SetInsertPoint(exit);
    return;
  }
  llvm::PHINode* workgroup = builder_.CreatePHI(begin->getType(), 2, "wg");
  workgroup->addIncoming(begin, before_loop);
  decode_grid(workgroup);
  if (kernel_.body) statement(*kernel_.body);
  Value* next = builder_.CreateNUWAdd(workgroup, llvm::ConstantInt::get(begin->getType(), 1));
  llvm::BranchInst* back = builder_.CreateCondBr(builder_.CreateICmpULT(next, end), header, exit);
  back->setMetadata(llvm::LLVMContext::MD_loop, loop_metadata());
  workgroup->addIncoming(next, builder_.GetInsertBlock());
  builder_.SetInsertPoint(exit);
}

// In the width of `workgroup`.
void KernelEmitter::decode_grid(Value* workgroup) {
  Value* rest = workgroup;
  for (size_t i = kernel_.grid.size(); i-- > 0;) {
    const loop::GridAxis& axis = kernel_.grid[i];
    Value* id = rest;
    if (i != 0) {
      Value* extent = expr(axis.extent);
      if (extent->getType() != rest->getType()) extent = as_index(extent);
      id = builder_.CreateURem(rest, extent);
      rest = builder_.CreateUDiv(rest, extent);
    }
    non_negative_variables_[axis.var.get()] = true;
    bind_variable(axis.var, id->getType()->isIntegerTy(64) ? id : from_index(id));
  }
  emitted_.clear();
}

void KernelEmitter::bind_variable(const loop::Var& var, Value* value) {
  if (!llvm::isa<llvm::Constant>(value) && !value->hasName()) value->setName(var->name);
  variables_[var.get()] = value;
}

void KernelEmitter::prefetch(Value* pointer) {
  constexpr int kForReading = 0, kInAllCaches = 3, kData = 1;
  builder_.CreateIntrinsic(
      llvm::Intrinsic::prefetch, {pointer->getType()},
      {pointer, builder_.getInt32(kForReading), builder_.getInt32(kInAllCaches), builder_.getInt32(kData)});
}

void KernelEmitter::statement(const loop::StmtNode& s) {
  emitted_.clear();
  switch (s.kind) {
    case StmtKind::kBlock:
      for (const loop::Stmt& child : s.body) statement(*child);
      return;
    case StmtKind::kFor:
      emit_for(s);
      return;
    case StmtKind::kIf:
      emit_if(s);
      return;
    case StmtKind::kLet:
      // The affine form survives the variable, so that accesses through it stay contiguous.
      if (s.var->type.lanes > 1 && s.var->type.dtype == DType::kI64)
        if (auto form = affine(s.value)) affine_variables_.insert_or_assign(s.var.get(), *form);
      ranges_.bound(s.var, ranges_(s.value));
      if (is_non_negative(s.value)) non_negative_variables_[s.var.get()] = true;
      bind_variable(s.var, expr(s.value));
      return;
    case StmtKind::kStore:
      store(s);
      return;
    case StmtKind::kAlloc:
      emit_alloc(s.buffer);
      return;
    case StmtKind::kPrefetch:
      prefetch(element_pointer(*s.buffer, expr(s.index), false));
      return;
    case StmtKind::kMultiplyMatrices:
    case StmtKind::kStoreMatrix:
      QUERNEL_UNREACHABLE("check_kernel refuses products of matrices");
    case StmtKind::kBarrier:
      return;
  }
}

// Bottom-tested, with a guard in front unless the extent is a positive constant.
void KernelEmitter::emit_for(const loop::StmtNode& s) {
  Value* extent = expr(s.extent);
  emitted_.clear();
  non_negative_variables_[s.var.get()] = true;
  ranges_.bound_loop(s.var, s.extent);
  auto* fixed = llvm::dyn_cast<llvm::ConstantInt>(extent);
  if (fixed && fixed->getSExtValue() <= 0) return;
  if (fixed && fixed->isOne()) {
    bind_variable(s.var, builder_.getInt64(0));
    statement(*s.body[0]);
    return;
  }
  bool narrow = isa_.narrow_indices && ranges_(s.extent).within(INT32_MIN, INT32_MAX);
  if (narrow) extent = as_index(extent);
  llvm::Type* type = extent->getType();
  llvm::BasicBlock* before = builder_.GetInsertBlock();
  llvm::BasicBlock* body = new_block("loop");
  llvm::BasicBlock* after = new_block("after");
  if (fixed)
    builder_.CreateBr(body);
  else
    builder_.CreateCondBr(builder_.CreateICmpSGT(extent, llvm::ConstantInt::get(type, 0)), body, after);

  builder_.SetInsertPoint(body);
  llvm::PHINode* counter = builder_.CreatePHI(type, 2);
  counter->addIncoming(llvm::ConstantInt::get(type, 0), before);
  bind_variable(s.var, narrow ? from_index(counter) : counter);
  statement(*s.body[0]);
  Value* next = builder_.CreateAdd(counter, llvm::ConstantInt::get(type, 1), "", true, true);
  llvm::BranchInst* back = builder_.CreateCondBr(builder_.CreateICmpSLT(next, extent), body, after);
  back->setMetadata(llvm::LLVMContext::MD_loop, loop_metadata());
  counter->addIncoming(next, builder_.GetInsertBlock());
  builder_.SetInsertPoint(after);
  emitted_.clear();
}

// A vector condition: each branch runs when any of its lanes is on, with those lanes as the mask.
void KernelEmitter::emit_if(const loop::StmtNode& s) {
  Value* condition = expr(s.condition);
  emitted_.clear();
  bool is_vector = condition->getType()->isVectorTy();
  bool has_else = s.body.size() > 1 && s.body[1];
  if (auto* fixed = llvm::dyn_cast<llvm::ConstantInt>(condition)) {
    if (fixed->isOne()) statement(*s.body[0]);
    if (!fixed->isOne() && has_else) statement(*s.body[1]);
    return;
  }
  Value* outer = mask_;
  auto branch = [&](Value* lanes_on, Value* enter, const loop::StmtNode& body) {
    llvm::BasicBlock* then = new_block("then");
    llvm::BasicBlock* join = new_block("join");
    builder_.CreateCondBr(enter, then, join);
    builder_.SetInsertPoint(then);
    if (lanes_on) mask_ = lanes_on;
    statement(body);
    mask_ = outer;
    builder_.CreateBr(join);
    builder_.SetInsertPoint(join);
    emitted_.clear();
  };
  if (is_vector) {
    auto within = [&](Value* lanes_on) {
      return outer && lanes_of(outer) == lanes_of(lanes_on) ? builder_.CreateAnd(outer, lanes_on) : lanes_on;
    };
    Value* on = within(condition);
    branch(on, any_lane(on), *s.body[0]);
    if (!has_else) return;
    Value* off = within(builder_.CreateNot(condition));
    branch(off, any_lane(off), *s.body[1]);
    return;
  }
  if (!has_else) return branch(nullptr, condition, *s.body[0]);
  llvm::BasicBlock* then = new_block("then");
  llvm::BasicBlock* otherwise = new_block("else");
  llvm::BasicBlock* join = new_block("join");
  builder_.CreateCondBr(condition, then, otherwise);
  builder_.SetInsertPoint(then);
  statement(*s.body[0]);
  builder_.CreateBr(join);
  builder_.SetInsertPoint(otherwise);
  statement(*s.body[1]);
  builder_.CreateBr(join);
  builder_.SetInsertPoint(join);
  emitted_.clear();
}

// On the stack, in the entry block, so that register buffers are promoted and the frame has a fixed size; or
// in the scratch that the caller lends, of which every buffer has a part of its own.
void KernelEmitter::emit_alloc(const loop::Buffer& buffer) {
  if (lives_in_scratch(*buffer)) {
    BufferSlot slot = scratch_;
    slot.pointer =
        builder_.CreateConstInBoundsGEP1_64(builder_.getInt8Ty(), scratch_.pointer, scratch_bytes_);
    buffers_[buffer.get()] = slot;
    scratch_bytes_ += (static_cast<uint64_t>(byte_size(buffer->dtype, buffer->size)) + 63) / 64 * 64;
    return;
  }
  llvm::IRBuilder<> entry(entry_);
  auto* type = llvm::ArrayType::get(memory_type(buffer->dtype), static_cast<uint64_t>(buffer->size));
  llvm::AllocaInst* memory = entry.CreateAlloca(type, nullptr, buffer->name);
  memory->setAlignment(llvm::Align(static_cast<uint64_t>(isa_.stack_alignment)));
  buffers_[buffer.get()] = BufferSlot{memory, nullptr, nullptr};
}

}  // namespace quernel::codegen
