# SPDX-License-Identifier: GPL-2.0
# bash completion of hedgectl. Commands, options and attributes are those that hedgectl's own help lists.

_hedgectl_volumes()
{
	dmsetup ls --target hedge 2>/dev/null | awk '/\t/ { print $1 }'
}

# The volumes of hedgetab that can be assembled.
_hedgectl_saved()
{
	awk '!/^#/ && $2 ~ /^UUID=/ { print $1 }' "${HEDGETAB:-/etc/hedgetab}" 2>/dev/null
}

_hedgectl_devices()
{
	lsblk -npo PATH 2>/dev/null
}

_hedgectl_section()
{
	hedgectl "${@:2}" --help 2>/dev/null | sed -n "/^$1:/,/^\$/s/^  \([^ ]*\).*/\1/p"
}

# Where COMP_WORDBREAKS has = or :, readline replaces only what follows the last of them.
_hedgectl_reply()
{
	local cur=$1 prefix='' i

	for ((i = ${#cur} - 1; i >= 0; i--)); do
		if [[ $COMP_WORDBREAKS == *"${cur:i:1}"* && ${cur:i:1} == [=:] ]]; then
			prefix=${cur:0:i+1}
			break
		fi
	done
	COMPREPLY=("${COMPREPLY[@]#"$prefix"}")
}

_hedgectl()
{
	local cur=${COMP_LINE:0:COMP_POINT} words command attr i operands=0 value_of=''

	COMPREPLY=()
	read -ra words <<<"$cur"
	[[ $cur != *[[:space:]] ]] || words+=('')
	cur=${words[-1]}
	command=${words[1]-}
	if [ ${#words[@]} -le 2 ]; then
		mapfile -t COMPREPLY < <(compgen -W "$(_hedgectl_section commands) --help --version" -- "$cur")
		return
	fi
	for ((i = 2; i < ${#words[@]} - 1; i++)); do
		if [[ ${words[i]} == --* ]]; then
			value_of=''
			hedgectl "$command" --help 2>/dev/null | grep -q "^  ${words[i]} [A-Za-z]" && value_of=${words[i]}
		elif [ "$value_of" ]; then
			value_of=''
		else
			operands=$((operands + 1))
		fi
	done
	case $value_of in
	--svg|--png|--file|--hook|--fio|--hist) compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- "$cur"); return ;;
	--device) mapfile -t COMPREPLY < <(compgen -W "$(_hedgectl_volumes)" -- "$cur"); return ;;
	--from|--prefer) mapfile -t COMPREPLY < <(compgen -W "$(_hedgectl_devices)" -- "$cur"); return ;;
	--rule) mapfile -t COMPREPLY < <(compgen -W "load percentile knee quantile" -- "$cur"); return ;;
	--set) operands=1 command=set ;;
	--policy)
		mapfile -t COMPREPLY < <(compgen -W "$(cat /sys/block/dm-*/hedge0/policy 2>/dev/null | tr -d '[]')" -- "$cur")
		return
		;;
	?*) return ;;
	esac
	if [[ $cur == -* ]]; then
		mapfile -t COMPREPLY < <(compgen -W "$(_hedgectl_section options "$command")" -- "$cur")
		return
	fi
	case $command:$operands in
	set:[1-9]*)
		compopt -o nospace
		attr=$(_hedgectl_section attributes set | sed 's/$/=/')
		i=${cur#leg:}
		if [[ $cur == leg:*.* ]]; then
			attr=${attr//leg:I./leg:${i%.*}.}
		elif [[ $cur == leg:* ]]; then
			attr=$(printf 'leg:%s.\n' {0..7} $(_hedgectl_devices))
		else
			attr="leg: tau= ${attr//leg:I.*/}"
		fi
		mapfile -t COMPREPLY < <(compgen -W "$attr" -- "$cur")
		_hedgectl_reply "$cur"
		;;
	create:0) ;;
	assemble:0) mapfile -t COMPREPLY < <(compgen -W "$(_hedgectl_saved) $(_hedgectl_devices)" -- "$cur") ;;
	create:*|examine:*|wipe:*|assemble:*|replace:[2-9])
		mapfile -t COMPREPLY < <(compgen -W "$(_hedgectl_devices)" -- "$cur")
		;;
	hist:1|fail:1|reinstate:1|replace:1)
		mapfile -t COMPREPLY < <(compgen -W "$(_hedgectl_devices) 0 1 2 3 4 5 6 7" -- "$cur")
		;;
	*:0) mapfile -t COMPREPLY < <(compgen -W "$(_hedgectl_volumes)" -- "$cur") ;;
	esac
}

complete -F _hedgectl hedgectl
