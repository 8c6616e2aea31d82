#!/bin/sh
# Installs an agent from npm into a folder of its own below ROOT, with a Node for it where the one that is here is too old:
#   install.sh ROOT ID PACKAGE VERSION PROGRAM NODE NODE_X64 NODE_ARM64 [NPM_FLAG ...]
# NODE is the lowest major version that the agent runs with, the next two are the versions that are installed. All happens in a folder
# beside, which takes its place when it is complete. No id begins with a dot. Lines that begin with @ are for sandboxd.
set -eu
root=$1 id=$2 package=$3 version=$4 program=$5 need=$6 x64=$7 arm64=$8
shift 8
work=$root/.installing
watch=

fail() {
	echo "@fail $1"
	exit 1
}
end() {
	[ -z "$watch" ] || kill "$watch" 2>/dev/null || :
	rm -rf "$work"
}
replace() { # puts the folder $1 in the place of $2; nothing is ever there in part
	rm -rf "$work/.old"
	[ ! -e "$2" ] && [ ! -L "$2" ] || mv "$2" "$work/.old"
	mv "$1" "$2"
}
major() { "$1" -p 'process.versions.node.split(".")[0]' 2>/dev/null || echo 0; }
fetch() {
	folder=$1
	shift
	npm install --prefix "$folder" --global=false --cache "$work/.cache" --no-audit --no-fund --no-update-notifier --loglevel=http \
		--fetch-retries=2 --fetch-retry-mintimeout=1000 --fetch-retry-maxtimeout=5000 "$@" 2>&1 </dev/null
}

rm -rf "$work"
command -v npm >/dev/null || fail npm
[ "$(ls /sys/class/net 2>/dev/null)" != lo ] || fail network
mkdir -p "$work/$id" "$work/.node"
trap end EXIT
trap 'exit 1' HUP INT TERM
(while sleep 1 >/dev/null 2>&1; do echo "@kib $(du -sk "$work/.node" "$work/$id" 2>/dev/null | awk '{n += $1} END {print n}')"; done) &
watch=$!

path=
if [ "$(major node)" -lt "$need" ]; then
	path='$dir/../.node/bin:'
	if [ "$(major "$root/.node/bin/node")" -lt "$need" ]; then
		case $(uname -m) in
		x86_64) arch=x64 node=$x64 ;;
		aarch64) arch=arm64 node=$arm64 ;;
		*) fail machine ;;
		esac
		echo @node
		fetch "$work/.node" --ignore-scripts "node-linux-$arch@$node"
		fresh=$work/.node/node_modules/node-linux-$arch
		rm -rf "$fresh/include" "$fresh/share"
		replace "$fresh" "$root/.node"
	fi
	PATH=$root/.node/bin:$PATH
fi
echo @agent
fetch "$work/$id" "$@" "$package@$version"
[ -x "$work/$id/node_modules/.bin/$program" ] || fail program

cat >"$work/$id/run" <<END
#!/bin/sh
# Runs a program of this agent: run PROGRAM [ARGUMENT ...]
dir=\${0%/*}
export PATH="$path\$dir/node_modules/.bin:\$PATH"
exec "\$@"
END
chmod 755 "$work/$id/run"
echo "$version" >"$work/$id/version"
replace "$work/$id" "$root/$id"
