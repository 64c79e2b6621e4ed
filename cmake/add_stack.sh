#!/usr/bin/env bash
# Builds assay-train once more, with another LibTorch, and offers it to the agent of build/release as
# one more value of the axis `stack`.
#
#   cmake/add_stack.sh VERSION          2.7.1, say: from PyPI's torch wheel
#   cmake/add_stack.sh VERSION --cuda   with CUDA: needs a toolkit (nvcc) of the wheel's major version
#
#   ASSAY_LIBTORCH=DIR    a LibTorch that is already here, of that version: nothing is fetched
#   ASSAY_CUDA_ROOT=DIR   the toolkit, where it is not that of nvcc on the PATH
#   ASSAY_STACKS=DIR      the folder of manifests; default build/release/share/assay/stacks
set -euo pipefail
cd "$(dirname "$0")/.."
. cmake/setup.sh

case "${1:-}" in
  -h|--help) sed -n '2,10p' "$0" | sed 's/^# \{0,1\}//'; exit 0 ;;
  ""|-*) die "which version? for instance: cmake/add_stack.sh 2.7.1" ;;
esac
VERSION=$1 CUDA=""
case "${2:-}" in "") ;; --cuda) CUDA=--cuda ;; *) die "unknown argument '$2' (see --help)" ;; esac
BUILD=build/stack-$VERSION
STACKS=${ASSAY_STACKS:-build/release/share/assay/stacks}
[ -d "$STACKS" ] || die "no folder $STACKS: build first (./quickstart), or name the folder by ASSAY_STACKS"
set_jobs

: "${ASSAY_LIBTORCH:=$(python3 cmake/fetch_libtorch.py --version "$VERSION" $CUDA)}"
[ -n "$ASSAY_LIBTORCH" ] || exit 1
cmake --preset runners -B "$BUILD" -DASSAY_TESTS=OFF -DASSAY_LIBTORCH="$ASSAY_LIBTORCH" \
  -DASSAY_CUDA="$([ -n "$CUDA" ] && echo ON || echo OFF)" -DASSAY_CUDA_ROOT="${ASSAY_CUDA_ROOT:-}" \
  -DASSAY_TORCH_JOBS="$TORCH_JOBS"
cmake --build "$BUILD" -j "$JOBS"
[ -f "$BUILD/share/assay/stacks/libtorch-$VERSION.json" ] ||
  die "the LibTorch at $ASSAY_LIBTORCH is not $VERSION: $(basename "$BUILD"/share/assay/stacks/libtorch-*.json .json)"
# The manifest names its program from where it lies; in another folder it must name it from the root.
printf '{"name": "libtorch-%s", "program": "%s"}\n' "$VERSION" "$PWD/$BUILD/bin/assay-train" \
  >"$STACKS/libtorch-$VERSION.json"
say "libtorch-$VERSION is offered from $STACKS; an agent that runs sees it when it is started again"
