#!/bin/sh
# Installs what is missing of the Debian packages that Weft needs, and nothing when all are there.
#
#   tools/setup.sh build     to build and run the program, and to fetch a model
#   tools/setup.sh test      also the suite, the libraries of the providers onednn and openblas, so that it runs them, and
#                            the browser in which the server's page is tested
#   tools/setup.sh check     also the format check, the sanitizers and the fuzzers
#
# Needs root or sudo only when something is missing. On a distribution without dpkg it installs nothing: the build then
# says which library it lacks.
set -eu

build="g++ cmake ninja-build ccache nlohmann-json3-dev libsimdjson-dev libcli11-dev libfmt-dev libspdlog-dev
  libpcre2-dev libutf8proc-dev libxxhash-dev libzip-dev libyaml-dev libssl-dev libboost1.81-dev llvm-19-dev clang-19 python3 python3-pip ca-certificates"
test="libgtest-dev librapidcheck-dev chromium git libdnnl-dev libopenblas-pthread-dev libz3-dev"
check="clang-format-14 libclang-rt-14-dev binutils libbenchmark-dev valgrind"

case "${1:-}" in
  build) wanted="$build" ;;
  test) wanted="$build $test" ;;
  check) wanted="$build $test $check" ;;
  *)
    echo "usage: tools/setup.sh build|test|check" >&2
    exit 2
    ;;
esac

if ! command -v dpkg-query >/dev/null; then
  echo "setup: this is no Debian, so nothing is installed; the packages would be: $(echo $wanted)" >&2
  exit 0
fi

missing=""
for package in $wanted; do
  case "$(dpkg-query -W -f '${Status}' "$package" 2>/dev/null)" in
    "install ok installed") ;;
    *) missing="$missing $package" ;;
  esac
done
[ -n "$missing" ] || exit 0

as_root=""
if [ "$(id -u)" != 0 ]; then
  if ! command -v sudo >/dev/null; then
    echo "setup: these Debian packages are missing, and installing them needs root or sudo:$missing" >&2
    exit 1
  fi
  as_root="sudo"
  # Without a terminal a password prompt would wait forever.
  [ -t 0 ] || as_root="sudo -n"
fi

echo "setup: installing$missing" >&2
install_missing() {
  $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $missing >&2
}
$as_root apt-get update -q >&2 || echo "setup: the package lists could not be refreshed; trying with those at hand" >&2
if ! install_missing; then
  echo "setup: could not install$missing; as root, try: apt-get install$missing" >&2
  exit 1
fi
