"""Emulated BMCs: Redfish, REST, IPMI and ssh as a service processor speaks them, on hardware that is virtual."""
