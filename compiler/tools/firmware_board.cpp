#include "firmware_board.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "child_process.h"
#include "command.h"

namespace quernel::tools {
namespace {

namespace fs = std::filesystem;
using tensor_file::HostTensor;

constexpr double kBuildSeconds = 300;
constexpr const char* kToolsHint = "toolchains/install_debian.sh --cross installs compilers and emulators";

std::vector<std::string> lines_of(const std::string& path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);)
    if (!line.empty()) lines.push_back(line);
  return lines;
}

// CMake says what is wrong in the lines behind "CMake Error".
std::string first_error_of(const std::string& log) {
  std::string text;
  bool begun = false;
  for (const std::string& line : lines_of(log)) {
    if (line.starts_with("CMake Error")) {
      if (begun) break;
      begun = true;
      continue;
    }
    if (begun && line[0] != ' ') break;
    if (size_t at = line.find_first_not_of(' '); begun && at != std::string::npos)
      text += (text.empty() ? "" : " ") + line.substr(at);
  }
  return text.empty() ? last_line_of(log) : text;
}

Status run_cmake(const std::string& target, std::vector<std::string> words, const std::string& log) {
  words.insert(words.begin(), "cmake");
  ProcessResult done = run_process(words, {.output = log, .errors = log, .timeout_seconds = kBuildSeconds});
  if (done.succeeded()) return {};
  done.last_words = first_error_of(log);
  return invalid_input(
      fmt::format("--on qemu: the board's code for {} cannot be built: {}", target, done.failure()), {},
      kToolsHint);
}

// The macros that test_main.c and kernel_counts.c want.
std::string case_header(const StaticReport& program) {
  std::string inputs, outputs, inner_inputs, inner_outputs, shapes, memory, kernels;
  for (size_t i = 0; i < program.inputs.size(); ++i)
    (program.inputs[i].in_workspace ? inner_inputs : inputs) +=
        fmt::format(" EACH({}, {}, {})", i, program.inputs[i].identifier, program.inputs[i].bytes);
  for (size_t i = 0; i < program.outputs.size(); ++i) {
    const StaticTensorReport& output = program.outputs[i];
    (output.in_workspace ? inner_outputs : outputs) +=
        fmt::format(" EACH({}, {}, {})", i, output.identifier, output.bytes);
    if (!output.shape_identifier.empty())
      shapes += fmt::format(" EACH({}, {}, {})", i, output.shape_identifier, output.shape.size());
  }
  bool has_state = false;
  for (const MemoryUse& use : program.memory) {
    memory += fmt::format(" EACH({}, {})", use.name, use.bytes);
    has_state |= use.name == "state";
  }
  for (size_t i = 0; i < program.kernels.size(); ++i)
    kernels += fmt::format(" EACH({}, {})", i, program.kernels[i].symbol);
  return fmt::format(
      "#include \"{}.h\"\n#define INPUTS(EACH){}\n#define OUTPUTS(EACH){}\n#define INNER_INPUTS(EACH){}\n"
      "#define INNER_OUTPUTS(EACH){}\n#define SHAPES(EACH){}\n"
      "#define MEMORY(EACH){}\n#define RESET(){}\n#define KERNELS(EACH){}\n",
      kFirmwareStem, inputs, outputs, inner_inputs, inner_outputs, shapes, memory,
      has_state ? " model_reset(&memory);" : "", kernels);
}

// As test_main.c reads them.
Status write_inputs(const std::string& folder, const std::vector<std::vector<HostTensor>>& runs) {
  auto write = [&](const std::string& name, const void* data, size_t bytes) -> Status {
    tensor_file::Error error = tensor_file::write_file(folder + "/" + name, data, bytes);
    return error ? Status(invalid_input(*error)) : Status();
  };
  uint32_t earlier = static_cast<uint32_t>(runs.size()) - 1;  // boards are little-endian, too
  QUERNEL_CHECK(write("earlier.raw", &earlier, sizeof earlier));
  for (size_t i = 0; i < runs.back().size(); ++i) {
    std::vector<std::byte> bytes;
    for (const std::vector<HostTensor>& run : runs)
      bytes.insert(bytes.end(), run[i].bytes.begin(), run[i].bytes.end());
    QUERNEL_CHECK(write(fmt::format("input_{}.raw", i), bytes.data(), bytes.size()));
  }
  return {};
}

// What the program printed: the numbers of each line behind its first word.
std::multimap<std::string, std::vector<uint64_t>> read_report(const std::string& path) {
  std::multimap<std::string, std::vector<uint64_t>> report;
  for (const std::string& line : lines_of(path)) {
    std::istringstream words(line);
    std::string name;
    words >> name;
    std::vector<uint64_t> numbers;
    for (uint64_t number; words >> number;) numbers.push_back(number);
    if (numbers.size() == 2) report.emplace(std::move(name), std::move(numbers));
  }
  return report;
}

// What each kernel took, without what counting it takes, which the program has measured on empty calls.
std::vector<FirmwareKernel> read_kernels(const std::multimap<std::string, std::vector<uint64_t>>& report,
                                         size_t count) {
  std::vector<FirmwareKernel> kernels(count);
  auto empty = report.find("empty_calls");
  if (empty == report.end() || empty->second[1] == 0) return kernels;
  const double each = static_cast<double>(empty->second[0]) / static_cast<double>(empty->second[1]);
  for (size_t i = 0; i < count; ++i) {
    auto it = report.find(fmt::format("kernel_{}", i));
    if (it == report.end()) continue;
    double counting = each * static_cast<double>(it->second[1]);
    double without = std::max(0.0, static_cast<double>(it->second[0]) - counting);
    kernels[i] = {it->second[1], static_cast<uint64_t>(without)};
  }
  return kernels;
}

std::string program_file(const std::string& folder, FirmwareProgram kind) {
  return folder + (kind == FirmwareProgram::kPlain ? "/program" : "/counting_program");
}

Expected<HostTensor> read_output(const StaticTensorReport& output, size_t index, const std::string& folder,
                                 const std::multimap<std::string, std::vector<uint64_t>>& report) {
  HostTensor tensor{output.name, static_cast<qnl_dtype>(output.dtype), output.shape, {}};
  auto [begin, end] = report.equal_range(fmt::format("shape_{}", index));
  for (auto it = begin; it != end; ++it)
    if (it->second[1] < tensor.shape.size())
      tensor.shape[it->second[1]] = static_cast<int64_t>(it->second[0]);
  if (tensor_file::Error error =
          tensor_file::read_file(fmt::format("{}/output_{}.raw", folder, index), &tensor.bytes))
    return invalid_input(*error);
  std::optional<uint64_t> count = tensor_file::element_count(tensor.shape);
  if (!count || tensor.bytes.size() != output.bytes ||
      static_cast<uint64_t>(byte_size(output.dtype, static_cast<int64_t>(*count))) > output.bytes)
    return internal_error(
        fmt::format("output '{}': expected at most {} bytes of a known shape", output.name, output.bytes));
  tensor.bytes.resize(static_cast<size_t>(byte_size(output.dtype, static_cast<int64_t>(*count))));
  return tensor;
}

}  // namespace

Expected<std::unique_ptr<FirmwareBoard>> FirmwareBoard::open(const std::string& target,
                                                             const std::string& scratch_dir) {
  std::error_code error;
  fs::path program = fs::read_symlink("/proc/self/exe", error);
  fs::path share = program.parent_path().parent_path() / "share/quernel/firmware";
  // A core has one file, which knows the code options of its targets.
  size_t options = std::min(target.find('+'), target.size());
  std::string toolchain = share / "toolchains" / (target.substr(0, options) + ".cmake");
  if (!fs::exists(toolchain, error))
    return invalid_input("--on qemu: found no folder of firmware tests", {.file = share.string()},
                         "run quernel where it was built or installed");
  if (!program_exists("cmake"))
    return invalid_input("--on qemu: firmware tests are built by cmake, found none in PATH");

  std::string build = scratch_dir + "/board", log = scratch_dir + "/board.log";
  std::vector<std::string> configure = {"-S",
                                        share.string(),
                                        "-B",
                                        build,
                                        "-DCMAKE_TOOLCHAIN_FILE=" + toolchain,
                                        "-DQUERNEL_TARGET_OPTIONS=" + target.substr(options)};
  if (program_exists("ninja")) configure.insert(configure.end(), {"-G", "Ninja"});
  QUERNEL_CHECK(run_cmake(target, configure, log));
  QUERNEL_CHECK(run_cmake(target, {"--build", build}, log));
  std::unique_ptr<FirmwareBoard> board(new FirmwareBoard);
  board->share_ = share;
  board->build_words_ = lines_of(build + "/build.txt");
  board->emulator_words_ = lines_of(build + "/emulator.txt");
  std::vector<std::string> facts = lines_of(build + "/board.txt");
  QUERNEL_ASSERT(facts.size() == 2);  // all toolchain files say both
  board->name_ = facts[0];
  board->core_ = facts[1];
  if (board->emulator_words_.empty() || !program_exists(board->emulator_words_[0]))
    return invalid_input(fmt::format("--on qemu: found no {} in PATH",
                                     board->emulator_words_.empty() ? "emulator" : board->emulator_words_[0]),
                         {}, kToolsHint);
  return board;
}

Status FirmwareBoard::build(const StaticReport& program, const std::string& folder,
                            FirmwareProgram kind) const {
  QUERNEL_CHECK(write_text_file(folder + "/case.h", case_header(program)));
  std::vector<std::string> words;
  for (const std::string& word : build_words_) {
    if (word != "@model@") {
      words.push_back(word);
      continue;
    }
    if (kind == FirmwareProgram::kCountsKernels) {
      words.insert(words.end(), {"-DCOUNTS_KERNELS", share_ + "/kernel_counts.c"});
      for (const StaticKernelReport& kernel : program.kernels) words.push_back("-Wl,--wrap=" + kernel.symbol);
    }
    words.insert(words.end(),
                 {"-I" + folder, share_ + "/test_main.c", fmt::format("{}/{}.a", folder, kFirmwareStem), "-o",
                  program_file(folder, kind)});
  }
  std::string log = folder + "/build.log";
  ProcessResult done = run_process(words, {.output = log, .errors = log, .timeout_seconds = kBuildSeconds});
  if (done.succeeded()) return {};
  std::string first;
  for (const std::string& line : lines_of(log)) {
    for (const char* text : {"overflowed by", "left for the stack"})
      if (line.find(text) != std::string::npos)
        return unsupported("the emulated board has too little memory: " + line.substr(line.rfind(": ") + 2));
    if (first.empty() && line.find("error") != std::string::npos) first = line;
  }
  if (!first.empty()) done.last_words = first;
  return internal_error("the program that runs the model cannot be built: " + done.failure());
}

Expected<FirmwareRun> FirmwareBoard::run(const StaticReport& program, const std::string& folder,
                                         const std::vector<std::vector<HostTensor>>& runs,
                                         double timeout_seconds, FirmwareProgram kind) const {
  QUERNEL_CHECK(write_inputs(folder, runs));
  std::vector<std::string> words = emulator_words_;
  words.push_back(program_file(folder, kind));
  std::string log = folder + "/run.log";
  ProcessResult done = run_process(
      words, {.directory = folder, .output = log, .errors = log, .timeout_seconds = timeout_seconds});
  if (!done.succeeded()) return invalid_input(done.failure());
  auto report = read_report(log);
  FirmwareRun result;
  auto numbers = [&](const std::string& name) {
    auto it = report.find(name);
    return it == report.end() ? std::vector<uint64_t>(2) : it->second;
  };
  if (report.find("instructions") == report.end())
    return invalid_input(fmt::format("expected the program's report, found '{}'", last_line_of(log)));
  result.instructions = numbers("instructions")[0];
  result.instruction_step = numbers("instructions")[1];
  if (kind == FirmwareProgram::kCountsKernels) result.kernels = read_kernels(report, program.kernels.size());
  for (const MemoryUse& use : program.memory)
    result.memory.push_back({use.name, numbers(use.name)[0], use.bytes});
  result.memory.push_back({"stack", numbers("stack")[0], program.stack_bytes});
  for (size_t i = 0; i < program.outputs.size(); ++i) {
    QUERNEL_TRY(HostTensor output, read_output(program.outputs[i], i, folder, report));
    result.outputs.push_back(std::move(output));
  }
  return result;
}

}  // namespace quernel::tools
