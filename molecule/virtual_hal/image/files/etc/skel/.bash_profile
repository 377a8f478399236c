# .bash_profile, as package bash of CentOS 7 gives it to new users
if [ -f ~/.bashrc ]; then
  . ~/.bashrc
fi
PATH=$PATH:$HOME/.local/bin:$HOME/bin
export PATH
