# Prints what is installed of another stack of InfiniBand than $1, inbox or mlnx_ofed; nothing where there is none. Read-only.
ofed=$(ofed_info -s 2>/dev/null)
case $1 in
  inbox) echo "${ofed%:}" | tr -cd '[:print:]\n' | cut -c 1-80 ;;
  mlnx_ofed) [ -n "$ofed" ] || rpm --query rdma-core 2>/dev/null | grep '^rdma-core-[0-9]' | head -n 1 ;;
esac
exit 0
