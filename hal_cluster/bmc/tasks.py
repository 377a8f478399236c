"""What the Ansible module does: a task's arguments become calls, and their results plain data without passwords."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from hal_cluster.bmc import operations, settings
from hal_cluster.bmc.choose import connect
from hal_cluster.bmc.errors import BmcError, Fault
from hal_cluster.bmc.models import BootTarget, Power, Target
from hal_cluster.bmc.operations import Limits
from hal_cluster.bmc.protocol import Bmc
from hal_cluster.bmc.retry import Patience
from hal_cluster.bmc.turns import Turns
from hal_inventory.printable import lines

_CHANGED = "It has the site's password now; nothing else was done to it"

Arguments = Mapping[str, Any]
Result = dict[str, Any]


def target_of(arguments: Arguments) -> Target:
    """Return the target that a task names."""
    texts = ("name", "kind", "address", "user", "password", "ca_file", "fingerprint", "console_key")
    ports = ("https_port", "ipmi_port", "console_port")
    values: dict[str, Any] = {name: str(arguments[name] or "") for name in texts}
    values |= {name: int(arguments[name]) for name in ports}
    return Target(**values, timeout_seconds=float(arguments["timeout_seconds"]))


def limits_of(arguments: Arguments) -> Limits:
    """Return how long a task waits."""
    return Limits(
        answers=Patience(seconds=float(arguments["wait_seconds"])),
        power=Patience(seconds=float(arguments["power_seconds"])),
        shut_down=Patience(seconds=float(arguments["shut_down_seconds"])),
    )


def run(arguments: Arguments, *, check: bool) -> Result:
    """Return the task's result, with ``msg`` and ``fault`` if it failed."""
    target, limits = target_of(arguments), limits_of(arguments)
    try:
        return _done(arguments, target, limits, check)
    except BmcError as error:
        failure = error
    except Exception as error:  # firmware gives answers that no client foresaw: a failure, not a crash
        failure = BmcError.of(target.label, str(arguments["action"]), error)
    return {"msg": str(failure), "fault": failure.fault.value, "asked": failure.asked, "answer": failure.answer}


def _done(arguments: Arguments, target: Target, limits: Limits, check: bool) -> Result:
    if arguments["action"] == "password":
        return _password(arguments, target, limits, check)
    bmc = connect(target)
    try:
        return ACTIONS[arguments["action"]](bmc, arguments, limits, check)
    finally:
        bmc.close()


def _is_right_machine(bmc: Bmc, arguments: Arguments, limits: Limits) -> None:
    operations.check_identity(bmc, str(arguments["serial"]), arguments["serials"] or {}, limits)


def _status(bmc: Bmc, arguments: Arguments, limits: Limits, check: bool) -> Result:
    return {"changed": False, **_state(bmc, limits)}


def _state(bmc: Bmc, limits: Limits) -> Result:
    state: Result = {"power": operations.power(bmc, limits).value}
    with suppress(BmcError):  # the power was asked for; some firmware has no override to tell of
        if boot := bmc.boot():
            state["boot"] = {"target": boot.target.value, "once": boot.once}
    return state


def _power(bmc: Bmc, arguments: Arguments, limits: Limits, check: bool) -> Result:
    action, force = str(arguments["action"]), bool(arguments["force"])
    _is_right_machine(bmc, arguments, limits)
    before = operations.power(bmc, limits)
    wanted = Power.ON if action in ("on", "cycle") else Power.OFF
    changed = action == "cycle" or before is not wanted
    turn = _turn_of(arguments, bmc.target) if action in ("on", "cycle") else _no_turn
    if changed and not check:
        doings: dict[str, Callable[[], bool]] = {
            "on": lambda: operations.power_on(bmc, limits, turn),
            "off": lambda: operations.shut_down(bmc, limits, force=force),
            "force_off": lambda: operations.force_off(bmc, limits),
            "cycle": lambda: operations.cycle(bmc, limits, graceful=True, force=force, turn=turn),
        }
        doings[action]()
    after = wanted if check else operations.power(bmc, limits)
    through = "off, then " if action == "cycle" and before is Power.ON else ""
    diff = {"before": f"{before.value}\n", "after": f"{through}{after.value}\n"}
    return {"changed": changed, "power": after.value, "diff": diff}


def _no_turn() -> None:
    """Switch on at once."""


def _turn_of(arguments: Arguments, target: Target) -> Callable[[], None]:
    """Return what waits until this machine may be switched on."""
    if not arguments["on_turns"]:
        return _no_turn
    turns = Turns(Path(arguments["on_turns"]), int(arguments["on_at_once"]), float(arguments["on_pause_seconds"]))

    def told(ask: Callable[[], None]) -> None:
        try:
            ask()
        except ValueError as error:
            raise BmcError(target.label, "its turn to be switched on", str(error), Fault.CONFIGURATION) from None
        except OSError as error:
            answer = f"{turns.file}: {error.strerror or error}"
            raise BmcError(target.label, "its turn to be switched on", answer, Fault.CONFIGURATION) from None

    told(turns.check)  # now: a cycle would notice it only when the machine is off
    return lambda: told(turns.wait)


def _boot(bmc: Bmc, arguments: Arguments, limits: Limits, check: bool) -> Result:
    target = BootTarget(arguments["boot"])
    _is_right_machine(bmc, arguments, limits)
    before = limits.answers.again(bmc.boot)
    if check:
        offered = limits.answers.again(bmc.boot_targets)
        if target not in offered and target is not BootTarget.NONE:
            answer = f"it offers {', '.join(offer.value for offer in offered) or 'no override'}"
            raise BmcError(bmc.target.label, f"boot {target.value} once", answer, Fault.UNSUPPORTED)
        changed, confirmed = before is None or before.target is not target or not before.once, False
    else:
        changed, confirmed = operations.boot_once(bmc, target, limits)
    was = f"{before.target.value}{'' if before.once else ', always'}" if before else "not told"
    diff = {"before": f"next start: {was}\n", "after": f"next start: {target.value}\n"}
    boot = {"target": target.value, "once": True}
    return {"changed": changed, "confirmed": confirmed, "boot": boot, "diff": diff if changed else {}}


def _inventory(bmc: Bmc, arguments: Arguments, limits: Limits, check: bool) -> Result:
    identity = asdict(limits.answers.again(bmc.identity))
    inventory: Result = {"changed": False, "identity": identity, **_state(bmc, limits), "without": {}}
    asking: dict[str, Callable[[], Any]] = {
        "sensors": lambda: [asdict(sensor) for sensor in bmc.sensors()],
        "firmware": lambda: [asdict(firmware) for firmware in bmc.firmware()],
        "boot_targets": lambda: [target.value for target in bmc.boot_targets()],
        "clock": lambda: _clock_of(bmc),
    }
    for name, ask in asking.items():
        try:
            inventory[name] = limits.answers.again(ask)
        except BmcError as error:
            if error.fault not in (Fault.UNSUPPORTED, Fault.REFUSED):
                raise
            inventory["without"][name] = error.answer
    return inventory


def _clock_of(bmc: Bmc) -> dict[str, Any]:
    clock = bmc.clock()
    return {"now": clock.now.isoformat(timespec="seconds"), "ntp": clock.ntp, "servers": list(clock.servers)}


def _console(bmc: Bmc, arguments: Arguments, limits: Limits, check: bool) -> Result:
    seen = bmc.console(float(arguments["console_seconds"]))
    return {"changed": False, "console": lines(seen.text), "source": seen.source}


def _clock(bmc: Bmc, arguments: Arguments, limits: Limits, check: bool) -> Result:
    _is_right_machine(bmc, arguments, limits)
    servers: Sequence[str] = arguments["ntp_servers"]
    if servers:
        return {"changed": settings.set_ntp(bmc, servers, limits, check=check)}
    return {"changed": settings.set_clock(bmc, float(arguments["clock_apart_seconds"]), limits, check=check)}


def _certificate(bmc: Bmc, arguments: Arguments, limits: Limits, check: bool) -> Result:
    from hal_cluster.certificates.errors import CertificateError
    from hal_cluster.certificates.tls import tls_sign_request

    folder, days, renew_days = Path(arguments["authority"]), int(arguments["days"]), int(arguments["renew_days"])
    asked = "a new certificate"
    if days <= renew_days:
        answer = f"for {days} days, of which the last {renew_days} would already renew it: give more days"
        raise BmcError(bmc.target.label, asked, answer, Fault.CONFIGURATION)
    if bmc.target.kind == "ipmi":  # nobody may listen at its port 443
        raise BmcError(bmc.target.label, asked, "IPMI has no certificates", Fault.UNSUPPORTED)
    _is_right_machine(bmc, arguments, limits)

    def sign(request: str, names: Sequence[str], addresses: Sequence[str]) -> str:
        try:
            return tls_sign_request(folder, request, names, addresses, days)
        except CertificateError as error:
            raise BmcError(bmc.target.label, asked, f"it cannot be signed: {error}", Fault.CONFIGURATION) from None

    ca_file, names = str(folder / "tls_ca.pem"), [str(name) for name in arguments["names"]]
    changed = settings.install_certificate(bmc, ca_file, names, renew_days, sign, limits, check=check)
    return {"changed": changed}


def _password(arguments: Arguments, target: Target, limits: Limits, check: bool) -> Result:
    from hal_cluster.bmc.passwords import problem

    asked = f"a new password for {target.user}"
    if why := problem(target.password):
        raise BmcError(target.label, asked, f"the declared password {why}", Fault.CONFIGURATION)
    try:
        _see(connect(target), arguments, limits)
        return {"changed": False}
    except BmcError as error:
        if error.fault is not Fault.LOGIN:
            raise
        if not arguments["former_password"]:
            missing = "No former password is given: put bmc_former_password into a file, and give -e @FILE"
            answer = f"{error.answer}. {missing}"
            raise BmcError(error.bmc, error.asked, answer, Fault.LOGIN) from None
    former = replace(target, password=str(arguments["former_password"]))
    insisted = False
    try:
        _see(connect(former, changing_password=True), arguments, limits)
    except BmcError as refusal:
        # It tells which machine it is only after the change.
        insisted = refusal.fault is Fault.PASSWORD_CHANGE
        if not insisted:
            raise
    if check:
        return {"changed": True}
    first = connect(former, changing_password=True)
    operations.change_password(first, lambda: connect(target), target.password, limits)
    if insisted:
        _see_changed(target, arguments, limits)
    return {"changed": True}


def _see_changed(target: Target, arguments: Arguments, limits: Limits) -> None:
    """See which machine it is whose password was changed. Every error then says that it was changed."""
    try:
        _see(connect(target), arguments, limits, _CHANGED)
    except Exception as error:
        failure = error if isinstance(error, BmcError) else BmcError.of(target.label, "which machine it is", error)
        said = failure.answer if _CHANGED in failure.answer else f"{failure.answer}. {_CHANGED}"
        raise BmcError(failure.bmc, failure.asked, said, failure.fault) from None


def _see(bmc: Bmc, arguments: Arguments, limits: Limits, done: str = "Nothing was done to it") -> None:
    """Log in, and see which machine it is, if that is declared."""
    try:
        if arguments["serial"]:
            serial, serials = str(arguments["serial"]), arguments["serials"] or {}
            operations.check_identity(bmc, serial, serials, limits, done)
        else:
            operations.power(bmc, limits)
    finally:
        bmc.close()


ACTIONS: Mapping[str, Callable[[Bmc, Arguments, Limits, bool], Result]] = {
    "status": _status,
    "on": _power,
    "off": _power,
    "force_off": _power,
    "cycle": _power,
    "boot": _boot,
    "inventory": _inventory,
    "console": _console,
    "clock": _clock,
    "certificate": _certificate,
}
