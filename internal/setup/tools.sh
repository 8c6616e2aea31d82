#!/usr/bin/env bash
# Installs what the tests need beyond Go, Node and an engine: tmux, ip, ssh, sshd, git, rsync, mkfs.btrfs, what reads archives, access lists and attributes,
# what unpacks Debian's packages, and with the argument chromium a browser.
set -euo pipefail

want=()
command -v tmux >/dev/null || want+=(tmux)
command -v ip >/dev/null || want+=(iproute2)
command -v ssh >/dev/null || want+=(openssh-client)
[ -x /usr/sbin/sshd ] || want+=(openssh-server)
command -v git >/dev/null || want+=(git)
command -v rsync >/dev/null || want+=(rsync)
command -v unzip >/dev/null || want+=(unzip)
command -v zstd >/dev/null || want+=(zstd)
command -v bsdtar >/dev/null || want+=(libarchive-tools)
command -v getfacl >/dev/null || want+=(acl)
command -v getfattr >/dev/null || want+=(attr)
command -v python3 >/dev/null || want+=(python3)
command -v mkfs.btrfs >/dev/null || [ -x /usr/sbin/mkfs.btrfs ] || want+=(btrfs-progs)
command -v mmdebstrap >/dev/null || want+=(mmdebstrap)
[ -r /usr/share/keyrings/debian-archive-keyring.gpg ] || want+=(debian-archive-keyring)
if [ "${1:-}" = chromium ] && ! command -v chromium >/dev/null && ! command -v google-chrome >/dev/null; then
  want+=(chromium fonts-dejavu-core fonts-noto-color-emoji)
fi
[ ${#want[@]} -gt 0 ] || exit 0

sudo=()
[ "$(id -u)" = 0 ] || sudo=(sudo)
if ! command -v apt-get >/dev/null || { [ "$(id -u)" != 0 ] && ! command -v sudo >/dev/null; }; then
  echo "setup: the tests need ${want[*]}. Install them, then repeat." >&2
  exit 1
fi
echo "setup: installing ${want[*]} from your distribution's packages" >&2
"${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 update -qq >/dev/null
"${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 install -y -qq --no-install-recommends "${want[@]}" >/dev/null
