//! Static files, compiled into the program. The path of a file changes with its content.

use std::collections::HashMap;
use std::sync::LazyLock;

use axum::extract::Path;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use ring::digest::{SHA256, digest};

struct Asset {
    name: &'static str,
    kind: &'static str,
    content: &'static [u8],
}

const SCRIPT: &str = "text/javascript; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";

static ASSETS: [Asset; 6] = [
    Asset { name: "tokens.css", kind: STYLE, content: include_bytes!("../assets/tokens.css") },
    Asset { name: "console.css", kind: STYLE, content: include_bytes!("../assets/console.css") },
    Asset { name: "htmx.min.js", kind: SCRIPT, content: include_bytes!("../assets/htmx.min.js") },
    Asset {
        name: "htmx-sse.min.js",
        kind: SCRIPT,
        content: include_bytes!("../assets/htmx-sse.min.js"),
    },
    Asset { name: "screen.js", kind: SCRIPT, content: include_bytes!("../assets/screen.js") },
    Asset {
        name: "icon.svg",
        kind: "image/svg+xml",
        content: include_bytes!("../assets/icon.svg"),
    },
];

impl Asset {
    /// The path with a digest of the content, so that browsers may cache the file for ever.
    fn path(&self) -> String {
        let digest = digest(&SHA256, self.content);
        let tag = hex::encode(digest.as_ref().get(..6).unwrap_or_default());
        format!("/assets/{tag}/{}", self.name)
    }
}

/// The path of each file, by its name.
pub(crate) static PATHS: LazyLock<HashMap<&str, String>> =
    LazyLock::new(|| ASSETS.iter().map(|it| (it.name, it.path())).collect());

/// `GET /assets/{tag}/{name}`: sends a static file.
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

    /// The checksums of `htmx.org` 2.0.11 and `htmx-ext-sse` 2.2.4 on npm, both 0BSD.
    #[test]
    fn vendored_scripts_are_unchanged() {
        for (name, sum) in [
            ("htmx.min.js", "d6fdc75f204e6bdefa99b69bf1e6d4ac69b8a364f77929f45c13476b4000f717"),
            ("htmx-sse.min.js", "98a46496de0c3605fbffdce9167ba427bdd9553184f83f149c261891a92c0136"),
        ] {
            let asset = ASSETS.iter().find(|asset| asset.name == name).unwrap();
            assert_eq!(hex::encode(digest(&SHA256, asset.content)), sum, "{name}");
        }
    }
}
