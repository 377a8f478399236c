"""What the site's authorities signed and withdrew: users' and servers' certificates, revocations, first contact."""
