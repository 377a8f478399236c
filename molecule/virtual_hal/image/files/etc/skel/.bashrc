# .bashrc, as package bash of CentOS 7 gives it to new users
if [ -f /etc/bashrc ]; then
  . /etc/bashrc
fi
