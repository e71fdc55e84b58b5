// Einsum: operands are contracted from left to right, two at a time.
#include <algorithm>
#include <map>

#include "frontends/onnx/operators.h"
#include "frontends/shared/contraction.h"

namespace quernel::onnx_import {
namespace {

// Labels are letters; the dims of an ellipsis are the characters from kEllipsis on, counted from its last
// dim.
constexpr int kEllipsis = 256;
using Labels = std::vector<int>;

struct Term {
  ValueId value;
  Labels labels;
};

Expected<Labels> parse_term(NodeImport& n, const std::string& text, int rank) {
  Labels labels;
  size_t dots = text.find("...");
  int letters = static_cast<int>(text.size()) - (dots == std::string::npos ? 0 : 3);
  for (size_t i = 0; i < text.size(); ++i) {
    if (i == dots) {
      for (int k = rank - letters; k-- > 0;) labels.push_back(kEllipsis + k);
      i += 2;
    } else if (std::isalpha(static_cast<unsigned char>(text[i]))) {
      labels.push_back(text[i]);
    } else {
      return n.invalid("attribute 'equation': found unexpected '" + std::string(1, text[i]) + "'");
    }
  }
  if (rank >= 0 && static_cast<int>(labels.size()) != rank)
    return n.invalid("attribute 'equation': term '" + text + "' does not fit an operand of rank " +
                     std::to_string(rank));
  return labels;
}

// Output labels first, then the reduced ones; each operand's dims of 1 broadcast.
Expected<Term> contract_terms(NodeImport& n, const Term& a, const Term& b, const Labels& keep) {
  std::map<int, Dim> extents;
  for (const Term* term : {&a, &b}) {
    Shape dims = n.shape(term->value);
    for (size_t i = 0; i < dims.size(); ++i) {
      Dim& extent = extents.try_emplace(term->labels[i], 1).first->second;
      if (!(extent == Dim(1)) && !(dims[i] == Dim(1)) && !(extent == dims[i])) {
        n.build.note_unequal(extent, dims[i], false);
        return n.invalid("a label stands for dims of " + to_string(extent) + " and of " + to_string(dims[i]));
      }
      if (!(dims[i] == Dim(1))) extent = dims[i];
    }
  }
  ContractionBuilder c;
  std::map<int, IndexExpr> index;
  Term result{kNoValue, {}};
  std::vector<IndexExpr> index_a, index_b, index_out;
  auto name = [](int label) {
    return label >= kEllipsis ? "e" + std::to_string(label - kEllipsis)
                              : std::string(1, static_cast<char>(label));
  };
  for (int label : keep)
    if (extents.count(label)) {
      index.emplace(label, c.axis(name(label), extents[label]));
      result.labels.push_back(label);
      index_out.push_back(index.at(label));
    }
  for (auto [label, extent] : extents)
    if (!index.count(label)) index.emplace(label, c.reduction(name(label), extent));
  auto access = [&](const Term& term, std::vector<IndexExpr>& map) {
    Shape dims = n.shape(term.value);
    for (size_t i = 0; i < dims.size(); ++i)
      map.push_back(dims[i] == Dim(1) ? IndexExpr(0) : index.at(term.labels[i]));
  };
  access(a, index_a);
  access(b, index_b);
  result.value = c.emit(n, a.value, index_a, b.value, index_b, index_out);
  return result;
}

}  // namespace

Status import_einsum(NodeImport& n) {
  if (n.input_count() > 2) n.compute_wide();
  std::string equation = n.attr_string("equation", "");
  equation.erase(std::remove(equation.begin(), equation.end(), ' '), equation.end());
  size_t arrow = equation.find("->");
  std::string left = equation.substr(0, arrow);
  std::vector<std::string> texts{""};
  for (char ch : left) {
    if (ch == ',')
      texts.emplace_back();
    else
      texts.back() += ch;
  }
  if (static_cast<int>(texts.size()) != n.input_count())
    return n.invalid("attribute 'equation': expected " + std::to_string(n.input_count()) + " terms, found " +
                     std::to_string(texts.size()));
  std::vector<Term> terms;
  int ellipsis_rank = 0;
  for (int i = 0; i < n.input_count(); ++i) {
    QUERNEL_TRY(Labels labels, parse_term(n, texts[static_cast<size_t>(i)], n.rank(n.in(i))));
    for (int label : labels) ellipsis_rank = std::max(ellipsis_rank, label - kEllipsis + 1);
    terms.push_back({n.in(i), std::move(labels)});
  }
  Labels output;
  if (arrow != std::string::npos) {
    std::string text = equation.substr(arrow + 2);
    bool has_ellipsis = text.find("...") != std::string::npos;
    int letters = static_cast<int>(text.size()) - (has_ellipsis ? 3 : 0);
    QUERNEL_TRY(output, parse_term(n, text, letters + (has_ellipsis ? ellipsis_rank : 0)));
  } else {
    // Implicit output: the ellipsis, then the labels that appear once, in alphabetical order.
    std::map<int, int> uses;
    for (const Term& term : terms)
      for (int label : term.labels) ++uses[label];
    for (int k = ellipsis_rank; k-- > 0;) output.push_back(kEllipsis + k);
    for (auto [label, count] : uses)
      if (label < kEllipsis && count == 1) output.push_back(label);
  }
  for (size_t i = 0; i < output.size(); ++i) {
    bool known = std::any_of(terms.begin(), terms.end(), [&](const Term& t) {
      return std::count(t.labels.begin(), t.labels.end(), output[i]) > 0;
    });
    if (!known || std::count(output.begin(), output.end(), output[i]) > 1)
      return n.invalid(
          "attribute 'equation': expected output labels that appear once and in a term, found '" + equation +
          "'");
  }
  // A single operand is multiplied by one.
  if (terms.size() == 1) terms.push_back({n.scalar(n.dtype(n.in(0)), 1), {}});
  Term result = terms[0];
  for (size_t i = 1; i < terms.size(); ++i) {
    Labels keep = output;  // and what later terms still need
    for (size_t k = i + 1; k < terms.size(); ++k)
      for (int label : terms[k].labels)
        if (std::find(keep.begin(), keep.end(), label) == keep.end()) keep.push_back(label);
    QUERNEL_TRY(result, contract_terms(n, result, terms[i], keep));
  }
  return n.output(result.value);
}

}  // namespace quernel::onnx_import
