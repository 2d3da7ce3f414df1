#include "io/pickle.h"

#include <cstring>
#include <string_view>
#include <unordered_map>

#include "base/error.h"

namespace weft {
namespace {

using Kind = PickleValue::Kind;

class Reader {
 public:
  Reader(std::span<const std::byte> bytes, const std::string& where) : bytes_(bytes), where_(where) {}

  Pickle read() {
    while (true) {
      const auto opcode = static_cast<char>(number<std::uint8_t>());
      if (opcode == '.') break;
      const bool is_known = push_constant(opcode) || build(opcode) || remember(opcode);
      USER_CHECK(is_known, "[{}] byte {} is the opcode {:#04x}, which files of tensors do not have", where_, at_ - 1,
                 static_cast<unsigned>(static_cast<unsigned char>(opcode)));
    }
    result_.root = pop();
    USER_CHECK(stack_.empty() && marks_.empty(), "[{}] wanted one value, but got more", where_);
    return std::move(result_);
  }

 private:
  std::string_view take(std::uint64_t count) {
    USER_CHECK(count <= bytes_.size() - at_, "[{}] ends in the middle, at byte {}", where_, bytes_.size());
    const std::string_view taken(reinterpret_cast<const char*>(bytes_.data()) + at_, static_cast<std::size_t>(count));
    at_ += static_cast<std::size_t>(count);
    return taken;
  }
  template <class T>
  T number() {
    T value;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }
  std::string_view line() {
    const std::string_view rest(reinterpret_cast<const char*>(bytes_.data()) + at_, bytes_.size() - at_);
    const std::size_t end = rest.find('\n');
    USER_CHECK(end != std::string_view::npos, "[{}] ends in the middle, at byte {}", where_, bytes_.size());
    return take(end + 1).substr(0, end);
  }

  PickleIndex add(PickleValue value) {
    result_.values.push_back(std::move(value));
    return static_cast<PickleIndex>(result_.values.size() - 1);
  }
  void push(PickleValue value) { stack_.push_back(add(std::move(value))); }
  void push_integer(std::int64_t integer) {
    push({.kind = Kind::integer, .integer = integer, .text = {}, .items = {}});
  }
  void push_text(Kind kind, std::string_view text) {
    push({.kind = kind, .integer = 0, .text = std::string(text), .items = {}});
  }
  void push_items(Kind kind, std::vector<PickleIndex> items) {
    push({.kind = kind, .integer = 0, .text = {}, .items = std::move(items)});
  }

  // The values above the last mark stay there.
  std::size_t bottom() const { return marks_.empty() ? 0 : marks_.back(); }
  PickleIndex pop() {
    USER_CHECK(stack_.size() > bottom(), "[{}] byte {} takes a value, but there is none", where_, at_ - 1);
    const PickleIndex top = stack_.back();
    stack_.pop_back();
    return top;
  }
  PickleIndex top() {
    const PickleIndex value = pop();
    stack_.push_back(value);
    return value;
  }
  std::vector<PickleIndex> pop_last(std::size_t count) {
    std::vector<PickleIndex> items(count);
    for (std::size_t i = count; i-- > 0;) items[i] = pop();
    return items;
  }
  std::vector<PickleIndex> pop_to_mark() {
    USER_CHECK(!marks_.empty(), "[{}] byte {} takes all values to a mark, but there is none", where_, at_ - 1);
    std::vector<PickleIndex> items = pop_last(stack_.size() - marks_.back());
    marks_.pop_back();
    return items;
  }

  void push_long(std::string_view digits) {
    USER_CHECK(digits.size() <= sizeof(std::int64_t), "[{}] wanted integers of 64 bits, but one has {} bytes", where_,
               digits.size());
    std::uint64_t value = 0;
    for (std::size_t i = digits.size(); i-- > 0;) value = value << 8 | static_cast<unsigned char>(digits[i]);
    const bool is_negative = !digits.empty() && (static_cast<unsigned char>(digits.back()) & 0x80) != 0;
    if (is_negative && digits.size() < sizeof value) value |= ~std::uint64_t{0} << 8 * digits.size();
    push_integer(static_cast<std::int64_t>(value));
  }

  bool push_constant(char opcode) {
    switch (opcode) {
      case 'N':
        push({});
        return true;
      case '\x88':
        push({.kind = Kind::boolean, .integer = 1, .text = {}, .items = {}});
        return true;
      case '\x89':
        push({.kind = Kind::boolean, .integer = 0, .text = {}, .items = {}});
        return true;
      case 'J':
        push_integer(number<std::int32_t>());
        return true;
      case 'K':
        push_integer(number<std::uint8_t>());
        return true;
      case 'M':
        push_integer(number<std::uint16_t>());
        return true;
      case '\x8a':
        push_long(take(number<std::uint8_t>()));
        return true;
      case 'G':
        take(sizeof(double));
        push({.kind = Kind::real, .integer = 0, .text = {}, .items = {}});
        return true;
      case 'X':
        push_text(Kind::text, take(number<std::uint32_t>()));
        return true;
      case '\x8c':
        push_text(Kind::text, take(number<std::uint8_t>()));
        return true;
      case '\x8d':
        push_text(Kind::text, take(number<std::uint64_t>()));
        return true;
      case 'c': {
        const std::string module(line());
        push_text(Kind::global, module + "." + std::string(line()));
        return true;
      }
      default:
        return false;
    }
  }

  void add_to(Kind kind, std::vector<PickleIndex> items) {
    PickleValue& value = result_.values[top()];
    USER_CHECK(value.kind == kind && (kind != Kind::dict || items.size() % 2 == 0),
               "[{}] byte {} adds to what is not a list or a dict", where_, at_ - 1);
    value.items.insert(value.items.end(), items.begin(), items.end());
  }

  // An ordered dict is a dict; its state, like that of other objects, is dropped.
  void call() {
    const std::vector<PickleIndex> parts = pop_last(2);
    const PickleValue &function = result_[parts[0]], &arguments = result_[parts[1]];
    USER_CHECK(function.kind == Kind::global && arguments.kind == Kind::tuple,
               "[{}] byte {} calls what is no function with a tuple", where_, at_ - 1);
    if (function.text == "collections.OrderedDict" && arguments.items.empty()) return push_items(Kind::dict, {});
    push_items(Kind::call, parts);
  }

  bool build(char opcode) {
    switch (opcode) {
      case '(':
        marks_.push_back(stack_.size());
        return true;
      case ')':
        push_items(Kind::tuple, {});
        return true;
      case ']':
        push_items(Kind::list, {});
        return true;
      case '}':
        push_items(Kind::dict, {});
        return true;
      case 't':
        push_items(Kind::tuple, pop_to_mark());
        return true;
      case '\x85':
        push_items(Kind::tuple, pop_last(1));
        return true;
      case '\x86':
        push_items(Kind::tuple, pop_last(2));
        return true;
      case '\x87':
        push_items(Kind::tuple, pop_last(3));
        return true;
      case 'a':
        add_to(Kind::list, pop_last(1));
        return true;
      case 'e':
        add_to(Kind::list, pop_to_mark());
        return true;
      case 's':
        add_to(Kind::dict, pop_last(2));
        return true;
      case 'u':
        add_to(Kind::dict, pop_to_mark());
        return true;
      case 'Q':
        push_items(Kind::stored, pop_last(1));
        return true;
      case 'R':
        call();
        return true;
      case 'b':
        pop();
        top();
        return true;
      case '\x93': {
        const std::vector<PickleIndex> parts = pop_last(2);
        push_text(Kind::global, result_[parts[0]].text + "." + result_[parts[1]].text);
        return true;
      }
      default:
        return false;
    }
  }

  void recall(std::uint32_t number) {
    const auto found = memo_.find(number);
    USER_CHECK(found != memo_.end(), "[{}] byte {} reads value {}, which was not stored", where_, at_ - 1, number);
    stack_.push_back(found->second);
  }

  // The protocol and the lengths of frames only help other readers.
  bool remember(char opcode) {
    switch (opcode) {
      case '\x80':
        take(1);
        return true;
      case '\x95':
        take(8);
        return true;
      case 'q':
        memo_[number<std::uint8_t>()] = top();
        return true;
      case 'r':
        memo_[number<std::uint32_t>()] = top();
        return true;
      case '\x94':
        memo_[static_cast<std::uint32_t>(memo_.size())] = top();
        return true;
      case 'h':
        recall(number<std::uint8_t>());
        return true;
      case 'j':
        recall(number<std::uint32_t>());
        return true;
      default:
        return false;
    }
  }

  std::span<const std::byte> bytes_;
  const std::string& where_;
  std::size_t at_ = 0;
  Pickle result_;
  std::vector<PickleIndex> stack_;
  std::vector<std::size_t> marks_;  // the size of the stack at each
  std::unordered_map<std::uint32_t, PickleIndex> memo_;
};

}  // namespace

Pickle Pickle::parse(std::span<const std::byte> bytes, const std::string& where) { return Reader(bytes, where).read(); }

}  // namespace weft
