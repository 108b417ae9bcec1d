// Blocks of input to edges between provisional ids.
#pragma once

#include <deque>

#include "src/graph/block_reader.hpp"
#include "src/graph/id_map.hpp"

namespace gs {

/// A block's edges in input order, and what its lines were.
struct ParsedBlock {
  const EdgeFile* file = nullptr;
  EdgeList edges;
  Offset lines = 0, skipped_lines = 0, header_lines = 0, dropped_weights = 0;
  bool ignores_weights = false;  ///< weights were not asked for, and a third column holds a number
  bool ignores_columns = false;  ///< columns behind the last that has a meaning
};

/// Turns blocks into edges; one a thread.
///
/// A line that is nothing but plain fields and the file's delimiter is read byte by byte, with no call but the one that
/// notes its names. Whatever is out of the ordinary (comments, quotes, blanks around fields, stray bytes, errors) goes
/// to `parse_unusual`, which alone knows the rules in full.
class EdgeParser {
 public:
  EdgeParser(IdMap& ids, IdMap& relation_ids, const IngestOptions& options)
      : ids_(ids), relation_ids_(relation_ids), options_(options) {}

  /// Throws BadLine where a line is no edge; `parsed` then counts lines up to it.
  void parse(const Block& block, ParsedBlock& parsed);

 private:
  enum class Byte : std::uint8_t { plain, blank, delimiter, end, unusual };
  struct Field {
    std::string_view text;
    std::uint64_t number = 0;
    bool is_number = false;
  };

  void parse_text(const Block& block);
  void parse_pairs(const Block& block);
  template <class T>
  void add_pairs(Span<const T> values, const Block& block);
  void classify_bytes(Delimiter delimiter);

  bool parse_plain(const char* line);
  bool read_name(const char*& at, Field& field) const;
  void skip_delimiter(const char*& at) const;
  bool read_third(const char*& at, std::string_view& third) const;
  void parse_unusual(std::string_view line);
  Field field_of(std::string_view text);
  void check_fields(std::string_view line) const;

  void add_edge(const Field& from, const Field& to, std::string_view third, bool has_third, bool has_more);
  void add_triple(const Field& head, const Field& relation, const Field& tail);
  bool read_weight(std::string_view text, bool there, float& weight);
  void check_index(const Field& field) const;
  static void add_name(IdMap::Batch& batch, const Field& field, std::uint32_t token);
  void add_nodes(const Field& from, const Field& to);
  [[noreturn]] void fail(const std::string& what) const;

  IdMap &ids_, &relation_ids_;
  const IngestOptions& options_;
  const EdgeFile* file_ = nullptr;  // of the block being parsed
  ParsedBlock* parsed_ = nullptr;

  std::array<Byte, 256> kind_{};
  IdMap::Batch names_;           // of the block: edge e's are tokens 2 e and 2 e + 1
  IdMap::Batch relation_names_;  // edge e's is token e
  std::uint32_t tokens_ = 0;
  std::vector<RowId> token_ids_;
  std::vector<float> weights_;
  FieldSplitter splitter_{Delimiter::blank};
  std::vector<std::string_view> fields_;
  std::deque<std::string> unquoted_;  // names that lie in the splitter's storage, kept for the length of the block
};

/// A weight as a float, or nullopt and why not: weights are finite numbers of at least 0.
std::optional<float> parse_weight(std::string_view text, std::string& why_not);

}  // namespace gs
