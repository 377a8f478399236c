"""The key of images, and what the tests of provisioning can import."""

from __future__ import annotations

from tests.unit.hal_cluster.provision.conftest import key as key
