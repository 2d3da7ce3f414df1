#include "server/body_reader.h"

#include <functional>
#include <utility>

#include <boost/asio/buffer.hpp>
#include <boost/beast/core/buffers_range.hpp>
#include <boost/beast/http/parser.hpp>
#include <fmt/format.h>

namespace weft {
namespace {

namespace http = boost::beast::http;
using boost::system::error_code;

// Bytes of a chunk's line or of trailers that are not complete.
constexpr std::size_t kMostChunkLine = 8192;
constexpr std::uint64_t kMostChunk = std::uint64_t{1} << 31;

// What Beast's parser writes a body into.
struct Blocks {
  using value_type = HttpBody;
  class reader {  // NOLINT: Beast asks for this name
   public:
    template <bool is_request, class Fields>
    reader(http::header<is_request, Fields>&, HttpBody& body) : body_(body) {}
    void init(const boost::optional<std::uint64_t>&, error_code& error) { error = {}; }
    template <class Buffers>
    std::size_t put(const Buffers& buffers, error_code& error) {
      error = {};
      std::size_t count = 0;
      for (const boost::asio::const_buffer buffer : boost::beast::buffers_range_ref(buffers)) {
        body_.append({static_cast<const char*>(buffer.data()), buffer.size()});
        count += buffer.size();
      }
      return count;
    }
    void finish(error_code& error) { error = {}; }

   private:
    HttpBody& body_;
  };
};

// The parser waits for a CR LF, as long as it does not come.
bool has_bare_line_feed(std::string_view text) {
  for (auto at = text.find('\n'); at != std::string_view::npos; at = text.find('\n', at + 1))
    if (at == 0 || text[at - 1] != '\r') return true;
  return false;
}

}  // namespace

struct BodyReader::State {
  http::request_parser<Blocks> parser;
  std::uint64_t most = 0, bytes = 0;
  std::size_t field_bytes = 0;  // of the head
  std::optional<HttpFault> fault;
  std::function<void(std::uint64_t, boost::beast::string_view, error_code&)> on_chunk;

  // The parser adds trailers to the fields of the head.
  std::size_t all_field_bytes() const {
    std::size_t sum = 0;
    for (const auto& field : parser.get()) sum += field.name_string().size() + field.value().size() + 4;
    return sum;
  }
};

BodyReader::BodyReader(std::uint64_t most_bytes, std::size_t head_bytes) : state_(std::make_unique<State>()) {
  State& state = *state_;
  state.most = most_bytes;
  state.parser.header_limit(static_cast<std::uint32_t>(head_bytes) + 1);
  state.parser.body_limit(boost::none);
  state.parser.eager(true);
  state.on_chunk = [&state](std::uint64_t size, boost::beast::string_view, error_code& error) {
    if (size > kMostChunk) state.fault = HttpFault{400, "a chunk is too large"};
    if (!state.fault && size > state.most - state.bytes)
      state.fault = HttpFault{413, fmt::format("the body must have at most {} bytes", state.most)};
    if (state.fault) error = http::make_error_code(http::error::body_limit);
    state.bytes += size;
  };
  state.parser.on_chunk_header(state.on_chunk);
}

BodyReader::~BodyReader() = default;

std::size_t BodyReader::put(std::string_view data) {
  std::optional<HttpFault>& fault = state_->fault;
  error_code error;
  const std::size_t used = state_->parser.put(boost::asio::const_buffer(data.data(), data.size()), error);
  const bool needs_more = error == http::error::need_more;
  if (error && !needs_more && !fault) fault = HttpFault{400, "the request is not valid HTTP: " + error.message()};
  if (needs_more && !fault && has_bare_line_feed(data.substr(used)))
    fault = HttpFault{400, "the line of a chunk must end with CR and LF"};
  if (needs_more && data.size() - used > kMostChunkLine && !fault)
    fault = HttpFault{400, fmt::format("a chunk's line or trailers must have at most {} bytes", kMostChunkLine)};
  if (!fault) check_trailers();
  return used;
}

void BodyReader::check_trailers() {
  if (!state_->parser.is_header_done() || !state_->parser.chunked()) return;
  if (state_->field_bytes == 0) state_->field_bytes = state_->all_field_bytes();
  if (state_->parser.is_done() && state_->all_field_bytes() > state_->field_bytes + kMostChunkLine)
    state_->fault = HttpFault{400, fmt::format("trailers must have at most {} bytes", kMostChunkLine)};
}

bool BodyReader::is_done() const { return state_->parser.is_done(); }

const std::optional<HttpFault>& BodyReader::fault() const { return state_->fault; }

HttpBody BodyReader::take_body() { return std::move(state_->parser.get().body()); }

}  // namespace weft
