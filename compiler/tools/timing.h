// What the commands that run bundles to time them share. It looks behind the C interface for what kernels
// are.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "quernel/runtime.hpp"
#include "support/expected.h"

namespace quernel::tools {

double median(std::vector<double> values);
Diagnostic runtime_error(const qnl_error& error);
bool is_bundle(const std::string& path);

// An entry point, the one of that name or the first, with seeded values in its inputs; its symbols are as
// given ("n=8"), else as small as they may be.
struct ReadyBundle {
  Bundle bundle;
  Session session;
  uint32_t entry = 0;
  qnl_requirements memory = {};
};
// `device` must outlive the result.
Expected<std::unique_ptr<ReadyBundle>> make_ready(const std::string& path, const Device& device,
                                                  const std::string& entry,
                                                  const std::vector<std::string>& symbols);
// The number of the entry point.
Expected<uint32_t> find_entry(const Bundle& bundle, const std::string& name);

// What an item is, beside what qnl_item_info says; texts are empty where the bundle does not have them.
struct ItemText {
  std::string kernel_class, key, choice;
  uint64_t weight_bytes = 0;  // of constants that it reads
};
// Of all items of the entry point.
std::vector<ItemText> item_texts(const ReadyBundle& ready);

// Items of an entry point of a bundle's first variant, which need not run here.
struct ItemAbout {
  std::string node;
  uint64_t workgroups = 0;
  ItemText text;
};
std::vector<ItemAbout> items_of(const Bundle& bundle, uint32_t entry);

// Seconds of every item in one run.
Expected<std::vector<double>> time_items(Session& session);

}  // namespace quernel::tools
