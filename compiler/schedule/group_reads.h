// Which groups read what others compute, and whether they do so row by row. Of use while groups are formed;
// made anew whenever they have changed.
#pragma once

#include <set>
#include <vector>

#include "schedule/schedule.h"

namespace quernel::schedule {

class GroupReads {
 public:
  static constexpr int kOutside = -1;  // the graph's outputs and run-time symbols

  // `schedule` has groups with nodes, and outlives this.
  explicit GroupReads(const Schedule& schedule);

  // The group that computes the value at the group's own indices; -1: none.
  int group_of(ValueId v) const { return group_of_[v]; }
  // The groups other than its own that read the value, also through values computed where they are read.
  const std::set<int>& readers(ValueId v) const { return readers_[v]; }
  // Whether `group` reads what groups from `first` on compute at its own row only, and each value at its own
  // column. `row_dims`: the dims of a value but its last, which is the column.
  bool own_rows_only(size_t group, size_t first, const Shape& row_dims) const;

 private:
  struct Range {
    size_t first, group;
    const Shape& row_dims;
  };
  bool operands_in_row(const Node& node, const std::vector<IndexExpr>& indices, const Shape& domain,
                       const Range& range) const;
  bool in_row(ValueId v, const std::vector<IndexExpr>& indices, const Shape& domain,
              const Range& range) const;
  bool depends_on(ValueId v, const Range& range) const;

  const Schedule& s_;
  const Graph& g_;
  std::vector<int> group_of_;
  std::vector<std::set<int>> readers_;
};

}  // namespace quernel::schedule
