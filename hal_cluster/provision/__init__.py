"""What nodes boot and install: boot configurations, DHCP, kickstart, images, one-time tokens."""
