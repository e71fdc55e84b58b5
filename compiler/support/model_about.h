// What the file of a model says of itself, for who uses the model. Nothing of it changes what is computed.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace quernel {

struct ModelAbout {
  struct Labels {
    std::string file;  // name in the model
    std::string text;  // one label a line
    int64_t count() const;
  };
  // "name", "description", "version", "author", "license" and what else there is, with their values.
  std::vector<std::pair<std::string, std::string>> properties;
  std::vector<Labels> labels;
  std::vector<std::string> signatures;  // of TensorFlow Lite: names of entry points

  // Adds a property up to a zero byte. Values that are empty, long ones, and those beyond a number are left out, and
  // counted.
  void add(std::string name, std::string value);
  // Adds labels, or leaves them out.
  void add_labels(std::string file, std::string text);
  int64_t left_out = 0;
};

// For the user, of texts that are left out.
std::string note_of_left_out(const ModelAbout& about);

}  // namespace quernel
