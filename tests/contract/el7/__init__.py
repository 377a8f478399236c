"""What CentOS 7.7 has, as data with its source, and how it is asked."""
