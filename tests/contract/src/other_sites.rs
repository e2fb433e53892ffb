//! Requests that a browser sends for a page of another site. `list` is the path of a list of the API.

use axum::body::Body;
use http::Request;

use crate::{Answer, InProcessApi};

/// An API without authentication refuses every such request, and names the header.
pub async fn are_refused(api: &InProcessApi, list: &str) {
    let host = ("host", api.format.host);
    for (headers, names) in [
        (&[("host", "evil.example:80")][..], "Host"),
        (&[host, ("sec-fetch-site", "cross-site")], "Sec-Fetch-Site"),
        (&[host, ("sec-fetch-site", "same-site")], "Sec-Fetch-Site"),
        (&[host, ("origin", "http://evil.example")], "Origin"),
        (&[host, ("origin", "null")], "Origin"),
    ] {
        for (method, path) in [("GET", list), ("DELETE", &format!("{list}/x")), ("GET", "/")] {
            let refused = answered(api, method, path, headers).await.has(403);
            refused.is_refusal_of(&format!("{method} {path} {headers:?}"));
            assert!(refused.text.contains(names), "{method} {path} {headers:?}: {}", refused.text);
        }
    }
    let own_page = format!("http://{}", api.format.host);
    for headers in [
        &[host][..],
        &[("host", "localhost:1")],
        &[("host", "127.0.0.1")],
        &[("host", "[::1]:1"), ("sec-fetch-site", "none")],
        &[host, ("sec-fetch-site", "same-origin"), ("origin", &own_page)],
    ] {
        answered(api, "GET", list, headers).await.has(200);
    }
}

/// A browser that knows the password `secret` of `admin` changes nothing for such a page.
pub async fn have_no_use_of_a_password(api: &InProcessApi, list: &str) {
    let host = ("host", api.format.host);
    // The base64 of admin:secret.
    let known = ("authorization", "Basic YWRtaW46c2VjcmV0");
    let page = ("sec-fetch-site", "cross-site");
    let one = format!("{list}/x");
    let refused = answered(api, "DELETE", &one, &[host, known, page]).await.has(403);
    assert!(refused.text.contains("Sec-Fetch-Site"), "{}", refused.text);
    let form = ("origin", "http://evil.example");
    answered(api, "POST", list, &[host, known, form]).await.has(403);
    // Programs that are not browsers may use a host name that is not configured.
    answered(api, "DELETE", &one, &[("host", "any.example"), known]).await.has(404);
    answered(api, "GET", list, &[host, known, page]).await.has(200);
}

/// Sends a request with these headers and no body.
async fn answered(
    api: &InProcessApi,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
) -> Answer {
    let request = Request::builder().method(method).uri(path);
    let request = headers.iter().fold(request, |it, (name, value)| it.header(*name, *value));
    api.raw(request.body(Body::empty()).unwrap()).await
}
