//! Who may ask, and what pages may do.
//!
//! A page of another site can make a browser send requests here, and with a name of its own that it points at this
//! machine (DNS rebinding) even read the answers. So only requests to this machine's own names are answered, and none that
//! another site caused, but for a link to the page itself.

use super::Refusal;
use axum::extract::Request;
use axum::http::{HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

/// This machine, as one types it.
const OWN_NAMES: [&str; 3] = ["127.0.0.1", "localhost", "[::1]"];

/// Nothing from elsewhere, nothing to elsewhere, no frames, nothing kept.
const HEADERS: [(HeaderName, &str); 6] = [
    (
        header::CONTENT_SECURITY_POLICY,
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::CACHE_CONTROL, "no-store"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
];

pub(super) async fn guard(request: Request, next: Next) -> Response {
    let mut response = match checked(&request) {
        Ok(()) => next.run(request).await,
        Err(refusal) => refusal.into_response(),
    };
    for (name, value) in HEADERS {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

fn checked(request: &Request) -> Result<(), Refusal> {
    let refused = |problem: &str| Err(Refusal::new(StatusCode::FORBIDDEN, problem));
    let text = |name: HeaderName| request.headers().get(name).map(|value| value.to_str().unwrap_or("?"));
    let host = text(header::HOST).unwrap_or_default();
    if !is_own(host) {
        return refused("this page answers to its own address alone; open it at http://127.0.0.1 and its port");
    }
    let is_first_page = request.uri().path() == "/" && request.method() == Method::GET;
    let from = text(HeaderName::from_static("sec-fetch-site")).unwrap_or("none");
    if !matches!(from, "same-origin" | "none") && !is_first_page {
        return refused("another site may not ask this page anything; open its address yourself");
    }
    match text(header::ORIGIN) {
        Some(origin) if origin.strip_prefix("http://") != Some(host) => {
            refused("another site may not ask this page anything; open its address yourself")
        }
        _ => Ok(()),
    }
}

/// Whether a host is this machine, whatever the port: it may be forwarded.
fn is_own(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    OWN_NAMES.iter().any(|own| name.eq_ignore_ascii_case(own))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_is_this_machine() {
        for host in ["127.0.0.1:8000", "localhost", "LOCALHOST:1", "[::1]:80", "127.0.0.1"] {
            assert!(is_own(host), "{host}");
        }
        for host in
            ["", "evil.example", "127.0.0.1.evil.example:80", "localhost.evil:1", "127.0.0.1:8000@evil", "a:b", "::1"]
        {
            assert!(!is_own(host), "{host}");
        }
    }
}
