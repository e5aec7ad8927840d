//! Addresses that are not public, with their names in IANA's special-purpose registries and in Boulder.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

type Block<A> = (A, u8, &'static str);

/// IANA IPv4 special-purpose address registry; longer prefixes stand before those that contain them.
const V4: [Block<Ipv4Addr>; 17] = [
    (Ipv4Addr::UNSPECIFIED, 8, "[RFC791], Section 3.2: \"This network\""),
    (Ipv4Addr::new(10, 0, 0, 0), 8, "[RFC1918]: Private-Use"),
    (Ipv4Addr::new(100, 64, 0, 0), 10, "[RFC6598]: Shared Address Space"),
    (Ipv4Addr::new(127, 0, 0, 0), 8, "[RFC1122], Section 3.2.1.3: Loopback"),
    (Ipv4Addr::new(169, 254, 0, 0), 16, "[RFC3927]: Link Local"),
    (Ipv4Addr::new(172, 16, 0, 0), 12, "[RFC1918]: Private-Use"),
    (Ipv4Addr::new(192, 0, 0, 0), 24, "[RFC6890], Section 2.1: IETF Protocol Assignments"),
    (Ipv4Addr::new(192, 0, 2, 0), 24, "[RFC5737]: Documentation (TEST-NET-1)"),
    (Ipv4Addr::new(192, 31, 196, 0), 24, "[RFC7535]: AS112-v4"),
    (Ipv4Addr::new(192, 52, 193, 0), 24, "[RFC7450]: AMT"),
    (Ipv4Addr::new(192, 88, 99, 0), 24, "[RFC7526]: Deprecated (6to4 Relay Anycast)"),
    (Ipv4Addr::new(192, 168, 0, 0), 16, "[RFC1918]: Private-Use"),
    (Ipv4Addr::new(198, 18, 0, 0), 15, "[RFC2544]: Benchmarking"),
    (Ipv4Addr::new(198, 51, 100, 0), 24, "[RFC5737]: Documentation (TEST-NET-2)"),
    (Ipv4Addr::new(203, 0, 113, 0), 24, "[RFC5737]: Documentation (TEST-NET-3)"),
    (Ipv4Addr::new(224, 0, 0, 0), 4, "[RFC1112], Section 4: Multicast"),
    (Ipv4Addr::new(240, 0, 0, 0), 4, "[RFC1112], Section 4: Reserved"),
];

/// IANA IPv6 special-purpose address registry.
const V6: [Block<Ipv6Addr>; 15] = [
    (Ipv6Addr::UNSPECIFIED, 128, "[RFC4291]: Unspecified Address"),
    (Ipv6Addr::LOCALHOST, 128, "[RFC4291]: Loopback Address"),
    (Ipv6Addr::new(0, 0, 0, 0, 0, 0xffff, 0, 0), 96, "[RFC4291]: IPv4-mapped Address"),
    (Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, 0, 0), 96, "[RFC6052]: IPv4-IPv6 Translat."),
    (Ipv6Addr::new(0x64, 0xff9b, 1, 0, 0, 0, 0, 0), 48, "[RFC8215]: IPv4-IPv6 Translat."),
    (Ipv6Addr::new(0x100, 0, 0, 0, 0, 0, 0, 0), 64, "[RFC6666]: Discard-Only Address Block"),
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32, "[RFC3849]: Documentation"),
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23, "[RFC2928]: IETF Protocol Assignments"),
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16, "[RFC3056]: 6to4"),
    (
        Ipv6Addr::new(0x2620, 0x4f, 0x8000, 0, 0, 0, 0, 0),
        48,
        "[RFC7534]: Direct Delegation AS112 Service",
    ),
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20, "[RFC9637]: Documentation"),
    (Ipv6Addr::new(0x5f00, 0, 0, 0, 0, 0, 0, 0), 16, "[RFC9602]: Segment Routing (SRv6) SIDs"),
    (Ipv6Addr::new(0xfc00, 0, 0, 0, 0, 0, 0, 0), 7, "[RFC4193] [RFC8190]: Unique-Local"),
    (Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0), 10, "[RFC4291]: Link-Local Unicast"),
    (Ipv6Addr::new(0xff00, 0, 0, 0, 0, 0, 0, 0), 8, "[RFC4291]: Multicast"),
];

/// Returns the reserved block that the address lies in, such as `[RFC1918]: Private-Use`.
pub fn block(address: IpAddr) -> Option<&'static str> {
    match address {
        IpAddr::V4(address) => V4
            .iter()
            .find(|(net, length, _)| (address.to_bits() ^ net.to_bits()) >> (32 - length) == 0)
            .map(|(_, _, name)| *name),
        IpAddr::V6(address) => V6
            .iter()
            .find(|(net, length, _)| (address.to_bits() ^ net.to_bits()) >> (128 - length) == 0)
            .map(|(_, _, name)| *name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(address: &str, expected: Option<&str>) {
        assert_eq!(block(address.parse().unwrap()), expected);
    }

    #[test]
    fn a_block_ends_where_its_prefix_ends() {
        check("172.15.255.255", None);
        check("172.16.0.0", Some("[RFC1918]: Private-Use"));
        check("172.31.255.255", Some("[RFC1918]: Private-Use"));
        check("172.32.0.0", None);
    }

    #[test]
    fn loopback_is_reserved_and_the_open_internet_is_not() {
        check("127.0.0.1", Some("[RFC1122], Section 3.2.1.3: Loopback"));
        check("::1", Some("[RFC4291]: Loopback Address"));
        check("::ffff:8.8.8.8", Some("[RFC4291]: IPv4-mapped Address"));
        check("8.8.8.8", None);
        check("2606:4700::1111", None);
    }
}
