#!/usr/bin/env bash
# The packages of requirements/debian.txt: `install` installs those that are missing, as root; `report` says in one
# line which are missing, what is left out without them, and how to get them. Does nothing on another system.
set -euo pipefail
cd "$(dirname "$0")"

case "${1:-}" in
  install | report) ;;
  *)
    echo "usage: debian.sh install|report" >&2
    exit 2
    ;;
esac

missing=()
if command -v dpkg >/dev/null; then
  while read -r package; do
    dpkg -s "$package" >/dev/null 2>&1 || missing+=("$package")
  done < <(grep -v '^#' debian.txt)
fi
[ "${#missing[@]}" -gt 0 ] || exit 0

if [ "$1" = report ]; then
  echo "tests that need ${missing[*]} were left out; to get them: sudo apt-get install ${missing[*]}"
elif [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  echo "installing ${missing[*]}"
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
fi
