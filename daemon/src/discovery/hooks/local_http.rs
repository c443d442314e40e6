//! Addresses of this machine, which hooks may be sent to without encryption if the launch allows it.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr};

/// The variable of a launch that allows unencrypted addresses of this machine.
pub const LOCAL_HTTP_VARIABLE: &str = "COPILOT_HOOK_ALLOW_LOCALHOST";

/// Whether hooks may be sent to this machine without encryption.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LocalHttp {
    #[default]
    Refused,
    Allowed,
}

impl LocalHttp {
    /// Returns what the environment of a launch allows.
    pub fn of(env: &BTreeMap<String, String>) -> Self {
        match env.get(LOCAL_HTTP_VARIABLE).map(String::as_str) {
            Some("1") => Self::Allowed,
            _ => Self::Refused,
        }
    }
}

/// Returns whether an address is unencrypted HTTP to this machine.
pub(super) fn is_local(url: &str) -> bool {
    let Some(rest) = url.strip_prefix("http://") else {
        return false;
    };
    let authority = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
    let host = match authority.strip_prefix('[') {
        Some(rest) => rest.split_once(']').map(|(host, _)| host),
        None => authority.split(':').next(),
    };
    let host = host.unwrap_or_default();
    !authority.contains('@')
        && (host == "localhost"
            || host
                .parse()
                .is_ok_and(|address: Ipv4Addr| address.is_loopback())
            || host
                .parse()
                .is_ok_and(|address: Ipv6Addr| address.is_loopback()))
}
