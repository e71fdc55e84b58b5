#include "transport.h"

#include <fmt/format.h>

#include <filesystem>
#include <sstream>

#include "feature_names.h"
#include "quernel/runtime.hpp"

namespace quernel::tools {

const char* const kOnHelp =
    "local, qemu[-ARCH][:CPU], ssh:[USER@]HOST[:PORT], adb[:SERIAL], or a command that starts quernel-run";

namespace {

namespace fs = std::filesystem;

struct Emulator {
  qnl_arch arch;
  const char* name;  // qemu-NAME
};
constexpr Emulator kEmulators[] = {{QNL_ARCH_X86_64, "x86_64"},
                                   {QNL_ARCH_AARCH64, "aarch64"},
                                   {QNL_ARCH_ARM, "arm"},
                                   {QNL_ARCH_RISCV64, "riscv64"}};

Diagnostic not_understood(const std::string& on, const std::string& why) {
  return invalid_input(fmt::format("--on: expected {}, found '{}'{}", kOnHelp, on, why));
}

std::string arch_names(const CodeKinds& code) {
  std::string names;
  for (const CodeKind& kind : code) names += (names.empty() ? "" : ", ") + std::string(arch_name(kind.arch));
  return names;
}

// The emulator's processor that has what the code needs, as -cpu takes it; empty: its default one has.
std::string cpu_for(qnl_arch arch, const CodeKinds& code) {
  uint64_t features = 0;
  for (const CodeKind& kind : code)
    if (kind.arch == arch) features |= kind.features;
  if (arch == QNL_ARCH_AARCH64 && (features & (QNL_AARCH64_SVE256 | QNL_AARCH64_SVE512)))
    return fmt::format("max,sve-default-vector-length={}", features & QNL_AARCH64_SVE512 ? 64 : 32);
  if (arch != QNL_ARCH_RISCV64) return "max";
  if (!(features & QNL_RISCV_V)) return "";
  return fmt::format("rv64,v=true,vext_spec=v1.0,vlen={}", features & QNL_RISCV_VLEN512   ? 512
                                                           : features & QNL_RISCV_VLEN256 ? 256
                                                                                          : 128);
}

// "qemu", "qemu:max", "qemu-aarch64:cortex-a53".
Expected<std::unique_ptr<Transport>> qemu_transport(const std::string& on, const std::string& arch_text,
                                                    std::string cpu, const CodeKinds& code,
                                                    const std::string& scratch_dir) {
  if (arch_text.empty() && code.size() != 1)
    return invalid_input(
        fmt::format("--on {}: expected code for one architecture, found {}", on, arch_names(code)), {},
        "name the emulator's, as in qemu-aarch64");
  for (const Emulator& emulator : kEmulators) {
    if (arch_text.empty() ? emulator.arch != code[0].arch : arch_text != emulator.name) continue;
    std::string program = fmt::format("qemu-{}-static", emulator.name);
    if (!program_exists(program)) program = fmt::format("qemu-{}", emulator.name);
    if (!program_exists(program))
      return invalid_input(
          fmt::format("--on {}: found neither {}-static nor {} in PATH", on, program, program), {},
          "Debian's package is qemu-user-static");
    std::vector<std::string> words = {program};
    if (cpu.empty()) cpu = cpu_for(emulator.arch, code);
    if (!cpu.empty()) words.insert(words.end(), {"-cpu", cpu});
    return host_transport(std::move(words), emulator.arch, scratch_dir);
  }
  return invalid_input(fmt::format("--on {}: there is no emulator for {} programs of Linux", on,
                                   arch_text.empty() ? arch_names(code) : arch_text));
}

// "user@host:2222", "[::1]:22".
Expected<std::unique_ptr<Transport>> parse_ssh(const std::string& on, const std::string& place,
                                               const std::string& scratch_dir) {
  size_t bracket = place.rfind(']'), colon = place.rfind(':');
  bool has_port = colon != std::string::npos && (bracket == std::string::npos || colon > bracket);
  std::string host = place.substr(0, has_port ? colon : place.size());
  std::string port = has_port ? place.substr(colon + 1) : "";
  if (size_t open = host.find('['); open != std::string::npos && host.back() == ']')
    host = host.substr(0, open) + host.substr(open + 1, host.size() - open - 2);
  if (host.empty() || host[0] == '-' || (has_port && port.empty()) ||
      port.find_first_not_of("0123456789") != std::string::npos)
    return not_understood(on, "");
  return ssh_transport(host, port, scratch_dir);
}

// Shares this machine's files.
class HostTransport : public Transport {
 public:
  HostTransport(std::vector<std::string> prefix, std::optional<qnl_arch> arch, const std::string& scratch_dir)
      : prefix_(std::move(prefix)), arch_(arch), folder_(scratch_dir + "/device") {}

  Status open() override {
    std::error_code error;
    fs::create_directory(folder_, error);
    if (error) return invalid_input(error.message(), {.file = folder_});
    return {};
  }
  std::optional<qnl_arch> arch() const override { return arch_; }
  bool is_remote() const override { return false; }
  std::string place(const std::string& name) const override {
    std::error_code error;
    fs::create_directories(fs::path(folder_ + "/" + name).parent_path(), error);
    return folder_ + "/" + name;
  }
  Expected<std::string> put(const std::string& file, const std::string&, bool) override {
    std::error_code error;
    return fs::absolute(file, error).string();
  }
  Expected<std::string> get(const std::string& name) override { return place(name); }
  ProcessResult run(const std::vector<std::string>& words, const ProcessOptions& options) override {
    std::vector<std::string> all = prefix_;
    all.insert(all.end(), words.begin(), words.end());
    return run_process(all, options);
  }
  void remove(const std::string& name) override {
    std::error_code error;
    fs::remove_all(folder_ + "/" + name, error);
  }
  Status close() override {
    std::error_code error;
    fs::remove_all(folder_, error);
    return {};
  }

 private:
  std::vector<std::string> prefix_;
  std::optional<qnl_arch> arch_;
  std::string folder_;
};

qnl_arch host_arch() {
  Device device;
  qnl_device_info info = {};
  if (device.open_cpu() == QNL_OK) qnl_device_get_info(device.get(), &info);
  return info.arch;
}

}  // namespace

std::unique_ptr<Transport> host_transport(std::vector<std::string> prefix, std::optional<qnl_arch> arch,
                                          const std::string& scratch_dir) {
  return std::make_unique<HostTransport>(std::move(prefix), arch, scratch_dir);
}

Expected<std::unique_ptr<Transport>> make_transport(const std::string& on, const CodeKinds& code,
                                                    const std::string& scratch_dir) {
  if (on == "local") return host_transport({}, host_arch(), scratch_dir);
  if (on == "adb") return adb_transport("", scratch_dir);
  size_t colon = std::min(on.find(':'), on.size());
  std::string kind = on.substr(0, colon), rest = colon < on.size() ? on.substr(colon + 1) : "";
  bool has_rest = colon < on.size();
  if (kind == "ssh" && has_rest) return parse_ssh(on, rest, scratch_dir);
  if (kind == "adb" && has_rest && !rest.empty()) return adb_transport(rest, scratch_dir);
  if (kind == "qemu") return qemu_transport(on, "", rest, code, scratch_dir);
  for (const Emulator& emulator : kEmulators)
    if (kind == std::string("qemu-") + emulator.name)
      return qemu_transport(on, emulator.name, rest, code, scratch_dir);
  std::vector<std::string> words;
  std::istringstream stream(on);
  for (std::string word; stream >> word;) words.push_back(word);
  if (words.empty()) return not_understood(on, "");
  if (!program_exists(words[0])) return not_understood(on, "; there is no program '" + words[0] + "'");
  return host_transport(std::move(words), std::nullopt, scratch_dir);
}

}  // namespace quernel::tools
