// Tracks the bodies of loops and branches while a plan is checked: which bodies an item is in, and whether
// they are nested. Included by bundle_reader_verify.cpp only.
#pragma once

#include <stdint.h>

#include "core/bundle_reader.h"
#include "schemas/bundle_tables.h"

namespace quernel::runtime {

inline bool runs_others(schema::ItemKind kind) {
  return kind == schema::ItemKind::loop || kind == schema::ItemKind::branch;
}

// The bodies that an item is in, from the plan itself to the innermost. A body's id is 2 * its item + 1, for
// an else part 2 * its item + 2; the plan's id is 0.
class OpenBodies {
 public:
  explicit OpenBodies(uint32_t items) { levels_[0] = {0, items, items, -1}; }

  // Closes the bodies that end before `item`.
  void advance_to(uint32_t item) {
    while (depth_ > 0 && levels_[depth_].end == item) {
      Level& level = levels_[depth_];
      if (level.end == level.whole_end) {
        depth_ -= 1;
      } else {
        level.id += 1;
        level.end = level.whole_end;
      }
    }
  }

  // Returns false if the body is not nested in the innermost one or is nested too deeply.
  bool enter(const schema::Item& item, uint32_t index) {
    bool branch = item.kind() == schema::ItemKind::branch;
    uint32_t first_end = branch ? item.else_begin() : item.end();
    if (first_end <= index || first_end > item.end() || item.end() > levels_[depth_].end) return false;
    if (depth_ == kMaxNesting) return false;
    levels_[++depth_] = {2 * index + 1, first_end, item.end(), branch ? -1 : item.symbol()};
    return true;
  }

  bool counts_with(int32_t symbol) const {
    for (uint32_t l = 1; l <= depth_; ++l)
      if (levels_[l].symbol == symbol) return true;
    return false;
  }
  bool contains(uint32_t body) const {
    for (uint32_t l = 0; l <= depth_; ++l)
      if (levels_[l].id == body) return true;
    return false;
  }
  uint32_t innermost() const { return levels_[depth_].id; }

 private:
  struct Level {
    uint32_t id, end, whole_end;
    int32_t symbol;
  };
  Level levels_[kMaxNesting + 1];
  uint32_t depth_ = 0;
};

}  // namespace quernel::runtime
