#include "kit.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "command.h"
#include "feature_names.h"
#include "find_run_binary.h"
#include "kit_script.h"
#include "print.h"
#include "schemas/bundle_hash.h"

namespace quernel::tools {
namespace {

namespace fs = std::filesystem;

constexpr size_t kChunk = 1 << 20;
constexpr int kCompression = 6;  // gzip's own

std::string hex(uint64_t hash) { return fmt::format("{:016x}", hash); }

std::string id_of(const Json& contents) {
  std::string text = contents.dump();
  return hex(qnl_hash(text.data(), text.size()));
}

// Calls `take` with the file's bytes, piece by piece.
template <class Take>
Status read_pieces(const std::string& path, const Take& take) {
  std::ifstream file(path, std::ios::binary);
  std::vector<char> buffer(kChunk);
  while (file.read(buffer.data(), kChunk) || file.gcount() > 0)
    QUERNEL_CHECK(take(buffer.data(), static_cast<size_t>(file.gcount())));
  if (!file.eof()) return invalid_input("--kit: " + std::string(std::strerror(errno)), {.file = path});
  return {};
}

Expected<uint64_t> hash_of(const std::string& path) {
  qnl_hash_state state;
  qnl_hash_begin(&state);
  QUERNEL_CHECK(read_pieces(path, [&](const char* data, size_t bytes) {
    qnl_hash_add(&state, data, bytes);
    return Status();
  }));
  return qnl_hash_end(&state);
}

Status compress(const std::string& from, const std::string& to) {
  gzFile file = gzopen(to.c_str(), fmt::format("wb{}", kCompression).c_str());
  if (file == nullptr) return invalid_input("cannot be written", {.file = to});
  Status read = read_pieces(from, [&](const char* data, size_t bytes) {
    return gzwrite(file, data, static_cast<unsigned>(bytes)) == static_cast<int>(bytes)
               ? Status()
               : Status(invalid_input("cannot be written", {.file = to}));
  });
  if (gzclose(file) != Z_OK && read) return invalid_input("cannot be written", {.file = to});
  return read;
}

Status move_file(const std::string& from, const std::string& to) {
  std::error_code error;
  fs::rename(from, to, error);
  if (!error) return {};
  fs::copy_file(from, to, error);  // another file system
  if (error) return invalid_input(error.message(), {.file = to});
  return {};
}

// The one processor that the code is for; of code for GPUs only, that of this machine.
Expected<qnl_arch> processor_of(const KitOptions& options) {
  qnl_arch found = QNL_ARCH_NONE;
  for (const CodeKind& kind : options.code) {
    if (kind.arch == QNL_ARCH_SPIRV) continue;
    if (found != QNL_ARCH_NONE && found != kind.arch)
      return invalid_input(fmt::format("--kit: expected code for one architecture, found {} and {}",
                                       arch_name(found), arch_name(kind.arch)),
                           {}, "make a kit for each");
    found = kind.arch;
  }
  if (found != QNL_ARCH_NONE) return found;
  if (std::optional<ProgramKind> kind = read_program_kind(options.run_binary)) return kind->arch;
  return QNL_ARCH_X86_64;
}

}  // namespace

Expected<KitBuilder> KitBuilder::open(KitOptions options) {
  KitBuilder kit;
  kit.options_ = std::move(options);
  QUERNEL_TRY(kit.arch_, processor_of(kit.options_));
  RunnerKind wanted = kit.options_.device.device == "cpu" ? RunnerKind::kStatic : RunnerKind::kVulkan;
  QUERNEL_TRY(std::string runner, find_run_binary(kit.options_.run_binary, kit.arch_, wanted));
  std::error_code error;
  const std::string& folder = kit.options_.folder;
  if (fs::exists(folder, error) && !(fs::is_directory(folder, error) && fs::is_empty(folder, error)))
    return invalid_input("--kit: expected a new folder or an empty one", {.file = folder},
                         "remove it, or name another");
  fs::create_directories(folder + "/cases", error);
  if (error) return invalid_input("--kit: " + error.message(), {.file = folder});
  QUERNEL_CHECK(kit.take_runner(runner));
  return kit;
}

Status KitBuilder::take_runner(const std::string& runner) {
  const std::string path = options_.folder + "/quernel-run";
  std::error_code error;
  fs::copy_file(runner, path, error);
  if (error) return invalid_input("--kit: " + error.message(), {.file = path});
  fs::permissions(path,
                  fs::perms::owner_all | fs::perms::group_read | fs::perms::group_exec |
                      fs::perms::others_read | fs::perms::others_exec,
                  error);
  bytes_ += fs::file_size(path, error);
  if (std::optional<ProgramKind> kind = read_program_kind(runner); kind && !kind->is_static)
    print_note("note: {} needs the C library of its machine, of the version of this one's or a newer\n",
               runner);
  return {};
}

Expected<bool> KitBuilder::add(const std::string& name, const std::vector<std::string>& bundles,
                               const Json& result) {
  Json entry = Json::Object{{"name", name}};
  auto without_bundles = [&](const std::string& verdict, const std::string& reason) {
    entry.set("verdict", verdict);
    entry.set("reason", reason);
    print("{} {}: {}\n", verdict, name, reason);
    cases_.push_back(std::move(entry));
    return false;
  };
  if (bundles.empty()) return without_bundles(result.at("verdict").text(), result.at("reason").text());

  std::error_code error;
  uint64_t bytes = 0;
  Json::Array files;
  std::vector<std::string> written;
  for (size_t b = 0; b < bundles.size(); ++b) {
    std::string file = fmt::format("{}-{}.qnl", cases_.size(), b);
    std::string path = fmt::format("{}/cases/{}", options_.folder, file);
    QUERNEL_TRY(uint64_t hash, hash_of(bundles[b]));
    files.push_back(Json::Object{{"file", file}, {"hash", hex(hash)}});
    if (options_.random_weights) {
      path += ".gz";
      QUERNEL_CHECK(compress(bundles[b], path));
    } else {
      QUERNEL_CHECK(move_file(bundles[b], path));
    }
    bytes += fs::file_size(path, error);
    written.push_back(path);
  }
  if (options_.most_bytes > 0 && bytes_ + bytes > options_.most_bytes) {
    for (const std::string& path : written) fs::remove(path, error);
    return without_bundles(
        "UNSUPPORTED",
        fmt::format("left out of the kit, which has {} of at most {}: it takes {}{}", format_bytes(bytes_),
                    format_bytes(options_.most_bytes), format_bytes(bytes),
                    options_.random_weights ? "" : "; --random-weights makes it smaller"));
  }
  bytes_ += bytes;
  for (const Json& file : files) lines_ += file.at("file").text() + " " + printable(name) + "\n";
  print("KIT {}: {}, {}\n", name, result.at("reason").text(), format_bytes(bytes));
  entry.set("bundles", std::move(files));
  cases_.push_back(std::move(entry));
  return true;
}

Status KitBuilder::finish() {
  const run::DeviceChoice& device = options_.device;
  Json contents = Json::Object{{"quernel", QUERNEL_VERSION},
                               {"architecture", arch_name(arch_)},
                               {"targets", Json::Array(options_.targets.begin(), options_.targets.end())},
                               {"device", device.device},
                               {"threads", static_cast<int>(device.threads)},
                               {"repeat", options_.repeat}};
  if (options_.random_weights) contents.set("random_weights", std::to_string(*options_.random_weights));
  size_t count = cases_.size();
  contents.set("cases", std::move(cases_));
  std::string id = id_of(contents);
  Json kit = Json::Object{{"quernel_kit", kKitVersion}, {"id", id}, {"contents", std::move(contents)}};

  std::vector<std::string> arguments = run_arguments(device);
  arguments.insert(arguments.end(),
                   {"--test", "--verify-weights", "--repeat", std::to_string(options_.repeat), "--timeout",
                    fmt::format("{:g}", options_.timeout_seconds)});
  std::string script = options_.folder + "/run.sh";
  QUERNEL_CHECK(write_text_file(options_.folder + "/kit.json", kit.dump()));
  QUERNEL_CHECK(write_text_file(options_.folder + "/cases.txt", lines_));
  QUERNEL_CHECK(write_text_file(script, kit_script(id, std::string(arch_name(arch_)), arguments)));
  std::error_code error;
  fs::permissions(script, fs::perms::owner_exec | fs::perms::group_exec | fs::perms::others_exec,
                  fs::perm_options::add, error);
  auto packed = static_cast<size_t>(std::count(lines_.begin(), lines_.end(), '\n'));
  print(
      "{}: kit {} of {} case{}, {} bundle{}, {}; there: ./run.sh; back here: quernel test --results "
      "results.json --kit {}\n",
      options_.folder, id, count, count == 1 ? "" : "s", packed, packed == 1 ? "" : "s", format_bytes(bytes_),
      options_.folder);
  return {};
}

Expected<Kit> read_kit(const Json& document, const std::string& file) {
  Location place{.file = file};
  if (document.find("quernel_kit") == nullptr) return invalid_input("expected a kit of quernel test", place);
  if (double version = document.at("quernel_kit").number().value_or(0); version != kKitVersion)
    return invalid_input(fmt::format("expected a kit of version {}, found {:g}", kKitVersion, version), place,
                         "use the quernel that made the kit");
  Kit kit{document.at("id").text(), document.at("contents")};
  if (id_of(kit.contents) != kit.id)
    return invalid_input("the kit's contents are not those that its id says: the file is damaged", place);
  return kit;
}

}  // namespace quernel::tools
