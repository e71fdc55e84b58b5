#include "codegen/llvm/optimize.h"

#include <llvm/Analysis/TargetLibraryInfo.h>
#include <llvm/CodeGen/MachineModuleInfo.h>
#include <llvm/CodeGen/Passes.h>
#include <llvm/CodeGen/TargetPassConfig.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Transforms/InstCombine/InstCombine.h>
#include <llvm/Transforms/Scalar/ADCE.h>
#include <llvm/Transforms/Scalar/CorrelatedValuePropagation.h>
#include <llvm/Transforms/Scalar/DeadStoreElimination.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/GVN.h>
#include <llvm/Transforms/Scalar/IndVarSimplify.h>
#include <llvm/Transforms/Scalar/LICM.h>
#include <llvm/Transforms/Scalar/LoopPassManager.h>
#include <llvm/Transforms/Scalar/SROA.h>
#include <llvm/Transforms/Scalar/SimplifyCFG.h>

#include "codegen/llvm/advance_pointers.h"
#include "codegen/llvm/keep_loads_apart.h"

namespace quernel::codegen {
namespace {

// Images have no libc: nothing may become a call of memset, expf or the like.
llvm::TargetLibraryInfoImpl no_library(const llvm::Module& module) {
  llvm::TargetLibraryInfoImpl info(module.getTargetTriple());
  info.disableAllFunctions();
  return info;
}

llvm::FunctionPassManager pipeline(const InstructionSet& isa) {
  llvm::FunctionPassManager passes;
  passes.addPass(llvm::SROAPass(llvm::SROAOptions::ModifyCFG));  // register buffers become values
  passes.addPass(llvm::EarlyCSEPass(true));
  passes.addPass(llvm::SimplifyCFGPass());
  passes.addPass(llvm::InstCombinePass());
  {
    llvm::LoopPassManager loops;
    loops.addPass(llvm::LICMPass(llvm::LICMOptions()));
    loops.addPass(llvm::IndVarSimplifyPass());
    passes.addPass(llvm::createFunctionToLoopPassAdaptor(std::move(loops), /*UseMemorySSA=*/true));
  }
  if (isa.load_reach > 0) passes.addPass(AdvancePointersPass(isa.load_reach, isa.loads_of_pointer));
  passes.addPass(llvm::GVNPass());
  passes.addPass(llvm::CorrelatedValuePropagationPass());
  passes.addPass(llvm::InstCombinePass());
  passes.addPass(llvm::DSEPass());
  {
    llvm::LoopPassManager loops;
    loops.addPass(llvm::LICMPass(llvm::LICMOptions()));
    passes.addPass(llvm::createFunctionToLoopPassAdaptor(std::move(loops), /*UseMemorySSA=*/true));
  }
  passes.addPass(llvm::ADCEPass());
  passes.addPass(
      llvm::SimplifyCFGPass(llvm::SimplifyCFGOptions().hoistCommonInsts(true).sinkCommonInsts(true)));
  passes.addPass(llvm::InstCombinePass());
  if (isa.load_reach > 0 && isa.arm_dsp) passes.addPass(KeepLoadsApartPass());
  return passes;
}

}  // namespace

void optimize(llvm::Module& module, llvm::TargetMachine& machine, const InstructionSet& isa) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager sccs;
  llvm::ModuleAnalysisManager modules;
  llvm::PipelineTuningOptions tuning;
  tuning.LoopUnrolling = false;
  tuning.LoopVectorization = false;
  tuning.SLPVectorization = false;
  llvm::PassBuilder builder(&machine, tuning);
  llvm::TargetLibraryInfoImpl library = no_library(module);
  functions.registerPass([&] { return llvm::TargetLibraryAnalysis(library); });
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(sccs);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, sccs, modules);
  llvm::ModulePassManager passes;
  passes.addPass(llvm::createModuleToFunctionPassAdaptor(pipeline(isa)));
  passes.run(module, modules);
}

namespace {

// The lane that the mask has on, -1 where it is not known or not one.
int only_lane(const llvm::Value* mask) {
  auto* constant = llvm::dyn_cast<llvm::Constant>(mask);
  auto* type = llvm::cast<llvm::FixedVectorType>(mask->getType());
  int lane = -1;
  for (unsigned i = 0; constant && i < type->getNumElements(); ++i) {
    auto* bit = llvm::dyn_cast_or_null<llvm::ConstantInt>(constant->getAggregateElement(i));
    if (!bit || (bit->isOne() && lane >= 0)) return -1;
    if (bit->isOne()) lane = static_cast<int>(i);
  }
  return lane;
}

// In place of a masked access of lane `lane` at `pointer`; returns what replaces its result, if it has one.
llvm::Value* access_lane(llvm::IntrinsicInst& call, llvm::Value* pointer, int lane) {
  llvm::IRBuilder<> builder(&call);
  bool loads = call.getIntrinsicID() == llvm::Intrinsic::masked_load;
  auto* vector = llvm::cast<llvm::FixedVectorType>(loads ? call.getType() : call.getArgOperand(0)->getType());
  llvm::Type* element = vector->getElementType();
  llvm::Value* address = builder.CreateConstGEP1_64(element, pointer, static_cast<uint64_t>(lane));
  llvm::Align align(call.getModule()->getDataLayout().getTypeStoreSize(element).getFixedValue());
  llvm::Value* result = nullptr;
  llvm::Instruction* access;
  if (loads) {
    auto* load = builder.CreateAlignedLoad(element, address, align);
    access = load;
    result = builder.CreateInsertElement(call.getArgOperand(2), load, static_cast<uint64_t>(lane));
  } else {
    access = builder.CreateAlignedStore(
        builder.CreateExtractElement(call.getArgOperand(0), static_cast<uint64_t>(lane)), address, align);
  }
  access->setAAMetadata(call.getAAMetadata());
  return result;
}

}  // namespace

void scalarize_single_lanes(llvm::Module& module) {
  std::vector<llvm::IntrinsicInst*> done;
  for (llvm::Function& function : module)
    for (llvm::BasicBlock& block : function)
      for (llvm::Instruction& instruction : block) {
        auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction);
        bool loads = call && call->getIntrinsicID() == llvm::Intrinsic::masked_load;
        if (!call || (!loads && call->getIntrinsicID() != llvm::Intrinsic::masked_store)) continue;
        int lane = only_lane(call->getArgOperand(loads ? 1 : 2));
        if (lane < 0) continue;
        llvm::Value* result = access_lane(*call, call->getArgOperand(loads ? 0 : 1), lane);
        if (result) call->replaceAllUsesWith(result);
        done.push_back(call);
      }
  for (llvm::IntrinsicInst* call : done) call->eraseFromParent();
}

bool emit_machine_code(llvm::Module& module, llvm::TargetMachine& machine, llvm::CodeGenFileType type,
                       InstructionOrder order, llvm::SmallVectorImpl<char>& out) {
  llvm::raw_svector_ostream stream(out);
  llvm::legacy::PassManager passes;
  passes.add(new llvm::TargetLibraryInfoWrapperPass(no_library(module)));
  // As TargetMachine::addPassesToEmitFile does, which cannot leave out a pass.
  auto* functions = new llvm::MachineModuleInfoWrapperPass(&machine);
  llvm::TargetPassConfig* config = machine.createPassConfig(passes);
  if (order == InstructionOrder::kAsInIr) config->disablePass(&llvm::MachineSchedulerID);
  passes.add(config);
  passes.add(functions);
  if (config->addISelPasses()) return false;
  config->addMachinePasses();
  config->setInitialized();
  if (machine.addAsmPrinter(passes, stream, nullptr, type, functions->getMMI().getContext())) return false;
  passes.add(llvm::createFreeMachineFunctionPass());
  passes.run(module);
  return true;
}

}  // namespace quernel::codegen
