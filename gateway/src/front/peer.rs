//! The address of a client, and the proxies trusted to report it.

use std::net::{IpAddr, SocketAddr};

use http::HeaderMap;
use ipnet::IpNet;

/// Maximum number of entries of `X-Forwarded-For` that are read. No chain of trusted proxies is
/// longer.
const MOST_HOPS: usize = 32;

/// The other end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Address of the socket, or the one from the PROXY protocol header.
    pub address: SocketAddr,
    /// True if the connection uses TLS.
    pub is_tls: bool,
}

/// The networks of proxies trusted to report a client's address. None by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Proxies(Vec<IpNet>);

impl Proxies {
    /// Creates the set of these networks.
    #[must_use]
    pub fn new(networks: impl IntoIterator<Item = IpNet>) -> Self {
        Self(networks.into_iter().collect())
    }

    /// Returns true if no proxy is trusted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns true if an address belongs to a trusted proxy.
    #[must_use]
    pub fn trust(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.0.iter().any(|network| network.contains(&address))
    }

    /// Returns the client's address: the peer's, unless the peer is a trusted proxy. Behind one it
    /// is the last entry of `X-Forwarded-For` that is not a trusted proxy. Entries to the left of
    /// that one are ignored, as any client could have written them.
    #[must_use]
    pub fn client(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        let mut address = peer.to_canonical();
        if !self.trust(address) {
            return address;
        }
        let lines = headers.get_all("x-forwarded-for").iter().rev();
        let entries = lines.flat_map(|line| line.as_bytes().rsplit(|byte| *byte == b',')).take(MOST_HOPS);
        for entry in entries {
            // An entry that can't be parsed ends the chain: the proxy that wrote it counts as the
            // client.
            let Some(hop) = hop(entry) else { break };
            address = hop;
            if !self.trust(address) {
                break;
            }
        }
        address
    }
}

/// Parses an address, with or without a port.
fn hop(entry: &[u8]) -> Option<IpAddr> {
    let text = std::str::from_utf8(entry).ok()?.trim();
    let address = text.parse::<IpAddr>().ok().or_else(|| text.parse::<SocketAddr>().ok().map(|it| it.ip()));
    let bracketed = || text.strip_prefix('[')?.strip_suffix(']')?.parse().ok();
    address.or_else(bracketed).map(|address| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use rstest::rstest;

    use super::*;

    // covers: 6.source
    #[rstest]
    #[case("203.0.113.9", &[], "203.0.113.9")]
    #[case("203.0.113.9", &["198.51.100.1"], "203.0.113.9")]
    #[case("10.0.0.1", &[], "10.0.0.1")]
    #[case("10.0.0.1", &["198.51.100.1"], "198.51.100.1")]
    #[case("::ffff:10.0.0.1", &["198.51.100.1"], "198.51.100.1")]
    #[case("10.0.0.1", &["1.1.1.1, 198.51.100.1"], "198.51.100.1")]
    #[case("10.0.0.1", &["1.1.1.1", "198.51.100.1, 10.0.0.7"], "198.51.100.1")]
    #[case("10.0.0.1", &["198.51.100.1:4711"], "198.51.100.1")]
    #[case("10.0.0.1", &["[2001:db8::1]:4711"], "2001:db8::1")]
    #[case("10.0.0.1", &["[2001:db8::1]"], "2001:db8::1")]
    #[case("10.0.0.1", &["1.1.1.1, unknown, 10.0.0.7"], "10.0.0.7")]
    #[case("10.0.0.1", &["10.0.0.8, 10.0.0.7"], "10.0.0.8")]
    fn the_last_hop_that_is_not_trusted_is_the_client(
        #[case] peer: &str,
        #[case] forwarded: &[&'static str],
        #[case] client: &str,
    ) {
        let proxies = Proxies::new(["10.0.0.0/8".parse().expect("a network")]);
        let mut headers = HeaderMap::new();
        for line in forwarded {
            headers.append("x-forwarded-for", HeaderValue::from_static(line));
        }
        let found = proxies.client(peer.parse().expect("an address"), &headers);
        assert_eq!(found, client.parse::<IpAddr>().expect("an address"));
    }

    #[test]
    fn nobody_is_trusted_by_default() {
        let headers = HeaderMap::from_iter([(
            http::HeaderName::from_static("x-forwarded-for"),
            HeaderValue::from_static("1.1.1.1"),
        )]);
        let peer = IpAddr::from([10, 0, 0, 1]);
        assert_eq!(Proxies::default().client(peer, &headers), peer);
    }
}
