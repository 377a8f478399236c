# System-wide start of login shells of tcsh, after /etc/csh.cshrc. As package setup of CentOS 7 has it.
if ( ! $?PATH ) setenv PATH /usr/local/bin:/usr/bin:/usr/local/sbin:/usr/sbin
setenv HOSTNAME `/bin/hostname`
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
