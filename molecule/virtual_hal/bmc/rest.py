"""OpenBMC's own REST interface, from before Redfish: objects of its D-Bus as paths below /xyz/openbmc_project.

Source: openbmc/docs, REST-cheatsheet.md and rest-api.md, and how xCAT uses it. It is the same state as Redfish's.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import flask
from werkzeug.exceptions import BadRequest

from bmc.machine import Action, PasswordRefusedError, Processor
from bmc.redfish_access import change_password
from bmc.sensors import UNITS
from bmc.state import State, Target
from bmc.web import MUST_CHANGE, TOKEN, asked, rest_error

rest = flask.Blueprint("rest", __name__)
ROOT = "/xyz/openbmc_project"
SOURCE = "xyz.openbmc_project.Control.Boot.Source.Sources."
MODE = "xyz.openbmc_project.Control.Boot.Mode.Modes."
HOST = "xyz.openbmc_project.State.Host."
CHASSIS = "xyz.openbmc_project.State.Chassis."
SOURCES: dict[str, Target] = {f"{SOURCE}Default": "none", f"{SOURCE}Network": "network", f"{SOURCE}Disk": "disk"}
SOURCES_OF: dict[Target, str] = {target: source for source, target in SOURCES.items()}
MODES = (f"{MODE}Regular", f"{MODE}Safe", f"{MODE}Setup")
# Switching the chassis off takes the host's power away; on does not start the host, which an AC922 does all the same.
HOST_TRANSITIONS: dict[str, Action] = {
    f"{HOST}Transition.On": "On",
    f"{HOST}Transition.Off": "GracefulShutdown",
    f"{HOST}Transition.Reboot": "GracefulRestart",
}
CHASSIS_TRANSITIONS: dict[str, Action] = {f"{CHASSIS}Transition.On": "On", f"{CHASSIS}Transition.Off": "ForceOff"}
SCALE = -3  # a sensor's value is an integer, times ten to this
Objects = dict[str, dict[str, Any]]


class _RefusedError(Exception):
    def __init__(self, status: str, text: str) -> None:
        super().__init__(text)
        self.answer = rest_error(status, text), int(status[:3])


@rest.errorhandler(_RefusedError)
def _refused(error: _RefusedError) -> tuple[dict[str, Any], int]:
    return error.answer


@rest.errorhandler(BadRequest)
def _bad(error: BadRequest) -> tuple[dict[str, Any], int]:
    return rest_error("400 Bad Request", "Invalid request: no JSON"), 400


def _ok(data: Any) -> dict[str, Any]:
    return {"data": data, "message": "200 OK", "status": "ok"}


def _openbmc() -> Processor:
    processor = asked().processor
    if not processor.own.spec.delivered.rest:
        raise _RefusedError("404 Not Found", "there is no such interface")
    return processor


def _data() -> Any:
    body = flask.request.get_json(force=True)
    if not isinstance(body, dict) or "data" not in body:
        raise _RefusedError("400 Bad Request", 'Invalid request: the body is {"data": ...}')
    return body["data"]


@rest.post("/login")
def login() -> flask.Response:
    """Log in: the session is a cookie."""
    _openbmc()
    data = _data()
    session = asked().sessions.open(str(data[0]), str(data[1])) if isinstance(data, list) and len(data) == 2 else None
    if session is None:
        raise _RefusedError("401 Unauthorized", "Invalid username or password")
    said = _ok(f"User '{session.user}' logged in")
    if asked().processor.own.users()[session.user].must_change:
        said["extendedMessage"] = MUST_CHANGE
    response = flask.jsonify(said)
    response.set_cookie("SESSION", session.token, secure=True, httponly=True, samesite="Strict")
    return response


@rest.post("/logout")
def logout() -> dict[str, Any]:
    """Log out."""
    _openbmc()
    token = flask.request.environ.get(TOKEN)
    for session in asked().sessions.all():
        if session.token == token:
            asked().sessions.close(session.number)
    return _ok("User logged out")


@rest.post(f"{ROOT}/user/<name>/action/SetPassword")
def set_password(name: str) -> dict[str, Any]:
    """Change a user's password."""
    processor = _openbmc()
    data = _data()
    if name not in processor.own.users() or not (isinstance(data, list) and len(data) == 1):
        raise _RefusedError("404 Not Found", f"path or object not found: {ROOT}/user/{name}")
    change_password(name, str(data[0]))
    return _ok(None)


@rest.errorhandler(PasswordRefusedError)
def _password(error: PasswordRefusedError) -> tuple[dict[str, Any], int]:
    return rest_error("400 Bad Request", str(error)), 400


@rest.get(f"{ROOT}/<path:path>")
@rest.get(f"{ROOT}/", defaults={"path": ""})
def read(path: str) -> dict[str, Any]:
    """An object, one of its attributes, what is below it (list), or all of that with its attributes (enumerate)."""
    objects = _objects(_openbmc())
    asked_for = f"{ROOT}/{path}".rstrip("/")
    place, _, attribute = asked_for.partition("/attr/")
    if attribute:
        if attribute in objects.get(place, {}):
            return _ok(objects[place][attribute])
    elif asked_for.endswith(("/enumerate", "/list")):
        place, _, how = asked_for.rpartition("/")
        below = {name: values for name, values in objects.items() if name.startswith(f"{place}/") or name == place}
        if below:
            return _ok(below if how == "enumerate" else sorted(below))
    elif asked_for in objects:
        return _ok(objects[asked_for])
    elif children := {_child(asked_for, name) for name in objects if name.startswith(f"{asked_for}/")}:
        return _ok(sorted(children))
    raise _RefusedError(
        "404 Not Found", f"org.freedesktop.DBus.Error.FileNotFound: path or object not found: {asked_for}"
    )


def _child(parent: str, name: str) -> str:
    return f"{parent}/{name.removeprefix(f'{parent}/').partition('/')[0]}"


@rest.put(f"{ROOT}/<path:path>")
def write(path: str) -> dict[str, Any]:
    """Set an attribute."""
    processor = _openbmc()
    place, _, attribute = path.partition("/attr/")
    setter = SETTERS.get((place, attribute))
    if setter is None:
        raise _RefusedError("403 Forbidden", f"The specified property cannot be written: {ROOT}/{path}")
    setter(processor, _data())
    return _ok(None)


def _value(values: dict[str, Any], given: Any) -> Any:
    if not isinstance(given, str) or given not in values:
        raise _RefusedError("400 Bad Request", f"Invalid argument: {given}; it is one of {', '.join(values)}")
    return values[given]


def _host_transition(processor: Processor, given: Any) -> None:
    processor.request_power(_value(HOST_TRANSITIONS, given))


def _chassis_transition(processor: Processor, given: Any) -> None:
    processor.request_power(_value(CHASSIS_TRANSITIONS, given))


def _boot(change: Callable[[State, Any], None], check: Callable[[Any], Any]) -> Callable[[Processor, Any], None]:
    def setter(processor: Processor, given: Any) -> None:
        value = check(given)
        if not processor.own.faults().boot_override_ignored:
            with processor.host.kept.change() as state:
                change(state, value)

    return setter


def _enabled(given: Any) -> bool:
    if given not in (True, False, 0, 1):
        raise _RefusedError("400 Bad Request", f"Invalid argument: {given}; it is true or false")
    return bool(given)


def _source(given: Any) -> Target:
    target: Target = _value(SOURCES, given)
    return target


def _mode(given: Any) -> bool:
    return bool(_value({mode: mode.endswith("Setup") for mode in MODES}, given))


def _set_source(state: State, value: Target) -> None:
    state.boot_source = value


def _set_once_source(state: State, value: Target) -> None:
    state.once_source = value


def _set_once(state: State, value: bool) -> None:
    state.once_enabled = value


def _set_mode(state: State, setup: bool) -> None:
    if setup or state.boot_source == "setup":
        state.boot_source = "setup" if setup else "none"


def _set_once_mode(state: State, setup: bool) -> None:
    if setup or state.once_source == "setup":
        state.once_source = "setup" if setup else "none"


SETTERS: dict[tuple[str, str], Callable[[Processor, Any], None]] = {
    ("state/host0", "RequestedHostTransition"): _host_transition,
    ("state/chassis0", "RequestedPowerTransition"): _chassis_transition,
    ("control/host0/boot", "BootSource"): _boot(_set_source, _source),
    ("control/host0/boot", "BootMode"): _boot(_set_mode, _mode),
    ("control/host0/boot/one_time", "BootSource"): _boot(_set_once_source, _source),
    ("control/host0/boot/one_time", "BootMode"): _boot(_set_once_mode, _mode),
    ("control/host0/boot/one_time", "Enabled"): _boot(_set_once, _enabled),
}


def _objects(processor: Processor) -> Objects:
    host, on = processor.host, processor.host.power()
    state, spec = host.kept.read(), host.spec
    chassis = f"{ROOT}/inventory/system/chassis"
    board = f"{chassis}/motherboard"
    objects: Objects = {
        f"{ROOT}/state/bmc0": {"CurrentBMCState": "xyz.openbmc_project.State.BMC.BMCState.Ready"},
        f"{ROOT}/state/chassis0": {
            "CurrentPowerState": f"{CHASSIS}PowerState.{'On' if on else 'Off'}",
            "RequestedPowerTransition": f"{CHASSIS}Transition.{'On' if on else 'Off'}",
        },
        f"{ROOT}/state/host0": {
            "CurrentHostState": f"{HOST}HostState.{'Running' if on else 'Off'}",
            "RequestedHostTransition": f"{HOST}Transition.{'On' if on else 'Off'}",
            "BootProgress": f"xyz.openbmc_project.State.Boot.Progress.ProgressStages.{_progress(state, on)}",
        },
        f"{ROOT}/control/host0/boot": _boot_object(state.boot_source),
        f"{ROOT}/control/host0/boot/one_time": {**_boot_object(state.once_source), "Enabled": state.once_enabled},
        f"{ROOT}/inventory/system": {
            "Present": True,
            "PrettyName": "",
            "SerialNumber": processor.serial,
            "Model": spec.model,
        },
        board: {
            "Manufacturer": spec.delivered.manufacturer,
            "SerialNumber": processor.serial,
            "Model": spec.model,
            "Present": True,
        },
        f"{board}/boxelder/bmc/ethernet": {"MACAddress": spec.macs.get("bmc", "")},
        **{
            f"{board}/gv100card{index}": {"Functional": True, "Present": True, "PrettyName": f"GPU {index}"}
            for index in range(spec.gpus)
        },
    }
    for sensor in host.sensors():
        objects[f"{ROOT}/sensors/{sensor.quantity}/{sensor.name}"] = {
            "Scale": SCALE,
            "Unit": f"xyz.openbmc_project.Sensor.Value.Unit.{UNITS[sensor.quantity]}",
            "Value": round(sensor.value * 10**-SCALE),
            "CriticalHigh": round(sensor.critical * 10**-SCALE),
            "CriticalAlarmHigh": sensor.value > sensor.critical,
            "CriticalAlarmLow": False,
        }
    for part, version in processor.own.firmware().items():
        number = hashlib.sha512(version.encode()).hexdigest()[:8]
        objects[f"{ROOT}/software/{number}"] = {
            "Activation": "xyz.openbmc_project.Software.Activation.Activations.Active",
            "Priority": 0,
            "Purpose": f"xyz.openbmc_project.Software.Version.VersionPurpose.{'BMC' if part == 'bmc' else 'Host'}",
            "Version": version,
        }
    return objects


def _boot_object(target: Target) -> dict[str, Any]:
    mode = "Setup" if target == "setup" else "Regular"
    return {"BootMode": f"{MODE}{mode}", "BootSource": SOURCES_OF.get(target, f"{SOURCE}Default")}


def _progress(state: State, on: bool) -> str:
    if not on:
        return "Unspecified"
    return "MotherboardInit" if state.in_firmware else "OSRunning"
