#include "kernel_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "print.h"

namespace quernel::tools {
namespace {

std::string padded(const std::string& text, int width) {
  return width < 0 ? fmt::format(" {:<{}}", text, -width) : fmt::format(" {:>{}}", text, width);
}

}  // namespace

void print_kernel_table(const KernelTable& table) {
  constexpr int kCostWidth = 10;
  const int cost_width = std::max(kCostWidth, static_cast<int>(table.cost.size()));
  double total = 0;
  for (const KernelRow& row : table.rows) total += row.cost;
  std::string titles;
  for (const KernelColumn& column : table.columns) titles += padded(column.title, column.width);
  print("  {:>6}{} {:>5}{}  {:<13} {:<36} {:<13} {}\n", "share", padded(table.cost, cost_width), "calls",
        titles, "class", "choice", "kernel", "first node");
  for (const KernelRow& row : table.rows) {
    std::string figures;
    for (size_t c = 0; c < table.columns.size(); ++c)
      figures += padded(row.figures[c], table.columns[c].width);
    print("  {:>5.1f}%{} {:>5}{}  {:<13} {:<36} {:<13} {}\n", total > 0 ? 100 * row.cost / total : 0,
          padded(row.cost_text, cost_width), row.calls, figures, row.kernel_class,
          row.choice.empty() ? "-" : row.choice, row.name, row.node);
  }
}

}  // namespace quernel::tools
