"""How emulated BMCs answer by Redfish: forms of resources, errors, and the blueprint that has both.

Forms are bmcweb's (openbmc/bmcweb, redfish-core/lib); what an LC92x or an iDRAC answers is the same with other members.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import flask
from werkzeug.exceptions import BadRequest

from bmc.machine import PasswordRefusedError, Processor
from bmc.web import asked, redfish_error

Answer = tuple[dict[str, Any], int]


class RefusedError(Exception):
    """An answer that is an error."""

    def __init__(self, status: int, identifier: str, text: str, *arguments: str) -> None:
        super().__init__(text)
        self.status = status
        self.body = redfish_error(identifier, text, list(arguments))


def blueprint(name: str) -> flask.Blueprint:
    """Return a blueprint for resources below /redfish, whose errors are Redfish's."""
    made = flask.Blueprint(name, __name__, url_prefix="/redfish")
    made.register_error_handler(RefusedError, _refused)
    made.register_error_handler(BadRequest, _bad)
    made.register_error_handler(PasswordRefusedError, _password)
    made.app_errorhandler(404)(_not_found)
    made.app_errorhandler(405)(_not_allowed)
    return made


def _refused(error: RefusedError) -> Answer:
    return error.body, error.status


def _bad(error: BadRequest) -> Answer:
    return redfish_error("MalformedJSON", "The request body submitted was malformed JSON.", []), 400


def _not_found(error: Exception) -> Answer:
    path = flask.request.path
    return redfish_error("ResourceNotFound", f"The requested resource named {path} was not found.", [path]), 404


def _not_allowed(error: Exception) -> Answer:
    return redfish_error("OperationNotAllowed", "The HTTP method is not allowed on this resource.", []), 405


def _password(error: PasswordRefusedError) -> Answer:
    text = f"The value for the property Password is of a different format than the property can accept: {error}."
    return redfish_error("PropertyValueFormatError", text, ["Password"]), 400


def member(name: str, part: str) -> Processor:
    """Return the BMC that was asked, where the member is called so."""
    processor = asked().processor
    if name != getattr(processor.own.spec.delivered.members, part):
        raise RefusedError(404, "ResourceNotFound", f"The requested resource named {name} was not found.", name)
    return processor


def sent(*known: str) -> dict[str, Any]:
    """Return the properties of a request; raise RefusedError for one that is not known."""
    body = flask.request.get_json(force=True)
    if not isinstance(body, dict):
        raise RefusedError(400, "MalformedJSON", "The request body is not a JSON object.")
    for name in body:
        if name not in known:
            raise RefusedError(
                400, "PropertyUnknown", f"The property {name} is not in the list of valid properties.", name
            )
    return body


def resource(path: str, kind: str, version: str, **properties: Any) -> dict[str, Any]:
    """Return a resource of a kind and version of Redfish's schema."""
    return {"@odata.id": path, "@odata.type": f"#{kind}.{version}.{kind}", **properties}


def collection(path: str, kind: str, members: Sequence[str]) -> dict[str, Any]:
    """Return the collection of these members below a path."""
    listed = [{"@odata.id": f"{path}/{name}"} for name in members]
    return {
        "@odata.id": path,
        "@odata.type": f"#{kind}Collection.{kind}Collection",
        "Name": f"{kind} Collection",
        "Members": listed,
        "Members@odata.count": len(listed),
    }


def success() -> dict[str, Any]:
    """Return what an action answers that has nothing else to say."""
    message = {"MessageId": "Base.1.8.1.Success", "Message": "Successfully Completed Request", "MessageArgs": []}
    return {"@Message.ExtendedInfo": [{"@odata.type": "#Message.v1_1_1.Message", **message}]}


def manager_path(processor: Processor) -> str:
    """Return the path of the BMC's own resource."""
    return f"/redfish/v1/Managers/{processor.own.spec.delivered.members.manager}"
