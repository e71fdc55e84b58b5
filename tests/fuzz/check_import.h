// What a mutated model may do to an importer: be refused with diagnostics, or give a graph that verifies.
#pragma once

#include <cstdint>
#include <cstdio>

#include "frontends/import_options.h"
#include "graph/verify.h"
#include "support/expected.h"

namespace quernel::testing {

enum class ImportOutcome { kImported, kRefused, kWrong };

// Returns what became of a mutation. Prints what is wrong with it: an internal error, a graph that does not verify.
inline ImportOutcome check_import(uint64_t mutation, const Expected<ImportedModel>& imported) {
  auto say = [&](const char* what, const std::string& text) {
    std::printf("mutation %llu%s: %s\n", static_cast<unsigned long long>(mutation), what, text.c_str());
    return ImportOutcome::kWrong;
  };
  if (!imported) {
    for (const Diagnostic& d : imported.errors())
      if (d.kind == DiagnosticKind::kInternal) return say("", to_string(d));
    return ImportOutcome::kRefused;
  }
  if (Status status = verify(imported->graph); !status)
    return say(" does not verify", to_string(status.errors()));
  return ImportOutcome::kImported;
}

}  // namespace quernel::testing
