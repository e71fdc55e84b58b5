// Bundles whose items are timed where they will run: in this process, or by quernel-run on a device.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "device_runner.h"
#include "quernel/runtime.hpp"
#include "support/expected.h"
#include "timing.h"

namespace quernel::tools {

// All entry points of a bundle, ready to run with seeded inputs.
class MeasuredBundle {
 public:
  std::vector<ItemAbout> items;  // in the order of their times

  virtual ~MeasuredBundle() = default;
  // Runs `count` times in a row, after a run that brings the weights near. Returns the seconds of every item, for each
  // run; from a device once, the means of all.
  virtual Expected<std::vector<std::vector<double>>> run(int count) = 0;
};

class MeasuringPlace {
 public:
  virtual ~MeasuringPlace() = default;
  // `name`: of the bundle on a device; one of the same name is replaced. `symbols`: values of free dims, as
  // make_ready takes them.
  virtual Expected<std::unique_ptr<MeasuredBundle>> open(const std::string& path, const std::string& name,
                                                         const std::vector<std::string>& symbols) = 0;
};

// Where `device` says, for code of `target`. An emulator is refused: its times are not the processor's.
Expected<std::unique_ptr<MeasuringPlace>> measuring_place(const DeviceFlags& device, int threads,
                                                          const std::string& target,
                                                          const std::string& scratch_dir);

}  // namespace quernel::tools
