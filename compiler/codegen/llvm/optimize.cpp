#include "codegen/llvm/optimize.h"

#include <llvm/Analysis/TargetLibraryInfo.h>
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

namespace quernel::codegen {
namespace {

// Images have no libc: nothing may become a call of memset, expf or the like.
llvm::TargetLibraryInfoImpl no_library(const llvm::Module& module) {
  llvm::TargetLibraryInfoImpl info(module.getTargetTriple());
  info.disableAllFunctions();
  return info;
}

llvm::FunctionPassManager pipeline() {
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
  return passes;
}

}  // namespace

void optimize(llvm::Module& module, llvm::TargetMachine& machine) {
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
  passes.addPass(llvm::createModuleToFunctionPassAdaptor(pipeline()));
  passes.run(module, modules);
}

bool emit_machine_code(llvm::Module& module, llvm::TargetMachine& machine, llvm::CodeGenFileType type,
                       llvm::SmallVectorImpl<char>& out) {
  llvm::raw_svector_ostream stream(out);
  llvm::legacy::PassManager passes;
  passes.add(new llvm::TargetLibraryInfoWrapperPass(no_library(module)));
  if (machine.addPassesToEmitFile(passes, stream, nullptr, type)) return false;
  passes.run(module);
  return true;
}

}  // namespace quernel::codegen
