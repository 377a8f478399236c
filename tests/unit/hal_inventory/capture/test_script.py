"""The script that machines run: under each Python that one may have, changing nothing, asking what is there."""

from __future__ import annotations

import http.server
import json
import os
import ssl
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hal_cluster.inventory.capture import SCRIPT
from hal_inventory.capture.document import NodeCapture, parse_capture
from tests.unit.interpreters import EVERY, interpreter

CAPTURES = Path(__file__).parent / "captures"
RESOURCES: dict[str, dict[str, Any]] = {
    "/redfish/v1/Systems": {"Members": [{"@odata.id": "/redfish/v1/Systems/system"}]},
    "/redfish/v1/Systems/system": {"@odata.type": "#ComputerSystem.v1_5_0.ComputerSystem", "SerialNumber": "1309AGA"},
    "/redfish/v1/Managers": {"Members": [{"@odata.id": "/redfish/v1/Managers/bmc"}]},
    "/redfish/v1/Managers/bmc": {"EthernetInterfaces": {"@odata.id": "/redfish/v1/Managers/bmc/EthernetInterfaces"}},
    "/redfish/v1/Managers/bmc/EthernetInterfaces": {
        "Members": [{"@odata.id": "/redfish/v1/Managers/bmc/EthernetInterfaces/eth0"}]
    },
    "/redfish/v1/Managers/bmc/EthernetInterfaces/eth0": {"MACAddress": "70:e2:84:14:33:65"},
}


@pytest.fixture(params=EVERY)
def python(request: pytest.FixtureRequest) -> str:
    version: str = request.param
    return interpreter(version)


def test_a_machine_is_read_by_the_tools_that_it_has(python: str, tmp_path: Path) -> None:
    (tmp_path / "lscpu").write_text(
        "#!/bin/sh\nprintf 'Model name: Gr\\303\\266\\303\\237e \\377\\n'; echo no >&2; exit 3\n"
    )
    (tmp_path / "lscpu").chmod(0o755)
    (tmp_path / "ipmitool").write_text(f"#!/bin/sh\ncat '{CAPTURES}/ipmitool/lan_print.txt'\n")
    (tmp_path / "ipmitool").chmod(0o755)
    environment = {"PATH": f"{tmp_path}:/bin:/usr/bin", "LC_ALL": "C"}
    # Over ssh it comes on standard input: there is no file of it on the machine.
    done = subprocess.run([python, "-"], input=SCRIPT.read_bytes(), capture_output=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    capture = parse_capture(done.stdout, "x.json")
    assert isinstance(capture, NodeCapture)
    lscpu = capture.outputs["lscpu"]
    assert (lscpu.status, lscpu.stderr, lscpu.stdout) == (3, "no\n", "Model name: Größe \ufffd\n")
    assert "MAC Address             : 00:1e:67:58:97:56\n" in capture.outputs["ipmitool"].stdout
    assert "SNMP Community String" not in capture.outputs["ipmitool"].stdout
    assert done.stderr == b""
    assert "-P" in capture.outputs["lsblk"].argv
    missing = capture.outputs["nvidia_smi"]
    assert (missing.status, missing.stderr) == (None, "No such file or directory")
    assert "MemTotal:" in capture.files["/proc/meminfo"]


@pytest.fixture
def bmc(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """A server of Redfish resources with a certificate; its address, and the file of the certificate."""
    certificate, key = tmp_path / "bmc.pem", tmp_path / "bmc.key"
    subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", certificate, *subject],
        check=True,
        capture_output=True,
    )

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            wrong = self.headers["Authorization"] != "Basic cm9vdDpzZWNyZXQ="  # root:secret
            status = 401 if wrong else 200 if self.path in RESOURCES else 404
            content = json.dumps(RESOURCES.get(self.path, {})).encode() if status == 200 else b"no"
            self.send_response(status, "\x1b[2J" if wrong else None)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_arguments: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("localhost", 0), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"localhost:{server.server_address[1]}", certificate
    server.shutdown()
    server.server_close()


def ask(python: str, address: str, *options: str, password: str = "secret") -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "HAL_BMC_PASSWORD": password}
    argv = [python, str(SCRIPT), "--redfish", address, *options]
    return subprocess.run(argv, capture_output=True, text=True, check=False, env=environment)


def test_a_bmc_is_asked_and_one_that_is_not_known_is_not(python: str, bmc: tuple[str, Path]) -> None:
    address, certificate = bmc
    done = ask(python, address, "--ca-file", str(certificate))
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["resources"] == RESOURCES  # Chassis is a 404 here

    stranger = ask(python, address)
    assert (stranger.returncode, stranger.stdout) == (1, "")
    assert "certificate verify failed" in stranger.stderr.lower()
    assert len(stranger.stderr.splitlines()) == 1
    refused = ask(python, address, "--ca-file", str(certificate), password="wrong")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr == f"{address}: \\x1b[2J\n", "it drives no terminal"
    assert "secret" not in done.stdout + refused.stderr
