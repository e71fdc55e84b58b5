// Devices that are reached through a program which runs shell commands there: ssh and adb. What they need is
// a POSIX shell with mktemp, mkdir, cat, kill, rm and uname.
#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "transport.h"

namespace quernel::tools {
namespace {

constexpr double kCommandSeconds = 60;  // a command of ours that does not run a bundle
constexpr double kCopySeconds = 600;

std::string shell_word(const std::string& word) {
  std::string out = "'";
  for (char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

qnl_arch arch_of_machine(const std::string& machine) {
  if (machine == "x86_64" || machine == "amd64") return QNL_ARCH_X86_64;
  if (machine == "aarch64" || machine == "arm64") return QNL_ARCH_AARCH64;
  if (machine == "riscv64") return QNL_ARCH_RISCV64;
  return machine.starts_with("arm") ? QNL_ARCH_ARM : QNL_ARCH_NONE;
}

class ShellTransport : public Transport {
 public:
  ShellTransport(std::string name, std::string parent, const std::string& scratch_dir)
      : name_(std::move(name)), parent_(std::move(parent)), scratch_dir_(scratch_dir) {}

  Status open() override {
    std::string answer = here("device.answer");
    ProcessResult done = shell(fmt::format("d=$(mktemp -d {}/quernel-XXXXXX) && echo \"folder $d\" && "
                                           "echo \"machine $(uname -m)\"",
                                           parent_),
                               "", answer, kCommandSeconds, false);
    std::ifstream lines(answer);
    std::string machine;
    for (std::string line; std::getline(lines, line);) {
      while (!line.empty() && line.back() == '\r') line.pop_back();
      if (line.starts_with("folder /")) folder_ = line.substr(7);
      if (line.starts_with("machine ")) machine = line.substr(8);
    }
    if (!done.succeeded() || folder_.empty())
      return invalid_input(fmt::format("--on {}: the device cannot be reached, or has no place for files: {}",
                                       name_, done.failure()));
    arch_ = arch_of_machine(machine);
    if (arch_ != QNL_ARCH_NONE) return {};
    Status left = close();
    return invalid_input(fmt::format(
        "--on {}: expected an x86_64, aarch64, arm or riscv64 device, found '{}'", name_, machine));
  }
  std::optional<qnl_arch> arch() const override { return arch_; }
  bool is_remote() const override { return true; }
  std::string place(const std::string& name) const override { return folder_ + "/" + name; }

  Expected<std::string> put(const std::string& file, const std::string& name, bool program) override {
    std::string path = place(name), folder = path.substr(0, path.rfind('/'));
    ProcessResult done = push(file, folder, path);
    if (done.succeeded() && program)
      done = shell("chmod 755 " + shell_word(path), "", "", kCommandSeconds, false);
    if (done.succeeded()) return path;
    return invalid_input(
        fmt::format("--on {}: {} cannot be written on the device: {}", name_, path, done.failure()));
  }
  Expected<std::string> get(const std::string& name) override {
    std::string file = here(name);
    std::error_code error;
    std::filesystem::create_directories(std::filesystem::path(file).parent_path(), error);
    ProcessResult done = pull(place(name), file);
    if (done.succeeded()) return file;
    return invalid_input(
        fmt::format("--on {}: {} cannot be read from the device: {}", name_, place(name), done.failure()));
  }

  // The process of the device is known by a file with its number: ending the program here does not end it
  // there.
  ProcessResult run(const std::vector<std::string>& words, const ProcessOptions& options) override {
    std::string command, number = shell_word(place(fmt::format("{}.pid", getpid())));
    for (const std::string& word : words) command += shell_word(word) + " ";
    ProcessResult result =
        shell(fmt::format("cd {} || exit; {}</dev/null & p=$!; echo $p >{}; wait $p; s=$?; rm -f {}; exit $s",
                          shell_word(folder_), command, number, number),
              "", options.output, options.timeout_seconds, options.cleans_up, options.errors);
    if (result.timed_out || result.interrupted)
      (void)shell(fmt::format("kill -9 $(cat {}); rm -f {}", number, number), "", "", kCommandSeconds, true);
    if (result.exit_code > 128 && result.exit_code < 128 + 65) {  // as shells tell signals
      result.signal = result.exit_code - 128;
      result.command = words[0];
    }
    return result;
  }
  void remove(const std::string& name) override {
    (void)shell("rm -rf " + shell_word(place(name)), "", "", kCommandSeconds, true);
  }
  Status close() override {
    if (folder_.empty()) return {};
    std::string folder = shell_word(std::exchange(folder_, ""));
    ProcessResult done =
        shell(fmt::format("for f in {0}/*.pid; do [ -f \"$f\" ] && kill -9 $(cat \"$f\"); done; rm -rf {0}",
                          folder),
              "", "", kCommandSeconds, true);
    if (done.succeeded()) return {};
    return invalid_input(
        fmt::format("--on {}: {} could not be removed from the device: {}", name_, folder, done.failure()));
  }

 protected:
  // The command of this machine that has the device's shell run a script.
  virtual std::vector<std::string> shell_words(const std::string& script) const = 0;
  virtual ProcessResult push(const std::string& file, const std::string& folder, const std::string& path) = 0;
  virtual ProcessResult pull(const std::string& path, const std::string& file) = 0;

  ProcessResult shell(const std::string& script, const std::string& input, const std::string& output,
                      double timeout, bool cleans_up, const std::string& errors = "") {
    ProcessOptions options;
    options.input = input;
    options.output = output;
    options.errors = errors.empty() ? here(fmt::format("device-{}.log", getpid())) : errors;
    options.timeout_seconds = timeout;
    options.cleans_up = cleans_up;
    return run_process(shell_words(script), options);
  }
  std::string here(const std::string& name) const { return scratch_dir_ + "/" + name; }

  std::string name_;  // as --on has it

 private:
  std::string parent_;  // of the folder, as the device's shell reads it
  std::string folder_, scratch_dir_;
  qnl_arch arch_ = QNL_ARCH_NONE;
};

// Files go through the shell, too: devices without an SFTP server are many.
class SshTransport : public ShellTransport {
 public:
  SshTransport(const std::string& host, const std::string& port, const std::string& scratch_dir)
      : ShellTransport("ssh:" + host + (port.empty() ? "" : ":" + port), "\"${TMPDIR:-/tmp}\"", scratch_dir),
        host_(host),
        port_(port) {}

 protected:
  std::vector<std::string> shell_words(const std::string& script) const override {
    std::vector<std::string> words = {
        "ssh", "-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=15", "-o", "ServerAliveInterval=15"};
    if (!port_.empty()) words.insert(words.end(), {"-p", port_});
    words.insert(words.end(), {"--", host_, "exec sh -c " + shell_word(script)});
    return words;
  }
  ProcessResult push(const std::string& file, const std::string& folder, const std::string& path) override {
    return shell(fmt::format("mkdir -p {} && cat >{}", shell_word(folder), shell_word(path)), file, "",
                 kCopySeconds, false);
  }
  ProcessResult pull(const std::string& path, const std::string& file) override {
    return shell("cat " + shell_word(path), "", file, kCopySeconds, false);
  }

 private:
  std::string host_, port_;
};

class AdbTransport : public ShellTransport {
 public:
  AdbTransport(const std::string& serial, const std::string& scratch_dir)
      : ShellTransport(serial.empty() ? "adb" : "adb:" + serial, "/data/local/tmp", scratch_dir),
        serial_(serial) {}

 protected:
  std::vector<std::string> shell_words(const std::string& script) const override {
    return words({"shell", script});
  }
  ProcessResult push(const std::string& file, const std::string& folder, const std::string& path) override {
    ProcessResult made = shell("mkdir -p " + shell_word(folder), "", "", kCommandSeconds, false);
    return made.succeeded() ? copy({"push", file, path}) : made;
  }
  ProcessResult pull(const std::string& path, const std::string& file) override {
    return copy({"pull", path, file});
  }

 private:
  std::vector<std::string> words(const std::vector<std::string>& arguments) const {
    std::vector<std::string> all = {"adb"};
    if (!serial_.empty()) all.insert(all.end(), {"-s", serial_});
    all.insert(all.end(), arguments.begin(), arguments.end());
    return all;
  }
  // adb says what went wrong on either stream.
  ProcessResult copy(const std::vector<std::string>& arguments) {
    ProcessOptions options;
    options.output = options.errors = here(fmt::format("device-{}.log", getpid()));
    options.timeout_seconds = kCopySeconds;
    return run_process(words(arguments), options);
  }
  std::string serial_;
};

}  // namespace

std::unique_ptr<Transport> ssh_transport(const std::string& host, const std::string& port,
                                         const std::string& scratch_dir) {
  return std::make_unique<SshTransport>(host, port, scratch_dir);
}

std::unique_ptr<Transport> adb_transport(const std::string& serial, const std::string& scratch_dir) {
  return std::make_unique<AdbTransport>(serial, scratch_dir);
}

}  // namespace quernel::tools
