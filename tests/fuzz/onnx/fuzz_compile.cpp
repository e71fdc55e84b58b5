// Models of every operator, varied and mutated, through the whole compiler: each is refused with a diagnostic
// or compiled, never with a crash, a hang or gigabytes of memory.
//   fuzz_compile [--count N] [--first I] [--keep DIR] FOLDER...
// A FOLDER holds models, as *.onnx or as FOLDER/TEST/model.onnx. Mutant i depends on i and the folders alone;
// --keep writes each to DIR/mutant.onnx, where the last one stays.
// A process that dies is followed by another, which begins behind the mutant that ended it.
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "model_files.h"
#include "processor_time.h"
#include "quernel/compiler.h"
#include "random_variation.h"
#include "seed_models.h"

namespace fs = std::filesystem;
using namespace quernel;
using namespace quernel::onnx_test;
using quernel::testing::end_after;

namespace {

constexpr long kSecondsPerModel = 10;  // of the processor: others may run beside
constexpr rlim_t kMostMemory = rlim_t{2}
                               << 30;  // without the address sanitizer, whose script has a limit of its own
constexpr size_t kMostModelBytes = 64 << 10;

// What the process that compiles tells the one that waits for it.
struct Progress {
  uint64_t next = 0;  // the first mutant that was not begun
  uint64_t imported = 0, generated = 0, written = 0, wrong = 0;
};

std::vector<onnx::ModelProto> read_seeds(const std::vector<fs::path>& folders) {
  std::vector<onnx::ModelProto> seeds = seed_models();
  for (const fs::path& folder : folders)
    for (const fs::path& path : models_in(folder)) {
      std::ifstream file(path, std::ios::binary);
      onnx::ModelProto model;
      if (model.ParseFromIstream(&file) && model.ByteSizeLong() <= kMostModelBytes) seeds.push_back(model);
    }
  return seeds;
}

onnx::ModelProto mutant(const std::vector<onnx::ModelProto>& seeds, Random& random) {
  const size_t kind = pick(random, 16);
  if (kind == 0) return random_einsum(random);
  onnx::ModelProto model = seeds[pick(random, seeds.size())];
  for (size_t i = 1 + pick(random, 3); i-- > 0;) vary(model, seeds, random);
  if (kind < 6)
    for (size_t i = 1 + pick(random, 2); i-- > 0;) mutate_somewhere(model, random);
  return model;
}

CompileOptions random_options(Random& random) {
  static constexpr struct {
    Emit emit;
    const char* target;
  } kForms[] = {{Emit::kBundle, "native"},     {Emit::kBundle, "native"}, {Emit::kBundle, "x86-64"},
                {Emit::kBundle, "aarch64"},    {Emit::kBundle, "armv7"},  {Emit::kBundle, "riscv64"},
                {Emit::kBundle, "vulkan"},     {Emit::kBundle, "vulkan"}, {Emit::kStatic, "cortex-m4"},
                {Emit::kStatic, "cortex-m55"}, {Emit::kC, "cortex-m7"}};
  CompileOptions options;
  const auto& form = kForms[pick(random, std::size(kForms))];
  options.emit = form.emit;
  options.targets = {form.target};
  options.threads = 1;
  if (pick(random, 8) != 0) options.disabled_passes = {"optimize-code"};  // LLVM's: most of the time
  if (pick(random, 8) == 0) options.choices.checked = true;
  if (pick(random, 16) == 0) options.precision = DType::kBF16;
  return options;
}

void compile_range(const std::vector<onnx::ModelProto>& seeds, uint64_t end, const fs::path& folder,
                   Progress& progress) {
  const std::string path = folder / "mutant.onnx";
  while (progress.next < end) {
    const uint64_t index = progress.next++;
    Random random(index * 0x9e3779b97f4a7c15u + 1);
    const onnx::ModelProto model = mutant(seeds, random);
    CompileOptions options = random_options(random);
    bool imported = false, generated = false;
    options.on_stage = [&](const std::string& stage) {
      imported |= stage != "import";
      generated |= stage == "code generation" || stage.rfind("write", 0) == 0;
    };
    std::ofstream(path, std::ios::binary) << model.SerializeAsString();
    end_after(kSecondsPerModel);
    Expected<CompileReport> report = compile(path, folder / "mutant", options);
    end_after(0);
    progress.imported += imported, progress.generated += generated, progress.written += bool(report);
    if (report) continue;
    for (const Diagnostic& d : report.errors())
      if (d.kind == DiagnosticKind::kInternal && ++progress.wrong) {
        std::printf("mutant %llu, target %s: %s\n", static_cast<unsigned long long>(index),
                    options.targets[0].c_str(), to_string(d).c_str());
        std::fflush(stdout);
      }
  }
}

void limit_memory() {
#if !defined(__SANITIZE_ADDRESS__)
  rlimit limit = {kMostMemory, kMostMemory};
  setrlimit(RLIMIT_AS, &limit);
#endif
}

}  // namespace

int main(int argc, char** argv) {
  uint64_t count = 10000, first = 0, deaths = 0;
  std::vector<fs::path> folders;
  std::string keep;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--count") == 0 && i + 1 < argc)
      count = std::strtoull(argv[++i], nullptr, 10);
    else if (std::strcmp(argv[i], "--first") == 0 && i + 1 < argc)
      first = std::strtoull(argv[++i], nullptr, 10);
    else if (std::strcmp(argv[i], "--keep") == 0 && i + 1 < argc)
      keep = argv[++i];
    else
      folders.emplace_back(argv[i]);
  }
  const std::vector<onnx::ModelProto> seeds = read_seeds(folders);
  std::string scratch = (fs::temp_directory_path() / "fuzz-compile-XXXXXX").string();
  if (!keep.empty())
    scratch = keep;
  else if (mkdtemp(scratch.data()) == nullptr)
    return std::perror("mkdtemp"), 1;
  auto* progress = static_cast<Progress*>(
      mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  if (progress == MAP_FAILED) return std::perror("mmap"), 1;
  *progress = Progress();
  progress->next = first;
  while (progress->next < first + count) {
    std::fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
      limit_memory();
      compile_range(seeds, first + count, scratch, *progress);
      std::fflush(stdout);
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) continue;
    ++deaths;
    std::printf("mutant %llu ended the compiler: %s %d\n",
                static_cast<unsigned long long>(progress->next - 1),
                WIFSIGNALED(status) ? "signal" : "exit status",
                WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
  }
  std::error_code ignored;
  if (keep.empty()) fs::remove_all(scratch, ignored);
  rusage usage{};
  getrusage(RUSAGE_CHILDREN, &usage);
  std::printf(
      "%zu seeds, %llu mutants\n%9llu imported\n%9llu reached code generation\n%9llu written\n"
      "%9llu wrong\n%9llu crashes and hangs\n%9ld MB at most\n",
      seeds.size(), static_cast<unsigned long long>(count),
      static_cast<unsigned long long>(progress->imported),
      static_cast<unsigned long long>(progress->generated),
      static_cast<unsigned long long>(progress->written), static_cast<unsigned long long>(progress->wrong),
      static_cast<unsigned long long>(deaths), usage.ru_maxrss / 1024);
  return progress->wrong || deaths;
}
