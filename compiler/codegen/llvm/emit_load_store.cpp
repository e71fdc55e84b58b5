// Loads: scalar, contiguous, reversed, strided and general vectors, each guarded or not. Guarded accesses
// never touch memory where the guard is off: uniform guards redirect the pointer to zero bytes of the image
// (branch-free, and right for empty buffers), lane guards use masks or single lanes.
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/MDBuilder.h>

#include "codegen/llvm/kernel_emitter.h"
#include "support/diagnostic.h"

namespace quernel::codegen {

using loop::ExprKind;
using loop::Scope;

namespace {
constexpr int64_t kLargestShuffledStride = 4;
}  // namespace

llvm::Align KernelEmitter::alignment(const loop::BufferNode& b) const {
  return llvm::Align(static_cast<uint64_t>(element_size(b.dtype)));
}

bool KernelEmitter::masked_access_is_native(const loop::BufferNode& b) const {
  return isa_.masks || (isa_.masks_of_words && element_size(b.dtype) >= 4);
}

bool KernelEmitter::gather_is_native(const loop::BufferNode& b) const {
  return isa_.gather && element_size(b.dtype) >= 4;
}

bool KernelEmitter::is_zero(Value* v) {
  auto* constant = llvm::dyn_cast<llvm::Constant>(v);
  return constant && (constant->isNullValue() || llvm::isa<llvm::UndefValue>(constant));
}

KernelEmitter::Value* KernelEmitter::to_memory(DType dtype, Value* x) {
  return dtype == DType::kBool ? builder_.CreateZExt(x, x->getType()->getWithNewType(builder_.getInt8Ty()))
                               : x;
}

KernelEmitter::Value* KernelEmitter::from_memory(DType dtype, Value* x) {
  return dtype == DType::kBool ? builder_.CreateICmpNE(x, llvm::Constant::getNullValue(x->getType())) : x;
}

KernelEmitter::Value* KernelEmitter::zeros(int64_t bytes) {
  int64_t size = 64;
  while (size < bytes) size *= 2;
  llvm::GlobalVariable*& slot = zeros_[size];
  if (!slot) {
    auto* type = llvm::ArrayType::get(builder_.getInt8Ty(), static_cast<uint64_t>(size));
    slot = new llvm::GlobalVariable(module_, type, true, llvm::GlobalValue::PrivateLinkage,
                                    llvm::Constant::getNullValue(type), "zeros");
    slot->setAlignment(llvm::Align(64));
  }
  return slot;
}

template <class Instruction>
Instruction* KernelEmitter::annotate(const loop::BufferNode& b, Instruction* access) {
  const BufferSlot& slot = buffers_.at(&b);
  if (slot.alias_scope) access->setMetadata(llvm::LLVMContext::MD_alias_scope, slot.alias_scope);
  if (slot.no_alias) access->setMetadata(llvm::LLVMContext::MD_noalias, slot.no_alias);
  return access;
}

KernelEmitter::Value* KernelEmitter::load_memory(const loop::BufferNode& b, llvm::Type* type,
                                                 Value* pointer) {
  llvm::LoadInst* access = annotate(b, builder_.CreateAlignedLoad(type, pointer, alignment(b)));
  if (b.below != 0) {
    unsigned width = type->getScalarSizeInBits();
    llvm::MDNode* range =
        llvm::MDBuilder(builder_.getContext())
            .createRange(llvm::APInt(width, 0), llvm::APInt(width, static_cast<uint64_t>(b.below)));
    access->setMetadata(llvm::LLVMContext::MD_range, range);
  }
  return access;
}

void KernelEmitter::store_memory(const loop::BufferNode& b, Value* value, Value* pointer) {
  annotate(b, builder_.CreateAlignedStore(value, pointer, alignment(b)));
}

KernelEmitter::Value* KernelEmitter::element_pointer(const loop::BufferNode& b, Value* index,
                                                     bool in_bounds) {
  auto it = buffers_.find(&b);
  QUERNEL_ASSERT(it != buffers_.end());
  llvm::Type* type = memory_type(b.dtype);
  Value* base = it->second.pointer;
  index = as_index(index);
  return in_bounds ? builder_.CreateInBoundsGEP(type, base, index) : builder_.CreateGEP(type, base, index);
}

KernelEmitter::Value* KernelEmitter::guarded_pointer(Value* condition, Value* pointer, int64_t bytes) {
  return condition ? builder_.CreateSelect(condition, pointer, zeros(bytes)) : pointer;
}

// Splits a predicate into what is the same for all lanes and what is not; constant true is no guard.
KernelEmitter::Guard KernelEmitter::guard_of(const loop::Expr& predicate, int lanes) {
  Guard guard;
  if (predicate) {
    bool uniform = predicate->type.lanes == 1;
    Value* p = uniform                                   ? expr(predicate)
               : predicate->kind == ExprKind::kBroadcast ? expr(predicate->args[0])
                                                         : expr(predicate);
    if (!p->getType()->isVectorTy()) {
      if (!llvm::isa<llvm::ConstantInt>(p) || !llvm::cast<llvm::ConstantInt>(p)->isOne()) guard.uniform = p;
    } else if (!llvm::isa<llvm::Constant>(p) || !llvm::cast<llvm::Constant>(p)->isAllOnesValue()) {
      guard.lanes = p;
    }
  }
  if (mask_ && lanes > 1 && lanes_of(mask_) == lanes)
    guard.lanes = guard.lanes ? builder_.CreateAnd(guard.lanes, mask_) : mask_;
  return guard;
}

// ---- loads
// ------------------------------------------------------------------------------------------------------

KernelEmitter::Value* KernelEmitter::load(const loop::ExprNode& e) {
  const loop::BufferNode& b = *e.buffer;
  int lanes = e.type.lanes;
  llvm::Type* element = memory_type(b.dtype);
  llvm::Type* type = lanes == 1 ? element : llvm::FixedVectorType::get(element, static_cast<unsigned>(lanes));
  bool is_register = b.scope == Scope::kRegister;
  Guard guard = guard_of(e.args.size() > 1 ? e.args[1] : nullptr, is_register ? 1 : lanes);
  Guard
      afterwards;  // registers may always be read, and stay promotable only if their address is not computed
  if (is_register) std::swap(guard, afterwards);
  Value* otherwise =
      e.args.size() > 2 ? to_memory(b.dtype, expr(e.args[2])) : llvm::Constant::getNullValue(type);
  if (b.size == 0 && guard) return from_memory(b.dtype, otherwise);
  Value* result;
  if (lanes == 1)
    result = load_scalar(b, expr(e.args[0]), guard, otherwise);
  else if (auto index = affine(e.args[0]))
    result = load_affine(b, *index, lanes, guard, otherwise);
  else if (Value* bytes = guard ? nullptr : look_up_bytes(b, *e.args[0]))
    result = bytes;
  else
    result = load_general(b, expr(e.args[0]), guard, otherwise);
  if (afterwards.lanes) result = builder_.CreateSelect(afterwards.lanes, result, otherwise);
  if (afterwards.uniform) result = builder_.CreateSelect(afterwards.uniform, result, otherwise);
  return from_memory(b.dtype, result);
}

KernelEmitter::Value* KernelEmitter::load_scalar(const loop::BufferNode& b, Value* index, const Guard& guard,
                                                 Value* otherwise) {
  Value* pointer = guarded_pointer(guard.uniform, element_pointer(b, index, !guard), element_size(b.dtype));
  Value* value = load_memory(b, memory_type(b.dtype), pointer);
  if (!guard.uniform || is_zero(otherwise)) return value;
  return builder_.CreateSelect(guard.uniform, value, otherwise);
}

KernelEmitter::Value* KernelEmitter::load_affine(const loop::BufferNode& b, Affine index, int lanes,
                                                 const Guard& guard, Value* otherwise) {
  int64_t stride = index.stride;
  if (stride == 0) {
    Guard any = guard;
    if (guard.lanes) {
      Value* on = any_lane(guard.lanes);
      any.uniform = guard.uniform ? builder_.CreateAnd(guard.uniform, on) : on;
    }
    any.lanes = nullptr;
    Value* zero = llvm::Constant::getNullValue(memory_type(b.dtype));
    Value* value = splat(load_scalar(b, index.base, any, zero), lanes);
    if (guard.lanes) value = builder_.CreateSelect(guard.lanes, value, otherwise);
    if (guard.uniform && !is_zero(otherwise)) value = builder_.CreateSelect(guard.uniform, value, otherwise);
    return value;
  }
  if (stride == 1) return load_contiguous(b, index.base, lanes, guard, otherwise);
  if (stride == -1) {
    Value* first =
        builder_.CreateAdd(index.base, int_constant(index_type(), static_cast<uint64_t>(1 - lanes)));
    Guard reversed = guard;
    if (guard.lanes) reversed.lanes = builder_.CreateVectorReverse(guard.lanes);
    Value* other = is_zero(otherwise) ? otherwise : builder_.CreateVectorReverse(otherwise);
    return builder_.CreateVectorReverse(load_contiguous(b, first, lanes, reversed, other));
  }
  if (stride > 1 && stride <= kLargestShuffledStride && !guard.lanes && b.scope != Scope::kRegister)
    return load_strided(b, index, lanes, guard.uniform, otherwise);
  return load_lanes(b, lane_pointers(b, index, lanes, !guard), guard, otherwise);
}

KernelEmitter::Value* KernelEmitter::load_contiguous(const loop::BufferNode& b, Value* base, int lanes,
                                                     const Guard& guard, Value* otherwise) {
  llvm::Type* type = llvm::FixedVectorType::get(memory_type(b.dtype), static_cast<unsigned>(lanes));
  int64_t bytes = static_cast<int64_t>(lanes) * element_size(b.dtype);
  Value* pointer = element_pointer(b, base, !guard);
  if (!guard.lanes) {
    Value* value = load_memory(b, type, guarded_pointer(guard.uniform, pointer, bytes));
    if (!guard.uniform || is_zero(otherwise)) return value;
    return builder_.CreateSelect(guard.uniform, value, otherwise);
  }
  Value* mask = guard.lanes;
  if (guard.uniform) mask = builder_.CreateAnd(mask, splat(guard.uniform, lanes));
  if (masked_access_is_native(b))
    return annotate(b, builder_.CreateMaskedLoad(type, pointer, alignment(b), mask, otherwise));
  // Without masks: one wide load where all lanes are on, which is nearly always, else lane by lane.
  llvm::BasicBlock* whole = new_block("whole");
  llvm::BasicBlock* pieces = new_block("pieces");
  llvm::BasicBlock* join = new_block("loaded");
  builder_.CreateCondBr(all_lanes(mask), whole, pieces);
  builder_.SetInsertPoint(whole);
  Value* all = load_memory(b, type, pointer);
  builder_.CreateBr(join);
  builder_.SetInsertPoint(pieces);
  Guard by_lane;
  by_lane.lanes = mask;
  Value* some = load_lanes(b, lane_pointers(b, Affine{base, 1}, lanes, false), by_lane, otherwise);
  builder_.CreateBr(join);
  llvm::BasicBlock* pieces_end = builder_.GetInsertBlock();
  builder_.SetInsertPoint(join);
  llvm::PHINode* result = builder_.CreatePHI(type, 2);
  result->addIncoming(all, whole);
  result->addIncoming(some, pieces_end);
  return result;
}

// `stride` loads of `lanes` elements each, placed so that none reads past the last element wanted, then
// shuffles.
KernelEmitter::Value* KernelEmitter::load_strided(const loop::BufferNode& b, Affine index, int lanes,
                                                  Value* uniform, Value* otherwise) {
  llvm::Type* type = llvm::FixedVectorType::get(memory_type(b.dtype), static_cast<unsigned>(lanes));
  int64_t span = index.stride * (lanes - 1) + 1;
  Value* pointer =
      guarded_pointer(uniform, element_pointer(b, index.base, !uniform), span * element_size(b.dtype));
  Value* result = llvm::PoisonValue::get(type);
  int done = 0;  // lanes filled so far
  for (int64_t part = 0; done < lanes; ++part) {
    int64_t start = std::min(part * lanes, span - lanes);
    Value* address = builder_.CreateConstGEP1_64(memory_type(b.dtype), pointer, static_cast<uint64_t>(start));
    Value* piece = load_memory(b, type, address);
    std::vector<int> lanes_from(static_cast<size_t>(lanes));
    int next = done;
    for (int i = 0; i < lanes; ++i) {
      int64_t source = i * index.stride - start;
      bool here = i >= done && source < lanes;
      if (here) next = i + 1;
      lanes_from[static_cast<size_t>(i)] = i < done ? i : here ? static_cast<int>(lanes + source) : -1;
    }
    result = builder_.CreateShuffleVector(result, piece, lanes_from);
    done = next;
  }
  if (!uniform || is_zero(otherwise)) return result;
  return builder_.CreateSelect(uniform, result, otherwise);
}

KernelEmitter::Value* KernelEmitter::load_general(const loop::BufferNode& b, Value* index, const Guard& guard,
                                                  Value* otherwise) {
  if (!gather_is_native(b) || b.scope == Scope::kRegister)
    return load_lanes(b, lane_pointers(b, index, !guard), guard, otherwise);
  int lanes = lanes_of(index);
  llvm::Type* type = llvm::FixedVectorType::get(memory_type(b.dtype), static_cast<unsigned>(lanes));
  Value* mask = guard.lanes;
  if (guard.uniform) {
    Value* all = splat(guard.uniform, lanes);
    mask = mask ? builder_.CreateAnd(mask, all) : all;
  }
  Value* pointers = element_pointer(b, index, !guard);
  return annotate(
      b, builder_.CreateMaskedGather(type, pointers, alignment(b), mask, mask ? otherwise : nullptr));
}

KernelEmitter::Value* KernelEmitter::load_lanes(const loop::BufferNode& b, llvm::ArrayRef<Value*> pointers,
                                                const Guard& guard, Value* otherwise) {
  llvm::Type* element = memory_type(b.dtype);
  Value* result =
      llvm::PoisonValue::get(llvm::FixedVectorType::get(element, static_cast<unsigned>(pointers.size())));
  for (size_t i = 0; i < pointers.size(); ++i) {
    Value* on = guard.uniform;
    if (guard.lanes) {
      Value* lane = builder_.CreateExtractElement(guard.lanes, i);
      on = on ? builder_.CreateAnd(on, lane) : lane;
    }
    Value* value = load_memory(b, element, guarded_pointer(on, pointers[i], element_size(b.dtype)));
    if (on && !is_zero(otherwise))
      value = builder_.CreateSelect(on, value, builder_.CreateExtractElement(otherwise, i));
    result = builder_.CreateInsertElement(result, value, i);
  }
  return result;
}

std::vector<KernelEmitter::Value*> KernelEmitter::lane_pointers(const loop::BufferNode& b, Affine index,
                                                                int lanes, bool in_bounds) {
  std::vector<Value*> pointers;
  for (int i = 0; i < lanes; ++i) {
    Value* lane =
        builder_.CreateAdd(index.base, int_constant(index_type(), static_cast<uint64_t>(i * index.stride)));
    pointers.push_back(element_pointer(b, lane, in_bounds));
  }
  return pointers;
}

std::vector<KernelEmitter::Value*> KernelEmitter::lane_pointers(const loop::BufferNode& b, Value* index,
                                                                bool in_bounds) {
  std::vector<Value*> pointers;
  for (int i = 0; i < lanes_of(index); ++i)
    pointers.push_back(
        element_pointer(b, builder_.CreateExtractElement(index, static_cast<uint64_t>(i)), in_bounds));
  return pointers;
}

// ---- stores
// -----------------------------------------------------------------------------------------------------

// The value is computed under the store's predicate, so that its loads need no guard of their own.
void KernelEmitter::store(const loop::StmtNode& s) {
  const loop::BufferNode& b = *s.buffer;
  int lanes = s.value->type.lanes;
  Guard guard = guard_of(s.condition, lanes);
  llvm::BasicBlock* after = nullptr;
  if (guard.uniform) {
    llvm::BasicBlock* then = new_block("store");
    after = new_block("stored");
    builder_.CreateCondBr(guard.uniform, then, after);
    builder_.SetInsertPoint(then);
  }
  Value* outer = mask_;
  if (guard.lanes) mask_ = guard.lanes;
  Value* value = to_memory(b.dtype, expr(s.value));
  mask_ = outer;
  if (lanes == 1)
    store_memory(b, value, element_pointer(b, expr(s.index), true));
  else
    store_vector(b, s.index, value, guard.lanes);
  if (after) {
    builder_.CreateBr(after);
    builder_.SetInsertPoint(after);
  }
}

void KernelEmitter::store_vector(const loop::BufferNode& b, const loop::Expr& index, Value* value,
                                 Value* mask) {
  int lanes = lanes_of(value);
  if (auto form = affine(index)) {
    if (form->stride == 1) return store_contiguous(b, form->base, value, mask);
    if (form->stride == -1) {
      Value* first =
          builder_.CreateAdd(form->base, int_constant(index_type(), static_cast<uint64_t>(1 - lanes)));
      return store_contiguous(b, first, builder_.CreateVectorReverse(value),
                              mask ? builder_.CreateVectorReverse(mask) : nullptr);
    }
    return store_lanes(b, lane_pointers(b, *form, lanes, !mask), value, mask);
  }
  Value* indices = expr(index);
  if (mask && gather_is_native(b)) {
    annotate(b, builder_.CreateMaskedScatter(value, element_pointer(b, indices, false), alignment(b), mask));
    return;
  }
  store_lanes(b, lane_pointers(b, indices, !mask), value, mask);
}

void KernelEmitter::store_contiguous(const loop::BufferNode& b, Value* base, Value* value, Value* mask) {
  bool is_register = b.scope == Scope::kRegister;
  Value* pointer = element_pointer(b, base, !mask || is_register);
  if (!mask) return store_memory(b, value, pointer);
  if (is_register)  // may always be touched, and must stay promotable
    return store_memory(b, builder_.CreateSelect(mask, value, load_memory(b, value->getType(), pointer)),
                        pointer);
  if (masked_access_is_native(b)) {
    annotate(b, builder_.CreateMaskedStore(value, pointer, alignment(b), mask));
    return;
  }
  llvm::BasicBlock* whole = new_block("whole");
  llvm::BasicBlock* pieces = new_block("pieces");
  llvm::BasicBlock* join = new_block("stored");
  builder_.CreateCondBr(all_lanes(mask), whole, pieces);
  builder_.SetInsertPoint(whole);
  store_memory(b, value, pointer);
  builder_.CreateBr(join);
  builder_.SetInsertPoint(pieces);
  store_lanes(b, lane_pointers(b, Affine{base, 1}, lanes_of(value), false), value, mask);
  builder_.CreateBr(join);
  builder_.SetInsertPoint(join);
}

// In lane order, so that of lanes with the same address the last one stays.
void KernelEmitter::store_lanes(const loop::BufferNode& b, llvm::ArrayRef<Value*> pointers, Value* value,
                                Value* mask) {
  for (size_t i = 0; i < pointers.size(); ++i) {
    Value* lane = builder_.CreateExtractElement(value, i);
    if (!mask) {
      store_memory(b, lane, pointers[i]);
      continue;
    }
    Value* on = builder_.CreateExtractElement(mask, i);
    if (b.scope == Scope::kRegister) {
      store_memory(b, builder_.CreateSelect(on, lane, load_memory(b, lane->getType(), pointers[i])),
                   pointers[i]);
      continue;
    }
    llvm::BasicBlock* then = new_block("lane");
    llvm::BasicBlock* next = new_block("next");
    builder_.CreateCondBr(on, then, next);
    builder_.SetInsertPoint(then);
    store_memory(b, lane, pointers[i]);
    builder_.CreateBr(next);
    builder_.SetInsertPoint(next);
  }
}

}  // namespace quernel::codegen
