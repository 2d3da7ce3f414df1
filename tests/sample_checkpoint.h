#pragma once

// Tiny checkpoints of random weights for any architecture of the registry, made from its description (models/model.h):
// its sample config, the names of its weights and their shapes. All values are exact in f16 and bf16, so that one model
// can be written in several dtypes and kinds of file.

#include <map>
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/model.h"
#include "tests/base/temporary_folder.h"
#include "tests/io/gguf_bytes.h"

namespace weft {

// Early converters wrote a tensor for each expert, and one for keys and values of latents. Others merge queries, keys
// and values.
enum class GgufAge : std::uint8_t { current, early, merged };

// The architectures whose models generate text, as encoders do not.
std::vector<std::string> text_architectures(const ModelRegistry& models);

class SampleCheckpoint {
 public:
  // `changes` are members of the sample config to set to other values.
  explicit SampleCheckpoint(const ModelDefinition& model, const nlohmann::json& changes = nlohmann::json::object(),
                            std::uint64_t seed = 1);

  const ModelConfig& config() const { return config_; }
  std::string gguf_name(const std::string& name) const { return gguf_names_.at(name); }
  // Whether a GGUF file may have the weight in another shape: one expert's in a stack, a transposed one, one of a
  // recurrent layer, or in two parts.
  bool has_other_shape_in_gguf(const std::string& name) const {
    return experts_.contains(name) || recurrent_.contains(name) || transposed_.contains(name) ||
           parted_.contains(name) || is_gate_and_up(name) || is_split_in_gguf(name) || is_metadata_in_gguf(name) ||
           positions_ == name;
  }
  // Make it wrong: a weight that is not there, or has random values in another shape.
  void erase(const std::string& name);
  void reshape(const std::string& name, const std::vector<std::int64_t>& shape);
  // A weight that the architecture does not have, with random values, by its names in a folder and in a GGUF file.
  void add(const std::string& name, const std::string& gguf_name, const std::vector<std::int64_t>& shape);
  // The same with the values of another weight.
  void add_copy(const std::string& name, const std::string& gguf_name, const std::string& of);
  // Gives each weight the values of the tensor with its name.
  void take_weights(const Checkpoint& checkpoint);
  // Each column of the weight divided by its length.
  void divide_columns_by_lengths(const std::string& name);
  // The weight times a factor, which may be NaN.
  void multiply(const std::string& name, float factor);
  void multiply_rows(const std::string& name, std::int64_t first, std::int64_t count, float factor);
  // Multiplies each number of the weight by 1 plus a random number, whose root mean square is `relative`.
  void add_errors(const std::string& name, double relative, int seed);
  // Makes a row of a matrix zeros but for one column.
  void set_row(const std::string& name, std::int64_t row, std::int64_t column, float value);
  // Gives the matrices the values that they have when stored in the dtype.
  void round_matrices_to(DType dtype);
  // The weights by their names in a Hugging Face folder, f32.
  const std::vector<std::pair<std::string, Tensor>>& weights() const { return weights_; }

  // A folder with config.json, tokenizer.json and the weights in `files` files (an index from two on). Gives its path.
  std::string write_folder(const TemporaryFolder& folder, const std::string& name, DType dtype, int files = 1) const;
  // The same with the stacks of experts that transformers' modules have.
  std::string write_stacked_folder(const TemporaryFolder& folder, const std::string& name, DType dtype,
                                   bool is_transposed = false) const;

  // The content of its GGUF file: matrices in the dtype (f32, f16, bf16 or a block type), vectors in f32. Of block
  // types that are only read, the matrices are random blocks.
  testing::GgufBytes gguf(DType dtype, GgufAge age = GgufAge::current) const;
  std::string write_gguf(const TemporaryFolder& folder, const std::string& name, DType dtype,
                         GgufAge age = GgufAge::current) const;

  std::string config_json() const { return json_.dump(2); }
  std::string tokenizer_json() const;

 private:
  std::vector<std::string> tokens() const;  // in the alphabet of byte-level vocabularies
  void add_metadata(testing::GgufBytes& file, GgufAge age) const;
  void add_latent_metadata(testing::GgufBytes& file, const std::string& prefix, GgufAge age) const;
  void add_recurrent_metadata(testing::GgufBytes& file, const std::string& prefix) const;
  void add_positions(testing::GgufBytes& file, const std::string& prefix) const;
  void add_expert_metadata(testing::GgufBytes& file, const std::string& prefix) const;
  std::vector<std::pair<std::string, Tensor>> stacked_weights() const;
  // Whether GGUF files have the two halves of the weight.
  bool is_gate_and_up(const std::string& name) const {
    const std::string& gguf = gguf_names_.at(name);
    return gguf.find("ffn_gate_up.") != std::string::npos || gguf.find("ffn_gate_up_shexp.") != std::string::npos;
  }
  void add_gate_and_up(testing::GgufBytes& file, const std::string& whole_name, const Tensor& tensor,
                       DType dtype) const;
  // Where the two formats rotate other elements of a head together, GGUF files have queries, keys and values apart.
  bool is_split_in_gguf(const std::string& name) const {
    return facts_.pairing_in_gguf != facts_.pairing_in_folders &&
           gguf_names_.at(name).find("attn_qkv.") != std::string::npos;
  }
  // Whether GGUF files have the numbers of all layers in one list of their metadata.
  bool is_metadata_in_gguf(const std::string& name) const { return list_in_gguf(name) != ""; }
  std::string list_in_gguf(const std::string& name) const;
  void add_query_key_value(testing::GgufBytes& file, const std::string& whole_name, const Tensor& tensor,
                           DType dtype) const;
  void add_latent_parts(testing::GgufBytes& file, const std::string& whole_name, const Tensor& tensor,
                        DType dtype) const;

  nlohmann::json json_;
  ArchitectureFacts facts_;
  std::string gguf_architecture_;
  ModelConfig config_;
  std::vector<std::pair<std::string, Tensor>> weights_;
  std::map<std::string, std::string> gguf_names_;  // by the name in a folder
  std::map<std::string, int> heads_;               // by the name in a folder: heads whose rows are rotated
  std::map<std::string, std::string> recurrent_;   // the same: weights of recurrent layers by the model's table
  std::set<std::string> experts_;                  // names in a folder of matrices of one expert
  std::set<std::string> grouped_;                  // names in a folder of rows that it sorts by key head
  std::set<std::string> parted_;                   // names in a folder of keys and values of latents
  std::string positions_;                          // in a folder, of positions whose first rows GGUF files lack
  std::set<std::string> transposed_;               // names in a folder of matrices that it stores transposed
  std::set<std::string> one_plus_;                 // names in a folder of vectors for which GGUF files have 1 + w
};

}  // namespace weft
