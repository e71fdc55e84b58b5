// Feeds mutated TensorFlow Lite models to the importer: it must answer with diagnostics or a graph that verifies, never
// with a crash, a hang or a huge allocation. Deterministic: mutation i depends on i and the seeds alone.
//
//   tflite_fuzz_import [--count N] [--first N] FOLDER…    of models: *.tflite, and TEST/model.tflite
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "check_import.h"
#include "frontends/tflite/import_model.h"
#include "model_mutation.h"
#include "processor_time.h"

using namespace quernel;
using namespace quernel::tflite_test;
using quernel::testing::check_import;
using quernel::testing::end_after;
using quernel::testing::ImportOutcome;
namespace fs = std::filesystem;

namespace {

constexpr long kSecondsPerModel = 20;
constexpr uintmax_t kMostBytes = 400 << 10;  // of a seed: larger ones take their time for copies
constexpr size_t kMostConstantBytes = 64 << 20;

uint64_t current = 0;  // the mutation

void name_mutation(int) {
  char line[64];
  int length = std::snprintf(line, sizeof line, "mutation %llu takes too long\n",
                             static_cast<unsigned long long>(current));
  if (write(STDOUT_FILENO, line, static_cast<size_t>(length)) < 0) _exit(2);
  _exit(1);
}

ModelBytes read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<fs::path> models_in(const fs::path& folder) {
  std::vector<fs::path> paths;
  if (!fs::is_directory(folder)) return paths;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() == ".tflite") paths.push_back(entry.path());
    if (fs::exists(entry.path() / "model.tflite")) paths.push_back(entry.path() / "model.tflite");
  }
  std::sort(paths.begin(), paths.end());
  std::erase_if(paths, [](const fs::path& path) { return fs::file_size(path) > kMostBytes; });
  return paths;
}

ImportOptions options_of(uint64_t index) {
  ImportOptions options;
  options.max_initializer_bytes = kMostConstantBytes;
  options.rounding = kIntegerRoundings[index % std::size(kIntegerRoundings)];
  return options;
}

}  // namespace

int main(int argc, char** argv) {
  uint64_t count = 10000, first = 0, accepted = 0, readable = 0, wrong = 0;
  std::vector<ModelBytes> seeds;
  for (int i = 1; i < argc; ++i) {
    std::string argument = argv[i];
    if (argument == "--count" && i + 1 < argc)
      count = std::strtoull(argv[++i], nullptr, 10);
    else if (argument == "--first" && i + 1 < argc)
      first = std::strtoull(argv[++i], nullptr, 10);
    else
      for (const fs::path& path : models_in(argument)) {
        ModelBytes bytes = read(path);
        if (import_tflite_bytes(bytes, path.string())) seeds.push_back(std::move(bytes));
      }
  }
  if (seeds.empty()) {
    std::printf("expected folders with models that can be imported, found none\n");
    return 1;
  }
  signal(SIGPROF, name_mutation);
  for (current = first; current < first + count; ++current) {
    ModelBytes bytes = mutant_of(seeds, current);
    end_after(kSecondsPerModel);
    Expected<ImportedModel> imported = import_tflite_bytes(bytes, "fuzz.tflite", options_of(current));
    const ImportOutcome outcome = check_import(current, imported);
    wrong += outcome == ImportOutcome::kWrong;
    accepted += outcome == ImportOutcome::kImported;
    // Damaged files have one diagnostic without a node.
    readable += outcome == ImportOutcome::kRefused && !imported.errors()[0].place.node.empty();
  }
  end_after(0);
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  std::printf(
      "%llu mutants of %zu models, %llu imported, %llu refused at a node, %llu wrong, peak %ld MB at most\n",
      static_cast<unsigned long long>(count), seeds.size(), static_cast<unsigned long long>(accepted),
      static_cast<unsigned long long>(readable), static_cast<unsigned long long>(wrong),
      usage.ru_maxrss / 1024);
  return wrong != 0;
}
