// quernel-run where --on says: brought there once, then started with bundles and inputs that are brought as
// needed. Processes forked after open() may all use it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "open_device.h"
#include "transport.h"

namespace CLI {
class App;
}

namespace quernel::tools {

struct DeviceFlags {
  std::string on = "local";
  std::string run_binary;
};
void add_device_flags(CLI::App& app, DeviceFlags& flags);      // --on, --run-binary
void add_run_flags(CLI::App& app, run::DeviceChoice& device);  // --device, --threads, --validation…
// The arguments that tell quernel-run the same.
std::vector<std::string> run_arguments(const run::DeviceChoice& device);
// What a model is compiled for when no --target is given: what the device runs, with auto both.
void set_default_target(const run::DeviceChoice& device, std::vector<std::string>& targets);

class DeviceRunner {
 public:
  // `code`: what the bundles have. Fails where the device cannot be reached, runs no such
  // code, or its quernel-run does not start or is of another version. Nothing stays on the device then.
  static Expected<std::unique_ptr<DeviceRunner>> open(const DeviceFlags& flags, CodeKinds code,
                                                      const std::string& scratch_dir);
  ~DeviceRunner();  // closes, and says on stderr what could not be removed
  DeviceRunner(const DeviceRunner&) = delete;
  DeviceRunner& operator=(const DeviceRunner&) = delete;

  Transport& transport() { return *transport_; }
  // Runs quernel-run with these arguments, which name files of the device.
  ProcessResult run(std::vector<std::string> arguments, const ProcessOptions& options);
  // Removes everything from the device; names what it could not.
  Status close();

 private:
  DeviceRunner() = default;
  Status start(const DeviceFlags& flags, const CodeKinds& code, const std::string& scratch_dir);

  std::unique_ptr<Transport> transport_;
  std::string program_;  // quernel-run on the device
  int owner_ = 0;        // the process that opened it
};

// What a bundle has code for.
Expected<CodeKinds> code_of_bundle(const std::string& bundle);
// What targets are, by their names.
Expected<CodeKinds> code_of_targets(const std::vector<std::string>& targets);
// Adds what `more` has that `code` has not.
void add_code(CodeKinds& code, const CodeKind& more);

}  // namespace quernel::tools
