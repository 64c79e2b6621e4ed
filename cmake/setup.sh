# Sourced by ./quickstart and ./test: what a bare Debian 12 lacks, and how many jobs memory allows.
# Lists stand here once; nothing is installed that is there already.

# What building and running needs.
ASSAY_BUILD_PACKAGES="g++ cmake ninja-build ccache pkg-config python3 python3-yaml python3-pip
  libgrpc++-dev protobuf-compiler protobuf-compiler-grpc libprotobuf-dev libabsl-dev libsqlite3-dev
  libyaml-cpp-dev libcli11-dev libspdlog-dev libfmt-dev nlohmann-json3-dev libssl-dev"
# What ./test needs beyond that.
ASSAY_TEST_PACKAGES="libgtest-dev libgmock-dev libbenchmark-dev clang-19 clang-tidy-19
  clang-format-19 libclang-rt-19-dev sqlite3 openssl procps iproute2 faketime locales python3-venv python3-jsonschema python3-scipy git"

say() { printf '%s\n' "$*"; }
die() { printf '%s: %s\n' "${0##*/}" "$*" >&2; exit 2; }

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"
  elif command -v sudo >/dev/null 2>&1; then sudo "$@"
  else die "packages are missing and neither root nor sudo is there: as root, run: apt-get install -y $MISSING"
  fi
}

# Sets MISSING to the packages of "$@" that dpkg does not have.
find_missing() {
  MISSING=""
  for p in "$@"; do
    dpkg-query -W -f='${db:Status-Status}\n' "$p" 2>/dev/null | grep -qx installed || MISSING="$MISSING $p"
  done
}

require_debian() {
  command -v apt-get >/dev/null 2>&1 ||
    die "this machine has no apt-get; on another system install the like of these: $ASSAY_BUILD_PACKAGES"
}

# Bytes that apt would download for $MISSING, as MiB; '?' before the first apt-get update.
apt_download_mib() {
  apt-get install -y --no-install-recommends --print-uris -qq $MISSING 2>/dev/null |
    awk '{s += $3} END {if (NR) printf "%d", s / 1048576 + 1; else printf "?"}'
}

install_missing() {
  [ -z "$MISSING" ] && return 0
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $MISSING \
    >"$LOGS/apt.log" 2>&1 || { tail -n 5 "$LOGS/apt.log" >&2; die "apt-get failed; the whole log is in $LOGS/apt.log"; }
}

# One compile job takes up to 1 GiB (LibTorch 3 GiB: its own job pool holds those at
# ASSAY_TORCH_JOBS), so never more jobs than memory has room for.
# Memory is the machine's, or the least of the control groups that this shell is in.
set_jobs() {
  local mib cores limit group=
  mib=$(awk '/^MemAvailable/ {print int($2 / 1024)}' /proc/meminfo)
  # The hierarchy that limits memory: version 1 names it, version 2 is number 0.
  [ ! -r /proc/self/cgroup ] ||
    group=$(awk -F: '$2 == "memory" {one = $3} $1 == 0 {two = $3} END {print one ? one : two}' /proc/self/cgroup)
  while :; do
    for f in "/sys/fs/cgroup$group/memory.max" "/sys/fs/cgroup/memory$group/memory.limit_in_bytes"; do
      [ -r "$f" ] || continue
      limit=$(cat "$f")
      case "$limit" in *[!0-9]*) ;; *) limit=$((limit / 1048576)); [ "$limit" -lt "$mib" ] && mib=$limit ;; esac
    done
    case "$group" in */*) group=${group%/*} ;; *) break ;; esac
  done
  cores=$(nproc)
  TORCH_JOBS=$((mib / 4000)); [ "$TORCH_JOBS" -lt 1 ] && TORCH_JOBS=1
  [ "$TORCH_JOBS" -gt "$cores" ] && TORCH_JOBS=$cores
  JOBS=$((TORCH_JOBS + (mib - 3000 * TORCH_JOBS) / 1000)); [ "$JOBS" -lt 1 ] && JOBS=1
  [ "$JOBS" -gt "$cores" ] && JOBS=$cores
  [ "$TORCH_JOBS" -gt "$JOBS" ] && TORCH_JOBS=$JOBS
  return 0
}

# Seconds of a part, for the ledger.
LEDGER=""
part() {
  local name=$1 start end status=0; shift
  say "--- $name"
  start=$(date +%s)
  "$@" || status=$?
  end=$(date +%s)
  LEDGER="$LEDGER$(printf '%6.1f min  %s' "$(awk "BEGIN {print ($end - $start) / 60}")" "$name")
"
  return $status
}
