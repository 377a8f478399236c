# Where modulefiles are, unless somebody has said so before; z00_lmod.csh is read later.
if ( ! $?MODULEPATH && -f /etc/profile.d/z00_lmod.csh ) then
  setenv MODULEPATH /etc/modulefiles:/usr/share/modulefiles
endif
