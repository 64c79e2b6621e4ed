// The parts of the completion scripts that do not depend on the commands. completion.cc puts the
// tables in front of them.
//
// What an answer of a coordinator may hold goes through a pattern: a shell expands words that it
// completes. `timeout`: a coordinator that is away must not hold a terminal.
#ifndef ASSAY_CLI_COMPLETION_SCRIPTS_H_
#define ASSAY_CLI_COMPLETION_SCRIPTS_H_

namespace assay::cli {

// bash and zsh read the same words where nothing is said of arrays by number. Locals of _assay are
// those of what it calls.
inline constexpr char kShellScript[] = R"sh(
_assay_ask() {
  timeout 5 "$program" ${where[@]+"${where[@]}"} "$@" --quiet --format json 2>/dev/null </dev/null
}
_assay_runs() {
  printf 'last\n'
  _assay_ask ls | sed -n 's/^ *"id": "\([0-9A-HJKMNP-TV-Z]\{26\}\)",*$/\1/p'
}
_assay_nodes() {
  _assay_ask agents | sed -n 's/^ *"node": "\([A-Za-z0-9][A-Za-z0-9._-]*\)",*$/\1/p'
}

# The words before the one that is completed: the command, the option that waits for its value, how
# many arguments there were, and what a coordinator is asked with.
_assay_walk() {
  local word
  for word in "$@"; do
    word=${word/#\~\//$HOME/}
    if [[ -n $next ]]; then
      case $next in --state | --coordinator | --config | --tls-*) where+=("$next" "$word") ;; esac
      next=''
      continue
    fi
    case $word in
      --state=* | --coordinator=* | --config=* | --tls-*=* | --insecure) where+=("$word") ;;
      --*=*) ;;
      -*) _assay_kind "$place" "$word"; [[ $kind == flag ]] || next=$word ;;
      *)
        if [[ " $commands " == *" $word "* ]]; then
          place=${place:+$place }$word
          _assay_place "$place"
        else
          seen=$((seen + 1))
        fi
        ;;
    esac
  done
}
)sh";

inline constexpr char kBashScript[] = R"sh(
_assay_offer() {
  local IFS=$'\n'
  case $kind in
    file*) compopt -o filenames 2>/dev/null; COMPREPLY=($(compgen -f -- "$cur")) ;;
    dir) compopt -o filenames 2>/dev/null; COMPREPLY=($(compgen -d -- "$cur")) ;;
    run) COMPREPLY=($(compgen -W "$(_assay_runs)" -- "$cur")) ;;
    node) COMPREPLY=($(compgen -W "$(_assay_nodes)" -- "$cur")) ;;
    words=*) kind=${kind#words=}; COMPREPLY=($(compgen -W "${kind//,/$IFS}" -- "$cur")) ;;
  esac
}

_assay() {
  local cur word next='' kind='' place='' commands options arguments seen=0 i prefix=''
  local program=${COMP_WORDS[0]/#\~\//$HOME/}
  local -a line=() where=()
  COMPREPLY=()
  # bash splits words at = and :
  for ((i = 1; i <= COMP_CWORD; i++)); do
    word=${COMP_WORDS[i]}
    if ((${#line[@]})) && [[ $word == [=:]* || ${line[${#line[@]} - 1]} == *[=:] ]]; then
      line[${#line[@]} - 1]+=$word
    else
      line+=("$word")
    fi
  done
  cur=${line[${#line[@]} - 1]}
  _assay_place ''
  _assay_walk "${line[@]:0:${#line[@]} - 1}"
  if [[ -z $next && $cur == --*=* ]]; then
    next=${cur%%=*}
    # Where bash has not split the word, the whole of it is replaced.
    [[ ${COMP_WORDS[COMP_CWORD]} == --*=* ]] && prefix=$next=
    cur=${cur#*=}
  fi
  if [[ -n $next ]]; then
    _assay_kind "$place" "$next"
    _assay_offer
  elif [[ $cur == -* ]]; then
    COMPREPLY=($(compgen -W "$options" -- "$cur"))
  elif [[ -n $commands ]]; then
    COMPREPLY=($(compgen -W "$commands" -- "$cur"))
  else
    set -- $arguments
    while ((seen > 0)) && [[ $# -gt 0 && $1 != *+ ]]; do
      shift
      seen=$((seen - 1))
    done
    kind=${1-}
    _assay_offer
  fi
  [[ -z $prefix ]] || COMPREPLY=("${COMPREPLY[@]/#/$prefix}")
}

complete -F _assay assay
)sh";

inline constexpr char kZshScript[] = R"sh(
_assay_offer() {
  case $kind in
    file*) _files ;;
    dir) _files -/ ;;
    run) compadd -- $(_assay_runs) ;;
    node) compadd -- $(_assay_nodes) ;;
    words=*) compadd -- ${(s:,:)kind#words=} ;;
  esac
}

_assay() {
  local next='' kind='' place='' commands options arguments seen=0
  local cur=${words[CURRENT]} program=${words[1]/#\~\//$HOME/}
  local -a where rest
  _assay_place ''
  _assay_walk "${(@)words[2,CURRENT-1]}"
  if [[ -z $next && $cur == --*=* ]]; then
    next=${cur%%=*}
    compset -P '*='
  fi
  if [[ -n $next ]]; then
    _assay_kind "$place" "$next"
    _assay_offer
  elif [[ $cur == -* ]]; then
    compadd -- ${=options}
  elif [[ -n $commands ]]; then
    compadd -- ${=commands}
  else
    rest=(${=arguments})
    while ((seen > 0 && $#rest > 0)) && [[ $rest[1] != *+ ]]; do
      shift rest
      seen=$((seen - 1))
    done
    kind=${rest[1]-}
    _assay_offer
  fi
}

# Read from fpath this file is the function; else it is read by `source`.
if [[ ${funcstack[1]-} == _assay ]]; then
  _assay "$@"
else
  compdef _assay assay
fi
)sh";

inline constexpr char kFishScript[] = R"sh(
function __assay_ask
    set -l where
    set -l words (commandline -opc)
    for i in (seq 2 (count $words))
        switch $words[$i]
            case --state --coordinator --config '--tls-ca' '--tls-cert' '--tls-key'
                test $i -lt (count $words); and set -a where $words[$i] $words[(math $i + 1)]
            case '--state=*' '--coordinator=*' '--config=*' '--tls-*=*' --insecure
                set -a where $words[$i]
        end
    end
    timeout 5 $words[1] $where $argv --quiet --format json 2>/dev/null </dev/null
end
function __assay_runs
    echo last
    __assay_ask ls | string match -rg '^ *"id": "([0-9A-HJKMNP-TV-Z]{26})",?$'
end
function __assay_nodes
    __assay_ask agents | string match -rg '^ *"node": "([A-Za-z0-9][A-Za-z0-9._-]*)",?$'
end
complete -c assay -f
)sh";

}  // namespace assay::cli

#endif  // ASSAY_CLI_COMPLETION_SCRIPTS_H_
