# What ./demo and ./check share: Debian packages and the build. Sourced by both, in the checkout's root.

step() { printf '== %s  [%d s]\n' "$1" "$SECONDS"; }
complain() { echo "$(basename "$0"): $1" >&2; }

# packages demo|check|all: those of etc/debian-packages that ./demo, ./check or ./check --all needs.
packages() {
  local after='only nothing'
  case $1 in
    demo) after='only ./check' ;;
    check) after='only ./check --all' ;;
  esac
  awk -v end="# $after" '$0 == end { exit } !/^#/ && NF { print $1 }' etc/debian-packages
}

install_debian() {
  local -a as_root=()
  [ "$#" -gt 0 ] || return 0
  step "installing $*"
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || { complain "not root and no sudo; as root: apt-get install $*"; return 1; }
    as_root=(sudo)
  fi
  mkdir -p build
  { "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq update &&
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends "$@"
  } >build/apt.log 2>&1 || { tail -n 20 build/apt.log >&2; return 1; }
}

# install_packages demo|check|all: what is missing.
install_packages() {
  local -a missing
  command -v dpkg-query >/dev/null ||
    { complain "this script sets up Debian 12; elsewhere install what etc/debian-packages names"; return 1; }
  mapfile -t missing < <(packages "$1" | while read -r package; do
    dpkg-query --show --showformat='${Status}' "$package" 2>/dev/null | grep -q ' installed$' || echo "$package"
  done)
  install_debian "${missing[@]}"
}

# build PRESET CONFIGURE-ARGUMENTS... -- TARGETS...: on a terminal ninja's own progress, the compiler's words when it fails, all
# of it in the log. `placed`: what the compiler and the tests run under.
placed=()
build() {
  local preset=$1 log=build/$1.log
  local -a configure=() targets=()
  shift
  while [ $# -gt 0 ] && [ "$1" != -- ]; do configure+=("$1"); shift; done
  shift || true
  [ $# -eq 0 ] || targets=(--target "$@")
  step "building preset $preset (log: $log)"
  if ! cmake --preset "$preset" "${configure[@]}" >"$log" 2>&1 ||
    ! "${placed[@]}" cmake --build --preset "$preset" "${targets[@]}" 2>&1 | progress "$log"; then
    tail -n 40 "$log" >&2
    complain "the build of preset $preset failed; the whole log is in $log"
    return 1
  fi
}

# Copies ninja's lines to the log; a line on a terminal that is written over says how far it is.
progress() {
  local line
  while IFS= read -r line; do
    printf '%s\n' "$line" >>"$1"
    [ ! -t 1 ] || case $line in '['*'/'*']'*) printf '\r   %s' "${line%%]*}]" ;; esac
  done
  [ ! -t 1 ] || printf '\r%20s\r' ''
}
