// table[local_rows[i]] -= the optimizer's step for gradients[i].
//
// A unit is a row: a warp (CUDA), or a thread with vectors that asks memory for the rows to come (CPU). A row of the
// table, of the state and of the gradients is met a second time while it is in the cache. Totals are added by row and
// then by group of rows: their order is fixed with one thread on the CPU.
//
// A row reads 4 dim bytes of gradient, and reads and writes its values and its state.
#include "kernels/lanes.hpp"
#include "kernels/ops.hpp"

namespace gs::kernels::GS_BACKEND {

/// `scale` times values [dim]; `squared` is the step's L2 norm, squared.
struct RowStep {
  const float* values;
  float scale, squared;
};

/// What `size`, or a vector of that L2 norm squared, is multiplied by to be `limit` at most; 0: any. NaN stays.
GS_DEV float shortening(float limit, float size) { return limit > 0 && size > limit ? limit / size : 1.0f; }
GS_DEV float norm_shortening(float limit, float squared) {
  return limit > 0 && squared > limit * limit ? limit / sqrtf(squared) : 1.0f;
}

/// UpdateTotals of a group of rows, in few registers.
struct GroupTotals {
  double squared_gradient = 0;
  float gradient_norms = 0, largest_squared = 0;
  std::uint32_t rows = 0, clipped = 0;
};

#if defined(__CUDACC__)
GS_DEV void add_to(UpdateTotals& totals, const GroupTotals& sums) {
  atomicAdd(&totals.squared_gradient, sums.squared_gradient);
  atomicAdd(reinterpret_cast<unsigned long long*>(&totals.rows), static_cast<unsigned long long>(sums.rows));
  atomicAdd(reinterpret_cast<unsigned long long*>(&totals.clipped), static_cast<unsigned long long>(sums.clipped));
  atomicAdd(&totals.gradient_norms, double(sums.gradient_norms));
  atomicMax(reinterpret_cast<unsigned long long*>(&totals.largest_norm),  // doubles >= 0 are ordered as their bits
            static_cast<unsigned long long>(__double_as_longlong(sqrt(double(sums.largest_squared)))));
}
#else
GS_DEV void add_to(UpdateTotals& totals, const GroupTotals& sums) {
  std::atomic_ref(totals.squared_gradient).fetch_add(sums.squared_gradient, std::memory_order_relaxed);
  std::atomic_ref(totals.rows).fetch_add(sums.rows, std::memory_order_relaxed);
  std::atomic_ref(totals.clipped).fetch_add(sums.clipped, std::memory_order_relaxed);
  std::atomic_ref(totals.gradient_norms).fetch_add(double(sums.gradient_norms), std::memory_order_relaxed);
  const double norm = std::sqrt(double(sums.largest_squared));
  std::atomic_ref largest(totals.largest_norm);
  for (double seen = largest.load(); seen < norm && !largest.compare_exchange_weak(seen, norm);) {
  }
}
#endif

template <class T>
struct UpdateRows {
  StoredRows table, state;
  Span<const RowId> local_rows;
  Rows<const float> gradients;
  Span<const float> curvature;
  UpdateRule rule;
  float log_first, log_second;  // ln of Adam's decays
  Offset scratch_bytes;
  Span<UpdateTotals> totals;

  GS_DEV void operator()(const Team& team, Offset index, Offset) const {
    const Lanes lanes(team);
    const RowGroup group = lanes.group(index, local_rows.size);
    GroupTotals sums;
    for (Offset i = group.first; i < group.last; i += group.step) {
      if (i + kAhead < local_rows.size) ask_for_row(local_rows[i + kAhead]);
      update(lanes, i, sums);
    }
    if (lanes.is_first() && sums.rows > 0) add_to(totals[0], sums);
  }

 private:
  GS_DEV void ask_for_row(RowId local) const {
    ask_for(table.row(local), table.dim * Offset(sizeof(T)));
    if (state.dim > 0) ask_for(state.row(local), state.dim * 4);
  }

  GS_DEV void update(const Lanes& lanes, Offset i, GroupTotals& sums) const {
    const RowId local = local_rows[i];
    const float* const gradient = gradients.row(i);
    T* const row = static_cast<T*>(table.row(local));
    float* const kept = state.dim > 0 ? static_cast<float*>(state.row(local)) : nullptr;
    const float counter = counter_of(kept);  // read before `sum`, in which lanes meet; one of them writes it later
    const float squared = lanes.sum(table.dim, [=](float sum, int c) { return fmaf(gradient[c], gradient[c], sum); });
    // After the sum: before it, the question of frozen rows takes 71 registers for 64 (nvcc 13, sm_90).
    if (rule.is_frozen(local) || (squared == 0 && curvature[i] == 0)) return;

    const float clip = norm_shortening(rule.clip_gradient, squared);
    const float factor = clip * shortening(rule.curvature_limit, rule.learning_rate * curvature[i]);
    auto* const scratch = reinterpret_cast<float*>(lanes.scratch(scratch_bytes));
    RowStep step = take(lanes, gradient, factor, squared, kept, counter, scratch);
    if (rule.weight_decay > 0) step = decayed(lanes, step, row, scratch);
    const float bound = norm_shortening(rule.max_row_step, step.squared);
    subtract(lanes, step.values, step.scale * bound, row, local);
    sums.squared_gradient += double(squared);
    sums.gradient_norms += sqrtf(squared);
    sums.largest_squared = fmaxf(sums.largest_squared, squared);
    sums.rows += 1;
    sums.clipped += clip < 1 || bound < 1;
  }

  GS_DEV float counter_of(const float* kept) const {
    return rule.optimizer == Optimizer::adagrad ? kept[0]
           : rule.optimizer == Optimizer::adam  ? kept[2 * table.dim]
                                                : 0.0f;
  }

  /// Gives `factor` times the gradient to the row's state.
  GS_DEV RowStep take(const Lanes& lanes, const float* gradient, float factor, float squared, float* kept,
                      float counter, float* scratch) const {
    const float rate = rule.learning_rate;
    switch (rule.optimizer) {
      case Optimizer::sgd:
        break;
      case Optimizer::momentum: {
        const float momentum = rule.momentum;
        const float moving = lanes.sum(table.dim, [=](float sum, int c) {
          kept[c] = fmaf(factor, gradient[c], momentum * kept[c]);
          return fmaf(kept[c], kept[c], sum);
        });
        return {kept, rate, rate * rate * moving};
      }
      case Optimizer::adagrad: {
        const float total = counter + factor * factor * squared / float(table.dim);
        if (lanes.is_first()) kept[0] = total;
        const float scale = rate * factor / (sqrtf(total) + rule.epsilon);
        return {gradient, scale, scale * scale * squared};
      }
      case Optimizer::adam:
        return adam(lanes, gradient, factor, kept, counter + 1, scratch);
    }
    const float scale = rate * factor;
    return {gradient, scale, scale * scale * squared};
  }

  /// steps: the row's own, this one among them; float32 counts to 2^24, when both corrections have long been 1.
  GS_DEV RowStep adam(const Lanes& lanes, const float* gradient, float factor, float* kept, float steps,
                      float* scratch) const {
    float *const first = kept, *const second = kept + table.dim;
    if (lanes.is_first()) kept[2 * table.dim] = steps;
    const float decay1 = rule.momentum, decay2 = rule.second_moment, epsilon = rule.epsilon;
    const float rate = rule.learning_rate / -expm1f(steps * log_first);
    const float correction = 1 / sqrtf(-expm1f(steps * log_second));
    const float squared = lanes.sum(table.dim, [=](float sum, int c) {
      const float g = factor * gradient[c];
      first[c] = fmaf(decay1, first[c], (1 - decay1) * g);
      second[c] = fmaf(decay2, second[c], (1 - decay2) * g * g);
      scratch[c] = rate * first[c] / fmaf(sqrtf(second[c]), correction, epsilon);
      return fmaf(scratch[c], scratch[c], sum);
    });
    return {scratch, 1.0f, squared};
  }

  GS_DEV RowStep decayed(const Lanes& lanes, const RowStep& step, const T* row, float* scratch) const {
    const float* const values = step.values;
    const float scale = step.scale, decay = rule.learning_rate * rule.weight_decay;
    const float squared = lanes.sum(table.dim, [=](float sum, int c) {
      scratch[c] = fmaf(scale, values[c], decay * float(row[c]));
      return fmaf(scratch[c], scratch[c], sum);
    });
    return {scratch, 1.0f, squared};
  }

  GS_DEV void subtract(const Lanes& lanes, const float* values, float scale, T* row, RowId local) const {
    if constexpr (std::is_same_v<T, float>) {
      lanes.each(table.dim, [=](int c) { row[c] = fmaf(-scale, values[c], row[c]); });
    } else {
      const RoundingKey key{rule.seed, rule.step, rule.rows[local]};
      lanes.each_with_bits(table.dim, key, [=](int c, std::uint32_t bits) {
        row[c] = T::random(fmaf(-scale, values[c], float(row[c])), bits);
      });
    }
  }
};

void update_rows(const StoredRows& table, const StoredRows& state, Span<const RowId> local_rows,
                 Rows<const float> gradients, Span<const float> curvature, const UpdateRule& rule,
                 Span<UpdateTotals> totals, const Exec& exec) {
  GS_EXPECT(gradients.count == local_rows.size && curvature.size == local_rows.size && gradients.dim == table.dim,
            "update_rows: [", gradients.count, ", ", gradients.dim, "] gradients and ", curvature.size,
            " curvatures for ", local_rows.size, " rows of ", table.dim, " columns");
  const int columns = state_columns(rule.optimizer, table.dim);
  GS_EXPECT(columns == 0 || (state.dim == columns && state.type == RowType::fp32 && state.count == table.count),
            "update_rows: state of ", state.count, " rows and ", state.dim, " columns for a table of ", table.count,
            " rows; the optimizer needs ", columns, " columns of float32");
  GS_EXPECT(totals.size == 1, "update_rows: ", totals.size, " totals");
  const bool needs_scratch = rule.optimizer == Optimizer::adam || rule.weight_decay > 0;
  const Offset scratch_bytes = needs_scratch ? padded_stride(table.dim) * 4 : 0;
  const StoredRows no_state;
  with_type(table.type, [&](auto type) {
    const UpdateRows<decltype(type)> body{.table = table,
                                          .state = columns > 0 ? state : no_state,
                                          .local_rows = local_rows,
                                          .gradients = gradients,
                                          .curvature = curvature,
                                          .rule = rule,
                                          .log_first = std::log(rule.momentum),
                                          .log_second = std::log(rule.second_moment),
                                          .scratch_bytes = scratch_bytes,
                                          .totals = totals};
    for_each_row_group("update_rows", local_rows.size, scratch_bytes, body, exec);
  });
}

}  // namespace gs::kernels::GS_BACKEND
