#!/usr/bin/env bash
# Gets CRIU for the tests of memory snapshots:
#   criu.sh FILE
# FILE is a program that runs the CRIU of Debian's packages, which is unpacked beside it with the libraries that it needs: machines have
# older ones, or none. Nothing is installed.
set -euo pipefail
suite=forky
into=${1:?usage: criu.sh FILE}

stop() { printf 'setup: %s\n' "$*" >&2; exit 1; }
command -v mmdebstrap >/dev/null ||
  stop "CRIU for the tests comes from Debian's packages, which needs mmdebstrap. Install it, or put a criu program at $into, then repeat."

printf 'setup: fetching CRIU from the packages of Debian %s\n' "$suite" >&2
mkdir -p "$(dirname "$into")"
rm -rf "$into-root"
mmdebstrap --quiet --variant=extract --aptopt='Acquire::Check-Valid-Until "false"' --include=criu,libc6 "$suite" "$into-root" ||
  stop "Debian's package of CRIU cannot be fetched."
cat >"$into" <<'END'
#!/bin/sh
root=$(readlink -f "$0")-root
exec "$(echo "$root"/usr/lib*/ld-linux-*.so.*)" --library-path "$(echo "$root"/usr/lib/*-linux-gnu)" "$root/usr/sbin/criu" "$@"
END
chmod 0755 "$into"
