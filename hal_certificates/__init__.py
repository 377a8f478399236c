"""What the site's SSH authorities signed and withdrew: user certificates, revocations, first contact with a node."""
