// ConvTranspose of any rank, group, stride and dilation: for every place within a stride a convolution of
// stride 1 with those weights that reach it, and the interleaving of the results, instead of one convolution
// of an image with zeros between its elements.
#include <algorithm>
#include <numeric>
#include <utility>

#include "frontends/onnx/conv.h"
#include "frontends/onnx/operators.h"

namespace quernel::onnx_import {
namespace {

// Neighbouring outputs within a stride that sum up the same inputs: a convolution of stride 1 has them as
// channels. Output o = stride * q + first + p takes input q + newest - t * dilation for every tap t, with the
// weight at first_weight + p + weight_step * t. Without taps they are zeros.
struct Phases {
  int64_t first = 0, count = 1, taps = 0, first_weight = 0;
  Dim newest;
};

// One spatial dim.
struct Upsampled {
  Dim size, out;  // elements of the input and of the output
  int64_t stride = 1;
  Dim lead;       // outputs before the first one that is wanted, fewer than the stride
  Dim quotients;  // values of q
  int64_t dilation = 1, weight_step = 1;  // of neighbouring taps
  int64_t unreached = 0;                  // places at the end of a stride that no weight reaches
  int64_t phase_count = 0;                // of each element of `phases`, which may be split into such
  std::vector<Phases> phases;

  int64_t reached() const { return stride - unreached; }
  int64_t parts() const { return reached() / phase_count; }
};

constexpr int64_t kMostParts = 8;                  // convolutions along one dim
constexpr int64_t kMostPlaces = int64_t{1} << 20;  // within a stride, that are reached
constexpr int64_t kLimit = 1024;                   // convolutions of all dims

// Runs of places of which each begins at the first weight that reaches it.
std::vector<Phases> phases_from(int64_t origin, const Dim& skipped, int64_t kernel, int64_t stride,
                                int64_t dilation, int64_t weight_step) {
  std::vector<std::pair<int64_t, int64_t>> reached;  // places within a stride, and the first weight there
  for (int64_t k = 0; k < std::min(kernel, weight_step); ++k)
    reached.push_back({((k * dilation - origin) % stride + stride) % stride, k});
  std::sort(reached.begin(), reached.end());
  std::vector<Phases> result;
  int64_t next = 0;
  auto add = [&](const Phases& phases) {
    next = phases.first + phases.count;
    if (!result.empty()) {
      Phases& last = result.back();
      if (last.taps == phases.taps && last.newest == phases.newest &&
          last.first_weight + last.count == phases.first_weight) {
        last.count += phases.count;
        return;
      }
    }
    result.push_back(phases);
  };
  for (auto [first, k] : reached) {
    if (first > next) add({.first = next, .count = first - next});
    add({.first = first,
         .taps = (kernel - k + weight_step - 1) / weight_step,
         .first_weight = k,
         .newest = skipped + (first + origin - k * dilation) / stride});
  }
  if (next < stride) add({.first = next, .count = stride - next});
  return result;
}

// Output o receives x[i] * w[k] where i * stride + k * dilation = o + before.
Upsampled upsample(const Dim& size, const Dim& out, const Dim& before, int64_t kernel, int64_t stride,
                   int64_t dilation) {
  if (size == Dim(1)) stride = 1;  // there is nothing to step to
  Upsampled result{.size = size, .out = out, .stride = stride};
  int64_t common = std::gcd(stride, dilation);
  result.dilation = dilation / common;
  result.weight_step = stride / common;
  // Places are counted from the first output, or from one before it at a multiple of the stride: where the
  // padding is not known, for which weights reach a place must be, and where few places are reached, which
  // are the first ones then.
  bool aligned = !before.is_const() || kernel < stride;
  auto find = [&] {
    result.lead = aligned ? floormod(before, stride) : Dim(0);
    result.phases = phases_from(aligned ? 0 : before.value(), aligned ? floordiv(before, stride) : Dim(0),
                                kernel, stride, dilation, result.weight_step);
    if (result.phases.back().taps == 0) {
      result.unreached = result.phases.back().count;
      result.phases.pop_back();
    }
    result.phase_count = 0;
    for (const Phases& p : result.phases) result.phase_count = std::gcd(result.phase_count, p.count);
  };
  find();
  // Rather than many convolutions one that multiplies a few zeros.
  if (dilation == 1 && result.parts() > kMostParts) {
    aligned = true;
    kernel = (kernel + stride - 1) / stride * stride;
    find();
  }
  result.quotients = ceildiv(out + result.lead, stride);
  return result;
}

// Phases of one size, so that the results of all can stand side by side in memory.
void split(Upsampled& dim) {
  std::vector<Phases> parts;
  for (Phases p : dim.phases)
    for (int64_t end = p.first + p.count; p.first < end; p.first += dim.phase_count) {
      p.count = dim.phase_count;
      parts.push_back(p);
      p.first_weight += dim.phase_count;
    }
  dim.phases = std::move(parts);
}

class Transposed {
 public:
  Transposed(NodeImport& n, ValueId x, ValueId weights, std::vector<int64_t> weight_dims, int64_t groups,
             std::vector<Upsampled> dims)
      : n_(n),
        x_(x),
        weights_(weights),
        groups_(groups),
        channels_in_(weight_dims[0] / groups),
        channels_out_(weight_dims[1]),
        rank_(dims.size()),
        dims_(std::move(dims)) {}

  // [N,M,out...]
  ValueId run() {
    pad();
    std::vector<ValueId> parts;
    std::vector<const Phases*> chosen;
    convolve_all(chosen, parts);
    ValueId y = parts.size() == 1 ? parts[0] : n_.build.cat(std::move(parts), 0);
    // [1...,N,quotients...,G,counts...,M/G] of all phases is [numbers...,N,quotients...,G,counts...,M/G].
    Shape split;
    for (const Upsampled& d : dims_) split.push_back(static_cast<int64_t>(d.phases.size()));
    split.push_back(batch());
    for (const Upsampled& d : dims_) split.push_back(d.quotients);
    split.push_back(groups_);
    for (const Upsampled& d : dims_) split.push_back(d.phase_count);
    split.push_back(channels_out_);
    std::vector<int64_t> order{rank(), 2 * rank() + 1, 3 * rank() + 2};
    Shape merged{batch(), groups_ * channels_out_}, starts{0, 0}, stops = merged, reached = merged,
                                                                  none{0, 0}, unreached = none;
    for (int64_t i = 0; i < rank(); ++i) {
      order.insert(order.end(), {rank() + 1 + i, i, 2 * rank() + 2 + i});
      const Upsampled& d = dims_[static_cast<size_t>(i)];
      reached.insert(reached.end(), {d.quotients, d.reached()});
      none.insert(none.end(), {0, 0});
      unreached.insert(unreached.end(), {0, d.unreached});
      merged.push_back(d.quotients * d.stride);
      starts.push_back(d.lead);
      stops.push_back(d.lead + d.out);
    }
    y = n_.build.reshape(n_.build.permute(n_.build.reshape(y, split), order), reached);
    if (unreached != none) y = n_.build.pad(y, none, unreached);
    y = n_.build.reshape(y, merged);
    return n_.build.slice(y, starts, stops);
  }

 private:
  int64_t rank() const { return static_cast<int64_t>(rank_); }
  Dim batch() const { return n_.shape(x_)[0]; }

  // Zeros around x, so that every tap of every phase finds an element.
  void pad() {
    IndexMap map;
    map.indices = {IndexExpr::axis(0), IndexExpr::axis(1)};
    Shape shape{batch(), n_.shape(x_)[1]};
    for (size_t i = 0; i < rank_; ++i) {
      const Upsampled& d = dims_[i];
      std::optional<Dim> low, high;
      for (const Phases& p : d.phases) {
        if (p.taps == 0) continue;
        Dim oldest = p.newest - (p.taps - 1) * d.dilation, beyond = p.newest + d.quotients;
        low = low ? min(*low, oldest) : oldest;
        high = high ? max(*high, beyond) : beyond;
      }
      first_.push_back(low.value_or(0));
      shape.push_back(high.value_or(d.quotients) - first_[i]);
      IndexExpr position = IndexExpr::axis(static_cast<int>(i) + 2) + first_[i];
      map.indices.push_back(position);
      map.guards.push_back({position, 0, d.size});
    }
    padded_ = n_.build.view(x_, shape, map, 0);
  }

  // Every choice of one element of `phases` for each dim, that of the last dim changing fastest.
  void convolve_all(std::vector<const Phases*>& chosen, std::vector<ValueId>& parts) {
    if (chosen.size() == rank_) {
      parts.push_back(convolve_phases(chosen));
      return;
    }
    for (const Phases& p : dims_[chosen.size()].phases) {
      chosen.push_back(&p);
      convolve_all(chosen, parts);
      chosen.pop_back();
    }
  }

  // [1,N,quotients...,G*counts*M/G]: channels last, in which order convolutions compute them.
  ValueId convolve_phases(const std::vector<const Phases*>& phases) {
    Shape quotients;
    int64_t phase_count = 1;
    bool reached = true;
    for (size_t i = 0; i < rank_; ++i) {
      quotients.push_back(dims_[i].quotients);
      phase_count *= phases[i]->count;
      reached = reached && phases[i]->taps != 0;
    }
    int64_t channels = groups_ * phase_count * channels_out_;
    Shape shape{1, batch()};
    shape.insert(shape.end(), quotients.begin(), quotients.end());
    shape.push_back(channels);
    if (!reached) return n_.build.full(n_.dtype(x_), shape, 0);

    Window w;
    w.strides.assign(rank_, 1);
    w.out = quotients;
    // Weights [g*CG+c, o, k...] as [g, phases..., o, c, taps...], the last tap first.
    int r = static_cast<int>(rank_);
    IndexMap map;
    map.indices = {IndexExpr::axis(0) * channels_in_ + IndexExpr::axis(r + 2), IndexExpr::axis(r + 1)};
    Shape arranged{groups_}, taps;
    std::vector<int64_t> weight_dims{channels, channels_in_};
    for (int i = 0; i < r; ++i) {
      const Upsampled& d = dims_[static_cast<size_t>(i)];
      const Phases& p = *phases[static_cast<size_t>(i)];
      w.first.push_back(p.newest - (p.taps - 1) * d.dilation - first_[static_cast<size_t>(i)]);
      w.kernel.push_back(p.taps);
      w.dilations.push_back(d.dilation);
      weight_dims.push_back(p.taps);
      arranged.push_back(p.count);
      taps.push_back(p.taps);
      map.indices.push_back(IndexExpr::axis(i + 1) + IndexExpr::axis(r + 3 + i) * -d.weight_step +
                            (p.first_weight + (p.taps - 1) * d.weight_step));
      map.guards.push_back({map.indices.back(), 0, n_.shape(weights_)[static_cast<size_t>(i) + 2]});
    }
    arranged.insert(arranged.end(), {channels_out_, channels_in_});
    arranged.insert(arranged.end(), taps.begin(), taps.end());
    ValueId weights = n_.reshape(n_.build.view(weights_, arranged, map, 0), weight_dims);
    ValueId y = contract_windows(n_, padded_, weights, w, weight_dims, batch(), groups_);
    std::vector<int64_t> last{0};
    for (int64_t i = 0; i < rank(); ++i) last.push_back(i + 2);
    last.push_back(1);
    return n_.build.reshape(n_.build.permute(y, last), shape);
  }

  NodeImport& n_;
  ValueId x_, weights_, padded_ = kNoValue;
  int64_t groups_, channels_in_, channels_out_;  // channels of a group
  size_t rank_;
  std::vector<Upsampled> dims_;
  Shape first_;  // which element of x is the padded one's first
};

}  // namespace

Status import_conv_transpose(NodeImport& n) {
  if (n.has(2)) n.compute_wide();
  ValueId x = n.in(0), weights = n.in(1);
  Shape dims = n.shape(x);
  QUERNEL_TRY(std::vector<int64_t> weight_dims, n.dims(weights));
  size_t rank = dims.size() - 2;
  if (dims.size() < 3 || weight_dims.size() != dims.size())
    return n.invalid("expected input [N,C,D...] and weights [C,M/group,K...] of one rank, found " +
                     to_string(n.shape(x)) + " and " + to_string(n.shape(weights)));
  int64_t groups = n.attr_int("group", 1);
  QUERNEL_TRY(int64_t channels, n.dim(dims[1]));
  if (groups < 1 || groups > channels || channels % groups != 0 || weight_dims[0] != channels)
    return n.invalid("expected weights for " + std::to_string(channels) +
                     " input channels in whole groups, found " + to_string(n.shape(weights)) + " and group " +
                     std::to_string(groups));
  std::vector<int64_t> kernel(weight_dims.begin() + 2, weight_dims.end());
  if (auto declared = n.attr_ints("kernel_shape"); declared && *declared != kernel)
    return n.invalid("attribute 'kernel_shape' disagrees with weights of shape " +
                     to_string(n.shape(weights)));
  QUERNEL_TRY(std::vector<int64_t> strides, read_window_steps(n, "strides", rank));
  QUERNEL_TRY(std::vector<int64_t> dilations, read_window_steps(n, "dilations", rank));
  QUERNEL_TRY(WindowPads pads, read_window_pads(n, rank));
  std::string auto_pad = n.attr_string("auto_pad", "NOTSET");
  std::vector<int64_t> extra = n.attr_ints("output_padding").value_or(std::vector<int64_t>(rank, 0));
  std::optional<std::vector<int64_t>> wanted = n.attr_ints("output_shape");
  if (wanted && wanted->size() == rank + 2) wanted->erase(wanted->begin(), wanted->begin() + 2);
  if (extra.size() != rank || (wanted && wanted->size() != rank))
    return n.invalid("attributes 'output_padding' and 'output_shape': expected " + std::to_string(rank) +
                     " values");

  int64_t channels_out = weight_dims[1] * groups;
  int64_t parts = 1;
  std::vector<Upsampled> upsampled;
  Shape largest{dims[0], std::max(channels, channels_out)};
  for (size_t i = 0; i < rank; ++i) {
    constexpr int64_t kMost = int64_t{1} << 31;
    const Dim& size = dims[i + 2];
    int64_t stride = strides[i];
    if (kernel[i] < 1 || kernel[i] > kMost || always_lt(kMost, size) || extra[i] < 0 || extra[i] > kMost ||
        (wanted && ((*wanted)[i] < 1 || (*wanted)[i] > kMost)))
      return n.invalid("expected kernel sizes of at least 1 and output padding of at least 0, below 2^31");
    if (std::min(kernel[i], stride) > kMostPlaces)
      return n.refuse("expected strides or kernels of at most " + std::to_string(kMostPlaces) + ", found " +
                      std::to_string(stride) + " and " + std::to_string(kernel[i]));
    int64_t extent = (kernel[i] - 1) * dilations[i] + 1;
    Dim full = (size - 1) * stride + extent + extra[i], before = pads.before[i], after = pads.after[i];
    bool same = auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER";
    if (wanted || same) {
      Dim target = wanted ? Dim((*wanted)[i]) : size * stride;
      Dim total = max(full - target, 0), smaller = floordiv(total, 2);
      before = auto_pad == "SAME_UPPER" ? smaller : total - smaller;
      after = total - before;
      full = max(full, target);
    } else if (auto_pad == "VALID") {
      before = after = 0;
    } else if (auto_pad != "NOTSET" && !auto_pad.empty()) {
      return n.invalid("attribute 'auto_pad': expected NOTSET, SAME_UPPER, SAME_LOWER or VALID, found '" +
                       auto_pad + "'");
    }
    Dim out = full - before - after;
    if (always_lt(size, 1) || always_lt(out, 1))
      return n.invalid("expected an output of at least one element on spatial dim " + std::to_string(i));
    upsampled.push_back(upsample(size, out, before, kernel[i], stride, dilations[i]));
    if (parts > kLimit / upsampled.back().parts())
      return n.refuse("attributes 'strides' and 'dilations': expected at most " + std::to_string(kLimit) +
                      " places within a stride that sum different inputs, found more");
    parts *= upsampled.back().parts();
    split(upsampled.back());
    largest.push_back(size + full + stride);
  }
  if (is_static(largest) && !element_count(static_dims(largest)))
    return n.refuse("the padded input has more elements than fit 63 bits");
  ValueId y = Transposed(n, x, weights, weight_dims, groups, std::move(upsampled)).run();
  if (n.has(2)) {
    if (n.shape(n.in(2)) != Shape{channels_out})
      return n.invalid("expected a bias of [" + std::to_string(channels_out) + "], found " +
                       to_string(n.shape(n.in(2))));
    std::vector<int64_t> bias_dims(dims.size(), 1);
    bias_dims[1] = channels_out;
    y = n.binary(BinaryOp::k_add, y, n.reshape(n.in(2), bias_dims));
  }
  return n.output(y);
}

}  // namespace quernel::onnx_import
