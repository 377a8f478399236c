# .bash_profile, as package rootfiles of CentOS 7 has it
if [ -f ~/.bashrc ]; then
  . ~/.bashrc
fi
PATH=$PATH:$HOME/bin
export PATH
