"""Who may use an emulated BMC by Redfish: sessions, users, and the certificate that HTTPS shows.

sushy-tools' emulator has none of them (see `redfish`).
"""

from __future__ import annotations

from typing import Any

import flask

from bmc.machine import Processor
from bmc.redfish_forms import RefusedError, blueprint, collection, manager_path, member, resource, sent, success
from bmc.tls import CertificateRefusedError
from bmc.web import MUST_CHANGE, TOKEN, asked, redfish_error

access = blueprint("redfish_access")

# Sessions


@access.get("/v1/SessionService")
def session_service() -> dict[str, Any]:
    """The service itself."""
    path = "/redfish/v1/SessionService"
    below = {"Sessions": {"@odata.id": f"{path}/Sessions"}}
    return resource(
        path, "SessionService", "v1_0_2", Id="SessionService", Name="Session Service", SessionTimeout=3600, **below
    )


@access.get("/v1/SessionService/Sessions")
def sessions() -> dict[str, Any]:
    """The sessions that are open."""
    return collection(
        "/redfish/v1/SessionService/Sessions", "Session", [session.number for session in asked().sessions.all()]
    )


@access.post("/v1/SessionService/Sessions")
def login() -> flask.Response:
    """Log in. The answer says so when the password has to be changed; it is a session all the same."""
    body = flask.request.get_json(force=True)
    name, password = (
        (str(body.get(field, "")) for field in ("UserName", "Password")) if isinstance(body, dict) else ("", "")
    )
    session = asked().sessions.open(name, password)
    if session is None:
        raise RefusedError(
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
    return resource(path, "Session", "v1_3_0", Id=number, Name="User Session", UserName=user)


@access.route("/v1/SessionService/Sessions/<number>", methods=["GET", "DELETE"])
def session(number: str) -> dict[str, Any]:
    """One session, to read or to end."""
    open_ones = asked().sessions
    if flask.request.method == "DELETE" and open_ones.close(number):
        return success()
    for opened in open_ones.all():
        if opened.number == number:
            return _session(opened.number, opened.user)
    raise RefusedError(404, "ResourceNotFound", f"The requested resource named {number} was not found.", number)


# Users


@access.get("/v1/AccountService")
def account_service() -> dict[str, Any]:
    """The service itself."""
    path = "/redfish/v1/AccountService"
    below = {"Accounts": {"@odata.id": f"{path}/Accounts"}}
    return resource(
        path,
        "AccountService",
        "v1_5_0",
        Id="AccountService",
        Name="Account Service",
        MinPasswordLength=8,
        MaxPasswordLength=20,
        **below,
    )


@access.get("/v1/AccountService/Accounts")
def accounts() -> dict[str, Any]:
    """The users; an emulated BMC has one."""
    return collection(
        "/redfish/v1/AccountService/Accounts", "ManagerAccount", [asked().processor.own.spec.delivered.account]
    )


@access.route("/v1/AccountService/Accounts/<account>", methods=["GET", "PATCH"])
def account(account: str) -> dict[str, Any]:
    """The user, and how its password is changed."""
    own = asked().processor.own
    if account != own.spec.delivered.account:
        raise RefusedError(404, "ResourceNotFound", f"The requested resource named {account} was not found.", account)
    name = own.spec.login[0]
    if flask.request.method == "PATCH":
        password = sent("Password").get("Password")
        if not isinstance(password, str):
            raise RefusedError(400, "PropertyMissing", "The property Password is a required property.", "Password")
        change_password(name, password)
        return success()
    user = own.users()[name]
    return resource(
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


# Certificates


def _certificates_path(processor: Processor) -> str:
    return f"{manager_path(processor)}/NetworkProtocol/HTTPS/Certificates"


@access.get("/v1/Managers/<manager>/NetworkProtocol/HTTPS/Certificates")
def certificates(manager: str) -> dict[str, Any]:
    """The certificates of HTTPS: there is one."""
    return collection(_certificates_path(member(manager, "manager")), "Certificate", ["1"])


@access.get("/v1/Managers/<manager>/NetworkProtocol/HTTPS/Certificates/1")
def certificate(manager: str) -> dict[str, Any]:
    """The certificate that is shown."""
    path = f"{_certificates_path(member(manager, 'manager'))}/1"
    pem = asked().certificates.pem
    return resource(
        path, "Certificate", "v1_0_0", Id="1", Name="HTTPS Certificate", CertificateString=pem, CertificateType="PEM"
    )


@access.get("/v1/CertificateService")
def certificate_service() -> dict[str, Any]:
    """The service itself."""
    path = "/redfish/v1/CertificateService"
    actions = {
        f"#CertificateService.{name}": {"target": f"{path}/Actions/CertificateService.{name}"}
        for name in ("GenerateCSR", "ReplaceCertificate")
    }
    return resource(
        path, "CertificateService", "v1_0_0", Id="CertificateService", Name="Certificate Service", Actions=actions
    )


@access.post("/v1/CertificateService/Actions/CertificateService.GenerateCSR")
def generate_csr() -> dict[str, Any]:
    """Make a key and the request for its certificate."""
    subject = ("CommonName", "Organization", "OrganizationalUnit", "City", "State", "Country")
    others = ("AlternativeNames", "CertificateCollection", "KeyPairAlgorithm", "KeyCurveId", "KeyUsage")
    body = sent(*subject, *others)
    path = _certificates_path(asked().processor)
    if _reference(body.get("CertificateCollection")) != path:
        raise RefusedError(
            400, "ActionParameterNotSupported", f"CertificateCollection is {path}.", "CertificateCollection"
        )
    if body.get("KeyPairAlgorithm", "EC") != "EC":
        raise RefusedError(
            400,
            "ActionParameterNotSupported",
            "The emulated BMC makes keys of KeyPairAlgorithm EC.",
            "KeyPairAlgorithm",
        )
    for name in ("CommonName", "Organization", "City", "State", "Country"):
        if not body.get(name):
            raise RefusedError(
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
        raise RefusedError(400, "ActionParameterValueFormatError", str(error)) from None
    return {"CSRString": request, "CertificateCollection": {"@odata.id": path}}


@access.post("/v1/CertificateService/Actions/CertificateService.ReplaceCertificate")
def replace_certificate() -> tuple[str, int]:
    """Install a certificate."""
    body = sent("CertificateString", "CertificateType", "CertificateUri")
    path = f"{_certificates_path(asked().processor)}/1"
    if body.get("CertificateType") != "PEM" or _reference(body.get("CertificateUri")) != path:
        raise RefusedError(
            400, "ActionParameterNotSupported", f"CertificateType is PEM, CertificateUri is {path}.", "CertificateUri"
        )
    try:
        asked().certificates.replace(str(body.get("CertificateString", "")))
    except CertificateRefusedError as error:
        raise RefusedError(400, "PropertyValueFormatError", str(error), "CertificateString") from None
    return "", 204


def _reference(value: Any) -> Any:
    return value.get("@odata.id") if isinstance(value, dict) else value
