# /etc/bash.bashrc: what every interactive bash of a sandbox has. Your own ~/.bashrc is read after it.

[ -n "${PS1-}" ] || return 0

HISTSIZE=20000
HISTFILESIZE=40000
HISTCONTROL=ignoreboth:erasedups
shopt -s histappend checkwinsize globstar
# Tabs and stops end shells without asking: write each command down at once.
PROMPT_COMMAND='__sandbox_prompt "$?"'

# The prompt: sandbox name, folder, git branch, and a red mark after a failure.
__sandbox_prompt() {
	local status=$1 branch='' mark='\[\e[1;32m\]\$\[\e[0m\]'
	history -a
	branch=$(git symbolic-ref --quiet --short HEAD 2>/dev/null) || branch=''
	# The name of a branch is not ours: it must not be expanded by the prompt.
	__sandbox_branch=${branch:+ ($branch)}
	[ "$status" -eq 0 ] || mark='\[\e[1;31m\]'"$status"' \$\[\e[0m\]'
	[ "$(id -u)" -ne 0 ] || mark=${mark/\\\$/#}
	PS1='\[\e[1;36m\]\h\[\e[0m\]:\[\e[1;34m\]\w\[\e[0;33m\]${__sandbox_branch}\[\e[0m\] '"$mark "
}

alias ls='ls --color=auto' ll='ls -alFh' grep='grep --color=auto'
eval "$(dircolors -b)"
if [ -r /usr/share/bash-completion/bash_completion ] && ! shopt -oq posix; then
	. /usr/share/bash-completion/bash_completion
fi

# One line, once for every login.
if shopt -q login_shell && [ -r /etc/sandbox/welcome ] && [ ! -e "$HOME/.hushlogin" ]; then
	cat /etc/sandbox/welcome
fi
