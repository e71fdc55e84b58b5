// Transport: how files and commands get to where bundles run, as --on names it. This machine, an emulator of
// user programs or another command in front share this machine's files; ssh and adb copy them into a folder
// of their own on the device.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "child_process.h"
#include "schemas/kernel_abi.h"
#include "support/expected.h"

namespace quernel::tools {

// local, qemu[-ARCH][:CPU], ssh:[USER@]HOST[:PORT], adb[:SERIAL], or a command to put in front.
extern const char* const kOnHelp;

// What code is for: an architecture, and what it needs of that beyond the base (QNL_<ARCH>_*).
struct CodeKind {
  qnl_arch arch;
  uint64_t features = 0;
};
using CodeKinds = std::vector<CodeKind>;  // one for each architecture

class Transport {
 public:
  virtual ~Transport() = default;
  // Makes the folder that everything else happens in.
  virtual Status open() = 0;
  // The architecture of the device, where it says; an emulator's is the one that it was asked for.
  virtual std::optional<qnl_arch> arch() const = 0;
  // True where files are copied, so that a program must not need libraries of this machine.
  virtual bool is_remote() const = 0;
  // Where the file `name` of the device's folder is, or will be; a name may hold one '/'.
  virtual std::string place(const std::string& name) const = 0;
  // Brings a file of this machine there -> its path on the device.
  virtual Expected<std::string> put(const std::string& file, const std::string& name, bool program) = 0;
  // Brings a file of the device's folder here -> its path on this machine.
  virtual Expected<std::string> get(const std::string& name) = 0;
  // Runs a command there; what hangs is killed, there, too.
  virtual ProcessResult run(const std::vector<std::string>& words, const ProcessOptions& options) = 0;
  // Removes a file or folder of the device's folder.
  virtual void remove(const std::string& name) = 0;
  // Removes the device's folder and ends what still runs in it; names what it could not remove.
  virtual Status close() = 0;
};

// `code`: what the bundles have; by it a plain "qemu" knows its program, and an emulator whose processor is
// not named gets one that runs it. `scratch_dir`: for files that are fetched.
Expected<std::unique_ptr<Transport>> make_transport(const std::string& on, const CodeKinds& code,
                                                    const std::string& scratch_dir);

// Those of the implementations.
std::unique_ptr<Transport> host_transport(std::vector<std::string> prefix, std::optional<qnl_arch> arch,
                                          const std::string& scratch_dir);
std::unique_ptr<Transport> ssh_transport(const std::string& host, const std::string& port,
                                         const std::string& scratch_dir);
std::unique_ptr<Transport> adb_transport(const std::string& serial, const std::string& scratch_dir);

}  // namespace quernel::tools
