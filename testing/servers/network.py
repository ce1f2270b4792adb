"""Hosts as Linux network namespaces on one bridge, whose links tests cut and slow down.

Needs root and iproute2; `NetworkMissing` says what lacks.
"""

import os
import shutil
import subprocess
from collections.abc import Sequence
from contextlib import suppress

_BANDWIDTH = ("rate", "256kbit", "burst", "16kbit", "latency", "500ms")
_NOBODY = "02:00:00:00:00:01"
"""A hardware address that no host has: packets to it get lost without an error."""


class NetworkMissing(Exception):
    """This machine cannot have network namespaces."""


class Host:
    """A network namespace with two addresses: for clients, and for other replicas."""

    def __init__(self, network: str, subnet: str, number: int) -> None:
        self.address = f"{subnet}.{number}"
        self.second_address = f"{subnet}.{number + 100}"
        self.namespace = f"{network}h{number}"
        self.link = f"{network}v{number}"
        self.prefix: Sequence[str] = ("ip", "netns", "exec", self.namespace)

    @property
    def addresses(self) -> Sequence[str]:
        """Both addresses."""
        return (self.address, self.second_address)


class Network:
    """Hosts that reach each other, and this process, over a bridge."""

    def __init__(self, hosts: int) -> None:
        if os.geteuid() != 0 or shutil.which("ip") is None or shutil.which("tc") is None:
            raise NetworkMissing("network namespaces need root and iproute2")
        self._name = f"hr{os.getpid() % 100_000}"
        subnet = f"10.213.{os.getpid() % 250}"
        self.addresses = f"{subnet}.0/24"
        self.hosts = [Host(self._name, subnet, number) for number in range(1, hosts + 1)]
        try:
            self._create(subnet)
        except subprocess.CalledProcessError as error:
            self.remove()
            raise NetworkMissing(
                f"this machine forbids network namespaces: {error.stderr}"
            ) from None

    def isolate(self, host: Host) -> None:
        """Cut a host off from all others, and from this process."""
        _ip("link", "set", host.link, "down")

    def cut_between(self, one: Host, other: Host) -> None:
        """Drop all packets between two hosts; both still reach the others."""
        for source, target in ((one, other), (other, one)):
            for address in target.addresses:
                entry = (address, "lladdr", _NOBODY, "dev", "eth0", "nud", "permanent")
                _ip("-n", source.namespace, "neigh", "replace", *entry)

    def slow_down(self, host: Host) -> None:
        """Limit what a host sends to 256 kbit/s."""
        _run("tc", "-n", host.namespace, "qdisc", "add", "dev", "eth0", "root", "tbf", *_BANDWIDTH)

    def heal(self) -> None:
        """Restore all links."""
        for host in self.hosts:
            _ip("link", "set", host.link, "up")
            _ip("-n", host.namespace, "neigh", "flush", "all", "nud", "permanent")
            with suppress(subprocess.CalledProcessError):  # where nothing was slowed down
                _run("tc", "-n", host.namespace, "qdisc", "del", "dev", "eth0", "root")

    def remove(self) -> None:
        """Remove the hosts, whose processes must have ended, and the bridge.

        Their links first: another program with a copy of the table of mounts keeps a namespace.
        """
        for host in self.hosts:
            for removal in (("link", "del", host.link), ("netns", "del", host.namespace)):
                with suppress(subprocess.CalledProcessError):
                    _ip(*removal)
        with suppress(subprocess.CalledProcessError):
            _ip("link", "del", self._name)

    def _create(self, subnet: str) -> None:
        _ip("link", "add", self._name, "type", "bridge")
        _ip("link", "set", self._name, "up")
        _ip("addr", "add", f"{subnet}.254/24", "dev", self._name)
        for host in self.hosts:
            _ip("netns", "add", host.namespace)
            peer = ("type", "veth", "peer", "name", "eth0", "netns", host.namespace)
            _ip("link", "add", host.link, *peer)
            _ip("link", "set", host.link, "master", self._name, "up")
            for address in host.addresses:
                _ip("-n", host.namespace, "addr", "add", f"{address}/24", "dev", "eth0")
            for device in ("lo", "eth0"):
                _ip("-n", host.namespace, "link", "set", device, "up")


def _ip(*arguments: str) -> None:
    _run("ip", *arguments)


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True)
