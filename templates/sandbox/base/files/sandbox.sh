# /etc/profile.d/sandbox.sh: what every login shell of a sandbox has. Read by sh and bash.

# Programs that a person installs without root go to the home folder, which is a volume and stays.
case ":$PATH:" in
*":$HOME/.local/bin:"*) ;;
*) PATH="$HOME/.local/bin:$PATH" ;;
esac
export PATH
if [ "$(id -u)" -ne 0 ]; then
	export NPM_CONFIG_PREFIX="$HOME/.local"
fi
