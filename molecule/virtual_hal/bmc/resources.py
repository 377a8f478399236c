"""The Redfish resources that sushy-tools' emulator lacks, or has with constants instead of facts (see `redfish`).

Forms are bmcweb's (openbmc/bmcweb, redfish-core/lib); what an LC92x or an iDRAC answers is the same with other members.
"""

from __future__ import annotations

import datetime
import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import flask
from werkzeug.exceptions import BadRequest

from bmc.machine import PasswordRefusedError, Processor, identifier
from bmc.state import Enabled, Target
from bmc.tls import CertificateRefusedError
from bmc.web import MUST_CHANGE, TOKEN, asked, redfish_error

resources = flask.Blueprint("redfish", __name__, url_prefix="/redfish")
TARGETS: dict[str, Target] = {"None": "none", "Pxe": "network", "Hdd": "disk", "BiosSetup": "setup"}
REDFISH_TARGETS = {target: name for name, target in TARGETS.items()}
ENABLED: dict[str, Enabled] = {"Disabled": "disabled", "Once": "once", "Continuous": "continuous"}
CONTEXTS = {"temperature": "SystemBoard", "fan_tach": "SystemBoard"}
Answer = tuple[dict[str, Any], int]


class _RefusedError(Exception):
    """An answer that is an error."""

    def __init__(self, status: int, identifier: str, text: str, *arguments: str) -> None:
        super().__init__(text)
        self.status = status
        self.body = redfish_error(identifier, text, list(arguments))


@resources.errorhandler(_RefusedError)
def _refused(error: _RefusedError) -> Answer:
    return error.body, error.status


@resources.errorhandler(BadRequest)
def _bad(error: BadRequest) -> Answer:
    return redfish_error("MalformedJSON", "The request body submitted was malformed JSON.", []), 400


@resources.app_errorhandler(404)
def _not_found(error: Exception) -> Answer:
    path = flask.request.path
    return redfish_error("ResourceNotFound", f"The requested resource named {path} was not found.", [path]), 404


@resources.app_errorhandler(405)
def _not_allowed(error: Exception) -> Answer:
    return redfish_error("OperationNotAllowed", "The HTTP method is not allowed on this resource.", []), 405


@resources.errorhandler(PasswordRefusedError)
def _password(error: PasswordRefusedError) -> Answer:
    text = f"The value for the property Password is of a different format than the property can accept: {error}."
    return redfish_error("PropertyValueFormatError", text, ["Password"]), 400


def _member(name: str, part: str) -> Processor:
    """Return the BMC that was asked, where the member is called so."""
    processor = asked().processor
    if name != getattr(processor.own.spec.delivered.members, part):
        raise _RefusedError(404, "ResourceNotFound", f"The requested resource named {name} was not found.", name)
    return processor


def _body(*known: str) -> dict[str, Any]:
    """Return the properties of a request; raise for one that is none of those that are known."""
    body = flask.request.get_json(force=True)
    if not isinstance(body, dict):
        raise _RefusedError(400, "MalformedJSON", "The request body is no JSON object.")
    for name in body:
        if name not in known:
            raise _RefusedError(
                400, "PropertyUnknown", f"The property {name} is not in the list of valid properties.", name
            )
    return body


def _resource(path: str, kind: str, version: str, **properties: Any) -> dict[str, Any]:
    return {"@odata.id": path, "@odata.type": f"#{kind}.{version}.{kind}", **properties}


def _collection(path: str, kind: str, members: Sequence[str]) -> dict[str, Any]:
    listed = [{"@odata.id": f"{path}/{member}"} for member in members]
    return {
        "@odata.id": path,
        "@odata.type": f"#{kind}Collection.{kind}Collection",
        "Name": f"{kind} Collection",
        "Members": listed,
        "Members@odata.count": len(listed),
    }


def _success() -> dict[str, Any]:
    message = {"MessageId": "Base.1.8.1.Success", "Message": "Successfully Completed Request", "MessageArgs": []}
    return {"@Message.ExtendedInfo": [{"@odata.type": "#Message.v1_1_1.Message", **message}]}


@resources.get("")
def versions() -> dict[str, Any]:
    """Which versions of Redfish there are."""
    return {"v1": "/redfish/v1/"}


# Sessions


@resources.get("/v1/SessionService")
def session_service() -> dict[str, Any]:
    """The service itself."""
    path = "/redfish/v1/SessionService"
    below = {"Sessions": {"@odata.id": f"{path}/Sessions"}}
    return _resource(
        path, "SessionService", "v1_0_2", Id="SessionService", Name="Session Service", SessionTimeout=3600, **below
    )


@resources.get("/v1/SessionService/Sessions")
def sessions() -> dict[str, Any]:
    """The sessions that are open."""
    return _collection("/redfish/v1/SessionService/Sessions", "Session", [one.number for one in asked().sessions.all()])


@resources.post("/v1/SessionService/Sessions")
def login() -> flask.Response:
    """Log in. A password that has to be changed is said so, in an answer that is none the less a session."""
    body = flask.request.get_json(force=True)
    name, password = (
        (str(body.get(field, "")) for field in ("UserName", "Password")) if isinstance(body, dict) else ("", "")
    )
    session = asked().sessions.open(name, password)
    if session is None:
        raise _RefusedError(
            401,
            "ResourceAtUriUnauthorized",
            "While accessing the resource, the service received an authorization error.",
        )
    said = _session(session.number, session.user)
    user = asked().processor.own.users()[session.user]
    if user.must_change:
        account = f"/redfish/v1/AccountService/Accounts/{asked().processor.own.spec.delivered.account}"
        text = f"{MUST_CHANGE} PATCH the Password property at {account}."
        said["@Message.ExtendedInfo"] = redfish_error("PasswordChangeRequired", text, [account])["error"][
            "@Message.ExtendedInfo"
        ]
    response = flask.jsonify(said)
    response.status_code = 201
    response.headers["X-Auth-Token"] = session.token
    response.headers["Location"] = said["@odata.id"]
    return response


def _session(number: str, user: str) -> dict[str, Any]:
    path = f"/redfish/v1/SessionService/Sessions/{number}"
    return _resource(path, "Session", "v1_3_0", Id=number, Name="User Session", UserName=user)


@resources.route("/v1/SessionService/Sessions/<number>", methods=["GET", "DELETE"])
def session(number: str) -> dict[str, Any]:
    """One session, to read or to end."""
    open_ones = asked().sessions
    if flask.request.method == "DELETE" and open_ones.close(number):
        return _success()
    for one in open_ones.all():
        if one.number == number:
            return _session(one.number, one.user)
    raise _RefusedError(404, "ResourceNotFound", f"The requested resource named {number} was not found.", number)


# Users


@resources.get("/v1/AccountService")
def account_service() -> dict[str, Any]:
    """The service itself."""
    path = "/redfish/v1/AccountService"
    below = {"Accounts": {"@odata.id": f"{path}/Accounts"}}
    return _resource(
        path,
        "AccountService",
        "v1_5_0",
        Id="AccountService",
        Name="Account Service",
        MinPasswordLength=8,
        MaxPasswordLength=20,
        **below,
    )


@resources.get("/v1/AccountService/Accounts")
def accounts() -> dict[str, Any]:
    """The users; an emulated BMC has one."""
    return _collection(
        "/redfish/v1/AccountService/Accounts", "ManagerAccount", [asked().processor.own.spec.delivered.account]
    )


@resources.route("/v1/AccountService/Accounts/<account>", methods=["GET", "PATCH"])
def account(account: str) -> dict[str, Any]:
    """The user, and how its password is changed."""
    own = asked().processor.own
    if account != own.spec.delivered.account:
        raise _RefusedError(404, "ResourceNotFound", f"The requested resource named {account} was not found.", account)
    name = own.spec.login[0]
    if flask.request.method == "PATCH":
        password = _body("Password").get("Password")
        if not isinstance(password, str):
            raise _RefusedError(400, "PropertyMissing", "The property Password is a required property.", "Password")
        change_password(name, password)
        return _success()
    user = own.users()[name]
    return _resource(
        f"/redfish/v1/AccountService/Accounts/{account}",
        "ManagerAccount",
        "v1_4_0",
        Id=account,
        Name="User Account",
        UserName=name,
        Enabled=True,
        Locked=False,
        Password=None,
        PasswordChangeRequired=user.must_change,
        RoleId="Administrator",
    )


def change_password(name: str, password: str) -> None:
    """Change a user's password, by whichever interface; raise PasswordRefusedError."""
    web = asked()
    web.processor.own.set_password(name, password)
    web.sessions.close_others(name, flask.request.environ.get(TOKEN))
    web.password_changed()


# The system's boot override: sushy-tools answers GET, and knows neither Once nor Disabled


@resources.patch("/v1/Systems/<system>")
def system(system: str) -> tuple[str, int]:
    """Set the boot override."""
    processor = _member(system, "system")
    boot = _body("Boot").get("Boot")
    if not isinstance(boot, dict):
        raise _RefusedError(400, "PropertyMissing", "The property Boot is a required property.", "Boot")
    if not processor.offers_override:
        name = next(iter(boot), "Boot")
        raise _RefusedError(
            400, "PropertyUnknown", f"The property {name} is not in the list of valid properties.", name
        )
    now = processor.host.override()
    boot = {name: value for name, value in boot.items() if name != "BootSourceOverrideMode"}
    for name in boot:
        if name not in ("BootSourceOverrideTarget", "BootSourceOverrideEnabled"):
            raise _RefusedError(
                400, "PropertyUnknown", f"The property {name} is not in the list of valid properties.", name
            )
    target = _one_of(TARGETS, boot, "BootSourceOverrideTarget", now.target)
    enabled = _one_of(ENABLED, boot, "BootSourceOverrideEnabled", now.enabled if now.enabled != "disabled" else "once")
    processor.set_override(target, enabled)
    return "", 204


def _one_of(values: Mapping[str, Any], given: Mapping[str, Any], name: str, otherwise: Any) -> Any:
    if name not in given:
        return otherwise
    if given[name] not in values:
        text = f"The value {given[name]} for the property {name} is not in the list of acceptable values."
        raise _RefusedError(400, "PropertyValueNotInList", text, str(given[name]), name)
    return values[given[name]]


# The BMC itself


def _manager_path(processor: Processor) -> str:
    return f"/redfish/v1/Managers/{processor.own.spec.delivered.members.manager}"


@resources.route("/v1/Managers/<manager>", methods=["GET", "PATCH"])
def manager(manager: str) -> Any:
    """The BMC: firmware, clock, and where its parts are."""
    processor = _member(manager, "manager")
    path, delivered = _manager_path(processor), processor.own.spec.delivered
    if flask.request.method == "PATCH":
        given = _body("DateTime").get("DateTime")
        try:
            moment = datetime.datetime.fromisoformat(str(given).replace("Z", "+00:00"))
        except ValueError:
            text = f"The value {given} for the property DateTime is of a different format than the property can accept."
            raise _RefusedError(400, "PropertyValueFormatError", text, str(given), "DateTime") from None
        if processor.own.kept.read().ntp_enabled:
            text = "The property DateTime could not be written because NTP sets the clock; switch NTP off first."
            raise _RefusedError(400, "PropertyValueConflict", text, "DateTime", "NTP/ProtocolEnabled")
        processor.own.set_clock(moment)
        return "", 204
    return _resource(
        path,
        "Manager",
        "v1_9_0",
        Id=manager,
        Name="OpenBmc Manager" if processor.own.spec.kind == "openbmc" else "Manager",
        Description="Baseboard Management Controller",
        ManagerType="BMC",
        Model=delivered.manager_model,
        UUID=identifier(processor, "manager"),
        ServiceEntryPointUUID=identifier(processor, "root"),
        FirmwareVersion=processor.own.firmware()["bmc"],
        PowerState="On",
        Status={"State": "Enabled", "Health": "OK", "HealthRollup": "OK"},
        DateTime=processor.own.clock().isoformat(timespec="seconds"),
        DateTimeLocalOffset="+00:00",
        EthernetInterfaces={"@odata.id": f"{path}/EthernetInterfaces"},
        NetworkProtocol={"@odata.id": f"{path}/NetworkProtocol"},
        SerialConsole={
            "ServiceEnabled": delivered.console or delivered.ipmi,
            "MaxConcurrentSessions": 15,
            "ConnectTypesSupported": [
                *(["IPMI"] if delivered.ipmi else []),
                *(["SSH"] if delivered.console else []),
            ],
        },
        Links={
            "ManagerForServers": [{"@odata.id": f"/redfish/v1/Systems/{delivered.members.system}"}],
            "ManagerForChassis": [{"@odata.id": f"/redfish/v1/Chassis/{delivered.members.chassis}"}],
        },
    )


@resources.get("/v1/Managers/<manager>/EthernetInterfaces")
def manager_ports(manager: str) -> dict[str, Any]:
    """The BMC's own ports."""
    return _collection(
        f"{_manager_path(_member(manager, 'manager'))}/EthernetInterfaces", "EthernetInterface", ["eth0"]
    )


@resources.get("/v1/Managers/<manager>/EthernetInterfaces/eth0")
def manager_port(manager: str) -> dict[str, Any]:
    """The BMC's own port: MAC and address."""
    processor = _member(manager, "manager")
    spec = processor.own.spec
    mac = processor.host.spec.macs.get("bmc", "")
    return _resource(
        f"{_manager_path(processor)}/EthernetInterfaces/eth0",
        "EthernetInterface",
        "v1_4_1",
        Id="eth0",
        Name="Manager Ethernet Interface",
        Description="Management Network Interface",
        InterfaceEnabled=True,
        LinkStatus="LinkUp",
        MACAddress=mac,
        PermanentMACAddress=mac,
        IPv4Addresses=[{"Address": spec.address, "AddressOrigin": "Static", "SubnetMask": "255.255.255.0"}],
    )


@resources.route("/v1/Managers/<manager>/NetworkProtocol", methods=["GET", "PATCH"])
def network_protocol(manager: str) -> Any:
    """What the BMC serves, and where it has its time from."""
    processor = _member(manager, "manager")
    own, path = processor.own, f"{_manager_path(processor)}/NetworkProtocol"
    if flask.request.method == "PATCH":
        ntp = _body("NTP").get("NTP")
        servers = ntp.get("NTPServers", own.kept.read().ntp_servers) if isinstance(ntp, dict) else None
        enabled = ntp.get("ProtocolEnabled", own.kept.read().ntp_enabled) if isinstance(ntp, dict) else None
        if (
            not isinstance(servers, list)
            or not all(isinstance(one, str) for one in servers)
            or not isinstance(enabled, bool)
        ):
            raise _RefusedError(
                400,
                "PropertyValueTypeError",
                "NTP has NTPServers, a list of names, and ProtocolEnabled, true or false.",
                "NTP",
            )
        with own.kept.change() as state:
            state.ntp_servers, state.ntp_enabled = servers, enabled
        return "", 204
    state, ports, delivered = own.kept.read(), own.spec.ports, own.spec.delivered
    return _resource(
        path,
        "ManagerNetworkProtocol",
        "v1_5_0",
        Id="NetworkProtocol",
        Name="Manager Network Protocol",
        HostName=f"{own.spec.name}-bmc",
        HTTP={"ProtocolEnabled": False, "Port": None},
        HTTPS={
            "ProtocolEnabled": True,
            "Port": ports.https,
            "Certificates": {"@odata.id": f"{path}/HTTPS/Certificates"},
        },
        IPMI={"ProtocolEnabled": delivered.ipmi, "Port": ports.ipmi if delivered.ipmi else None},
        SSH={"ProtocolEnabled": delivered.console, "Port": 22 if delivered.console else None},
        NTP={"ProtocolEnabled": state.ntp_enabled, "NTPServers": state.ntp_servers},
    )


# Certificates


def _certificates_path(processor: Processor) -> str:
    return f"{_manager_path(processor)}/NetworkProtocol/HTTPS/Certificates"


@resources.get("/v1/Managers/<manager>/NetworkProtocol/HTTPS/Certificates")
def certificates(manager: str) -> dict[str, Any]:
    """The certificates of HTTPS: there is one."""
    return _collection(_certificates_path(_member(manager, "manager")), "Certificate", ["1"])


@resources.get("/v1/Managers/<manager>/NetworkProtocol/HTTPS/Certificates/1")
def certificate(manager: str) -> dict[str, Any]:
    """The certificate that is shown."""
    path = f"{_certificates_path(_member(manager, 'manager'))}/1"
    pem = asked().certificates.pem
    return _resource(
        path, "Certificate", "v1_0_0", Id="1", Name="HTTPS Certificate", CertificateString=pem, CertificateType="PEM"
    )


@resources.get("/v1/CertificateService")
def certificate_service() -> dict[str, Any]:
    """The service itself."""
    path = "/redfish/v1/CertificateService"
    actions = {
        f"#CertificateService.{name}": {"target": f"{path}/Actions/CertificateService.{name}"}
        for name in ("GenerateCSR", "ReplaceCertificate")
    }
    return _resource(
        path, "CertificateService", "v1_0_0", Id="CertificateService", Name="Certificate Service", Actions=actions
    )


@resources.post("/v1/CertificateService/Actions/CertificateService.GenerateCSR")
def generate_csr() -> dict[str, Any]:
    """Make a key and the request for its certificate."""
    subject = ("CommonName", "Organization", "OrganizationalUnit", "City", "State", "Country")
    others = ("AlternativeNames", "CertificateCollection", "KeyPairAlgorithm", "KeyCurveId", "KeyUsage")
    body = _body(*subject, *others)
    collection = _certificates_path(asked().processor)
    if _reference(body.get("CertificateCollection")) != collection:
        raise _RefusedError(
            400, "ActionParameterNotSupported", f"CertificateCollection is {collection}.", "CertificateCollection"
        )
    if body.get("KeyPairAlgorithm", "EC") != "EC":
        raise _RefusedError(
            400,
            "ActionParameterNotSupported",
            "The emulated BMC makes keys of KeyPairAlgorithm EC.",
            "KeyPairAlgorithm",
        )
    for name in ("CommonName", "Organization", "City", "State", "Country"):
        if not body.get(name):
            raise _RefusedError(
                400,
                "ActionParameterMissing",
                f"The action GenerateCSR requires that the parameter {name} be present.",
                name,
            )
    try:
        request = asked().certificates.request(
            [str(name) for name in body.get("AlternativeNames", [])],
            str(body.get("KeyCurveId", "secp384r1")),
            **{name: str(body[name]) for name in subject if body.get(name)},
        )
    except CertificateRefusedError as error:
        raise _RefusedError(400, "ActionParameterValueFormatError", str(error)) from None
    return {"CSRString": request, "CertificateCollection": {"@odata.id": collection}}


@resources.post("/v1/CertificateService/Actions/CertificateService.ReplaceCertificate")
def replace_certificate() -> tuple[str, int]:
    """Install a certificate."""
    body = _body("CertificateString", "CertificateType", "CertificateUri")
    path = f"{_certificates_path(asked().processor)}/1"
    if body.get("CertificateType") != "PEM" or _reference(body.get("CertificateUri")) != path:
        raise _RefusedError(
            400, "ActionParameterNotSupported", f"CertificateType is PEM, CertificateUri is {path}.", "CertificateUri"
        )
    try:
        asked().certificates.replace(str(body.get("CertificateString", "")))
    except CertificateRefusedError as error:
        raise _RefusedError(400, "PropertyValueFormatError", str(error), "CertificateString") from None
    return "", 204


def _reference(value: Any) -> Any:
    return value.get("@odata.id") if isinstance(value, dict) else value


# The machine's body and its sensors


@resources.get("/v1/Chassis/<chassis>")
def chassis(chassis: str) -> dict[str, Any]:
    """The machine's body: serial number and model, which the LC92x have only here."""
    processor = _member(chassis, "chassis")
    spec, members = processor.host.spec, processor.own.spec.delivered.members
    path = f"/redfish/v1/Chassis/{chassis}"
    return _resource(
        path,
        "Chassis",
        "v1_14_0",
        Id=chassis,
        Name=chassis,
        ChassisType="RackMount",
        Manufacturer=spec.delivered.manufacturer,
        Model=spec.model,
        SerialNumber=processor.serial,
        PartNumber=spec.model.split()[-1],
        PowerState="On" if processor.host.power() else "Off",
        Status={"State": "Enabled", "Health": "OK"},
        Thermal={"@odata.id": f"{path}/Thermal"},
        Power={"@odata.id": f"{path}/Power"},
        Links={
            "ComputerSystems": [{"@odata.id": f"/redfish/v1/Systems/{members.system}"}],
            "ManagedBy": [{"@odata.id": f"/redfish/v1/Managers/{members.manager}"}],
        },
    )


@resources.get("/v1/Chassis/<chassis>/Thermal")
def thermal(chassis: str) -> dict[str, Any]:
    """Temperatures and fans."""
    processor = _member(chassis, "chassis")
    path = f"/redfish/v1/Chassis/{chassis}/Thermal"
    found = processor.host.sensors()
    warm = [one for one in found if one.quantity == "temperature"]
    fans = [one for one in found if one.quantity == "fan_tach"]
    return _resource(
        path,
        "Thermal",
        "v1_4_0",
        Id="Thermal",
        Name="Thermal",
        Temperatures=[
            _reading(
                f"{path}#/Temperatures/{at}",
                at,
                one.name,
                ReadingCelsius=one.value,
                UpperThresholdCritical=one.critical,
            )
            for at, one in enumerate(warm)
        ],
        Fans=[
            _reading(f"{path}#/Fans/{at}", at, one.name, Reading=int(one.value), ReadingUnits="RPM")
            for at, one in enumerate(fans)
        ],
    )


@resources.get("/v1/Chassis/<chassis>/Power")
def power(chassis: str) -> dict[str, Any]:
    """What the machine takes."""
    processor = _member(chassis, "chassis")
    path = f"/redfish/v1/Chassis/{chassis}/Power"
    watts = [one for one in processor.host.sensors() if one.quantity == "power"]
    return _resource(
        path,
        "Power",
        "v1_5_2",
        Id="Power",
        Name="Power",
        PowerControl=[
            _reading(
                f"{path}#/PowerControl/{at}",
                at,
                one.name,
                PowerConsumedWatts=one.value,
                PowerCapacityWatts=one.critical,
            )
            for at, one in enumerate(watts)
        ],
    )


def _reading(path: str, at: int, name: str, **values: Any) -> dict[str, Any]:
    return {
        "@odata.id": path,
        "MemberId": str(at),
        "Name": name,
        "Status": {"State": "Enabled", "Health": "OK"},
        **values,
    }


# Firmware


@resources.get("/v1/UpdateService")
def update_service() -> dict[str, Any]:
    """The service itself; an emulated BMC is not updated."""
    path = "/redfish/v1/UpdateService"
    below = {"FirmwareInventory": {"@odata.id": f"{path}/FirmwareInventory"}}
    return _resource(
        path, "UpdateService", "v1_4_0", Id="UpdateService", Name="Update Service", ServiceEnabled=False, **below
    )


def _firmware(processor: Processor) -> dict[str, tuple[str, str]]:
    """Return purpose and version by id, which is eight digits of a hash as in phosphor-bmc-code-mgmt."""
    versions = processor.own.firmware()
    return {hashlib.sha512(version.encode()).hexdigest()[:8]: (part, version) for part, version in versions.items()}


@resources.get("/v1/UpdateService/FirmwareInventory")
def firmware_inventory() -> dict[str, Any]:
    """The firmware that is there."""
    return _collection(
        "/redfish/v1/UpdateService/FirmwareInventory", "SoftwareInventory", sorted(_firmware(asked().processor))
    )


@resources.get("/v1/UpdateService/FirmwareInventory/<number>")
def firmware(number: str) -> dict[str, Any]:
    """One firmware: of the BMC or of the host."""
    found = _firmware(asked().processor).get(number)
    if found is None:
        raise _RefusedError(404, "ResourceNotFound", f"The requested resource named {number} was not found.", number)
    purpose, version = found
    words = {"bmc": "BMC image", "host": "Host image"}
    path = f"/redfish/v1/UpdateService/FirmwareInventory/{number}"
    return _resource(
        path,
        "SoftwareInventory",
        "v1_1_0",
        Id=number,
        Name="Software Inventory",
        Description=words[purpose],
        Version=version,
        Updateable=False,
        Status={"State": "Enabled", "Health": "OK", "HealthRollup": "OK"},
    )
