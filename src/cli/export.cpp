#include "graphscale/checkpoint.hpp"

#include "src/cli/commands.hpp"

namespace gs::cli {
namespace {

struct Arguments {
  std::string run, names, only, out;
  ExportFormat format = ExportFormat::npy;
  bool escape = false;
};

const std::map<std::string, ExportFormat> kFormats{{"npy", ExportFormat::npy},
                                                   {"word2vec", ExportFormat::word2vec_text},
                                                   {"word2vec-binary", ExportFormat::word2vec_binary},
                                                   {"safetensors", ExportFormat::safetensors}};

void run(const Arguments& arguments) {
  check_writable(arguments.out);
  const Embeddings embeddings = arguments.only.empty()
                                    ? Embeddings::open(arguments.run, arguments.names)
                                    : Embeddings::open_some(arguments.run, arguments.names, arguments.only);
  export_embeddings(embeddings, arguments.format, arguments.out, arguments.escape);
  const Rows<const float> rows = embeddings.rows();
  log_info(cat(arguments.out, ": ", with_commas(rows.count), " vectors of ", rows.dim, " columns"));
}

}  // namespace

void add_export(CLI::App& app, Common&) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App& command = *app.add_subcommand("export", "Write embeddings in the format of another program");
  command.add_option("RUN", arguments->run, "a run's folder, its embeddings folder, a checkpoint's, or an .npy file")
      ->required();
  command.add_option("--out", arguments->out, "file to write; npy: folder to make")->required()->option_text("PATH");
  command
      .add_option_function<std::string>(
          "--format", [arguments](const std::string& name) { arguments->format = kFormats.at(name); },
          "npy | word2vec (text) | word2vec-binary | safetensors")
      ->check(CLI::IsMember(&kFormats))
      ->required()
      ->option_text("NAME");
  command.add_flag("--escape", arguments->escape,
                   "word2vec: write blanks, control characters and % in names as %XX; without, such names are refused");
  command.add_option("--row-names", arguments->names, "names, one line a row; default: names.txt beside the array")
      ->option_text("FILE");
  command
      .add_option("--names", arguments->only,
                  "nodes to export, one name a line, in this order; no other row is read. Default: all")
      ->option_text("FILE");
  command.callback([arguments] { run(*arguments); });
}

}  // namespace gs::cli
