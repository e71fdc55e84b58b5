#include "frontends/tflite/custom_op.h"

#include <utility>

#include "frontends/tflite/flexbuffer.h"

namespace quernel::tflite_import {

Status import_custom_op(NodeImport& n, const CustomOpDescription& op) {
  AttributeValues values;
  if (std::vector<uint8_t> bytes = n.custom_options(); !bytes.empty()) {
    std::optional<AttributeValues> map = read_flexbuffer_map(bytes);
    if (map)
      values = *std::move(map);
    else
      values.emplace("custom_options", std::vector<int64_t>(bytes.begin(), bytes.end()));
  }
  QUERNEL_TRY(std::vector<ValueId> results,
              add_custom_op(n, op, custom_attributes_text(values), n.output_count()));
  return n.set_outputs(std::move(results));
}

}  // namespace quernel::tflite_import
