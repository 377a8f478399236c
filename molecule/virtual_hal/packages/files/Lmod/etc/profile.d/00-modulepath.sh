# Where modulefiles are, unless somebody has said so before; z00_lmod.sh is read later.
[ -z "$MODULEPATH" ] && [ -f /etc/profile.d/z00_lmod.sh ] && export MODULEPATH=/etc/modulefiles:/usr/share/modulefiles || :
