#!/usr/bin/env bash
# Finds a Docker engine, installs and starts one where there is none and it may, and then runs the command given:
#   engine.sh COMMAND [ARG ...]
# DOCKER_HOST is honoured. Nothing is installed without asking when there is a terminal to ask on.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
probe=$root/bin/sandboxd

say() { printf 'setup: %s\n' "$*" >&2; }
stop() { printf 'setup: %s\n' "$*" >&2; exit 1; }
reachable() { "$probe" doctor --only engine --quiet >/dev/null 2>&1; }

sudo=()
if [ "$(id -u)" != 0 ]; then
  command -v sudo >/dev/null && sudo=(sudo)
fi
may_root() { [ "$(id -u)" = 0 ] || { [ ${#sudo[@]} -gt 0 ] && { [ -t 0 ] || sudo -n true 2>/dev/null; }; }; }

agree() {
  [ -t 0 ] && [ -t 2 ] || return 0
  local answer
  read -r -p "setup: $1 [Y/n] " answer >&2 || return 1
  case "$answer" in ''|[Yy]*) return 0 ;; *) return 1 ;; esac
}

packages() {
  command -v apt-get >/dev/null || return 1
  say "installing $* from your distribution's packages"
  "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 update -qq >/dev/null
  "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 install -y -qq --no-install-recommends "$@" >/dev/null
}

install_engine() {
  may_root && command -v apt-get >/dev/null ||
    stop "no Docker engine answers and none can be installed from here. Install Docker Engine (or set DOCKER_HOST to one), then repeat."
  agree "No Docker engine was found. Install and start Docker from your distribution's packages?" ||
    stop "without a Docker engine there is nothing to run sandboxes on. Install one, or set DOCKER_HOST, then repeat."
  packages docker.io tini iptables ca-certificates
}

# An engine that was killed leaves its pid file, and takes it for a running engine's when the number is in use again.
drop_stale_pid() {
  local file=/var/run/docker.pid pid
  [ -f "$file" ] || return 0
  pid=$("${sudo[@]}" cat "$file")
  if [ "$(cat "/proc/$pid/comm" 2>/dev/null)" != dockerd ] || grep -q '^State:.Z' "/proc/$pid/status" 2>/dev/null; then
    "${sudo[@]}" rm -f "$file" /var/run/docker/containerd/containerd.pid
  fi
}

start_engine() {
  may_root || stop "the Docker engine is installed but not running, and only root may start it. Start it (sudo systemctl start docker), then repeat."
  if [ -d /run/systemd/system ]; then
    say "starting the Docker engine (systemd)"
    "${sudo[@]}" systemctl start docker
  else
    say "starting the Docker engine (log: /var/log/dockerd.log)"
    drop_stale_pid
    # Without the files that we have open: one may be a lock of our caller's, which would last as long as the engine.
    "${sudo[@]}" bash -c 'for fd in /proc/$$/fd/*; do fd=${fd##*/}; ((fd < 3)) || exec {fd}>&-; done
      setsid dockerd >>/var/log/dockerd.log 2>&1 </dev/null &'
  fi
}

wait_engine() {
  local i
  for i in $(seq 240); do # a minute
    reachable && return 0
    [ -S /var/run/docker.sock ] && [ ! -w /var/run/docker.sock ] && return 1
    sleep 0.25
  done
  return 1
}

# A user who has just been put into the docker group has it only in a new login; sg gives it now.
join_group() {
  [ "$(id -u)" != 0 ] && [ -S /var/run/docker.sock ] && [ ! -w /var/run/docker.sock ] || return 1
  may_root || stop "the Docker engine runs, but $(id -un) may not use it. Run: sudo usermod -aG docker $(id -un), log in anew, then repeat."
  if ! id -nG "$(id -un)" | grep -qw docker; then
    agree "The Docker engine runs, but $(id -un) is not in the docker group. Add it?" || exit 1
    "${sudo[@]}" usermod -aG docker "$(id -un)"
  fi
  export SANDBOXD_SETUP_GROUP=1
  exec sg docker -c "$(printf '%q ' "${BASH_SOURCE[0]}" "$@")"
}

ensure_engine() {
  [ -x "$probe" ] || stop "$probe is missing. Run 'make build', then repeat."
  reachable && return 0
  [ -z "${DOCKER_HOST:-}" ] || stop "DOCKER_HOST is $DOCKER_HOST, but no Docker engine answers there. Start it, or unset DOCKER_HOST, then repeat."
  [ -n "${SANDBOXD_SETUP_GROUP:-}" ] || join_group "$@" || true
  command -v dockerd >/dev/null || [ -x /usr/sbin/dockerd ] || install_engine
  reachable || start_engine
  wait_engine && return 0
  [ -n "${SANDBOXD_SETUP_GROUP:-}" ] || join_group "$@" || true
  stop "the Docker engine was started but does not answer. Its log says why: $( [ -d /run/systemd/system ] && echo 'journalctl -u docker' || echo /var/log/dockerd.log)"
}

# Where no registry answers, the Debian base image is made from Debian's packages, which takes one small tool.
ensure_base_tool() {
  command -v mmdebstrap >/dev/null && return 0
  "$probe" doctor --only base-image --quiet >/dev/null 2>&1 && return 0
  may_root && command -v apt-get >/dev/null || return 0
  agree "No registry gives the Debian base image. Install mmdebstrap, to make it from Debian's packages?" || return 0
  packages mmdebstrap debian-archive-keyring
}

[ $# -gt 0 ] || stop "usage: engine.sh COMMAND [ARG ...]"
ensure_engine "$@"
ensure_base_tool
exec "$@"
