// One step's rows out and gradients home. What a rank asks of an owner, and what it is asked, lie in two runs: rows
// whose centre vector is needed too, then rows that are contexts only. Of one table all rows are of the second run.
#include <cstring>

#include "graphscale/store.hpp"

namespace gs {
namespace {

/// What each rank tells each with a step's counts.
struct Counts {
  Offset first = 0, second = 0;  // rows asked of the receiver, by kind
  RankReport report;
};
static_assert(sizeof(Counts) == kCountBytes);

Offset sum_of(const std::vector<Offset>& values) {
  Offset sum = 0;
  for (const Offset value : values) sum += value;
  return sum;
}

std::vector<Offset> times(const std::vector<Offset>& counts, Offset bytes) {
  std::vector<Offset> out;
  for (const Offset count : counts) out.push_back(count * bytes);
  return out;
}

Rows<float> part(Rows<float> rows, Offset first, Offset count) {
  return {rows.row(first), count, rows.dim, rows.stride};
}

}  // namespace

// ------------------------------------------------------------------------------------------------------------ fetch

std::vector<RankReport> ShardedTables::fetch(StepRows& step, const RankReport& mine) {
  const auto ranks = std::size_t(control_.size());
  std::vector<Counts> out(ranks, Counts{0, 0, mine}), in(ranks);
  const StoreCounters untold = tell_counters();
  for (Counts& counts : out) counts.report.counters = untold;
  const auto& groups = step.batch.groups();
  for (std::size_t o = 0; o + 1 < groups.size(); ++o) {
    Counts& to_owner = out[std::size_t(placement_.storage()[o])];
    to_owner.first = shape_.centre_rows(groups[o + 1]), to_owner.second = groups[o + 1].rows - to_owner.first;
  }
  const std::vector<Offset> bytes(ranks, Offset(sizeof(Counts)));
  control_.all_to_all(out.data(), bytes, in.data(), bytes);

  std::vector<RankReport> reports;
  for (std::size_t r = 0; r < ranks; ++r) {
    step.asked_first[r] = in[r].first, step.asked_second[r] = in[r].second;
    reports.push_back(in[r].report);
  }
  if (has_shards()) {
    make_room(step);
    ask(step);
    serve(step);
  }
  take(step);
  count(step);
  count_homes(step);
  return reports;
}

/// A step may ask more of this owner than was planned; its buffers then grow, and stay so.
void ShardedTables::make_room(StepRows& step) {
  const Offset all = sum_of(step.asked_first) + sum_of(step.asked_second);
  const auto me = std::size_t(control_.rank());
  const Offset by_others = all - step.asked_first[me] - step.asked_second[me];
  if (all > size_.asked || by_others > size_.asked_by_others) {
    const auto more = [](Offset had, Offset needed) { return needed > had ? needed + needed / 4 : had; };
    log_info(cat("rank ", me, ": a step asks for ", with_commas(all), " of its rows, more than the ",
                 with_commas(size_.asked), " there is room for; its buffers grow"));
    size_.make_room(more(size_.asked, all), more(size_.asked_by_others, by_others), shape_,
                    placement_.part_of(control_.rank()), exec_.device);
    allocate_exchange();
  }
  if (step.asked.size() >= all && step.asked_unique.size() >= std::min(all, size_.local_rows)) return;
  for (Buffer<RowId>* rows : {&step.asked, &step.asked_slots, &step.asked_unique}) *rows = {};
  for (Buffer<RowId>* rows : {&step.asked, &step.asked_slots}) *rows = {*exec_.ledger, size_.asked, "step: asked rows"};
  step.asked_unique = {*exec_.ledger, size_.distinct, "step: asked rows"};
}

/// Ids go out; those asked of this owner come in and are made unique.
void ShardedTables::ask(StepRows& step) {
  const auto ranks = std::size_t(control_.size());
  std::vector<Offset> out(ranks, 0), in(ranks, 0);
  const auto& groups = step.batch.groups();
  for (std::size_t o = 0; o + 1 < groups.size(); ++o) out[std::size_t(placement_.storage()[o])] = groups[o + 1].rows;
  for (std::size_t r = 0; r < ranks; ++r) in[r] = step.asked_first[r] + step.asked_second[r];
  const Offset head = groups.empty() ? 0 : groups[0].rows;
  RowId* const arrived = step.asked_slots.data();  // its slots are known only after the ids were put in their runs
  data_.all_to_all(step.batch.local_rows().data + head, times(out, sizeof(RowId)), arrived, times(in, sizeof(RowId)));
  counters_.received_bytes += (sum_of(in) - in[std::size_t(control_.rank())]) * Offset(sizeof(RowId));

  Offset first = 0, second = sum_of(step.asked_first), from = 0;
  const Offset firsts = second, seconds = sum_of(step.asked_second);
  const auto move = [&](Offset& to, Offset rows) {
    copy_bytes(step.asked.data() + to, arrived + from, rows * Offset(sizeof(RowId)), exec_);
    to += rows, from += rows;
  };
  for (std::size_t r = 0; r < ranks; ++r) move(first, step.asked_first[r]), move(second, step.asked_second[r]);

  step.unique = {};
  if (firsts + seconds == 0) return;
  const kernels::RowLists lists{step.asked.span().subspan(0, firsts), step.asked.span().subspan(firsts, seconds)};
  const Span<RowId> unique = step.asked_unique.span();  // a shard's own numbers: as rows and as local rows the same
  kernels::GroupCounts counts[2];
  kernels::ops(exec_).unique_rows(lists, {}, 0,
                                  {unique, unique, step.asked_slots.span().subspan(0, firsts),
                                   step.asked_slots.span().subspan(firsts, seconds), scratch_.span()},
                                  {counts, 2}, exec_);
  step.unique = counts[1];
}

/// Rows that others asked of this owner go out; those this rank asked for arrive in `incoming_`.
void ShardedTables::serve(StepRows& step) {
  const kernels::Ops& ops = kernels::ops(exec_);
  const auto ranks = std::size_t(control_.size());
  const Offset row_bytes = dim() * kernels::bytes_of(shape_.wire_type);
  std::vector<Offset> out(ranks, 0), in(ranks, 0);
  const auto& groups = step.batch.groups();
  for (std::size_t o = 0; o + 1 < groups.size(); ++o)
    if (!is_own(int(o)))
      in[std::size_t(placement_.storage()[o])] = (groups[o + 1].rows + shape_.centre_rows(groups[o + 1])) * row_bytes;

  Offset first = 0, second = sum_of(step.asked_first);
  char* to = outgoing_.data();
  const auto pack = [&](const ShardTable& table, Offset from, Offset rows) {
    ops.pack_rows(table.rows(), step.asked.span().subspan(from, rows), shape_.wire_type, to, exec_);
    to += rows * row_bytes;
  };
  for (std::size_t r = 0; r < ranks; ++r) {
    const Offset firsts = step.asked_first[r], seconds = step.asked_second[r];
    if (int(r) != control_.rank()) {
      pack(embeddings(), first, firsts), pack(contexts_, first, firsts), pack(contexts_, second, seconds);
      out[r] = (2 * firsts + seconds) * row_bytes;
    }
    first += firsts, second += seconds;
  }
  wait(exec_);
  data_.all_to_all(outgoing_.data(), out, incoming_.data(), in);
  counters_.row_bytes += sum_of(out), counters_.received_bytes += sum_of(in);
}

/// The step's tables from what arrived, from this rank's own shard and from the head.
void ShardedTables::take(StepRows& step) {
  const kernels::Ops& ops = kernels::ops(exec_);
  const Offset row_bytes = dim() * kernels::bytes_of(shape_.wire_type);
  const Rows<float> centres = step.rows(step.centres), contexts = step.rows(step.contexts);
  const auto& groups = step.batch.groups();
  const char* from = incoming_.data();
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const Offset slot = groups[g].first_slot, rows = groups[g].rows, centre_rows = shape_.centre_rows(groups[g]);
    if (rows == 0) continue;
    const Rows<float> centre_part = part(centres, slot, centre_rows), context_part = part(contexts, slot, rows);
    if (g > 0 && !is_own(int(g) - 1)) {
      ops.unpack_rows(shape_.wire_type, from, centre_part, exec_);
      ops.unpack_rows(shape_.wire_type, from + centre_rows * row_bytes, context_part, exec_);
      from += (centre_rows + rows) * row_bytes;
      continue;
    }
    const Span<const RowId> ids = step.batch.local_rows().subspan(slot, rows);
    ops.gather_rows((g == 0 ? head_embeddings() : embeddings()).rows(), ids.subspan(0, centre_rows), centre_part,
                    exec_);
    ops.gather_rows((g == 0 ? head_contexts_ : contexts_).rows(), ids, context_part, exec_);
  }
  wait(exec_);
}

void ShardedTables::count(const StepRows& step) {
  const auto& groups = step.batch.groups();
  const Offset row_bytes = dim() * Offset(sizeof(float)), id_bytes = sizeof(RowId);
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const Batch::Group& group = groups[g];
    const Offset unique = group.rows + shape_.centre_rows(group), positions = shape_.positions(group);
    counters_.requested_rows += positions;
    counters_.unique_rows += unique;
    if (g == 0) {
      counters_.head_rows += unique;
    } else if (is_own(int(g) - 1)) {
      counters_.local_rows += unique;
    } else {
      counters_.remote_rows += unique;
      counters_.id_bytes += group.rows * id_bytes;
      counters_.undeduplicated_bytes +=
          (group.node_positions + group.negative_positions) * id_bytes + positions * 2 * row_bytes;
    }
  }
}

/// The rows this owner reads for the step, by home.
void ShardedTables::count_homes(const StepRows& step) {
  const Offset firsts = sum_of(step.asked_first), seconds = sum_of(step.asked_second);
  const kernels::StoredRows rows = contexts_.rows();
  if (rows.hot_rows == rows.count) {
    counters_.hot_rows += 2 * firsts + seconds;
    return;
  }
  std::vector<RowId> asked(std::size_t(firsts + seconds));
  copy_bytes(asked.data(), step.asked.data(), Offset(asked.size() * sizeof(RowId)), exec_);
  wait(exec_);
  for (std::size_t i = 0; i < asked.size(); ++i)
    (asked[i] < rows.hot_rows ? counters_.hot_rows : counters_.cold_rows) += i < std::size_t(firsts) ? 2 : 1;
}

// ------------------------------------------------------------------------------------------------------------- push

void ShardedTables::push(StepRows& step, const kernels::UpdateRule& rule) {
  if (has_shards()) {
    send_gradients(step);
    update_rows(step, rule);
  }
  push_head(step, rule);
  const kernels::TileGradients gradients = step.gradients();
  const auto clear = [&](Rows<float> rows, Span<float> curvature) {
    clear_bytes(rows.data, rows.count * rows.stride * Offset(sizeof(float)), exec_);
    clear_bytes(curvature.data, curvature.size * Offset(sizeof(float)), exec_);
  };
  clear(gradients.contexts, gradients.context_curvature);
  if (!shape_.one_table) clear(gradients.centres, gradients.centre_curvature);
  wait(exec_);
  ++pushes_;
}

/// Coded gradients of remote rows go to their owners; those of this owner's rows arrive in `incoming_`.
void ShardedTables::send_gradients(StepRows& step) {
  const kernels::Ops& ops = kernels::ops(exec_);
  const auto ranks = std::size_t(control_.size());
  const Offset coded_bytes = shape_.codec.row_bytes();
  std::vector<Offset> out(ranks, 0), in(ranks, 0);
  const kernels::TileGradients gradients = step.gradients();
  const auto& groups = step.batch.groups();
  char* to = outgoing_.data();
  const auto encode = [&](Rows<float> rows, Span<float> curvature, const Buffer<float>& kept, Offset slot,
                          Offset count) {
    const kernels::Feedback feedback{{kept.data(), shape_.feedback_rows, dim(), padded_stride(dim())},
                                     step.batch.rows().subspan(slot, count)};
    ops.encode_gradients(shape_.codec, part(rows, slot, count), curvature.subspan(slot, count), feedback, to, writer_);
    to += count * coded_bytes;
  };
  Offset sent_rows = 0;
  for (std::size_t o = 0; o + 1 < groups.size(); ++o) {
    if (is_own(int(o))) continue;
    const Offset slot = groups[o + 1].first_slot, rows = groups[o + 1].rows;
    const Offset centre_rows = shape_.centre_rows(groups[o + 1]);
    encode(gradients.centres, gradients.centre_curvature, kept_centres_, slot, centre_rows);
    encode(gradients.contexts, gradients.context_curvature, kept_contexts_, slot, rows);
    out[std::size_t(placement_.storage()[o])] = (centre_rows + rows) * coded_bytes;
    sent_rows += centre_rows + rows;
  }
  for (std::size_t r = 0; r < ranks; ++r)
    if (int(r) != control_.rank()) in[r] = (2 * step.asked_first[r] + step.asked_second[r]) * coded_bytes;
  wait(exec_);
  data_.all_to_all(outgoing_.data(), out, incoming_.data(), in);
  counters_.gradient_bytes += sum_of(out), counters_.received_bytes += sum_of(in);
  counters_.plain_gradient_bytes += sent_rows * (dim() + 1) * Offset(sizeof(float));
}

/// What every rank sent is summed in the order of ranks; then every row takes one step.
void ShardedTables::update_rows(StepRows& step, const kernels::UpdateRule& rule) {
  const kernels::Ops& ops = kernels::ops(exec_);
  const Offset coded_bytes = shape_.codec.row_bytes(), stride = padded_stride(dim());
  const Offset rows = step.unique.rows, centre_rows = step.unique.first_rows;
  if (rows == 0) return;
  const Rows<float> centres(sums_.data(), centre_rows, dim(), stride);
  const Rows<float> contexts(sums_.data() + centre_rows * stride, rows, dim(), stride);
  const Span<float> centre_curvature = sum_curvature_.span().subspan(0, centre_rows);
  const Span<float> context_curvature = sum_curvature_.span().subspan(centre_rows, rows);
  clear_bytes(sums_.data(), (centre_rows + rows) * stride * Offset(sizeof(float)), exec_);
  clear_bytes(sum_curvature_.data(), (centre_rows + rows) * Offset(sizeof(float)), exec_);

  Offset first = 0, second = sum_of(step.asked_first);
  const char* from = incoming_.data();
  for (std::size_t r = 0; r < step.asked_first.size(); ++r) {
    const Offset firsts = step.asked_first[r], seconds = step.asked_second[r];
    const Span<const RowId> first_slots = step.asked_slots.span().subspan(first, firsts);
    const Span<const RowId> second_slots = step.asked_slots.span().subspan(second, seconds);
    first += firsts, second += seconds;
    if (int(r) == control_.rank()) {
      const kernels::TileGradients own = step.gradients();
      const Offset slot =
          own_ >= 0 && !step.batch.groups().empty() ? step.batch.groups()[std::size_t(own_) + 1].first_slot : 0;
      const auto add = [&](Rows<float> gradients, Span<float> curvature, Offset at, Span<const RowId> slots,
                           Rows<float> sums, Span<float> sum_curvature) {
        ops.add_rows(part(gradients, at, slots.size), curvature.subspan(at, slots.size), slots, sums, sum_curvature,
                     writer_);
      };
      add(own.centres, own.centre_curvature, slot, first_slots, centres, centre_curvature);
      add(own.contexts, own.context_curvature, slot, first_slots, contexts, context_curvature);
      add(own.contexts, own.context_curvature, slot + firsts, second_slots, contexts, context_curvature);
      continue;
    }
    const auto add = [&](Span<const RowId> slots, Rows<float> sums, Span<float> curvature) {
      ops.add_coded(shape_.codec, from, slots, sums, curvature, writer_);
      from += slots.size * coded_bytes;
    };
    add(first_slots, centres, centre_curvature);
    add(first_slots, contexts, context_curvature);
    add(second_slots, contexts, context_curvature);
  }
  kernels::UpdateRule own_rule = rule;
  own_rule.rows = own_sequence_;
  step_rows(centres_, step.asked_unique.span().subspan(0, centre_rows), centres, centre_curvature, own_rule);
  step_rows(contexts_, step.asked_unique.span().subspan(0, rows), contexts, context_curvature, own_rule);
}

void ShardedTables::step_rows(const ShardTable& table, Span<const RowId> rows, Rows<const float> gradients,
                              Span<const float> curvature, const kernels::UpdateRule& rule) {
  if (rows.empty()) return;
  kernels::UpdateRule table_rule = rule;
  if (&table == &embeddings()) table_rule.frozen = frozen_.span();
  if (&table == &head_embeddings()) table_rule.frozen = head_frozen_.span();
  clear_bytes(totals_.data(), sizeof(kernels::UpdateTotals), exec_);
  kernels::ops(exec_).update_rows(table.rows(), table.state(), rows, gradients, curvature, table_rule, totals_.span(),
                                  exec_);
  kernels::UpdateTotals totals;
  copy_bytes(&totals, totals_.data(), sizeof totals, exec_);
  wait(exec_);
  updates_ += totals, untaken_ += totals;
}

/// The head's sums go from rank to rank, each of which adds its own: one order of adding for any number of ranks.
void ShardedTables::pass_head(const std::function<void()>& add_own) {
  const Traffic before = data_.traffic();
  for (int rank = 0; rank < control_.size(); ++rank) {
    if (rank == control_.rank()) add_own();
    wait(exec_);
    for (const Buffer<float>* sums : {&head_gradients_, &head_curvature_})
      data_.broadcast(sums->data(), sums->size() * Offset(sizeof(float)), rank);
  }
  counters_.head_bytes += data_.traffic().sent_bytes - before.sent_bytes;
  counters_.received_bytes += data_.traffic().received_bytes - before.received_bytes;
}

/// The head's gradients are kept until its next update, which is the same on every rank.
void ShardedTables::push_head(StepRows& step, const kernels::UpdateRule& rule) {
  const Offset head = shape_.head_rows, stride = padded_stride(dim());
  if (head == 0) return;
  const Offset centre_head = shape_.one_table ? 0 : head;
  const Rows<float> centres(head_gradients_.data(), centre_head, dim(), stride);
  const Rows<float> contexts(head_gradients_.data() + centre_head * stride, head, dim(), stride);
  const Span<float> centre_curvature = head_curvature_.span().subspan(0, centre_head);
  const Span<float> context_curvature = head_curvature_.span().subspan(centre_head, head);
  const auto add_own = [&] {
    if (step.batch.groups().empty()) return;
    const Batch::Group& group = step.batch.groups()[0];
    const Offset slot = group.first_slot, rows = group.rows, centre_rows = shape_.centre_rows(group);
    const kernels::TileGradients own = step.gradients();
    const Span<const RowId> ids = step.batch.rows().subspan(slot, rows);
    kernels::ops(exec_).add_rows(part(own.centres, slot, centre_rows), own.centre_curvature.subspan(slot, centre_rows),
                                 ids.subspan(0, centre_rows), centres, centre_curvature, writer_);
    kernels::ops(exec_).add_rows(part(own.contexts, slot, rows), own.context_curvature.subspan(slot, rows), ids,
                                 contexts, context_curvature, writer_);
  };
  if (shape_.deterministic && control_.size() > 1) {
    pass_head(add_own);
  } else {
    add_own();
    if ((pushes_ + 1) % shape_.replicate_every != 0) return;
    sum_head();
  }
  step_head(rule);
}

void ShardedTables::sum_head() {
  wait(exec_);
  data_.all_reduce(head_gradients_.span());
  data_.all_reduce(head_curvature_.span());
  const Offset others = control_.size() - 1;
  const Offset bytes =
      (head_gradients_.size() + head_curvature_.size()) * Offset(sizeof(float)) * 2 * others / control_.size();
  counters_.head_bytes += bytes, counters_.received_bytes += bytes;
}

void ShardedTables::update_head(const kernels::UpdateRule& rule) {
  const bool is_done = pushes_ % shape_.replicate_every == 0 || (shape_.deterministic && control_.size() > 1);
  if (shape_.head_rows == 0 || is_done) return;
  sum_head();
  step_head(rule);
  wait(exec_);
  pushes_ = 0;
}

void ShardedTables::step_head(const kernels::UpdateRule& rule) {
  const Offset head = shape_.head_rows, stride = padded_stride(dim()), centre_head = shape_.one_table ? 0 : head;
  const Rows<float> centres(head_gradients_.data(), centre_head, dim(), stride);
  const Rows<float> contexts(head_gradients_.data() + centre_head * stride, head, dim(), stride);
  const Span<float> centre_curvature = head_curvature_.span().subspan(0, centre_head);
  const Span<float> context_curvature = head_curvature_.span().subspan(centre_head, head);
  step_rows(head_centres_, head_list_.span().subspan(0, centre_head), centres, centre_curvature, rule);
  step_rows(head_contexts_, head_list_.span(), contexts, context_curvature, rule);
  clear_bytes(head_gradients_.data(), head_gradients_.size() * Offset(sizeof(float)), exec_);
  clear_bytes(head_curvature_.data(), head_curvature_.size() * Offset(sizeof(float)), exec_);
}

}  // namespace gs
