"""Redfish: sushy-tools' emulator, with drivers of ours, and what an OpenBMC has and it has not.

sushy-tools serves the root, the collections, the system with its processors and ports, and the Reset action. What it
answers is completed afterwards (`complete`): serial number, model, allowed values, members' names. It has constants
where a BMC has facts (the serial number and sensors of its chassis, the name of its manager, a boot override that is
always "Continuous"), knows certificates of virtual media alone, and has no sessions or accounts at all. Blueprints of
ours have those resources (`redfish_access`, `redfish_facts`).
"""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING, Any

import flask
from sushy_tools import error as sushy_error
from sushy_tools.emulator import main as emulator
from sushy_tools.emulator.resources.systems.base import AbstractSystemsDriver
from testbed.errors import VirtualNodesError
from werkzeug.exceptions import MethodNotAllowed, NotFound
from werkzeug.routing import RequestRedirect

from bmc.machine import ACTIONS, Processor, identifier
from bmc.redfish_access import access
from bmc.redfish_facts import REDFISH_TARGETS, TARGETS, facts
from bmc.rest import rest
from bmc.state import Override
from bmc.web import Application, asked, redfish_error

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse

# Of sushy-tools' resources, those that such a BMC has; virtual media, secure boot and volumes it has not.
SERVED = {
    "root_resource",
    "chassis_collection_resource",
    "manager_collection_resource",
    "system_collection_resource",
    "system_resource",
    "system_reset_action",
    "ethernet_interfaces_collection",
    "ethernet_interface",
    "processors_collection",
    "processor",
    "registry_file_collection",
    "message_registry_file",
    "message_registry",
}
NOT_THERE = ("VirtualMedia", "SecureBoot", "Storage", "SimpleStorage", "Bios", "Memory", "IndicatorLED")


class _Systems(AbstractSystemsDriver):  # type: ignore[misc]  # sushy-tools has no types
    """The one system of the BMC that was asked."""

    @property
    def driver(self) -> str:
        return "<hal>"

    @property
    def systems(self) -> list[str]:
        return [asked().processor.own.spec.delivered.members.system]

    def _processor(self, identity: str) -> Processor:
        if identity not in self.systems:
            raise sushy_error.NotFound(f"The resource Systems/{identity} was not found.")
        return asked().processor

    def uuid(self, identity: str) -> str:
        return identifier(self._processor(identity), "system")

    def name(self, identity: str) -> str:
        self._processor(identity)
        return identity

    def get_power_state(self, identity: str) -> str:
        try:
            return "On" if self._processor(identity).host.power() else "Off"
        except VirtualNodesError as error:
            raise sushy_error.FishyError(str(error)) from error

    def set_power_state(self, identity: str, state: str) -> None:
        processor = self._processor(identity)
        for action in ACTIONS:
            if action == state:
                processor.request_power(action)
                return
        raise sushy_error.BadRequest(
            f"The value {state} for the parameter ResetType is not in the list of acceptable values."
        )

    def get_boot_device(self, identity: str) -> str:
        return REDFISH_TARGETS[self._processor(identity).host.override().target]

    def set_boot_device(self, identity: str, boot_source: str) -> None:
        raise sushy_error.NotSupportedError("the boot override is set by this emulation's own PATCH")

    def get_total_memory(self, identity: str) -> int:
        return self._processor(identity).host.spec.memory_mb // 1024

    def get_total_cpus(self, identity: str) -> int:
        return self._processor(identity).host.spec.cpus

    def get_processors(self, identity: str) -> list[dict[str, Any]]:
        spec = self._processor(identity).host.spec
        half = {"vendor": spec.delivered.manufacturer, "model": "", "cores": spec.cpus // 8, "threads": spec.cpus // 2}
        return [{"id": f"cpu{index}", "socket": f"CPU {index}", **half} for index in range(2)]

    def get_nics(self, identity: str) -> list[dict[str, str]]:
        macs = self._processor(identity).host.spec.macs
        return [{"id": network, "mac": mac} for network, mac in sorted(macs.items()) if network != "bmc"]


class _Named:
    """A collection with the one member that the BMC's maker calls so."""

    def __init__(self, part: str) -> None:
        self._part = part

    @property
    def members(self) -> list[str]:
        return [getattr(asked().processor.own.spec.delivered.members, self._part)]

    managers = chassis = members

    def get_managers_for_system(self, identity: str) -> list[str]:
        """Return the managers of a system: there is one."""
        return self.members


class _NoIndicator:
    def get_indicator_state(self, identity: str) -> None:
        """There is no lamp."""


class _Emulator(emulator.Application):  # type: ignore[misc]  # sushy-tools has no types
    """sushy-tools' application with our drivers instead of the ones its configuration offers."""

    systems = _Systems()
    managers = _Named("manager")
    chassis = _Named("chassis")
    indicators = _NoIndicator()


def _sushy() -> flask.Flask:
    # sushy-tools has one application, made with its routes when the module is read; a subclass of ours cannot take
    # the routes over.
    app: flask.Flask = emulator.app
    app.__class__ = _Emulator
    logging.getLogger(app.logger.name).setLevel(logging.CRITICAL)
    if complete not in app.after_request_funcs.get(None, []):
        app.after_request(complete)
    return app


def complete(response: flask.Response) -> flask.Response:
    """Lay over what sushy-tools has answered what it does not know of."""
    if not response.is_json or not response.get_data():
        return response
    processor, endpoint = asked().processor, flask.request.endpoint
    body = response.get_json()
    if response.status_code >= 400:
        kind = {400: "ActionParameterNotSupported", 404: "ResourceNotFound", 405: "ActionNotSupported"}
        text = str(body.get("error", {}).get("message", ""))
        body = redfish_error(kind.get(response.status_code, "InternalError"), text, [])
    elif endpoint == "root_resource":
        body.update(
            Id="RootService",
            Name="Root Service",
            UUID=identifier(processor, "root"),
            AccountService={"@odata.id": "/redfish/v1/AccountService"},
            SessionService={"@odata.id": "/redfish/v1/SessionService"},
            Links={"Sessions": {"@odata.id": "/redfish/v1/SessionService/Sessions"}},
        )
    elif endpoint == "system_resource" and flask.request.method == "GET":
        _complete_system(processor, body)
    response.set_data(json.dumps(body))
    return response


def _complete_system(processor: Processor, body: dict[str, Any]) -> None:
    host = processor.host
    for name in NOT_THERE:
        body.pop(name, None)
    body.update(
        Manufacturer=host.spec.delivered.manufacturer,
        Model=host.spec.model,
        SystemType="Physical",
        Boot=_boot(processor, host.override()),
        BiosVersion=host.firmware()["host"],
    )
    if processor.own.spec.kind != "supermicro":  # the LC92x have it at the chassis
        body["SerialNumber"] = processor.serial
    reset = body["Actions"]["#ComputerSystem.Reset"]
    reset["ResetType@Redfish.AllowableValues"] = list(ACTIONS)


def _boot(processor: Processor, override: Override) -> dict[str, Any]:
    if not processor.offers_override:
        return {"BootSourceOverrideTarget@Redfish.AllowableValues": []}
    return {
        "BootSourceOverrideEnabled": override.enabled.capitalize(),
        "BootSourceOverrideTarget": REDFISH_TARGETS[override.target],
        "BootSourceOverrideTarget@Redfish.AllowableValues": list(TARGETS),
        "BootSourceOverrideMode": "UEFI" if processor.own.spec.kind == "idrac" else "Legacy",
    }


def application() -> Application:
    """Return what answers the requests of all BMCs that have passed their `Web`."""
    ours, theirs = flask.Flask("bmc"), _sushy()
    ours.url_map.strict_slashes = theirs.url_map.strict_slashes = False
    ours.register_blueprint(access)
    ours.register_blueprint(facts)
    ours.register_blueprint(rest)

    @ours.errorhandler(VirtualNodesError)
    def _hardware(error: VirtualNodesError) -> tuple[dict[str, Any], int]:
        return redfish_error("InternalError", str(error), []), 500

    def answer(environ: dict[str, Any], start_response: StartResponse) -> Any:
        try:
            ours.url_map.bind_to_environ(environ).match()
        except RequestRedirect:
            pass
        except (NotFound, MethodNotAllowed):
            try:
                endpoint, _ = theirs.url_map.bind_to_environ(environ).match()
            except (NotFound, MethodNotAllowed, RequestRedirect):
                endpoint = ""
            if endpoint in SERVED:
                return theirs(environ, start_response)
        return ours(environ, start_response)

    return answer
