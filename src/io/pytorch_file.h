#pragma once

// Parses a file that torch.save wrote of a dict of tensors, as pytorch_model.bin: a zip archive with a pickle and the
// bytes of each storage. It returns the places of the tensors and does not access their bytes. Of the pickle only what
// makes tensors is read, and nothing in it is run.
//
// UserErrors begin with [where]. They are for files that torch wrote before 1.6, which are not archives; for compressed
// or missing members; for objects that are not tensors; and for tensors that are not contiguous or exceed their
// storage.
//
// Layout of archives: APPNOTE.TXT of PKWARE, sections 4.3 and 4.5.3.

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "io/stored_tensor.h"

namespace weft {

// In the order of the dict.
std::vector<StoredTensor> parse_pytorch_file(std::span<const std::byte> file, const std::string& where);

}  // namespace weft
