# .bashrc, as package rootfiles of CentOS 7 has it
if [ -f /etc/bashrc ]; then
  . /etc/bashrc
fi
