// A microcontroller board under qemu-system: builds a program of a model's static library and firmware/, and
// runs it on given inputs. Processes forked after open() may all use it, each in folders of its own.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "quernel/compiler.h"
#include "tensor_file.h"

namespace quernel::tools {

// Memory that was painted before the run: a region of the workspace, "state" or "stack".
struct FirmwareMemory {
  std::string name;
  uint64_t used = 0, bytes = 0;  // up to the last one written; what the compiler says
};

// A kernel of StaticReport::kernels, of the same index, in a run.
struct FirmwareKernel {
  uint64_t calls = 0, instructions = 0;  // of all calls
};

struct FirmwareRun {
  std::vector<tensor_file::HostTensor> outputs;
  uint64_t instructions = 0, instruction_step = 1;  // counted in such steps
  std::vector<FirmwareMemory> memory;
  std::vector<FirmwareKernel> kernels;  // of a program that counts them
};

// A program as firmware for products has it, or one that counts at the beginning and end of each kernel.
enum class FirmwareProgram : uint8_t { kPlain, kCountsKernels };

// The stem that static libraries for a board must have.
inline constexpr const char* kFirmwareStem = "model";

class FirmwareBoard {
 public:
  // Builds the board's code in a folder of `scratch_dir`. Invalid input: the toolchain or the emulator is
  // missing, the target has no board.
  static Expected<std::unique_ptr<FirmwareBoard>> open(const std::string& target,
                                                       const std::string& scratch_dir);

  // The emulated machine, and the core that it has: it runs all instructions of the target, which may be another core.
  const std::string& name() const { return name_; }
  const std::string& core() const { return core_; }

  // Builds a program of the static library in `folder`. Unsupported: the board has too little memory.
  Status build(const StaticReport& program, const std::string& folder,
               FirmwareProgram kind = FirmwareProgram::kPlain) const;
  // Runs the one of that kind for each list of inputs in turn, from fresh states; the result is the last run's. Inputs are those of the
  // program, in order.
  Expected<FirmwareRun> run(const StaticReport& program, const std::string& folder,
                            const std::vector<std::vector<tensor_file::HostTensor>>& runs,
                            double timeout_seconds, FirmwareProgram kind = FirmwareProgram::kPlain) const;

 private:
  FirmwareBoard() = default;

  std::string share_, name_, core_;
  std::vector<std::string> build_words_, emulator_words_;
};

}  // namespace quernel::tools
