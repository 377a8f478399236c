# What is not as declared of MLNX_OFED, a line each; nothing when version $1 is installed and its modules are built for kernel $2.
# Its installer puts modules for that kernel alone into extra/mlnx-ofa_kernel; links to those of another kernel are in weak-updates.
installed=$(ofed_info -s 2>/dev/null)
case $installed in
  "MLNX_OFED_LINUX-$1:") ;;
  '') echo "MLNX_OFED $1 is not installed" ;;
  *) echo "${installed%:} is installed, declared MLNX_OFED_LINUX-$1" ;;
esac
built=$(find "/lib/modules/$2/extra/mlnx-ofa_kernel" -name 'mlx5_core.ko*' 2>/dev/null)
[ -n "$built" ] || echo "its drivers are not built for kernel $2"
