# System-wide start of every tcsh. As package setup of CentOS 7 has it: profile.d is read here unless /etc/csh.login does.
umask 022
if ( $?prompt ) then
  if ( $?tcsh ) set prompt = '[%n@%m %c]%# '
endif
if ( ! $?loginsh ) then
  if ( -d /etc/profile.d ) then
    set nonomatch
    foreach i ( /etc/profile.d/*.csh )
      if ( -r "$i" ) then
        if ( $?prompt ) then
          source "$i"
        else
          source "$i" >& /dev/null
        endif
      endif
    end
    unset i nonomatch
  endif
endif
