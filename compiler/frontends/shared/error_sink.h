// All that is wrong with a model, gathered while it is imported. Whoever gives up on a value or a node shows
// a Reported, which only a report makes, so nothing is ever dropped in silence.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>

#include "support/diagnostic.h"

namespace quernel {

// Proof that an error has been reported.
class Reported {
 private:
  friend class ErrorSink;
  Reported() = default;
};

// Ends the import of a node whose error has been reported. Thrown and caught within this folder only.
struct NodeFailed {
  Reported why;
};

// Ends the import of a node at the builder's failure, which the builder keeps. Thrown and caught within this
// folder only.
struct BuilderFailed {};

class ErrorSink {
 public:
  Reported report(Diagnostic error);
  // Requires at least one error.
  Reported report(Diagnostics errors);
  // For a node that failed because these dims are free. All such nodes become one diagnostic. `ranged`: those
  // of which a range would do, with the options that give one.
  Reported report_free_dims(const std::set<std::string>& dims,
                            const std::map<std::string, std::string>& ranged, Diagnostic error);

  // What has been reported up to now, to tell later whether there is more, or to go back there.
  struct Mark {
    size_t errors = 0, free_dim_errors = 0;
    std::set<std::string> free_dims;
    std::map<std::string, std::string> ranged_dims;
  };
  Mark mark() const { return {errors_.size(), free_dim_errors_.size(), free_dims_, ranged_dims_}; }
  // nullopt where nothing has been reported since.
  std::optional<Reported> reported_since(const Mark& mark) const;
  std::optional<Reported> reported_any() const { return reported_since({}); }
  void forget_since(Mark mark);

  // All errors; empty when there were none. Leaves the sink empty.
  Diagnostics take();

 private:
  Diagnostics errors_, free_dim_errors_;
  std::set<std::string> free_dims_;
  std::map<std::string, std::string> ranged_dims_;
};

}  // namespace quernel
