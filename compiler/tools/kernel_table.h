// The table of kernels that `bench` and `test` print with --per-kernel.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace quernel::tools {

struct KernelColumn {
  std::string title;
  int width = 0;  // negative: to the left
};

struct KernelRow {
  double cost = 0;        // of all calls
  std::string cost_text;  // for people
  uint64_t calls = 0;
  std::vector<std::string> figures;  // of the table's columns
  std::string kernel_class, choice, name;
  std::string node;  // the first one
};

struct KernelTable {
  std::string cost;  // what kernels take: "time"
  std::vector<KernelColumn> columns;
  std::vector<KernelRow> rows;
};

// Rows in their order, with each row's share of what all take.
void print_kernel_table(const KernelTable& table);

}  // namespace quernel::tools
