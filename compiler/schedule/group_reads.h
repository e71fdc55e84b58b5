// Which groups read what others compute, and whether they do so row by row. Used while groups are formed;
// must be constructed again whenever groups have changed.
#pragma once

#include <set>
#include <vector>

#include "schedule/schedule.h"

namespace quernel::schedule {

class GroupReads {
 public:
  static constexpr int kOutside = -1;  // the graph's outputs and run-time symbols

  // Requires groups with nodes. `schedule` must outlive this object.
  explicit GroupReads(const Schedule& schedule);

  // Returns the group that computes the value at the group's own indices; -1: none.
  int group_of(ValueId v) const { return group_of_[v]; }
  // Returns the groups that read the value, directly or through values computed where they are read; not the
  // value's own group.
  const std::set<int>& readers(ValueId v) const { return readers_[v]; }
  // Returns whether `group` reads the values that groups from `first` on compute only at its own row, and
  // each value only at its own column. `row_dims`: the dims of a value except its last, which is the column.
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
