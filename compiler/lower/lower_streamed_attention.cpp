// Attention of few rows: keys, then values, a block at a time, each read once and where it is. The softmax is made
// online (M. Milakov, N. Gimelshein, "Online normalizer calculation for softmax", 2018). Keys that no row can see are
// not read. Where workgroups share the keys, a second kernel adds what their parts give.
#include <algorithm>
#include <bit>
#include <cmath>

#include "lower/lane_reduction.h"
#include "lower/loop_nest.h"
#include "lower/softmax_weight.h"
#include "schedule/contraction/operand_access.h"
#include "schedule/kernel_limits.h"

namespace quernel::lower {
namespace {

using loop::AxisKind;
using loop::Expr;
using loop::Stmt;
using schedule::StreamPlan;

Expr number(double value) { return loop::const_float(DType::kF32, value); }
Expr smaller(Expr a, Expr b) { return loop::binary(BinaryOp::k_min, std::move(a), std::move(b)); }
Expr larger(Expr a, Expr b) { return loop::binary(BinaryOp::k_max, std::move(a), std::move(b)); }
// Of an expression that is not negative.
Expr divided(Expr a, int64_t b) { return loop::binary(BinaryOp::k_idiv, std::move(a), index(b)); }
Expr divided_up(const Expr& a, int64_t b) { return divided(a + index(b - 1), b); }

// A loop over `count` steps whose copies use separate registers.
Stmt unrolled(const char* name, int64_t count, const std::function<Stmt(Expr)>& body) {
  if (count == 1) return body(index(0));
  loop::Var var = index_var(name);
  return loop::for_loop(var, index(count), AxisKind::kUnrolled, body(loop::var_ref(var)));
}
Stmt reduction(const char* name, Expr count, const std::function<Stmt(Expr)>& body) {
  int64_t known = 0;
  if (loop::as_const_int(count, &known) && known == 1) return body(index(0));
  loop::Var var = index_var(name);
  return loop::for_loop(var, std::move(count), AxisKind::kReduction, body(loop::var_ref(var)));
}
Stmt each_lane(int lanes, const std::function<Stmt(Expr)>& body) {
  if (lanes == 1) return body(index(0));
  loop::Var var = index_var("l");
  return loop::for_loop(var, index(lanes), AxisKind::kVector, body(loop::var_ref(var)));
}

class StreamLowering {
 public:
  explicit StreamLowering(Context& context)
      : c_(context),
        g_(context.graph()),
        plan_(*context.group.stream),
        scores_(g_.nodes[plan_.scores]),
        result_(g_.nodes[plan_.result]),
        lanes_(context.target.lanes(4)) {
    const int64_t unit = std::max<int64_t>(plan_.keys_at_once, lanes_);
    pitch_ = (plan_.block_keys + unit - 1) / unit * unit;
  }

  void run() {
    Shape outer;
    for (const StreamPlan::Axis& axis : plan_.grid) outer.push_back(axis.extent);
    outer.push_back(plan_.combines ? Dim(plan_.row_count) : Dim(plan_.parts));
    const int64_t work = plan_.combines ? plan_.parts * plan_.columns : plan_.keys * plan_.depth;
    c_.kernel.body = outer_loops(c_, outer, work, c_.group.work.group_work, [&](const std::vector<Expr>& at) {
      grid_.assign(at.begin(), at.end() - 1);
      return plan_.combines ? combined_row(at.back()) : part_of_keys(at.back());
    });
  }

 private:
  // ---- places

  Expr position_of_row(size_t axis, const Expr& row) const {
    int64_t inner = 1;
    for (size_t i = axis + 1; i < plan_.rows.size(); ++i) inner *= plan_.rows[i].extent.value();
    Expr outer = inner == 1 ? row : divided(row, inner);
    return axis == 0 ? outer : loop::binary(BinaryOp::k_fmod, outer, index(plan_.rows[axis].extent.value()));
  }

  // For an element of a contraction: at the grid's position, a row, and positions on the axes `first` and `second`.
  Evaluator evaluator(const Node& node, const Expr& row, int first, const Expr& at_first, int second,
                      const Expr& at_second) const {
    Evaluator e = c_.evaluator();
    for (const Contraction::Axis& axis : node.attributes.contraction.axes)
      e.axes.push_back({index(0), max(axis.extent, 1)});
    const bool of_scores = &node == &scores_;
    for (size_t i = 0; i < grid_.size(); ++i)
      e.axes[of_scores ? plan_.grid[i].scores : plan_.grid[i].result].value = grid_[i];
    for (size_t i = 0; i < plan_.rows.size(); ++i)
      e.axes[of_scores ? plan_.rows[i].scores : plan_.rows[i].result].value = position_of_row(i, row);
    e.axes[first].value = at_first;
    e.axes[second].value = at_second;
    return e;
  }
  Evaluator at_score(const Expr& row, const Expr& key, const Expr& depth) const {
    return evaluator(scores_, row, plan_.key.scores, key, plan_.depth_axis, depth);
  }
  Evaluator at_result(const Expr& row, const Expr& key, const Expr& column) const {
    return evaluator(result_, row, plan_.key.result, key, plan_.column_axis, column);
  }
  Stmt load_operand(Evaluator e, const Node& node, int operand, const loop::Buffer& into,
                    const Expr& slot) const {
    schedule::OperandAccess access = schedule::resolve_operand(g_, node, operand);
    Expr value = loop::cast(DType::kF32, e.evaluate(access.base, access.indices));
    e.statements.push_back(loop::store(into, slot, value));
    return loop::block(std::move(e.statements));
  }

  // Asks for what is prefetch_bytes behind the operand's vector of `lanes` elements if that begins a line. `number`: the
  // vector's in its row.
  Stmt prefetch_operand(Evaluator e, const Node& node, int operand, int lanes, const Expr& number) const {
    if (plan_.prefetch_bytes == 0) return loop::block({});
    schedule::OperandAccess access = schedule::resolve_operand(g_, node, operand);
    (void)e.evaluate(access.base, access.indices);
    auto reads_memory = [](const Stmt& s) {
      return s->kind == loop::StmtKind::kLet && s->value->kind == loop::ExprKind::kLoad &&
             s->value->buffer->scope == loop::Scope::kGlobal;
    };
    const auto it = std::find_if(e.statements.begin(), e.statements.end(), reads_memory);
    if (it == e.statements.end() || std::any_of(it + 1, e.statements.end(), reads_memory))
      return loop::block({});
    const Expr load = (*it)->value;
    e.statements.erase(it, e.statements.end());
    const int64_t element = element_size(load->buffer->dtype),
                  per_line = std::max<int64_t>(1, schedule::kPrefetchedLine / (lanes * element));
    e.statements.push_back(
        loop::prefetch(load->buffer, load->args[0] + index(plan_.prefetch_bytes / element)));
    Stmt ask = loop::block(std::move(e.statements));
    if (per_line == 1) return ask;
    return loop::if_then(
        loop::binary(BinaryOp::k_eq, loop::binary(BinaryOp::k_fmod, number, index(per_line)), index(0)), ask);
  }

  // ---- keys

  // The keys that some row may see: from `begin` on, below `end`.
  void find_range(std::vector<Stmt>& body, Expr& begin, Expr& end) const {
    const bool by_row = std::any_of(plan_.limits.begin(), plan_.limits.end(),
                                    [](const schedule::KeyLimit& limit) { return limit.by_row; });
    begin = index(0), end = index(plan_.keys);
    for (int64_t r = 0; r < (by_row ? plan_.row_count : 1); ++r) {
      Evaluator e = at_score(index(r), index(0), index(0));
      Expr first = index(0), last = index(plan_.keys);
      for (const schedule::KeyLimit& limit : plan_.limits) {
        // Far from where sums wrap.
        constexpr int64_t kFar = int64_t{1} << 40;
        Expr value = loop::cast(DType::kI64, e.evaluate(limit.value, limit.indices));
        value = larger(smaller(value, index(kFar)), index(-kFar)) + index(limit.plus);
        (limit.is_first ? first : last) = limit.is_first ? larger(first, value) : smaller(last, value);
      }
      body.insert(body.end(), e.statements.begin(), e.statements.end());
      begin = r == 0 ? first : smaller(begin, first);
      end = r == 0 ? last : larger(end, last);
    }
    end = named(body, "end", end);
    begin = named(body, "begin", smaller(begin, larger(end, index(0))));
  }

  Stmt part_of_keys(const Expr& part) {
    std::vector<Stmt> body;
    Expr begin, end;
    find_range(body, begin, end);
    Expr count = larger(end - begin, index(0));
    if (plan_.parts > 1) {
      const int64_t unit = plan_.keys_at_once;
      Expr each = named(body, "each", divided_up(count, plan_.parts * unit) * index(unit));
      begin = named(body, "first", begin + part * each);
      count = larger(smaller(end - begin, each), index(0));
    }
    count = named(body, "count", count);
    auto buffer = [&](const char* name, int64_t size) {
      loop::Buffer made = local_buffer(name, DType::kF32, size, loop::Scope::kShared);
      body.push_back(loop::alloc(made));
      return made;
    };
    block_ = buffer("block", plan_.row_count * pitch_);
    products_ = buffer("products", plan_.rows_at_once * plan_.keys_at_once * plan_.depth_lanes);
    sums_ = buffer("sums", plan_.row_count * plan_.columns);
    highest_ = buffer("highest", plan_.row_count);
    total_ = buffer("total", plan_.row_count);
    scale_ = buffer("scale", plan_.row_count);
    body.push_back(serial_loop("r", index(plan_.row_count), [&](const Expr& row) {
      return loop::block(
          {loop::store(highest_, row, number(-INFINITY)), loop::store(total_, row, number(0))});
    }));
    body.push_back(serial_loop("s", index(plan_.row_count * plan_.columns / plan_.column_lanes), [&](Expr s) {
      return each_lane(plan_.column_lanes, [&](const Expr& l) {
        return loop::store(sums_, s * index(plan_.column_lanes) + l, number(0));
      });
    }));
    body.push_back(serial_loop("b", divided_up(count, plan_.block_keys), [&](const Expr& b) {
      std::vector<Stmt> block;
      Expr first = named(block, "key", begin + b * index(plan_.block_keys));
      Expr keys = named(block, "keys", smaller(index(plan_.block_keys), count - b * index(plan_.block_keys)));
      block.push_back(scores(first, keys));
      block.push_back(serial_loop("r", index(plan_.row_count),
                                  [&](const Expr& row) { return exponentials(row, first, keys); }));
      block.push_back(values(first, keys));
      return loop::block(std::move(block));
    }));
    body.push_back(plan_.parts > 1 ? store_part(part) : store_rows());
    return loop::block(std::move(body));
  }

  // ---- scores

  // Calls for rows in blocks of at most `most`; those of the last block are known to be fewer where they are.
  static Stmt blocks_of(int64_t count, int64_t most,
                        const std::function<Stmt(Expr first, int64_t rows)>& body) {
    std::vector<Stmt> stmts;
    const int64_t full = count / most;
    if (full == 1) stmts.push_back(body(index(0), most));
    if (full > 1)
      stmts.push_back(
          serial_loop("r", index(full), [&](const Expr& r) { return body(r * index(most), most); }));
    if (count % most != 0) stmts.push_back(body(index(full * most), count % most));
    return loop::block(std::move(stmts));
  }

  // Place of a key of the block, counted from its first, in the block's rows.
  Expr slot(const Expr& row, const Expr& key) const { return row * index(pitch_) + key; }

  Stmt scores(const Expr& first, const Expr& keys) {
    const int64_t unit = plan_.keys_at_once;
    return serial_loop("u", divided_up(keys, unit), [&](const Expr& u) {
      std::vector<Stmt> body;
      Expr before = u * index(unit);
      Expr count = named(body, "some", smaller(index(unit), keys - before));
      body.push_back(blocks_of(plan_.row_count, plan_.rows_at_once, [&](const Expr& row, int64_t rows) {
        return scores_of(row, rows, first, before, count);
      }));
      return loop::block(std::move(body));
    });
  }

  // Scores of so many rows for `count` keys, at most keys_at_once, of the block that begins with key `first`. A loop over
  // keys adds vectors of products, which hardware prefetchers can follow; then their lanes are added, in vectors of keys.
  Stmt scores_of(const Expr& row, int64_t rows, const Expr& first, const Expr& before,
                 const Expr& count) const {
    const int64_t unit = plan_.keys_at_once, at_once = plan_.sums_at_once,
                  steps = plan_.depth / plan_.depth_lanes;
    const int lanes = plan_.depth_lanes;
    auto registers = [](const char* name, int64_t size) {
      return local_buffer(name, DType::kF32, size, loop::Scope::kRegister);
    };
    std::vector<Stmt> body;
    loop::Buffer held = plan_.holds_rows ? registers("q", rows * plan_.depth) : nullptr;
    if (held) {
      body.push_back(loop::alloc(held));
      body.push_back(unrolled(
          "d", steps, [&](const Expr& d) { return load_queries(row, rows, d, held, d * index(rows)); }));
    }
    body.push_back(serial_loop("k", divided_up(count, at_once), [&](const Expr& k) {
      loop::Buffer acc = registers("acc", rows * at_once * lanes);
      auto slot_of = [&](const Expr& m, const Expr& i, const Expr& l) {
        return (m * index(at_once) + i) * index(lanes) + l;
      };
      std::vector<Stmt> of_keys{loop::alloc(acc)};
      of_keys.push_back(unrolled("a", rows * at_once, [&](const Expr& a) {
        return each_lane(lanes,
                         [&](const Expr& l) { return loop::store(acc, a * index(lanes) + l, number(0)); });
      }));
      std::vector<Expr> keys;
      for (int64_t i = 0; i < at_once; ++i) {
        Expr key = k * index(at_once) + index(i);
        if (at_once > 1) key = smaller(key, count - index(1));
        keys.push_back(named(of_keys, "key", first + before + key));
      }
      auto step = [&](const Expr& d) {
        std::vector<Stmt> stmts;
        loop::Buffer queries = held;
        if (!held) {
          queries = registers("q", rows * lanes);
          stmts.push_back(loop::alloc(queries));
          stmts.push_back(load_queries(row, rows, d, queries, index(0)));
        }
        for (int64_t i = 0; i < at_once; ++i) {
          loop::Buffer read = registers("read", lanes);
          stmts.push_back(loop::alloc(read));
          if (rows == plan_.row_count)  // else they are read again
            stmts.push_back(
                prefetch_operand(at_score(index(0), keys[static_cast<size_t>(i)], d * index(lanes)), scores_,
                                 plan_.key_operand, lanes, d));
          stmts.push_back(each_lane(lanes, [&](const Expr& l) {
            return load_operand(at_score(index(0), keys[static_cast<size_t>(i)], d * index(lanes) + l),
                                scores_, plan_.key_operand, read, l);
          }));
          stmts.push_back(unrolled("m", rows, [&](const Expr& m) {
            return each_lane(lanes, [&](const Expr& l) {
              Expr query = ((held ? d * index(rows) : index(0)) + m) * index(lanes) + l,
                   at = slot_of(m, index(i), l);
              return loop::store(
                  acc, at,
                  loop::mul_acc(loop::load(queries, query), loop::load(read, l), loop::load(acc, at)));
            });
          }));
        }
        return loop::block(std::move(stmts));
      };
      constexpr int64_t kMostUnrolled = 8;
      of_keys.push_back(held || steps <= kMostUnrolled ? unrolled("d", steps, step)
                                                       : reduction("d", index(steps), step));
      of_keys.push_back(unrolled("m", rows, [&](const Expr& m) {
        return unrolled("i", at_once, [&](const Expr& i) {
          return each_lane(lanes, [&](const Expr& l) {
            Expr place = (m * index(unit) + k * index(at_once) + i) * index(lanes) + l;
            return loop::store(products_, place, loop::load(acc, slot_of(m, i, l)));
          });
        });
      }));
      return loop::block(std::move(of_keys));
    }));
    // Lanes of keys that are no more hold anything, and are not used.
    body.push_back(serial_loop("m", index(rows), [&](const Expr& m) {
      std::vector<Stmt> fold;
      for (int64_t k = 0; k < unit; k += lanes) {
        std::vector<Expr> vectors;
        for (int i = 0; i < lanes; ++i) {
          Expr at = (m * index(unit) + index(k + i)) * index(lanes);
          vectors.push_back(lanes == 1 ? loop::load(products_, at)
                                       : loop::load(products_, loop::ramp(at, 1, lanes), lanes));
        }
        Expr at = slot(row + m, before + index(k));
        fold.push_back(loop::store(block_, lanes == 1 ? at : loop::ramp(at, 1, lanes),
                                   fold_lanes(fold, BinaryOp::k_add, std::move(vectors))));
      }
      return loop::block(std::move(fold));
    }));
    return loop::block(std::move(body));
  }

  // Loads vector `d` of so many rows of queries, from vector `first` of the buffer on.
  Stmt load_queries(const Expr& row, int64_t rows, const Expr& d, const loop::Buffer& into,
                    const Expr& first) const {
    const int lanes = plan_.depth_lanes;
    return unrolled("m", rows, [&](const Expr& m) {
      return each_lane(lanes, [&](const Expr& l) {
        return load_operand(at_score(row + m, index(0), d * index(lanes) + l), scores_, 1 - plan_.key_operand,
                            into, (first + m) * index(lanes) + l);
      });
    });
  }

  // ---- softmax

  // Whether the softmax is one of the scores themselves, for all keys within the limits.
  bool takes_scores() const {
    ValueId x = plan_.x;
    for (const schedule::ShownCondition& condition : plan_.shown) {
      const Node* node = g_.def(x);
      if (!node || node->op != OpKind::k_where || node->inputs[0] != condition.value) return false;
      x = node->inputs[condition.holds ? 1 : 2];
    }
    return x == scores_.output;
  }

  // A row's scores become exponentials; its largest score, its sum, and the factor for its sums before.
  Stmt exponentials(const Expr& row, const Expr& first, const Expr& keys) {
    std::vector<Stmt> body;
    if (!takes_scores()) {
      body.push_back(vector_loop("c", keys, lanes_, c_.target, [&](const Expr& key) {
        Evaluator e = at_score(row, first + key, index(0));
        e.provide(scores_.output, e.name_value("s", loop::load(block_, slot(row, key))));
        for (const schedule::ShownCondition& condition : plan_.shown)
          e.provide(condition.value, loop::const_int(DType::kBool, condition.holds ? 1 : 0));
        Expr x = e.evaluate(plan_.x, scores_.attributes.contraction.out);
        e.statements.push_back(loop::store(block_, slot(row, key), x));
        return loop::block(std::move(e.statements));
      }));
    }
    Expr vectors = named(body, "vectors", divided_up(keys, lanes_));
    if (lanes_ > 1)
      body.push_back(serial_loop("t", vectors * index(lanes_) - keys, [&](const Expr& t) {
        return loop::store(block_, slot(row, keys + t), number(-INFINITY));
      }));
    loop::Buffer acc = local_buffer("acc", DType::kF32, lanes_, loop::Scope::kRegister);
    body.push_back(loop::alloc(acc));
    auto set = [&](double value) {
      body.push_back(each_lane(lanes_, [&](const Expr& l) { return loop::store(acc, l, number(value)); }));
    };
    auto folded = [&](BinaryOp op) {
      return lanes_ == 1 ? loop::load(acc, index(0))
                         : loop::reduce_lanes(op, loop::load(acc, loop::ramp(index(0), 1, lanes_), lanes_));
    };
    auto place = [&](const Expr& v, const Expr& l) { return slot(row, v * index(lanes_) + l); };
    set(-INFINITY);
    body.push_back(reduction("v", vectors, [&](const Expr& v) {
      return each_lane(lanes_, [&](const Expr& l) {
        return loop::store(acc, l, larger(loop::load(acc, l), loop::load(block_, place(v, l))));
      });
    }));
    Expr before = named(body, "before", loop::load(highest_, row));
    Expr now = named(body, "now", larger(before, folded(BinaryOp::k_max)));
    // Rows that have been hidden so far: nothing is taken away, and everything is zero.
    Expr hidden = loop::binary(BinaryOp::k_eq, now, number(-INFINITY));
    Expr less = named(body, "less", loop::select(hidden, number(0), now));
    Expr scale = named(body, "rescaled", softmax_weight(named(body, "risen", before - less)));
    set(0);
    body.push_back(reduction("v", vectors, [&](const Expr& v) {
      return each_lane(lanes_, [&](const Expr& l) {
        std::vector<Stmt> step;
        Expr below = named(step, "below", loop::load(block_, place(v, l)) - less);
        Expr e = named(step, "e", softmax_weight(below));
        step.push_back(loop::store(block_, place(v, l), e));
        step.push_back(loop::store(acc, l, loop::load(acc, l) + e));
        return loop::block(std::move(step));
      });
    }));
    body.push_back(loop::store(total_, row, loop::load(total_, row) * scale + folded(BinaryOp::k_add)));
    body.push_back(loop::store(highest_, row, now));
    body.push_back(loop::store(scale_, row, scale));
    return loop::block(std::move(body));
  }

  // ---- values

  Stmt values(const Expr& first, const Expr& keys) {
    const int lanes = plan_.column_lanes;
    const int64_t rows = plan_.value_rows, wide = plan_.value_vectors, vectors = plan_.columns / lanes;
    return serial_loop("c", index(vectors / wide), [&](const Expr& c) {
      return blocks_of(plan_.row_count, rows, [&](const Expr& row, int64_t count) {
        return values_of(row, count, c * index(wide * lanes), wide, first, keys);
      });
    });
  }

  // Adds the values of a block of keys, by weights of so many rows, in `wide` vectors from `column` on.
  Stmt values_of(const Expr& row, int64_t rows, const Expr& column, int64_t wide, const Expr& first,
                 const Expr& keys) const {
    const int lanes = plan_.column_lanes;
    loop::Buffer acc = local_buffer("acc", DType::kF32, rows * wide * lanes, loop::Scope::kRegister);
    std::vector<Stmt> body{loop::alloc(acc)};
    auto each = [&](const std::function<Stmt(const Expr& m, const Expr& at, const Expr& column)>& make) {
      return unrolled("m", rows, [&](const Expr& m) {
        return unrolled("v", wide, [&](const Expr& v) {
          return each_lane(lanes, [&](const Expr& l) {
            Expr in_tile = v * index(lanes) + l;
            return make(m, m * index(wide * lanes) + in_tile, in_tile);
          });
        });
      });
    };
    body.push_back(
        each([&](const Expr&, const Expr& at, const Expr&) { return loop::store(acc, at, number(0)); }));
    // The weights of all rows stay in registers while one vector after the other is read.
    body.push_back(reduction("k", keys, [&](const Expr& k) {
      std::vector<Stmt> step;
      std::vector<Expr> weights;
      for (int64_t m = 0; m < rows; ++m)
        weights.push_back(named(step, "weight", loop::load(block_, slot(row + index(m), k))));
      step.push_back(unrolled("v", wide, [&](const Expr& v) {
        auto value = [&](const Expr& l) {
          return at_result(index(0), first + k, column + v * index(lanes) + l);
        };
        loop::Buffer read = local_buffer("value", DType::kF32, lanes, loop::Scope::kRegister);
        std::vector<Stmt> of_vector{loop::alloc(read)};
        if (rows == plan_.row_count)
          of_vector.push_back(prefetch_operand(value(index(0)), result_, plan_.value_operand, lanes, v));
        of_vector.push_back(each_lane(lanes, [&](const Expr& l) {
          return load_operand(value(l), result_, plan_.value_operand, read, l);
        }));
        for (size_t m = 0; m < weights.size(); ++m)
          of_vector.push_back(each_lane(lanes, [&](const Expr& l) {
            Expr at = (index(static_cast<int64_t>(m) * wide) + v) * index(lanes) + l;
            Expr sum = loop::mul_acc(weights[m], loop::load(read, l), loop::load(acc, at));
            return loop::store(acc, at, sum);
          }));
        return loop::block(std::move(of_vector));
      }));
      return loop::block(std::move(step));
    }));
    body.push_back(each([&](const Expr& m, const Expr& at, const Expr& in_tile) {
      Expr place = (row + m) * index(plan_.columns) + column + in_tile;
      Expr scaled = loop::load(sums_, place) * loop::load(scale_, row + m);
      return loop::store(sums_, place, scaled + loop::load(acc, at));
    }));
    return loop::block(std::move(body));
  }

  // ---- results

  // What a row's sums are divided by.
  Expr divisor(const Expr& total) const {
    if (!plan_.hidden_is_zero) return total;
    return loop::select(loop::binary(BinaryOp::k_eq, total, number(0)), number(1), total);
  }

  Stmt store_columns(const Expr& row, const Expr& total,
                     const std::function<Expr(std::vector<Stmt>& body, const Expr& column)>& sum) const {
    const int lanes = plan_.column_lanes;
    return serial_loop("c", index(plan_.columns / lanes), [&](const Expr& c) {
      std::vector<Stmt> body;
      Stmt stores = each_lane(lanes, [&](const Expr& l) {
        Expr column = c * index(lanes) + l;
        Evaluator e = at_result(row, index(0), column);
        const std::vector<IndexExpr>& out = result_.attributes.contraction.out;
        Expr value = e.name_value("y", loop::binary(BinaryOp::k_div, sum(e.statements, column), total));
        e.provide(result_.output, loop::cast(g_.dtype(result_.output), value));
        for (ValueId v : c_.group.outputs) e.store(v, out, e.evaluate(v, out));
        return loop::block(std::move(e.statements));
      });
      body.push_back(stores);
      return loop::block(std::move(body));
    });
  }

  Stmt store_rows() {
    return serial_loop("r", index(plan_.row_count), [&](const Expr& row) {
      std::vector<Stmt> body;
      Expr total = named(body, "total", divisor(loop::load(total_, row)));
      body.push_back(store_columns(row, total, [&](std::vector<Stmt>&, const Expr& column) {
        return loop::load(sums_, row * index(plan_.columns) + column);
      }));
      return loop::block(std::move(body));
    });
  }

  // ---- parts

  // Where a part's sums begin. Behind them are the rows' largest scores, then their sums of exponentials.
  Expr part_place(const Expr& part) const {
    Expr cell = index(0);
    for (size_t i = 0; i < grid_.size(); ++i) cell = cell * c_.symbols(plan_.grid[i].extent) + grid_[i];
    return (cell * index(plan_.parts) + part) * index(plan_.row_count * (plan_.columns + 2));
  }
  Expr highest_place(const Expr& part, const Expr& row) const {
    return part_place(part) + index(plan_.row_count * plan_.columns) + row;
  }
  Expr total_place(const Expr& part, const Expr& row) const {
    return highest_place(part, row) + index(plan_.row_count);
  }

  Stmt store_part(const Expr& part) const {
    const loop::Buffer& parts = c_.buffers.scratch;
    const int lanes = plan_.column_lanes;
    Stmt sums = serial_loop("s", index(plan_.row_count * plan_.columns / lanes), [&](const Expr& s) {
      return each_lane(lanes, [&](const Expr& l) {
        Expr at = s * index(lanes) + l;
        return loop::store(parts, part_place(part) + at, loop::load(sums_, at));
      });
    });
    Stmt rows = serial_loop("r", index(plan_.row_count), [&](const Expr& row) {
      return loop::block({loop::store(parts, highest_place(part, row), loop::load(highest_, row)),
                          loop::store(parts, total_place(part, row), loop::load(total_, row))});
    });
    return loop::block({sums, rows});
  }

  Stmt combined_row(const Expr& row) {
    const loop::Buffer& parts = c_.buffers.scratch;
    std::vector<Stmt> body;
    Expr now = loop::load(parts, highest_place(index(0), row));
    for (int64_t p = 1; p < plan_.parts; ++p)
      now = larger(now, loop::load(parts, highest_place(index(p), row)));
    now = named(body, "now", now);
    Expr hidden = loop::binary(BinaryOp::k_eq, now, number(-INFINITY));
    Expr less = named(body, "less", loop::select(hidden, number(0), now)), total;
    std::vector<Expr> scales;
    for (int64_t p = 0; p < plan_.parts; ++p) {
      Expr lacking = named(body, "lacking", loop::load(parts, highest_place(index(p), row)) - less);
      scales.push_back(named(body, "scale", softmax_weight(lacking)));
      Expr added = loop::load(parts, total_place(index(p), row)) * scales.back();
      total = total ? total + added : added;
    }
    total = named(body, "total", divisor(named(body, "sum", total)));
    body.push_back(store_columns(row, total, [&](std::vector<Stmt>& statements, const Expr& column) {
      Expr sum = nullptr;
      for (int64_t p = 0; p < plan_.parts; ++p) {
        Expr part = loop::load(parts, part_place(index(p)) + row * index(plan_.columns) + column);
        sum = sum ? loop::mul_acc(part, scales[p], sum) : part * scales[p];
        sum = named(statements, "sum", sum);
      }
      return sum;
    }));
    return loop::block(std::move(body));
  }

  Context& c_;
  const Graph& g_;
  const StreamPlan& plan_;
  const Node &scores_, &result_;
  int lanes_ = 1;
  int64_t pitch_ = 0;
  std::vector<Expr> grid_;
  loop::Buffer block_, products_, sums_, highest_, total_, scale_;
};

}  // namespace

void lower_streamed_attention(Context& context) { StreamLowering(context).run(); }

}  // namespace quernel::lower
