# shellcheck shell=sh disable=SC2154
# Sourced by the script that stands in front of a program (/usr/local/bin/<program>): refuses what CentOS 7's release of it does not have.
# The script has set program, package, options, verbs, columns, outputs, keywords, style, stops and bundle: see old_programs.yml.
# Shell built-ins only: it runs before every call of the program.
set -f # an option like --color[=] is not a pattern

refuse() {
  printf '%s: not in %s (CentOS 7): %s\n' "$program" "$package" "$1" >&2
  exit 64
}

# word LIST: is this one of them?
among() { case " $2 " in *" $1 "*) return 0 ;; esac; return 1; }

# Is it a number? Numbers are not verbs or columns; the lint writes one where only the run knows the word.
numeric() { case $1 in '' | *[!0-9]*) return 1 ;; esac; }

# The value of an option: a list of columns, one word, or Keyword=value.
check_value() {
  case $1 in -o | --output) ;; *) return 0 ;; esac
  if [ -n "$columns" ]; then
    old_ifs=$IFS
    IFS=,
    # shellcheck disable=SC2086
    for column in ${2#+}; do
      IFS=$old_ifs
      upper=$column
      case $column in *[a-z]*) upper=$(printf '%s' "$column" | /usr/bin/tr '[:lower:]' '[:upper:]') ;; esac
      numeric "$column" || among "$upper" "$columns" || refuse "column $column of $1"
    done
    IFS=$old_ifs
  fi
  if [ -n "$outputs" ]; then among "$2" "$outputs" || refuse "$1 $2"; fi
  if [ -n "$keywords" ]; then
    keyword=${2%%[= ]*}
    among "$(printf '%s' "$keyword" | /usr/bin/tr '[:upper:]' '[:lower:]')" "$keywords" || refuse "$1 $keyword"
  fi
}

# Sets pending to the option whose value the next word is.
long_option() {
  name=${1%%=*}
  found=
  if among "$name" "$options" || among "$name=" "$options" || among "${name}[=]" "$options"; then
    found=$name
  else # cut short, as getopt_long allows
    for option in $options; do
      case $option in
        "$name"*) found=${option%=} && found=${found%\[*} ;;
      esac
    done
  fi
  [ -n "$found" ] || refuse "$name"
  case $1 in
    *=*) check_value "$found" "${1#*=}" ;;
    *) if among "$found=" "$options"; then pending=$found; fi ;;
  esac
}

short_options() {
  letters=$1
  while [ -n "$letters" ]; do
    letter=${letters%"${letters#?}"}
    letters=${letters#?}
    if among "-$letter" "$options"; then
      continue
    elif among "-$letter=" "$options"; then
      if [ -n "$letters" ]; then check_value "-$letter" "$letters"; else pending=-$letter; fi
      return 0
    elif among "-${letter}[=]" "$options"; then
      return 0
    fi
    refuse "-$letter"
  done
}

check_verb() {
  if [ -z "$verbs" ] || numeric "$1" || among "$1" "$verbs"; then return 0; fi
  refuse "$1"
}

check_getopt() {
  pending='' operands=0
  if [ -n "$bundle" ]; then
    case ${1:--} in
      -*) ;;
      *)
        letters=$1
        shift
        while [ -n "$letters" ]; do
          letter=${letters%"${letters#?}"}
          letters=${letters#?}
          if among "-$letter=" "$options"; then
            [ $# -eq 0 ] || shift
          elif ! among "-$letter" "$options" && ! among "-${letter}[=]" "$options"; then
            refuse "$letter"
          fi
        done
        ;;
    esac
  fi
  for word in "$@"; do
    if [ -n "$pending" ]; then
      check_value "$pending" "$word"
      pending=
      continue
    fi
    case $word in
      --) [ -n "$verbs" ] && [ "$operands" -eq 0 ] && continue || return 0 ;;
      -[0-9]* | -) ;;
      --*) if [ -n "$options" ]; then long_option "$word"; fi ;;
      -*) if [ "$style" != long ] && [ -n "$options" ]; then short_options "${word#-}"; fi ;;
      *)
        operands=$((operands + 1))
        [ "$operands" -gt 1 ] || check_verb "$word"
        [ -z "$stops" ] || return 0
        ;;
    esac
  done
}

# ip: options come first, with one dash or two, and like the verb may be cut short.
check_prefix() {
  while [ $# -gt 0 ]; do
    case $1 in
      --) shift && break ;;
      -*) ;;
      *) break ;;
    esac
    given=${1#-}
    given=-${given#-}
    found=
    for option in $options; do
      case ${option%=} in "$given"*) found=$option && break ;; esac
    done
    [ -n "$found" ] || refuse "$1"
    case $found in *=) [ $# -eq 1 ] || shift ;; esac
    shift
  done
  [ $# -gt 0 ] || return 0
  for verb in $verbs; do
    case $verb in "$1"*) return 0 ;; esac
  done
  refuse "$1"
}

# find: options and expressions are words with one dash.
check_words() {
  skip='' command=
  for word in "$@"; do
    if [ -n "$skip" ]; then
      skip=
    elif [ -n "$command" ]; then
      case $word in ';' | +) command= ;; esac
    else
      case $word in
        -exec | -execdir | -ok | -okdir) command=yes ;;
        -newer??) skip=yes ;;
        -[a-zA-Z-]*) if among "$word=" "$options"; then skip=yes; elif ! among "$word" "$options"; then refuse "$word"; fi ;;
      esac
    fi
  done
}

# dd: name=value.
check_operands() {
  for word in "$@"; do
    among "$word" "$options" || among "${word%%=*}=" "$options" || refuse "$word"
  done
}

case $style in
  prefix) check_prefix "$@" ;;
  words) check_words "$@" ;;
  operands) check_operands "$@" ;;
  *) check_getopt "$@" ;;
esac
