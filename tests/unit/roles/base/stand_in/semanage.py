"""Stand-in for libsemanage-python, as far as ansible.posix.seboolean calls it. A key and a boolean are a small dict."""

from __future__ import annotations

from typing import Any

import store  # type: ignore[import-not-found]  # beside this file, on PYTHONPATH of the run

Boolean = dict[str, Any]


def semanage_handle_create() -> object:
    return object()


def semanage_is_managed(_handle: object) -> int:
    return 1


def semanage_bool_create(_handle: object) -> tuple[int, Boolean]:
    return 0, {}


def semanage_bool_set_name(_handle: object, boolean: Boolean, name: str) -> int:
    boolean["name"] = name
    return 0


def semanage_bool_key_extract(_handle: object, boolean: Boolean) -> tuple[int, Boolean]:
    return 0, boolean


def semanage_bool_exists(_handle: object, key: Boolean) -> tuple[int, bool]:
    return 0, key["name"] in store.load()["policy"]


def semanage_bool_query(_handle: object, key: Boolean) -> tuple[int, Boolean]:
    values = store.load()
    return 0, {"name": key["name"], "value": {**values["policy"], **values["local"]}[key["name"]]}


def semanage_bool_get_value(boolean: Boolean) -> int:
    value: int = boolean["value"]
    return value


def semanage_bool_set_value(boolean: Boolean, value: int) -> None:
    boolean["value"] = value


def semanage_bool_modify_local(_handle: object, key: Boolean, boolean: Boolean) -> int:
    values = store.load()
    values["local"][key["name"]] = boolean["value"]
    store.save(values)
    return 0


def semanage_bool_set_active(_handle: object, key: Boolean, boolean: Boolean) -> int:
    values = store.load()
    values["live"][key["name"]] = boolean["value"]
    store.save(values)
    return 0


def _nothing(*_arguments: object) -> int:
    return 0


semanage_connect = semanage_begin_transaction = semanage_bool_key_free = semanage_bool_free = _nothing
semanage_set_reload = semanage_commit = semanage_disconnect = semanage_handle_destroy = _nothing
