//! How rules name URLs: by an origin and a path, which includes everything below, or by a host
//! only.
//!
//! `policy` calls this module. URLs are compared and never opened.

use ::url::Host;

/// The parts of a URL that a rule can name.
struct Parts<'a> {
    scheme: &'a str,
    host: String,
    port: Option<&'a str>,
    /// Everything from the first slash, question mark or hash on.
    rest: &'a str,
}

impl<'a> Parts<'a> {
    /// Reads `scheme://host:port/rest`. Returns `None` if the URL could be read in two ways.
    fn of(url: &'a str) -> Option<Self> {
        let (scheme, after) = url.split_once("://")?;
        let end = after.find(['/', '?', '#', '\\']).unwrap_or(after.len());
        let (authority, rest) = after.split_at_checked(end)?;
        // `https://good.com@evil.net` goes to evil.net.
        if authority.is_empty() || authority.contains('@') || rest.starts_with('\\') {
            return None;
        }
        let (host, port) = split_port(authority);
        let port = port.filter(|port| !is_usual(scheme, port));
        Some(Self {
            scheme,
            host: plain_host(host),
            port,
            rest,
        })
    }
}

/// Returns a host as the programs that open it understand it: `127.1` and `0x7f000001` are 127.0.0.1,
/// `%65vil.net` is evil.net.
fn plain_host(host: &str) -> String {
    let host = host.trim_end_matches('.');
    match Host::parse(host) {
        Ok(Host::Domain(name)) => name.trim_end_matches('.').to_owned(),
        Ok(Host::Ipv4(address)) => address.to_string(),
        Ok(Host::Ipv6(address)) => address
            .to_ipv4_mapped()
            .map_or_else(|| format!("[{address}]"), |address| address.to_string()),
        // Nobody can open it.
        Err(_) => host.to_ascii_lowercase(),
    }
}

/// Whether a host is this machine itself, by whatever name.
fn is_this_machine(host: &str) -> bool {
    host == "localhost"
        || host.ends_with(".localhost")
        || host == "[::1]"
        || host == "[::]"
        || host == "0.0.0.0"
        || matches!(Host::parse(host), Ok(Host::Ipv4(address)) if address.is_loopback())
}

fn split_port(authority: &str) -> (&str, Option<&str>) {
    match authority.rsplit_once(':') {
        Some((host, port))
            if port.bytes().all(|byte| byte.is_ascii_digit()) && !port.is_empty() =>
        {
            (host, Some(port))
        }
        _ => (authority, None),
    }
}

fn is_usual(scheme: &str, port: &str) -> bool {
    matches!(
        (scheme.to_ascii_lowercase().as_str(), port),
        ("http", "80") | ("https", "443")
    )
}

/// Whether an allow rule covers a URL. Scheme, host and port must be equal, and the path must lie
/// below the rule's. A rule that is a bare host covers that host over https or http on the default
/// port.
pub(super) fn covers(rule: &str, url: &str) -> bool {
    let Some(asked) = Parts::of(url) else {
        return false;
    };
    let Some(allowed) = Parts::of(rule) else {
        return !rule.contains("://") && covers_host(rule, &asked);
    };
    allowed.scheme.eq_ignore_ascii_case(asked.scheme)
        && is_host(&allowed.host, &asked.host)
        && allowed.port == asked.port
        && is_below(allowed.rest, asked.rest)
}

/// Whether a deny rule matches a URL. Unlike in [`covers`], a host matches with every scheme and
/// port.
pub(super) fn hits(rule: &str, url: &str) -> bool {
    let Some(asked) = Parts::of(url) else {
        // A URL that cannot be read with certainty does not get past a deny rule.
        return true;
    };
    if let Some(denied) = Parts::of(rule) {
        return is_denied_host(&denied.host, &asked.host)
            && (denied.rest.len() <= 1 || is_below(denied.rest, asked.rest));
    }
    let host = plain_host(split_port(rule).0.trim_end_matches('/'));
    is_denied_host(&host, &asked.host)
}

/// Whether a URL can be read in one way only.
pub(super) fn is_readable(url: &str) -> bool {
    Parts::of(url).is_some()
}

/// Returns the host that a rule names, without a wildcard.
pub(super) fn host(rule: &str) -> Option<String> {
    let host = match Parts::of(rule) {
        Some(parts) => parts.host,
        None => plain_host(split_port(rule).0.trim_end_matches('/')),
    };
    let host = host.trim_start_matches("*.").to_owned();
    (!host.is_empty()).then_some(host)
}

fn covers_host(rule: &str, asked: &Parts<'_>) -> bool {
    let (host, port) = split_port(rule.trim_end_matches('/'));
    let is_web = ["http", "https"]
        .iter()
        .any(|scheme| asked.scheme.eq_ignore_ascii_case(scheme));
    is_web && !host.is_empty() && is_host(&plain_host(host), &asked.host) && port == asked.port
}

/// Whether a deny rule names a host, or both are this machine.
fn is_denied_host(rule: &str, host: &str) -> bool {
    is_host(rule, host) || (is_this_machine(rule) && is_this_machine(host))
}

/// Whether a rule names a host. `example.com` means itself only; `*.example.com` means every host
/// below it.
fn is_host(rule: &str, host: &str) -> bool {
    let rule = rule.trim_end_matches('.').to_ascii_lowercase();
    match rule.strip_prefix("*.") {
        Some(parent) => host
            .strip_suffix(parent)
            .is_some_and(|below| below.ends_with('.') && below.len() > 1),
        None => rule == host,
    }
}

/// Whether a path is this one or lies below it, compared part by part.
fn is_below(allowed: &str, asked: &str) -> bool {
    // `..` in any spelling leaves the path again.
    let climbs = |path: &str| {
        let path = path.split(['?', '#']).next().unwrap_or(path);
        let path = path.to_ascii_lowercase().replace("%2e", ".");
        path.split(['/', '\\']).any(|part| part == "..")
    };
    if allowed.is_empty() || allowed == "/" {
        return true;
    }
    if climbs(asked) {
        return false;
    }
    asked.strip_prefix(allowed).is_some_and(|rest| {
        allowed.ends_with('/') || rest.is_empty() || rest.starts_with(['/', '?', '#'])
    })
}

#[cfg(test)]
mod tests;
