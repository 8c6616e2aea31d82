#!/bin/sh
# Starts Traefik for sandboxd with the static file beside this script, after putting in what differs between servers.
# Without CERT_FILE, certificates come by ACME: acme.yaml is added. The dynamic files read their variables by themselves.
set -eu
cd "$(dirname "$0")"

stop() {
  echo "start.sh: $*" >&2
  exit 1
}

# put OLD NEW replaces the quoted text OLD by NEW, unless NEW is empty.
put() {
  [ -n "$2" ] || return 0
  case "$2" in *[!A-Za-z0-9@._+:/%?=,~-]*) stop "\"$2\" has a character that is not allowed here" ;; esac
  sed "s|\"$1\"|\"$2\"|" "$config" >"$config.new"
  mv "$config.new" "$config"
}

[ -n "${DOMAIN:-}" ] || stop "DOMAIN is not set. It is the dashboard's host, such as box.example.com."
config=$(mktemp -d)/traefik.yaml
cp traefik.yaml "$config"
if [ -z "${CERT_FILE:-}" ]; then
  [ -n "${DNS_PROVIDER:-}" ] || stop "neither CERT_FILE nor DNS_PROVIDER is set. Certificates come from a file, or by ACME with your DNS provider's help."
  cat acme.yaml >>"$config"
fi
put ':80' "${WEB_ADDRESS:-}"
put ':443' "${WEBSECURE_ADDRESS:-}"
put 'unix:///run/sandboxd/docker.sock' "${DOCKER_ENDPOINT:-}"
put 'you@example.com' "${ACME_EMAIL:-}"
put 'manual' "${DNS_PROVIDER:-}"
put 'https://acme-v02.api.letsencrypt.org/directory' "${ACME_SERVER:-}"
put '/acme/acme.json' "${ACME_STORAGE:-}"
exec traefik --configFile="$config"
