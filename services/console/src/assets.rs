//! The files that pages name, inside the program: each under a path that changes with its content.

use std::collections::HashMap;
use std::sync::LazyLock;

use axum::extract::Path;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use ring::digest::{SHA256, digest};

/// A file.
struct Asset {
    /// Its name.
    name: &'static str,
    kind: &'static str,
    content: &'static [u8],
}

const SCRIPT: &str = "text/javascript; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";

/// All of them.
static ASSETS: [Asset; 5] = [
    Asset { name: "tokens.css", kind: STYLE, content: include_bytes!("../assets/tokens.css") },
    Asset { name: "console.css", kind: STYLE, content: include_bytes!("../assets/console.css") },
    Asset { name: "htmx.min.js", kind: SCRIPT, content: include_bytes!("../assets/htmx.min.js") },
    Asset {
        name: "htmx-sse.min.js",
        kind: SCRIPT,
        content: include_bytes!("../assets/htmx-sse.min.js"),
    },
    Asset {
        name: "icon.svg",
        kind: "image/svg+xml",
        content: include_bytes!("../assets/icon.svg"),
    },
];

impl Asset {
    /// Where it is: a browser may keep it for ever.
    fn path(&self) -> String {
        let digest = digest(&SHA256, self.content);
        let tag = hex::encode(digest.as_ref().get(..6).unwrap_or_default());
        format!("/assets/{tag}/{}", self.name)
    }
}

/// Where each is, by its name.
pub(crate) static PATHS: LazyLock<HashMap<&str, String>> =
    LazyLock::new(|| ASSETS.iter().map(|it| (it.name, it.path())).collect());

/// `GET /assets/{tag}/{name}`.
pub(crate) async fn serve(Path((tag, name)): Path<(String, String)>) -> Response {
    let path = format!("/assets/{tag}/{name}");
    match ASSETS.iter().find(|asset| asset.name == name && PATHS.get(asset.name) == Some(&path)) {
        Some(asset) => {
            let headers = [
                (CONTENT_TYPE, asset.kind),
                (CACHE_CONTROL, "public, max-age=31536000, immutable"),
            ];
            (headers, asset.content).into_response()
        }
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As npm has them: `htmx.org` 2.0.11 and `htmx-ext-sse` 2.2.4, both 0BSD.
    #[test]
    fn what_others_wrote_is_what_they_wrote() {
        for (name, sum) in [
            ("htmx.min.js", "d6fdc75f204e6bdefa99b69bf1e6d4ac69b8a364f77929f45c13476b4000f717"),
            ("htmx-sse.min.js", "98a46496de0c3605fbffdce9167ba427bdd9553184f83f149c261891a92c0136"),
        ] {
            let asset = ASSETS.iter().find(|asset| asset.name == name).unwrap();
            assert_eq!(hex::encode(digest(&SHA256, asset.content)), sum, "{name}");
        }
    }
}
