// The tables: their shape, their buffers, their first values, and how they are read back.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "graphscale/store.hpp"

namespace gs {
namespace {

template <class T>
Buffer<T> copy_of(Span<const T> values, const char* purpose, const Exec& exec) {
  Buffer<T> buffer(*exec.ledger, values.size, purpose);
  copy_bytes(buffer.data(), values.data, values.size * Offset(sizeof(T)), exec);
  wait(exec);
  return buffer;
}

kernels::RowType type_named(const std::string& name) {
  return name == "fp16" ? kernels::RowType::fp16 : name == "bf16" ? kernels::RowType::bf16 : kernels::RowType::fp32;
}

kernels::Compression compression_named(const std::string& name) {
  using kernels::Compression;
  return name == "fp16"     ? Compression::fp16
         : name == "int8"   ? Compression::int8
         : name == "topk"   ? Compression::topk
         : name == "onebit" ? Compression::onebit
                            : Compression::none;
}

}  // namespace

TablesShape tables_shape(const Config& config, Offset nodes, Offset step_walks, Offset dense_rows) {
  TablesShape shape;
  shape.tile = tile_shape(config);
  const ModelShape model = model_shape(config, nodes, 0);
  shape.one_table = model.one_table;
  shape.dense_rows = dense_rows;
  shape.initial_scale = model.initial_scale;
  shape.dense_scale = model.dense_scale, shape.dense_columns = model.dense_columns;
  shape.step_walks = step_walks;
  const bool all = config.exchange.method == "allreduce";
  shape.head_rows = dense_rows + (all ? nodes : std::min(nodes, config.store.replicated_rows));
  shape.type = type_named(config.model.dtype);
  shape.wire_type = type_named(config.exchange.row_type);
  shape.optimizer = optimizer_of(config.training);
  shape.codec.kind = compression_named(config.exchange.compression);
  shape.codec.dim = config.model.dim;
  shape.codec.keep = std::clamp(int(std::lround(config.exchange.keep_share * config.model.dim)), 1, config.model.dim);
  const bool keeps = shape.codec.kind == kernels::Compression::topk || shape.codec.kind == kernels::Compression::onebit;
  const Offset wanted = config.exchange.feedback_rows;
  shape.feedback_rows = !keeps || wanted == 0 ? 0 : dense_rows + (wanted < 0 ? nodes : std::min(nodes, wanted));
  shape.replicate_every = config.store.replicate_every;
  shape.deterministic = config.training.deterministic;
  shape.frozen_rows = !config.start.frozen.empty();
  return shape;
}

Rows<float> StepRows::rows(const Buffer<float>& table) const {
  const Buffer<float>& held = !one_table                    ? table
                              : &table == &centres          ? contexts
                              : &table == &centre_gradients ? context_gradients
                                                            : table;
  return {held.data(), batch.slots(), dim, padded_stride(dim)};
}

kernels::TileGradients StepRows::gradients() const {
  return {rows(centre_gradients), rows(context_gradients),
          (one_table ? context_curvature : centre_curvature).span().subspan(0, batch.slots()),
          context_curvature.span().subspan(0, batch.slots())};
}

ShardedTables::ShardedTables(const TablesShape& shape, const Placement& placement, std::uint64_t seed, Comm& control,
                             Comm& data, MemoryLedger& host, const Exec& exec)
    : shape_(shape),
      placement_(placement),
      control_(control),
      data_(data),
      exec_(exec),
      writer_(exec),
      own_(placement.owner_index(control.rank())) {
  GS_EXPECT(shape.dense_rows == placement.dense_rows() && shape.dense_rows <= shape.head_rows,
            "tables: ", shape.dense_rows, " dense rows, ", placement.dense_rows(), " of them placed, and a head of ",
            shape.head_rows);
  GS_EXPECT(shape.dense_rows == 0 || shape.replicate_every == 1, "tables: dense rows are updated at every step, not ",
            "every ", shape.replicate_every);
  if (shape.deterministic) writer_.threads = 1;
  MemoryLedger& ledger = *exec.ledger;
  size_ = TablesSize(shape, placement.part_of(control.rank()), exec.device);
  const auto table = [&](const std::string& name, Offset rows, Offset hot) {
    return ShardTable(name, rows, hot, dim(), shape.type, size_.state_columns, ledger, host);
  };
  if (placement.is_partition()) {
    positions_ = copy_of(placement.positions(), "store: placement", exec);
    bounds_ = copy_of(placement.bounds(), "store: placement", exec);
  }
  const std::string name = shape.one_table ? "rows" : "contexts";
  if (!shape.one_table) centres_ = table("centres", size_.local_rows, shape.hot_rows);
  contexts_ = table(name, size_.local_rows, shape.hot_rows);
  if (size_.local_rows > 0) {
    own_sequence_ = placement.sequence_of(own_);
    if (!own_sequence_.list.empty()) {
      own_rows_ = copy_of(own_sequence_.list, "store: placement", exec);
      own_sequence_.list = own_rows_.span();
    }
    initialize(embeddings().rows(), own_sequence_, shape.initial_scale, seed);
  }
  const Offset stride = padded_stride(dim());
  if (const Offset head = size_.head_rows; head > 0) {
    if (!shape.one_table) head_centres_ = table("head centres", head, head);
    head_contexts_ = table("head " + name, head, head);
    head_gradients_ = {ledger, shape.tables() * head * stride, "head: gradients"};
    head_curvature_ = {ledger, shape.tables() * head, "head: gradients"};
    std::vector<RowId> list(static_cast<std::size_t>(head));
    std::iota(list.begin(), list.end(), RowId(0));
    head_list_ = copy_of<RowId>(list, "head: gradients", exec);
    kernels::StoredRows dense = head_embeddings().rows(), nodes = dense;
    dense.count = dense.hot_rows = shape.dense_rows, dense.dim = shape.dense_columns;
    nodes.hot = nodes.row(shape.dense_rows), nodes.count = nodes.hot_rows = head - shape.dense_rows;
    initialize(dense, {}, shape.dense_scale, seed);
    initialize(nodes, {RowId(shape.dense_rows)}, shape.initial_scale, seed);
  }
  frozen_ = {ledger, size_.frozen_words, "store: frozen rows"};
  head_frozen_ = {ledger, size_.frozen_head_words, "store: frozen rows"};
  if (!shape.one_table) kept_centres_ = {ledger, size_.kept_rows * stride, "exchange: kept gradients"};
  kept_contexts_ = {ledger, size_.kept_rows * stride, "exchange: kept gradients"};
  totals_ = {ledger, 1, "exchange: sums"};
  allocate_exchange();
}

void ShardedTables::allocate_exchange() {
  MemoryLedger& ledger = *exec_.ledger;
  sums_ = {}, sum_curvature_ = {}, scratch_ = {}, outgoing_ = {}, incoming_ = {};  // before there are new ones
  sums_ = {ledger, shape_.tables() * size_.distinct * padded_stride(dim()), "exchange: sums"};
  sum_curvature_ = {ledger, shape_.tables() * size_.distinct, "exchange: sums"};
  scratch_ = {ledger, size_.scratch, "exchange: sums"};
  outgoing_ = {ledger, size_.outgoing, "exchange: wire"};
  incoming_ = {ledger, size_.incoming, "exchange: wire"};
}

void ShardedTables::initialize(const kernels::StoredRows& table, const kernels::RowSequence& rows, float scale,
                               std::uint64_t seed) {
  if (scale == 0) return;  // tables are made of zeros
  kernels::ops(exec_).initialize_rows(table, rows, scale, seed, exec_);
  wait(exec_);
}

void ShardedTables::start_from(const StartRows& start) {
  GS_EXPECT(!start.frozen || shape_.frozen_rows, "tables: rows to freeze, and no bits to note them");
  const auto write = [&](const std::vector<NamedTable>& tables, const kernels::RowSequence& rows) {
    for (const NamedTable& table : tables)
      for (const auto& [name, values] : {std::pair(kVectors, &start.vectors),
                                         {kContexts, &start.contexts},
                                         {kVectorState, &start.vector_state},
                                         {kContextState, &start.context_state}})
        if (table.name == name) write_rows(*values, table.rows, rows, exec_);
  };
  if (size_.local_rows > 0) {
    const kernels::RowSequence own = placement_.sequence_of(own_);
    write(tables_of(embeddings(), contexts_), own);
    freeze(start, own, size_.local_rows, frozen_);
  }
  if (size_.head_rows > 0) write(tables_of(head_embeddings(), head_contexts_), {});
  freeze(start, {}, size_.head_rows, head_frozen_);
}

std::vector<NamedTable> ShardedTables::tables_of(const ShardTable& vectors, const ShardTable& contexts) const {
  std::vector<NamedTable> tables{{kVectors, vectors.rows()}};
  if (!shape_.one_table) tables.push_back({kContexts, contexts.rows()});
  if (size_.state_columns == 0) return tables;
  tables.push_back({kVectorState, vectors.state()});
  if (!shape_.one_table) tables.push_back({kContextState, contexts.state()});
  return tables;
}

std::vector<TablesPart> ShardedTables::parts() const {
  std::vector<TablesPart> parts;
  if (size_.head_rows > 0 && control_.rank() == 0) parts.push_back({{}, tables_of(head_embeddings(), head_contexts_)});
  if (size_.local_rows == 0) return parts;
  TablesPart own{placement_.sequence_of(own_), tables_of(embeddings(), contexts_)};
  Offset in_head = 0;  // rows ascend
  while (in_head < size_.local_rows && own.rows[in_head] < shape_.head_rows) ++in_head;
  own.rows = own.rows.from(in_head);
  for (NamedTable& table : own.tables) table.rows = table.rows.from(in_head);
  if (in_head < size_.local_rows) parts.push_back(own);
  return parts;
}

void ShardedTables::freeze(const StartRows& start, const kernels::RowSequence& rows, Offset count,
                           Buffer<std::uint32_t>& bits) {
  if (!start.frozen) return;
  std::vector<std::uint32_t> words(std::size_t(bits.size()), 0);
  for (Offset i = 0; i < count; ++i) words[std::size_t(i / 32)] |= std::uint32_t(start.frozen(rows[i])) << i % 32;
  copy_bytes(bits.data(), words.data(), bits.size() * Offset(sizeof(std::uint32_t)), exec_);
  wait(exec_);
}

std::unique_ptr<StepRows> ShardedTables::make_step() const {
  MemoryLedger& ledger = *exec_.ledger;
  const Offset walks = placement_.compute_index(control_.rank()) >= 0 ? shape_.step_walks : 0;
  const Offset slots = size_.slots, centre_slots = shape_.one_table ? 0 : slots;
  const auto rows = [&](Offset count, const char* purpose) {
    return Buffer<float>(ledger, count * padded_stride(dim()), purpose);
  };
  return std::make_unique<StepRows>(StepRows{Batch(shape_.tile, walks, placement_.rows(), exec_, shape_.slices()),
                                             shape_.one_table,
                                             rows(centre_slots, "step: fetched rows"),
                                             rows(slots, "step: fetched rows"),
                                             rows(centre_slots, "step: gradients"),
                                             rows(slots, "step: gradients"),
                                             Buffer<float>(ledger, centre_slots, "step: gradients"),
                                             Buffer<float>(ledger, slots, "step: gradients"),
                                             Buffer<RowId>(ledger, size_.asked, "step: asked rows"),
                                             Buffer<RowId>(ledger, size_.asked, "step: asked rows"),
                                             Buffer<RowId>(ledger, size_.distinct, "step: asked rows"),
                                             std::vector<Offset>(std::size_t(control_.size()), 0),
                                             std::vector<Offset>(std::size_t(control_.size()), 0),
                                             {},
                                             dim()});
}

kernels::Owners ShardedTables::owners() const {
  kernels::Owners owners = placement_.owners();
  owners.positions = positions_.span(), owners.bounds = bounds_.span();
  return owners;
}

void ShardedTables::gather_centres(Offset first, Rows<float> out) {
  const Offset last = first + out.count, row_bytes = dim() * Offset(sizeof(float));
  const kernels::Owners owners = placement_.owners();
  std::vector<std::vector<RowId>> by_owner(placement_.storage().size());  // local rows, ascending global rows
  for (Offset row = std::max(first, shape_.head_rows); row < last; ++row)
    by_owner[std::size_t(owners.owner(RowId(row)))].push_back(owners.local_row(RowId(row)));

  // Own rows to packed host memory.
  const auto packed = [&](const ShardTable& table, const std::vector<RowId>& ids) {
    std::vector<char> host(ids.size() * std::size_t(row_bytes));
    Buffer<RowId> device_ids = copy_of<RowId>(ids, "store: rows read back", exec_);
    Buffer<char> device(*exec_.ledger, Offset(host.size()), "store: rows read back");
    kernels::ops(exec_).pack_rows(table.rows(), device_ids.span(), kernels::RowType::fp32, device.data(), exec_);
    copy_bytes(host.data(), device.data(), Offset(host.size()), exec_);
    wait(exec_);
    return host;
  };
  std::vector<char> mine;
  if (own_ >= 0) mine = packed(embeddings(), by_owner[std::size_t(own_)]);

  const bool is_root = control_.rank() == 0;
  std::vector<Offset> sent(std::size_t(control_.size()), 0), received(std::size_t(control_.size()), 0);
  sent[0] = Offset(mine.size());
  Offset total = 0;
  for (std::size_t o = 0; is_root && o < by_owner.size(); ++o)
    total += received[std::size_t(placement_.storage()[o])] = Offset(by_owner[o].size()) * row_bytes;
  std::vector<char> all(static_cast<std::size_t>(total));
  control_.all_to_all(mine.data(), sent, all.data(), received);
  if (!is_root) return;

  std::vector<const char*> next(by_owner.size());
  const char* at = all.data();
  for (std::size_t o = 0; o < by_owner.size(); ++o) next[o] = at, at += Offset(by_owner[o].size()) * row_bytes;
  for (Offset row = std::max(first, shape_.head_rows); row < last; ++row) {
    const char*& from = next[std::size_t(owners.owner(RowId(row)))];
    std::memcpy(out.row(row - first), from, std::size_t(row_bytes));
    from += row_bytes;
  }
  if (first >= shape_.head_rows) return;
  std::vector<RowId> head(std::size_t(std::min(last, shape_.head_rows) - first));
  std::iota(head.begin(), head.end(), RowId(first));
  const std::vector<char> values = packed(head_embeddings(), head);
  for (std::size_t i = 0; i < head.size(); ++i)
    std::memcpy(out.row(Offset(i)), values.data() + i * std::size_t(row_bytes), std::size_t(row_bytes));
}

}  // namespace gs
