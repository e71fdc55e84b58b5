// Files of choices about the loops of a graph's kernels.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <vector>

#include "pipeline/run_passes.h"
#include "schedule/plans/plan_loops.h"

namespace quernel::testing {

// A file of choices; empty until it is written.
class ChoiceFile {
 public:
  ChoiceFile() {
    if (int file = mkstemp(path_); file >= 0) close(file);
  }
  ~ChoiceFile() { unlink(path_); }
  ChoiceFile(const ChoiceFile&) = delete;
  void write(const std::string& text) const { std::ofstream(path_) << text; }
  const char* path() const { return path_; }

 private:
  char path_[64] = "/tmp/quernel-choices-XXXXXX";
};

// Lines of such a file, in turns: each gives every kernel another one of its legal choices, with little work, odd
// work or the usual work per workgroup. As many turns as the kernel with the most choices has; at least three.
inline Expected<std::vector<std::string>> loop_choices(const Graph& graph, const CompileOptions& options) {
  QUERNEL_TRY(Target target, find_target(options.targets[0]));
  QUERNEL_TRY(Graph ready, run_graph_passes(graph, target, options));
  schedule::Packings packings;
  QUERNEL_TRY(schedule::Schedule plan, make_schedule(std::move(ready), target, packings, options));
  std::vector<schedule::LoopOptions> kernels;
  size_t turns = 3;
  for (const schedule::Item& item : plan.items) {
    if (item.group < 0) continue;
    std::optional<schedule::LoopOptions> found =
        schedule::loop_options({plan, item, plan.groups[item.group], target});
    bool known = !found || std::any_of(kernels.begin(), kernels.end(),
                                       [&](const schedule::LoopOptions& k) { return k.key == found->key; });
    if (known) continue;
    turns = std::max(turns, found->legal.size());
    kernels.push_back(std::move(*found));
  }
  const int64_t little = target.lanes_are_invocations() ? target.lanes(4) : 1, odd = little * 37;
  std::vector<std::string> files(turns);
  for (size_t turn = 0; turn < turns; ++turn)
    for (size_t k = 0; k < kernels.size(); ++k) {
      schedule::LoopChoice choice = kernels[k].legal[turn % kernels[k].legal.size()];
      if (turn % 3 != 0) choice.group_work = (turn + k) % 2 == 0 ? little : odd;
      if (choice.windows >= 0 && turn % 2 == 1) choice.rows = kernels[k].most_rows;
      files[turn] += target.name + " " + kernels[k].key + " = " + to_string(choice) + "\n";
    }
  return files;
}

// Runs `check` with the options of each of these files, and its text.
template <class Check>
void for_each_choice_file(const Graph& graph, CompileOptions options, const Check& check) {
  Expected<std::vector<std::string>> files = loop_choices(graph, options);
  ASSERT_TRUE(files) << to_string(files.errors());
  ChoiceFile file;
  options.tuning_file = file.path();
  for (const std::string& text : *files) {
    file.write(text);
    check(options, text);
  }
}

}  // namespace quernel::testing
