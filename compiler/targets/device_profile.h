// Device profiles: what one GPU has and how fast it is, as lines "fact value" of a text file, `#` starting a
// comment. `quernel probe` writes one; a target of GPUs takes it in place of its own facts.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "targets/target.h"

namespace quernel {

// The facts of a profile that `target`, of GPUs, has, with what each means.
std::string device_profile_text(const Target& target);
// Sets the facts that the text names; `file` is where its messages point.
Status apply_device_profile(Target& target, std::string_view text, const std::string& file);
// `from`: the name of a preset, or a file.
Status read_device_profile(Target& target, const std::string& from);

// A profile of published figures: none is measured, and what nobody publishes is not in it.
struct DevicePreset {
  std::string_view name, description, text;
};
const std::vector<DevicePreset>& device_presets();

}  // namespace quernel
