"""Tests which addresses a fetch refuses unless the settings allow them. No request leaves the machine."""

import ipaddress
import itertools

import pytest
from hypothesis import given, settings
from hypothesis.strategies import sampled_from, text
from support.loopback_server import Site, moved, page

from handrail.kernel.web.fetcher import Fetcher
from handrail.model.faults import Fault
from handrail.model.fetch_faults import FetchFailed, ForbiddenAddress, InvalidUrl
from handrail.model.limits import Limits
from handrail.ops.network import addresses


def no_resolver(host: str, port: int) -> list[str]:
    raise AssertionError(f"{host}:{port} was looked up")


def refusal(url: str, answers: list[str] | None = None) -> tuple[str, str]:
    resolve = no_resolver if answers is None else lambda host, port: answers
    with pytest.raises(Fault) as caught:
        Fetcher(Limits(), resolve=resolve).fetch(url, 5)
    return type(caught.value).__name__, caught.value.facts()["why"]


ADDRESSES = {
    "loopback": "127.0.0.1 127.0.0.2 127.255.255.254 ::1 0:0:0:0:0:0:0:1",
    "unspecified": "0.0.0.0 :: 0:0::0",
    "private": "10.0.0.1 10.255.255.255 172.16.0.1 172.31.255.255 192.168.0.1 192.168.255.255 fc00::1 fd12::1 fec0::1",
    "link_local": "169.254.0.1 169.254.255.255 fe80::1 febf::1",
    "metadata": "169.254.169.254 169.254.170.2 100.100.100.200 168.63.129.16 192.0.0.192 fd00:ec2::254 fd20:ce::254",
    "carrier_nat": "100.64.0.1 100.127.255.255",
    "multicast": "224.0.0.1 239.255.255.255 ff02::1 ff0e::1",
    "documentation": "192.0.2.1 198.51.100.1 203.0.113.1 2001:db8::1 3fff::1",
    "benchmark": "198.18.0.1 198.19.255.255 2001:2::1",
    "embedded_ipv4": "::ffff:127.0.0.1 ::ffff:7f00:1 ::ffff:8.8.8.8 ::127.0.0.1 ::ffff:0:127.0.0.1 2002:7f00:1:: "
    "2002:a00:1::1 2001:0:4136:e378:8000:63bf:3fff:fdd2 64:ff9b:1::a00:1 2a00:1::5efe:7f00:1 2a00:1::200:5efe:7f00:1",
    "reserved": "0.0.0.1 192.0.0.1 192.88.99.1 240.0.0.1 255.255.255.255 2001:10::1 100::1 4000::1 5f00::1 e000::1",
}
NAT64 = {"64:ff9b::7f00:1": "loopback", "64:ff9b::169.254.169.254": "metadata", "64:ff9b::a00:1": "private"}
FORBIDDEN = [
    *((address, why) for why, listed in ADDRESSES.items() for address in listed.split()),
    *NAT64.items(),
]


@pytest.mark.parametrize(("address", "why"), FORBIDDEN)
def test_non_public_address_in_url_is_refused(address: str, why: str) -> None:
    host = f"[{address}]" if ":" in address else address
    assert refusal(f"http://{host}/") == ("ForbiddenAddress", why)
    assert refusal(f"https://{host}:8443/x?y#z") == ("ForbiddenAddress", why)


@pytest.mark.parametrize(("address", "why"), [*FORBIDDEN, ("fe80::1%eth0", "link_local"), ("2a00::1%2", "link_local")])
def test_name_that_leads_to_non_public_address_is_refused(address: str, why: str) -> None:
    assert refusal("http://inside.test/", [address]) == ("ForbiddenAddress", why)


def test_one_forbidden_address_among_public_ones_is_refused() -> None:
    assert refusal("http://mixed.test/", ["93.184.216.34", "2606:4700::1", "10.0.0.7"]) == (
        "ForbiddenAddress",
        "private",
    )


def test_refusal_names_url_host_and_address() -> None:
    with pytest.raises(ForbiddenAddress) as caught:
        Fetcher(Limits(), resolve=lambda host, port: ["192.168.7.9"]).fetch("http://Router.Test/admin", 5)
    assert caught.value.facts() == {
        "url": "http://router.test/admin",
        "host": "router.test",
        "address": "192.168.7.9",
        "why": "private",
    }


PUBLIC = """
1.1.1.1 8.8.8.8 9.255.255.255 11.0.0.0 93.184.216.34 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.0
169.253.255.255 169.255.0.0 172.15.255.255 172.32.0.0 192.167.255.255 192.169.0.0 198.17.255.255 198.20.0.0
223.255.255.255 2001:4860:4860::8888 2606:4700::1111 2a00:1450::1 2400:cb00::1 64:ff9b::8.8.8.8
"""


@pytest.mark.parametrize("address", PUBLIC.split())
def test_public_addresses_are_not_refused(address: str) -> None:
    assert addresses.why_refused(address) is None


INVALID = {
    "scheme": (
        "file:///etc/passwd",
        "gopher://127.0.0.1:6379/_x",
        "ftp://127.0.0.1/x",
        "dict://127.0.0.1:11211/",
        "data:text/html,x",
        "javascript:alert(1)",
        "ws://127.0.0.1/",
        "view-source:http://127.0.0.1/",
        "jar:http://127.0.0.1!/",
        "//127.0.0.1/",
        "127.0.0.1/",
        "localhost:80",
        "",
        " http://127.0.0.1/",
    ),
    "userinfo": (
        "http://public.test@127.0.0.1/",
        "http://public.test:80@127.0.0.1/",
        "http://user:pass@public.test/",
        "http://public.test\\@127.0.0.1/",
        "http://127.0.0.1@public.test/",
        "http://public.test%40x@127.0.0.1/",
        "http://a@b@127.0.0.1/",
        "http://127.0.0.1%2f@public.test/",
        "http://:@public.test/",
    ),
    "host": (
        "http://2130706433/",
        "http://127.1/",
        "http://127.0.1/",
        "http://0/",
        "http://0x7f000001/",
        "http://0x7f.0.0.1/",
        "http://0x7f.1/",
        "http://0X7F.0X0.0X0.0X1/",
        "http://017700000001/",
        "http://0177.1/",
        "http://134744072/",
        "http://127.0.0.0x1/",
        "http://127.0.0.1./",
        "http://localhost./",
        "http://public.test./",
        "http://public.test../",
        "http://.test/",
        "http://a..test/",
        "http:///etc/passwd",
        "http://:80/",
        "http:127.0.0.1/",
        "http:/127.0.0.1/",
        "http://%31%32%37.0.0.1/",
        "http://127.0.0.1%00.public.test/",
        "http://127.0.0.1\\.public.test/",
        "http://public.test\\/",
        "http://a b.test/",
        "http://127.0.0.1 /",
        "http://[fe80::1%25eth0]/",
        "http://[::1%251]/",
        f"http://{'a' * 64}.test/",
        f"http://{'a.' * 130}test/",
        "http://public.test,127.0.0.1/",
        "http://*.test/",
    ),
    "port": ("http://public.test:0/", "http://public.test:65536/", "http://public.test:-1/"),
    "syntax": (
        "http://0177.0.0.1/",
        "http://127.0.0.01/",
        "http://256.256.256.256/",
        "http://127.000.000.001/",
        "http://[127.0.0.1]/",
        "http://[::1/",
        "http://[::1]x/",
        "http://[:::]/",
        "http://[v1.x]/",
        "http://[::1%\xe9]/",
        "http://public.test:x/",
        "http://public.test:80:80/",
        "http://public.test/\r\nHost: x",
        "http://public.test/\x00",
        "http://pub\tlic.test/",
        "http://\uff11\uff12\uff17.0.0.1/",
        "http://\u2460\u2461\u2466.0.0.1/",
        "http://\u2025.test/",
        "http://\ud800.test/",
        "http://public.test/\ud800",
    ),
    "too_long": (f"http://public.test/{'a' * 8192}",),
}


@pytest.mark.parametrize(("url", "why"), [(url, why) for why, urls in INVALID.items() for url in urls])
def test_ambiguous_url_is_refused_before_name_lookup(url: str, why: str) -> None:
    assert refusal(url) == ("InvalidUrl", why)


HOSTILE = list(dict.fromkeys("htps:/.@[]%\\#?&:;, 0123789abfx-_\t\r\n\0\u3002\uff0e\uff11\u2460\ud800\xe9"))


@given(text(sampled_from(HOSTILE), max_size=40), sampled_from(["", "http://", "https://", "http://[", "http://127."]))
@settings(max_examples=1000, derandomize=True)
def test_accepted_url_has_address_or_plain_name_as_host(rest: str, start: str) -> None:
    try:
        target = Fetcher(Limits(), resolve=no_resolver).target(start + rest)
    except InvalidUrl:
        return
    assert addresses.literal(target.host) == target.host or addresses.is_name(target.host)
    assert target.url.scheme in ("http", "https")
    assert 0 < target.port < 65536


def test_ideographic_dots_in_address_count_as_dots() -> None:
    assert refusal("http://127\u30020\u30020\u30021/") == ("ForbiddenAddress", "loopback")


@pytest.mark.parametrize(
    ("url", "host", "netloc"),
    [
        ("http://Public.Test/x", "public.test", "public.test:80"),
        ("HTTPS://public.test:443", "public.test", "public.test:443"),
        ("https://b\u00fccher.test/", "xn--bcher-kva.test", "xn--bcher-kva.test:443"),
        ("http://[2606:4700:0:0::1]:81/", "2606:4700::1", "[2606:4700::1]:81"),
        ("http://my_host-1.test", "my_host-1.test", "my_host-1.test:80"),
    ],
)
def test_target_of_url_is_known_without_name_lookup(url: str, host: str, netloc: str) -> None:
    target = Fetcher(Limits(), resolve=no_resolver).target(url)
    assert (target.host, target.netloc) == (host, netloc)


def test_redirect_is_checked_like_first_url() -> None:
    tries = {
        "http://10.0.0.1/": ForbiddenAddress,
        "http://169.254.169.254/latest/meta-data/": ForbiddenAddress,
        "http://inside.test/": ForbiddenAddress,
        "//[::ffff:10.0.0.1]/": ForbiddenAddress,
        "http://2130706433/": InvalidUrl,
        "http://x@page.test/": InvalidUrl,
        "file:///etc/passwd": InvalidUrl,
        "http://[": InvalidUrl,
        "http://a\ud7ff\x01/": InvalidUrl,
    }
    for location, kind in tries.items():
        with Site(moved(location)) as site:
            fetcher = Fetcher(Limits(), [site.netloc], resolve=lambda host, port: ["10.1.2.3"])
            with pytest.raises(kind):
                fetcher.fetch(site.url(), 20)
            assert len(site.requests) == 1


def test_redirect_to_another_port_of_allowed_host_is_refused() -> None:
    with Site(page(b"secret")) as inner, Site(moved(inner.url())) as outer:
        with pytest.raises(ForbiddenAddress) as caught:
            Fetcher(Limits(), [outer.netloc]).fetch(outer.url(), 20)
        assert (caught.value.url, caught.value.why, inner.requests) == (inner.url(), "loopback", [])


@pytest.mark.parametrize("allowed", ["page.test", "PAGE.test", "page.test:{port}"])
def test_settings_can_allow_host_or_one_of_its_ports(allowed: str) -> None:
    with Site(page(b"inside")) as site:
        fetcher = Fetcher(Limits(), [allowed.format(port=site.port)], resolve=lambda host, port: ["127.0.0.1"])
        assert fetcher.fetch(site.url(host="page.test"), 20).text == "inside"


@pytest.mark.parametrize(
    "allowed", ["", "test", "*.test", ".test", "page.test:1", "127.0.0.1", "page.test.", "http://page.test"]
)
def test_only_exactly_allowed_host_is_allowed(allowed: str) -> None:
    with Site(page(b"inside")) as site:
        fetcher = Fetcher(Limits(), [allowed], resolve=lambda host, port: ["127.0.0.1"])
        with pytest.raises(ForbiddenAddress):
            fetcher.fetch(site.url(host="page.test"), 20)
        assert site.requests == []


@pytest.mark.parametrize("allowed", ["::1", "[::1]", "[::1]:{port}"])
def test_ipv6_address_can_be_allowed_in_each_notation(allowed: str) -> None:
    with Site(page(b"six"), host="::1") as site:
        fetcher = Fetcher(Limits(), [allowed.format(port=site.port)])
        assert fetcher.fetch(f"http://[0:0::1]:{site.port}/", 20).text == "six"


def test_connection_goes_to_address_that_was_checked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Use a resolver that answers the second lookup differently; in this test 127.0.0.2 counts as public."""
    only = addresses.AddressRefused("loopback", (ipaddress.ip_network("127.0.0.1"),))
    monkeypatch.setattr(addresses, "REFUSED", (only,))
    answers = itertools.chain([["127.0.0.2"]], itertools.repeat(["127.0.0.1"]))
    asked = []

    def rebinding(host: str, port: int) -> list[str]:
        asked.append((host, port))
        return next(answers)

    with Site(page(b"checked"), host="127.0.0.2") as public, Site(page(b"inside"), port=public.port) as inside:
        fetcher = Fetcher(Limits(), resolve=rebinding)
        url = public.url("/x", host="only-the-test-knows.test")
        assert fetcher.fetch(url, 20).text == "checked"
        assert asked == [("only-the-test-knows.test", public.port)]
        assert f"Host: only-the-test-knows.test:{public.port}\r\n".encode() in public.requests[0]
        with pytest.raises(ForbiddenAddress):
            fetcher.fetch(url, 20)
        assert (len(public.requests), inside.requests) == (1, [])


def test_redirect_to_same_name_is_looked_up_and_checked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    only = addresses.AddressRefused("loopback", (ipaddress.ip_network("127.0.0.1"),))
    monkeypatch.setattr(addresses, "REFUSED", (only,))
    answers = iter([["127.0.0.2"], ["127.0.0.1"]])
    with Site(moved("/again"), host="127.0.0.2") as public, Site(page(b"inside"), port=public.port) as inside:
        with pytest.raises(ForbiddenAddress):
            Fetcher(Limits(), resolve=lambda host, port: next(answers)).fetch(public.url(host="page.test"), 20)
        assert (len(public.requests), inside.requests) == (1, [])


@pytest.mark.parametrize("name", ["http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"])
def test_proxy_in_environment_is_not_used(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with Site(page(b"proxied")) as proxy, Site(page(b"direct")) as site:
        monkeypatch.setenv(name, proxy.url())
        assert Fetcher(Limits(), [site.netloc]).fetch(site.url(), 20).text == "direct"
        assert proxy.requests == []


def test_name_without_address_is_a_failed_fetch() -> None:
    with pytest.raises(FetchFailed) as caught:
        Fetcher(Limits(), resolve=lambda host, port: []).fetch("http://nowhere.test/", 20)
    assert caught.value.facts() == {"url": "http://nowhere.test/", "why": "host name not found"}
