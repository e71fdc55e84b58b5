#include "codegen/llvm/object_code.h"

#include <llvm/IR/DiagnosticInfo.h>
#include <llvm/IR/DiagnosticPrinter.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Verifier.h>
#include <llvm/MC/MCAsmInfo.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/CrashRecoveryContext.h>
#include <llvm/Support/ErrorHandling.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/TargetParser/Triple.h>
#include <llvm/Transforms/Utils/Cloning.h>

#include <algorithm>
#include <functional>
#include <map>
#include <mutex>

#include "codegen/llvm/emitted_text.h"
#include "codegen/llvm/expand_instructions.h"
#include "codegen/llvm/kernel_emitter.h"
#include "codegen/llvm/optimize.h"
#include "codegen/llvm/program_emitter.h"
#include "codegen/llvm/stack_use.h"
#include "schemas/kernel_abi.h"
#include "support/file.h"

namespace quernel::codegen {
namespace {

// What LLVM was using when it crashed can neither be used nor destroyed; kept reachable, so that it is no
// leak.
void abandon(void* object) {
  static std::mutex mutex;
  static std::vector<void*> abandoned;
  std::lock_guard lock(mutex);
  abandoned.push_back(object);
}

thread_local std::string last_fatal_error;

// LLVM would go on to exit or abort.
void note_fatal_error(void*, const char* reason, bool) {
  last_fatal_error = reason;
  if (auto* recovery = llvm::CrashRecoveryContext::GetCurrent()) recovery->HandleExit(1);
}

// What a context reports while one module is compiled.
struct Report {
  StackUse stack;
  std::string errors;
};

void note_diagnostic(const llvm::DiagnosticInfo* info, void* context) {
  auto& report = *static_cast<Report*>(context);
  if (auto* stack = llvm::dyn_cast<llvm::DiagnosticInfoStackSize>(info)) {
    report.stack.note_frame(*stack);
  } else if (info->getSeverity() == llvm::DS_Error) {
    llvm::raw_string_ostream stream(report.errors);
    llvm::DiagnosticPrinterRawOStream printer(stream);
    info->print(printer);
  }
}

void initialize_targets() {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    LLVMInitializeAArch64TargetInfo();
    LLVMInitializeAArch64Target();
    LLVMInitializeAArch64TargetMC();
    LLVMInitializeAArch64AsmPrinter();
    LLVMInitializeARMTargetInfo();
    LLVMInitializeARMTarget();
    LLVMInitializeARMTargetMC();
    LLVMInitializeARMAsmPrinter();
    LLVMInitializeRISCVTargetInfo();
    LLVMInitializeRISCVTarget();
    LLVMInitializeRISCVTargetMC();
    LLVMInitializeRISCVAsmPrinter();
  });
}

InstructionSet instruction_set(const Target& target, const llvm::MCSubtargetInfo& subtarget) {
  InstructionSet isa;
  // A feature of schemas/features.def, whether the preset's CPU brings it or its flags do.
  auto has = [&](qnl_arch arch, uint64_t feature) {
    std::string_view flag = llvm_flag(arch, feature);
    return target.arch == arch && !flag.empty() && subtarget.checkFeatures(flag);
  };
  isa.x86 = target.arch == QNL_ARCH_X86_64;
  isa.masks = target.has_masks;
  isa.masks_of_words = target.has_masks || (isa.x86 && subtarget.checkFeatures("+avx2"));
  isa.gather = target.has_gather;
  isa.f16_conversion = target.has_f16;
  // Parts of x86-64's levels are no features of their own.
  isa.ssse3 = isa.x86 && subtarget.checkFeatures("+ssse3");
  isa.avx = isa.x86 && subtarget.checkFeatures("+avx");
  isa.avx512 = isa.x86 && subtarget.checkFeatures("+avx512f");
  isa.avx2 = isa.x86 && subtarget.checkFeatures("+avx2");
  isa.avx512_bw = isa.x86 && subtarget.checkFeatures("+avx512bw");
  isa.vnni = has(QNL_ARCH_X86_64, QNL_X86_64_AVX512_VNNI);
  isa.avx512_bf16 = has(QNL_ARCH_X86_64, QNL_X86_64_AVX512_BF16);
  isa.arm_dsp = has(QNL_ARCH_ARM, QNL_ARM_DSP);
  isa.mve = has(QNL_ARCH_ARM, QNL_ARM_MVE_INT);
  isa.neon_tables = isa.neon_shifts = isa.neon_fractions = isa.neon_extremes = isa.neon_narrowing =
      isa.neon_pairs = target.arch == QNL_ARCH_AARCH64;
  isa.neon_dotprod = has(QNL_ARCH_AARCH64, QNL_AARCH64_DOTPROD);
  isa.neon_i8mm = has(QNL_ARCH_AARCH64, QNL_AARCH64_I8MM);
  bool rounds_f32 = true, rounds_f64 = true;
  if (isa.x86) rounds_f32 = rounds_f64 = subtarget.checkFeatures("+sse4.1");
  if (target.arch == QNL_ARCH_ARM) {
    rounds_f32 = subtarget.checkFeatures("+fp-armv8d16sp");
    rounds_f64 = subtarget.checkFeatures("+fp-armv8d16");
  }
  // RISC-V's vectors would be rounded by changing the rounding mode.
  bool riscv_v = has(QNL_ARCH_RISCV64, QNL_RISCV_V);
  if (riscv_v) rounds_f32 = rounds_f64 = false;
  isa.round_to_int = (isa.x86 && rounds_f32) || riscv_v;
  isa.f32 = {target.has_f32 && target.has_fma, target.has_f32 && rounds_f32, target.has_f32};
  isa.f64 = {target.has_f64 && target.has_fma, target.has_f64 && rounds_f64, target.has_f64};
  isa.whole_kernels = !target.shares_work();
  isa.narrow_indices = target.arch == QNL_ARCH_ARM || target.arch == QNL_ARCH_RISCV32;
  isa.wide_division = isa.wide_conversions = !isa.narrow_indices || target.bare_metal;
  isa.wide_products = target.arch != QNL_ARCH_ARM || subtarget.checkFeatures("+thumb2");
  if (target.registers_are_few())
    isa.load_reach = target.arch == QNL_ARCH_RISCV32 ? 2047 : subtarget.checkFeatures("+thumb2") ? 4095 : 31;
  // Multiply-adds of memory; fewer loads do not outweigh the addition of the pointer.
  constexpr size_t kFewestLoads = 4;
  if (isa.avx) isa.load_reach = 1 << 30, isa.loads_of_pointer = kFewestLoads;
  if (isa.narrow_indices) isa.stack_alignment = std::max(8, target.vector_bytes);
  return isa;
}

}  // namespace

struct Compiler::State {
  Target target;
  bool optimize = true;
  CodeUse use = CodeUse::kImage;
  llvm::Triple triple;
  std::unique_ptr<llvm::TargetMachine> machine;
  InstructionSet isa;

  bool create_machine(std::string& error);
  // Where registers are few, LLVM's scheduler costs more spills than it saves waiting.
  InstructionOrder order() const {
    return target.registers_are_few() ? InstructionOrder::kAsInIr : InstructionOrder::kScheduled;
  }
  void prepare(llvm::Module& module) const;
  // Firmware has its place in memory; images and what programs for an operating system are linked into do
  // not.
  bool position_independent() const;
  std::unique_ptr<llvm::Module> new_module(const std::string& name, llvm::LLVMContext& context) const;
  // Runs `work` with crashes of LLVM turned into diagnostics; `what` names the kernel.
  Status guarded(const std::string& what, const std::function<void()>& work);
  // An object of what `emit` puts into a module, and its functions' frames.
  Expected<ObjectCode> compile_module(const std::string& name, const std::vector<std::string>& functions,
                                      const std::function<void(llvm::Module&)>& emit);
};

namespace {
std::mutex crash_guard_mutex;
int crash_guards = 0;
}  // namespace

CrashGuard::CrashGuard() {
  std::lock_guard lock(crash_guard_mutex);
  if (crash_guards++ != 0) return;
  llvm::CrashRecoveryContext::Enable();
  llvm::install_fatal_error_handler(note_fatal_error);
}

CrashGuard::~CrashGuard() {
  std::lock_guard lock(crash_guard_mutex);
  if (--crash_guards != 0) return;
  llvm::remove_fatal_error_handler();
  llvm::CrashRecoveryContext::Disable();
}

bool Compiler::State::create_machine(std::string& error) {
  const llvm::Target* backend = llvm::TargetRegistry::lookupTarget(triple, error);
  if (!backend) return false;
  llvm::TargetOptions options;
  options.AllowFPOpFusion =
      llvm::FPOpFusion::Strict;  // only llvm.fma fuses, so that results do not depend on LLVM
  options.FunctionSections = true;
  options.DataSections = true;
  options.MCOptions.ABIName = target.abi;
  // Not None: at that level LLVM 22 gets selects of vectors of one element wrong on AVX-512, as reductions of
  // bf16 end in (found_test).
  machine.reset(backend->createTargetMachine(
      triple, target.cpu, target.features, options,
      position_independent() ? llvm::Reloc::PIC_ : llvm::Reloc::Static, llvm::CodeModel::Small,
      optimize ? llvm::CodeGenOptLevel::Aggressive : llvm::CodeGenOptLevel::Less));
  if (!machine) error = "no target machine for " + triple.str();
  // Nothing is thrown; Arm's back end would still write an unwind table. LLVM has no option for that.
  if (machine)
    const_cast<llvm::MCAsmInfo*>(machine->getMCAsmInfo())->setExceptionsType(llvm::ExceptionHandling::None);
  return machine != nullptr;
}

bool Compiler::State::position_independent() const { return use == CodeUse::kImage || !target.bare_metal; }

std::unique_ptr<llvm::Module> Compiler::State::new_module(const std::string& name,
                                                          llvm::LLVMContext& context) const {
  auto module = std::make_unique<llvm::Module>(name, context);
  module->setTargetTriple(triple);
  module->setDataLayout(machine->createDataLayout());
  if (position_independent()) module->setPICLevel(llvm::PICLevel::BigPIC);
  if (!target.abi.empty())
    module->addModuleFlag(llvm::Module::Error, "target-abi", llvm::MDString::get(context, target.abi));
  return module;
}

// Attributes that every function needs, and the module's own facts.
void Compiler::State::prepare(llvm::Module& module) const {
  std::string width = std::to_string(target.vector_bytes * 8);
  for (llvm::Function& f : module) {
    if (f.isDeclaration()) continue;
    f.addFnAttr(llvm::Attribute::NoUnwind);
    f.addFnAttr(llvm::Attribute::NoRedZone);  // firmware has interrupts, and frames count for stack use
    f.addFnAttr(llvm::Attribute::MustProgress);
    f.addFnAttr("target-cpu", target.cpu);
    if (!target.features.empty()) f.addFnAttr("target-features", target.features);
    f.addFnAttr("prefer-vector-width", width);  // CPUs with 512-bit registers are otherwise tuned for 256
    f.addFnAttr("min-legal-vector-width", width);
    f.addFnAttr("no-builtins");
    // SVE's vectors have a fixed length here: so many times 128 bits.
    if (auto quads = static_cast<unsigned>(target.vector_bytes / 16);
        target.arch == QNL_ARCH_AARCH64 && quads > 1)
      f.addFnAttr(llvm::Attribute::getWithVScaleRangeArgs(f.getContext(), quads, quads));
    f.addFnAttr("warn-stack-size", "0");
  }
}

Status Compiler::State::guarded(const std::string& what, const std::function<void()>& work) {
  last_fatal_error.clear();
  llvm::CrashRecoveryContext recovery;
  if (recovery.RunSafely(work)) return {};
  abandon(machine.release());  // it may be in any state
  std::string error;
  create_machine(error);
  std::string reason =
      last_fatal_error.empty() ? "code " + std::to_string(recovery.RetCode) : last_fatal_error;
  return internal_error(what + ": LLVM failed for target '" + target.name + "': " + reason, {},
                        "codegen-llvm");
}

Compiler::Compiler(std::unique_ptr<State> state) : state_(std::move(state)) {}
Compiler::Compiler(Compiler&&) noexcept = default;
Compiler& Compiler::operator=(Compiler&&) noexcept = default;
Compiler::~Compiler() = default;

Expected<Compiler> Compiler::create(const Target& target, bool optimize, CodeUse use) {
  initialize_targets();
  auto state = std::make_unique<State>();
  state->use = use;
  state->target = target;
  state->optimize = optimize;
  state->triple = llvm::Triple(llvm::Triple::normalize(target.triple));
  std::string error;
  if (!state->create_machine(error))
    return unsupported("target '" + target.name + "': " + error, {},
                       "build with an LLVM that has this target");
  state->isa = instruction_set(target, *state->machine->getMCSubtargetInfo());
  return Compiler(std::move(state));
}

namespace {

std::vector<uint64_t> stack_bounds(const StackUse& stack, const std::vector<std::string>& names) {
  std::vector<uint64_t> bounds;
  for (const std::string& name : names) bounds.push_back(stack.bound(name));
  return bounds;
}

std::string names_of(std::span<const loop::Kernel> kernels) {
  std::string names = "kernel '" + kernels[0].name + "'";
  if (kernels.size() > 1) names += " to '" + kernels.back().name + "'";
  return names;
}

// Text of one kernel of a module.
struct KernelText {
  std::string ir;
  llvm::SmallVector<char, 0> assembly;
};

// The kernel `symbol` as the object has it: of the other kernels of its module only declarations are printed.
KernelText text_of(const llvm::Module& module, const std::vector<std::string>& symbols,
                   const std::string& symbol, llvm::TargetMachine& machine, InstructionOrder order) {
  KernelText text;
  auto copy = llvm::CloneModule(module);
  for (const std::string& other : symbols)
    if (llvm::Function* function = copy->getFunction(other); function != nullptr && other != symbol)
      function->deleteBody();
  llvm::raw_string_ostream ir(text.ir);
  copy->print(ir, nullptr);
  emit_machine_code(*copy, machine, llvm::CodeGenFileType::AssemblyFile, order, text.assembly);
  return text;
}

}  // namespace

Expected<ObjectCode> Compiler::compile(std::span<const loop::Kernel> kernels,
                                       const std::vector<std::string>& symbols, const std::string& dump_dir) {
  auto* context = new llvm::LLVMContext;
  Report report{StackUse(state_->target), {}};
  llvm::SmallVector<char, 0> object;
  std::vector<KernelText> texts;
  std::string error;
  std::vector<uint64_t> scratch_bytes;
  Status status = state_->guarded(names_of(kernels), [&] {
    context->setDiagnosticHandlerCallBack(note_diagnostic, &report);
    auto module = state_->new_module(kernels[0].name, *context);
    for (size_t i = 0; i < kernels.size(); ++i)
      scratch_bytes.push_back(KernelEmitter(*module, state_->isa, kernels[i], symbols[i]).emit());
    state_->prepare(*module);
    llvm::raw_string_ostream message(error);
    if (llvm::verifyModule(*module, &message)) return;
    if (state_->optimize) optimize(*module, *state_->machine, state_->isa);
    scalarize_single_lanes(*module);
    expand_missing_instructions(*module, state_->isa);
    state_->prepare(*module);  // what was added
    report.stack.read(*module);
    if (!dump_dir.empty())
      for (const std::string& symbol : symbols)
        texts.push_back(text_of(*module, symbols, symbol, *state_->machine, state_->order()));
    if (!emit_machine_code(*module, *state_->machine, llvm::CodeGenFileType::ObjectFile, state_->order(),
                           object))
      error = "the target cannot emit object files";
  });
  if (!status) {
    abandon(context);
    return status.take_errors();
  }
  delete context;
  if (error.empty()) error = report.errors;
  if (!error.empty()) return internal_error(names_of(kernels) + ": " + error, {}, "codegen-llvm");
  for (size_t i = 0; i < texts.size(); ++i) {
    const std::string path = dump_dir + "/" + kernels[i].name;
    QUERNEL_CHECK(write_file(path + ".ll", texts[i].ir));
    QUERNEL_CHECK(write_file(path + ".s", {texts[i].assembly.data(), texts[i].assembly.size()}));
  }
  return ObjectCode{std::string(object.begin(), object.end()), stack_bounds(report.stack, symbols),
                    scratch_bytes};
}

Expected<std::string> Compiler::emit_text(const loop::Kernel& kernel) {
  auto* context = new llvm::LLVMContext;
  std::string text, error;
  Status status = state_->guarded("kernel '" + kernel.name + "'", [&] {
    auto module = state_->new_module(kernel.name, *context);
    KernelEmitter(*module, state_->isa, kernel, kernel.name).emit();
    llvm::raw_string_ostream message(error);
    if (!llvm::verifyModule(*module, &message)) text = emitted_text(*module);
  });
  if (!status) {
    abandon(context);
    return status.take_errors();
  }
  delete context;
  if (!error.empty()) return internal_error("kernel '" + kernel.name + "': " + error, {}, "codegen-llvm");
  return text;
}

Expected<ObjectCode> Compiler::State::compile_module(const std::string& name,
                                                     const std::vector<std::string>& functions,
                                                     const std::function<void(llvm::Module&)>& emit) {
  auto* context = new llvm::LLVMContext;
  llvm::SmallVector<char, 0> object;
  Report report{StackUse(target), {}};
  std::string error;
  Status status = guarded(name, [&] {
    context->setDiagnosticHandlerCallBack(note_diagnostic, &report);
    auto module = new_module(name, *context);
    emit(*module);
    prepare(*module);
    llvm::raw_string_ostream message(error);
    if (llvm::verifyModule(*module, &message)) return;
    if (optimize) codegen::optimize(*module, *machine, isa);
    expand_missing_instructions(*module, isa);
    prepare(*module);  // what was added
    report.stack.read(*module);
    emit_machine_code(*module, *machine, llvm::CodeGenFileType::ObjectFile, order(), object);
  });
  if (!status) {
    abandon(context);
    return status.take_errors();
  }
  delete context;
  if (error.empty()) error = report.errors;
  if (!error.empty()) return internal_error(name + ": " + error, {}, "codegen-llvm");
  return ObjectCode{std::string(object.begin(), object.end()), stack_bounds(report.stack, functions), {}};
}

// The table holds offsets relative to itself, so that the image needs no relocation.
Expected<ObjectCode> Compiler::compile_table(const std::vector<std::string>& kernel_symbols) {
  return state_->compile_module("table", {}, [&](llvm::Module& module) {
    llvm::LLVMContext& context = module.getContext();
    llvm::IRBuilder<> builder(context);
    llvm::Type* i32 = builder.getInt32Ty();
    llvm::Type* i64 = builder.getInt64Ty();
    llvm::Type* address = module.getDataLayout().getIntPtrType(context);
    llvm::Type* pointer = builder.getPtrTy();
    auto count = static_cast<uint64_t>(kernel_symbols.size());
    auto* offsets_type = llvm::ArrayType::get(i32, count);
    auto* table_type = llvm::StructType::get(context, {i32, i32, i32, i32, offsets_type});
    auto* table = new llvm::GlobalVariable(module, table_type, true, llvm::GlobalValue::InternalLinkage,
                                           nullptr, "table");
    table->setAlignment(llvm::Align(16));
    auto* kernel_type = llvm::FunctionType::get(i32, {pointer, i64, i64}, false);
    std::vector<llvm::Constant*> offsets;
    for (const std::string& name : kernel_symbols) {
      auto* kernel = llvm::Function::Create(kernel_type, llvm::GlobalValue::ExternalLinkage, name, module);
      kernel->setVisibility(llvm::GlobalValue::HiddenVisibility);
      llvm::Constant* distance = llvm::ConstantExpr::getSub(llvm::ConstantExpr::getPtrToInt(kernel, address),
                                                            llvm::ConstantExpr::getPtrToInt(table, address));
      offsets.push_back(address == i32 ? distance : llvm::ConstantExpr::getTrunc(distance, i32));
    }
    table->setInitializer(llvm::ConstantStruct::get(
        table_type, {builder.getInt32(QNL_IMAGE_MAGIC), builder.getInt32(QNL_KERNEL_ABI_VERSION),
                     builder.getInt32(static_cast<uint32_t>(count)), builder.getInt32(0),
                     llvm::ConstantArray::get(offsets_type, offsets)}));
    auto* query = llvm::Function::Create(llvm::FunctionType::get(pointer, {i32}, false),
                                         llvm::GlobalValue::ExternalLinkage, kImageQuerySymbol, module);
    builder.SetInsertPoint(llvm::BasicBlock::Create(context, "entry", query));
    llvm::Value* known = builder.CreateICmpEQ(query->getArg(0), builder.getInt32(QNL_KERNEL_ABI_VERSION));
    builder.CreateRet(builder.CreateSelect(known, table, llvm::ConstantPointerNull::get(builder.getPtrTy())));
  });
}

Expected<ObjectCode> Compiler::compile_program(const StaticProgram& program) {
  std::vector<std::string> functions;
  for (const StaticEntry& entry : program.entries) functions.push_back(entry.identifier + "_run");
  return state_->compile_module("program", functions,
                                [&](llvm::Module& module) { ProgramEmitter(module, program).emit(); });
}

Expected<ObjectCode> Compiler::compile_static_memory(const StaticProgram& program) {
  return state_->compile_module("memory", {},
                                [&](llvm::Module& module) { emit_static_memory(module, program); });
}

}  // namespace quernel::codegen
