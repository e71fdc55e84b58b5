// Which elements a kernel accesses at one point of its iteration space: walks from a value through the nodes
// that the kernel computes down to stored values, as lowering will, and notes element offsets instead of
// generating code. Plans choose loops by what it finds.
#pragma once

#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "schedule/schedule.h"

namespace quernel::schedule {

class AccessWalk {
 public:
  // `extents`: of the axes that indices are expressions over.
  AccessWalk(const Schedule& schedule, const Group& group, Shape extents);

  // Notes what the value of `v` at `indices` needs. What was noted for the same indices is not noted again.
  void read(ValueId v, const std::vector<IndexExpr>& indices);
  // Notes the store of an element.
  void write(ValueId v, const std::vector<IndexExpr>& indices) { access(v, offset_of(v, indices)); }
  // Notes the load or store of an element, or of a byte of several.
  void access(ValueId v, IndexExpr offset) {
    accesses.push_back(std::move(offset));
    values.push_back(v);
  }
  // Returns the element offset of `indices` in the storage of `v`, relative to its binding.
  IndexExpr offset_of(ValueId v, const std::vector<IndexExpr>& indices) const;

  // Values that the kernel has computed before and keeps: reading one is no access, but noted.
  std::set<ValueId> locals;
  std::vector<ValueId> locals_read;

  const Shape& extents() const { return extents_; }

  std::vector<IndexExpr> accesses;     // element offsets of all loads and stores
  std::vector<ValueId> values;         // per access
  std::vector<ElementLoad> loads;      // those of whole bytes
  std::vector<ElementLoad> unguarded;  // those of them that no guard prevents
  std::vector<IndexExpr> guards;       // expressions whose range decides whether memory is read
  std::vector<IndexGuard> unpadded;    // ranges of positions that padding neither mirrors nor clamps

 private:
  struct Known {
    std::vector<IndexExpr> indices;
    int predicate;
  };

  void read_node(const Node& node, const std::vector<IndexExpr>& indices);
  void read_mapped(const Node& node, const std::vector<IndexExpr>& indices);
  IndexExpr gathered_index(ValueId indices, const std::vector<IndexExpr>& at, const Dim& extent);
  IndexExpr new_axis(Dim extent);

  const Schedule& s_;
  const Graph& g_;
  Shape extents_;               // of the axes, then of those whose positions are computed
  std::vector<char> computed_;  // per value: whether this kernel computes it
  std::unordered_map<ValueId, std::vector<Known>> known_;
  static constexpr int kNoGuard = 0;
  int predicate_ = kNoGuard, predicates_ = kNoGuard;  // the guards around, by number
};

}  // namespace quernel::schedule
