// The pipeline: from a model file, or graphs, to a bundle or a program. Each stage has a file here.
#pragma once

#include <string>
#include <vector>

#include "bundle/bundle_from_schedule.h"
#include "graph/ir.h"
#include "pipeline/import_models.h"
#include "pipeline/pass_tables.h"
#include "pipeline/run_passes.h"
#include "quernel/compiler.h"
#include "schedule/tunable_kernels.h"
#include "targets/target.h"

namespace quernel {

// Imported graphs, one per entry point and named as those, to one target's schedules, kernels and image.
// options.stop_after must be empty.
Expected<bundle::CompiledVariant> compile_variant(const std::vector<Graph>& graphs, const Target& target,
                                                  const CompileOptions& options,
                                                  schedule::Choices* choices = nullptr);
// Imported graphs to a bundle file, or what options.emit says, or, with stop_after, through the passes up to
// that one for every target. Errors: states of one name that differ.
Expected<CompileReport> compile_graphs(const std::vector<Graph>& graphs, const std::string& path,
                                       const CompileOptions& options, const ModelFacts& facts = {});
// The kernels of a model that can be tuned, for the first target, of all entry points.
Expected<std::vector<schedule::TunableKernel>> tunable_kernels(const std::string& model,
                                                               const CompileOptions& options);

}  // namespace quernel
