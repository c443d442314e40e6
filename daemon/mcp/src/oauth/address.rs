//! Which addresses logins may lead to.

use std::net::IpAddr;

use url::{Host, Url};

use super::OauthError;

/// Reads an address that a server named for its login. It has to be https, or http on this machine; and
/// only a server on this machine or in the local network may name others there.
pub fn checked(text: &str, server: &Url) -> Result<Url, OauthError> {
    let url = Url::parse(text).map_err(|error| {
        OauthError::Unusable(format!(
            "the login of the server names an address that is not valid: {error}"
        ))
    })?;
    let refused = |why: &str| {
        let shown = url.origin().ascii_serialization();
        Err(OauthError::Unusable(format!(
            "the login of the server leads to {shown}, {why}"
        )))
    };
    if !url.username().is_empty() || url.password().is_some() {
        return refused("with a password in the address");
    }
    match url.scheme() {
        "https" => {}
        "http" if is_here(&url) => {}
        _ => return refused("but secrets are sent by https only"),
    }
    if is_near(&url) && !is_near(server) {
        return refused("which is inside this machine or its network");
    }
    Ok(url)
}

/// Whether an address is on this machine.
pub(super) fn is_here(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(Host::Ipv4(ip)) => ip.is_loopback(),
        Some(Host::Ipv6(ip)) => ip.is_loopback(),
        None => false,
    }
}

/// Whether an address is on this machine or in the local network.
fn is_near(url: &Url) -> bool {
    let ip = match url.host() {
        Some(Host::Ipv4(ip)) => IpAddr::V4(ip),
        Some(Host::Ipv6(ip)) => ip.to_ipv4_mapped().map_or(IpAddr::V6(ip), IpAddr::V4),
        // Names that exist only in a local network.
        Some(Host::Domain(name)) => {
            let ends = [".local", ".internal", ".lan", ".home.arpa"];
            return is_here(url) || ends.iter().any(|end| name.ends_with(end));
        }
        None => return false,
    };
    match ip {
        IpAddr::V4(ip) => {
            let [first, second, ..] = ip.octets();
            // 0.0.0.0/8 is this machine; 100.64.0.0/10 is shared by the customers of a provider.
            let is_shared = first == 100 && (64..128).contains(&second);
            ip.is_loopback() || ip.is_private() || ip.is_link_local() || first == 0 || is_shared
        }
        IpAddr::V6(ip) => {
            ip.is_loopback()
                || ip.is_unspecified()
                || ip.is_unique_local()
                || ip.is_unicast_link_local()
                // An address of the older kind in its old notation, or behind a translator.
                || matches!(ip.segments(), [0, 0, 0, 0, 0, 0, ..] | [0x64, 0xff9b, ..])
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed step fails the test")]
mod tests {
    use super::*;

    #[test]
    fn a_server_elsewhere_cannot_lead_to_this_machine_or_off_https() {
        let far = Url::parse("https://a.example/mcp").unwrap();
        let near = Url::parse("http://127.0.0.1:9/mcp").unwrap();
        for (address, from_far, from_near) in [
            ("https://login.example/x", true, true),
            ("http://login.example/x", false, false),
            ("http://127.0.0.1:1/x", false, true),
            ("http://localhost:1/x", false, true),
            ("https://10.0.0.1/x", false, true),
            ("https://169.254.169.254/x", false, true),
            ("https://[::ffff:127.0.0.1]/x", false, true),
            ("https://u:p@login.example/x", false, false),
            ("https://100.64.0.1/x", false, true),
            ("https://0.1.2.3/x", false, true),
            ("https://[::127.0.0.1]/x", false, true),
            ("https://[64:ff9b::a00:1]/x", false, true),
            ("https://metadata.google.internal/x", false, true),
            ("https://printer.local/x", false, true),
            ("https://2130706433/x", false, true),
            ("file:///etc/passwd", false, false),
            ("javascript:alert(1)", false, false),
        ] {
            assert_eq!(checked(address, &far).is_ok(), from_far, "{address}");
            assert_eq!(checked(address, &near).is_ok(), from_near, "{address}");
        }
    }
}
