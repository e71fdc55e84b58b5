// results.json of a kit, as its run.sh writes it.
#pragma once

#include <map>
#include <string>

#include "kit.h"

namespace quernel::tools {

struct KitResults {
  Kit kit;
  std::map<std::string, Json> records;  // what quernel-run --record wrote of each bundle, by its file
  std::string machine;                  // one line, for people
  Json machine_facts;
};

// Fails where a byte is not as it was written, or records are of bundles that the kit has not. `kit`: the
// folder of the kit that they must be of; empty: the one in whose folder the file lies, if any.
Expected<KitResults> read_kit_results(const std::string& file, const std::string& kit);

// {"verdict", "reason", "runs"} of a case of the kit, as run_test_case gives it of one that runs here.
Json result_of_kit_case(const KitResults& results, const Json& kit_case, double* seconds);

}  // namespace quernel::tools
