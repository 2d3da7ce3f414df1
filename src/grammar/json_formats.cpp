#include "grammar/json_formats.h"

namespace weft::grammar {
namespace {

// RFC 3339. February has 29 days in years that 4 divides, except centuries that 400 does not divide. There is no
// year 0.
#define WEFT_YEAR "([0-9]{3}[1-9]|[0-9]{2}[1-9][0-9]|[0-9][1-9][0-9]{2}|[1-9][0-9]{3})"
#define WEFT_DATE                                                                                             \
  "(" WEFT_YEAR                                                                                               \
  "-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]|2[0-8]))|" \
  "([0-9]{2}(0[48]|[2468][048]|[13579][26])|(0[48]|[2468][048]|[13579][26])00)-02-29)"
#define WEFT_TIME "([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\\.[0-9]{1,9})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])"
#define WEFT_LABEL "[a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?"
#define WEFT_BYTE "(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
#define WEFT_IPV4 WEFT_BYTE "(\\." WEFT_BYTE "){3}"
#define WEFT_HEX "[0-9a-fA-F]{1,4}"

struct FormatRow {
  std::string_view name;
  const char* pattern;
  std::optional<int> longest = {};
};

constexpr FormatRow kFormats[] = {
    {"date", WEFT_DATE},
    {"time", WEFT_TIME},
    {"date-time", WEFT_DATE "T" WEFT_TIME},
    {"email", "[a-zA-Z0-9_+-]+(\\.[a-zA-Z0-9_+-]+)*@" WEFT_LABEL "(\\." WEFT_LABEL ")+"},
    {"hostname", WEFT_LABEL "(\\." WEFT_LABEL "){0,3}", 253},  // RFC 1123
    {"ipv4", WEFT_IPV4},
    // RFC 4291: eight groups, or fewer with one "::" in place of the others.
    {"ipv6",
     "((" WEFT_HEX ":){7}" WEFT_HEX "|(" WEFT_HEX ":){1,7}:|(" WEFT_HEX ":){1,6}:" WEFT_HEX "|(" WEFT_HEX
     ":){1,5}(:" WEFT_HEX "){1,2}|(" WEFT_HEX ":){1,4}(:" WEFT_HEX "){1,3}|(" WEFT_HEX ":){1,3}(:" WEFT_HEX
     "){1,4}|(" WEFT_HEX ":){1,2}(:" WEFT_HEX "){1,5}|" WEFT_HEX ":(:" WEFT_HEX "){1,6}|:((:" WEFT_HEX "){1,7}|:))"},
    {"uuid", "[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"},
    // RFC 3986, without user names: a scheme, then a host or a path, a query and a fragment.
    {"uri",
     "[a-zA-Z][a-zA-Z0-9+.-]*:(//([a-zA-Z0-9._~-]|%[0-9a-fA-F]{2})+(:[0-9]{1,5})?(/([a-zA-Z0-9._~!$&'()*+,;=:@-]|"
     "%[0-9a-fA-F]{2})*)*|([a-zA-Z0-9._~!$&'()*+,;=:@-]|%[0-9a-fA-F]{2})([a-zA-Z0-9._~!$&'()*+,;=:@/-]|"
     "%[0-9a-fA-F]{2})*)(\\?([a-zA-Z0-9._~!$&'()*+,;=:@/?-]|%[0-9a-fA-F]{2})*)?(#([a-zA-Z0-9._~!$&'()*+,;=:@/?-]|"
     "%[0-9a-fA-F]{2})*)?"},
};

}  // namespace

std::optional<std::string> format_pattern(std::string_view name) {
  for (const FormatRow& row : kFormats)
    if (row.name == name) return row.pattern;
  return std::nullopt;
}

std::optional<int> longest_of_format(std::string_view name) {
  for (const FormatRow& row : kFormats)
    if (row.name == name) return row.longest;
  return std::nullopt;
}

std::vector<std::string> format_names() {
  std::vector<std::string> names;
  for (const FormatRow& row : kFormats) names.emplace_back(row.name);
  return names;
}

}  // namespace weft::grammar
