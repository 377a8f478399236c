"""The captures of Spectrum Scale's commands; importing them also brings hal_node under the name that modules use."""

from tests.unit.hal_node.scale.conftest import captures

__all__ = ["captures"]
