//! Where a server may be: an allow-list of forms, and the addresses that are nobody's cluster.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use http::Uri;

use super::access::AccessPolicy;
use super::error::KubeconfigError;

const WAY_OUT: &str = "name the address under which the cluster is reached from other machines";

/// Reads the address of an API server: `https`, a name or an IP address, perhaps a port and a path, and nothing else.
pub(super) fn server(
    field: &str,
    text: &str,
    policy: AccessPolicy,
) -> Result<Uri, KubeconfigError> {
    let invalid = |reason| Err(KubeconfigError::invalid(field, reason));
    if text.contains(|char: char| char.is_control() || char.is_whitespace()) {
        return invalid("contains blanks or control characters");
    }
    if text.contains(['?', '#']) {
        return invalid("contains a query or a fragment; end it after the path");
    }
    let Ok(uri) = text.parse::<Uri>() else {
        return invalid("is not a URL; write it as https://HOST:PORT");
    };
    match uri.scheme_str() {
        Some("https") => {}
        Some("http") => {
            return invalid(
                "is plain http, which shows the credentials to everybody on the way; use https",
            );
        }
        _ => return invalid("is not an https URL; write it as https://HOST:PORT"),
    }
    let authority = uri.authority().map_or("", |authority| authority.as_str());
    if authority.contains('@') {
        return invalid("contains credentials; put a token or a client certificate below `users`");
    }
    let host_length = uri.host().map_or(0, str::len);
    if authority.len() > host_length && uri.port_u16().is_none_or(|port| port == 0) {
        return invalid("has no usable port");
    }
    match host(uri.host().unwrap_or_default()) {
        Host::Address(address) => match refusal(address, policy) {
            Some(reason) => Err(KubeconfigError::refused(field, reason, WAY_OUT)),
            None => Ok(uri),
        },
        Host::Loopback if policy.forbid_local => {
            Err(KubeconfigError::refused(field, LOOPBACK, WAY_OUT))
        }
        Host::Metadata => Err(KubeconfigError::refused(field, METADATA, WAY_OUT)),
        Host::Loopback | Host::Name => Ok(uri),
        Host::Invalid => invalid("has neither a host name nor an IP address in its usual form"),
    }
}

const LOOPBACK: &str = "it leads to the agent's own machine";
const LINK_LOCAL: &str = "it is a link-local address, where machines find their own metadata";
const METADATA: &str = "it is where machines of a cloud find their own metadata";
const NO_SERVER: &str = "no server can have this address";

/// Addresses outside the link-local ranges under which clouds serve a machine's credentials: Alibaba Cloud, Azure, Oracle
/// Cloud, AWS and Google Cloud over IPv6.
const METADATA_V4: [Ipv4Addr; 3] = [
    Ipv4Addr::new(100, 100, 100, 200),
    Ipv4Addr::new(168, 63, 129, 16),
    Ipv4Addr::new(192, 0, 0, 192),
];
const METADATA_V6: [Ipv6Addr; 2] = [
    Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254),
    Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254),
];

/// Says why an address is not connected to, if so.
pub(super) fn refusal(address: IpAddr, policy: AccessPolicy) -> Option<&'static str> {
    match unwrapped(address) {
        address if address.is_loopback() => policy.forbid_local.then_some(LOOPBACK),
        IpAddr::V4(address) => refusal_v4(address),
        IpAddr::V6(address) => refusal_v6(address),
    }
}

fn refusal_v4(address: Ipv4Addr) -> Option<&'static str> {
    // 0.0.0.0/8 is "this network", which Linux takes for the machine itself; from 224 on are groups and what is reserved.
    match address.octets()[0] {
        0 | 224.. => Some(NO_SERVER),
        _ if address.is_link_local() => Some(LINK_LOCAL),
        _ if METADATA_V4.contains(&address) => Some(METADATA),
        _ => None,
    }
}

fn refusal_v6(address: Ipv6Addr) -> Option<&'static str> {
    if address.is_unspecified() || address.is_multicast() {
        return Some(NO_SERVER);
    }
    if address.is_unicast_link_local() {
        return Some(LINK_LOCAL);
    }
    METADATA_V6.contains(&address).then_some(METADATA)
}

/// Takes an IPv4 address out of an IPv6 address that stands for it: mapped, compatible, NAT64 (RFC 6052) and 6to4 (RFC 3056).
fn unwrapped(address: IpAddr) -> IpAddr {
    let IpAddr::V6(v6) = address else {
        return address;
    };
    let v4 = |high: u16, low: u16| {
        let [[a, b], [c, d]] = [high.to_be_bytes(), low.to_be_bytes()];
        IpAddr::V4(Ipv4Addr::new(a, b, c, d))
    };
    match v6.segments() {
        [0, 0, 0, 0, 0, 0, 0, 0 | 1] => address,
        [0, 0, 0, 0, 0, 0 | 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
            v4(high, low)
        }
        [0x2002, high, low, ..] => v4(high, low),
        _ => address,
    }
}

enum Host {
    Address(IpAddr),
    /// A name that means the machine itself.
    Loopback,
    /// A name under which a cloud serves a machine's credentials.
    Metadata,
    Name,
    Invalid,
}

fn host(text: &str) -> Host {
    if let Some(inner) = text
        .strip_prefix('[')
        .and_then(|text| text.strip_suffix(']'))
    {
        // An address with a zone is link-local by its nature, and no address here.
        return inner
            .parse()
            .map_or(Host::Invalid, |address| Host::Address(IpAddr::V6(address)));
    }
    if let Ok(address) = text.parse::<Ipv4Addr>() {
        return Host::Address(IpAddr::V4(address));
    }
    let name = text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase();
    let label = |label: &str| {
        !label.is_empty()
            && label
                .chars()
                .all(|char| char.is_ascii_alphanumeric() || "-_".contains(char))
    };
    if !name.split('.').all(label) {
        return Host::Invalid;
    }
    let last = name.rsplit('.').next().unwrap_or_default();
    // The system's resolver takes `127.1`, `2130706433` and `0x7f.1` for 127.0.0.1 (inet_aton).
    if last.starts_with(|char: char| char.is_ascii_digit()) && is_number(last) {
        return Host::Invalid;
    }
    match name.as_str() {
        "localhost" | "localhost.localdomain" | "ip6-localhost" | "ip6-loopback" => Host::Loopback,
        "metadata" | "metadata.goog" | "metadata.google.internal" => Host::Metadata,
        _ if last == "localhost" => Host::Loopback,
        _ => Host::Name,
    }
}

fn is_number(label: &str) -> bool {
    let digits = label.strip_prefix("0x").unwrap_or(label);
    digits.chars().all(|char| char.is_ascii_hexdigit())
        && (label.starts_with("0x") || label.chars().all(|char| char.is_ascii_digit()))
}
