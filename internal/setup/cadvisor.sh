#!/usr/bin/env bash
# Gets cAdvisor for the tests:
#   cadvisor.sh FILE
# It is Debian's package of it, checked against Debian's key and unpacked; nothing is installed. The newest Debian that has it is 11.
set -euo pipefail
suite=bullseye
into=${1:?usage: cadvisor.sh FILE}

stop() { printf 'setup: %s\n' "$*" >&2; exit 1; }
for tool in apt-get dpkg-deb; do
  command -v "$tool" >/dev/null ||
    stop "cAdvisor for the tests comes from Debian's packages, which needs $tool. Put a cadvisor binary at $into, then repeat."
done

keyring=/usr/share/keyrings/debian-archive-keyring.gpg
[ -r "$keyring" ] || stop "$keyring is missing: install debian-archive-keyring, then repeat."

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work"/{lists,cache,etc}/partial "$(dirname "$into")"
: >"$work/status"

# apt with folders of its own, so that the machine's own sources and lists stay as they are.
own_apt() {
  apt-get -qq -o Dir::State::Lists="$work/lists" -o Dir::State::Status="$work/status" -o Dir::Cache="$work/cache" \
    -o Dir::Etc::SourceList="$work/etc/sources.list" -o Dir::Etc::SourceParts=- -o Dir::Etc::Preferences=- -o Dir::Etc::PreferencesParts=- \
    -o APT::Sandbox::User= -o APT::Architecture="$(dpkg --print-architecture)" -o Acquire::Check-Valid-Until=false -o Acquire::Languages=none \
    -o APT::Update::Error-Mode=any "$@"
}

printf 'setup: fetching cAdvisor from the packages of Debian %s\n' "$suite" >&2
for mirror in http://deb.debian.org/debian http://archive.debian.org/debian; do # the second when its time on the first is over
  echo "deb [signed-by=$keyring] $mirror $suite main" >"$work/etc/sources.list"
  if own_apt update >"$work/log" 2>&1 && (cd "$work" && own_apt download cadvisor >>log 2>&1); then
    dpkg-deb --fsys-tarfile "$work"/cadvisor_*.deb | tar -xO ./usr/bin/cadvisor >"$work/cadvisor"
    install -m 0755 "$work/cadvisor" "$into"
    exit 0
  fi
done
cat "$work/log" >&2
stop "Debian's package of cAdvisor cannot be fetched."
