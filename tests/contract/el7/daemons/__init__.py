"""What the daemons of CentOS 7.7 understand: a file of words for each kind of configuration, and how it is asked."""
