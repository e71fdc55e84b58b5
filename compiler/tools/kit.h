// A kit: a folder with tests of models, and the quernel-run that runs them on a machine that cannot be
// reached from here.
//
//   run.sh         runs all tests there and writes results.json
//   kit.json       {"quernel_kit": 1, "id": hash of the contents, "contents": targets, device,
//                  threads, repeat, and the cases with their bundles or why they have none}
//   cases.txt      a line per bundle: its file and the case's name
//   quernel-run
//   cases/N-M.qnl  bundle M of case N, with its test vectors; N-M.qnl.gz where it is compressed
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "device_runner.h"
#include "json.h"
#include "support/expected.h"

namespace quernel::tools {

inline constexpr int kKitVersion = 1;

struct KitOptions {
  std::string folder;                // new, or empty
  std::vector<std::string> targets;  // that models are compiled for
  run::DeviceChoice device;          // that runs them there
  std::string run_binary;            // quernel-run; empty: one is looked for
  CodeKinds code;                    // what the bundles have
  int repeat = 1;                    // runs of each test vector
  double timeout_seconds = 0;        // of a bundle
  uint64_t most_bytes = 0;           // of the kit; 0: no limit
  std::optional<uint64_t> random_weights;
};

class KitBuilder {
 public:
  // Makes the folder and puts the runner into it. Fails where the code is for two architectures, or no
  // quernel-run for it is found.
  static Expected<KitBuilder> open(KitOptions options);

  // Takes a case with its bundles, which are files of this machine that the kit takes over, or a case that
  // has none: `result` has its verdict. Prints a line that says what became of it. Returns whether the kit
  // has its bundles: not where they would exceed the limit.
  Expected<bool> add(const std::string& name, const std::vector<std::string>& bundles, const Json& result);
  // Writes the rest; run.sh last. Prints what to do with it.
  Status finish();

 private:
  Status take_runner(const std::string& runner);
  KitOptions options_;
  qnl_arch arch_ = QNL_ARCH_NONE;
  uint64_t bytes_ = 0;
  Json::Array cases_;
  std::string lines_;  // of cases.txt
};

// What kit.json holds, after its id was compared with its contents.
struct Kit {
  std::string id;
  Json contents;
};
Expected<Kit> read_kit(const Json& document, const std::string& file);

}  // namespace quernel::tools
