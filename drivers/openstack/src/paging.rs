//! Lists in pages, with the three ways in which services link to the next page.

use std::collections::HashSet;

use serde::de::DeserializeOwned;
use serde_json::Value;
use url::Url;

use crate::error::Result;
use crate::session::Call;

/// The most pages that are read; a service that sends more is broken.
const MOST_PAGES: usize = 10_000;

impl Call<'_> {
    /// Reads all entries under `key` of a list, page by page.
    ///
    /// Only the query of the link to the next page is used: behind proxies its host is often wrong, and our token must not be sent to
    /// another host.
    pub(crate) async fn all<T: DeserializeOwned>(self, key: &str) -> Result<Vec<T>> {
        let (mut everything, mut seen) = (Vec::new(), HashSet::new());
        let mut query = self.asked();
        loop {
            seen.insert(query.clone());
            let answer = self.page(query).send().await?;
            let body: Value = answer.whole()?;
            let next = next(&body, key);
            everything.append(&mut answer.under::<Vec<T>>(key)?);
            match next {
                None => return Ok(everything),
                Some(next) if seen.contains(&next) || seen.len() >= MOST_PAGES => {
                    return Err(answer.malformed("its pages do not end"));
                }
                Some(next) => query = next,
            }
        }
    }
}

/// Returns the query of the next page.
fn next(body: &Value, key: &str) -> Option<Vec<(String, String)>> {
    // Keystone and Designate; Glance; Nova, Neutron, Octavia and Cinder.
    let links = body.get(format!("{key}_links")).and_then(Value::as_array);
    let rel = |link: &&Value| link.get("rel").and_then(Value::as_str) == Some("next");
    let link = body.pointer("/links/next").and_then(Value::as_str);
    let link = link.or_else(|| body.get("next").and_then(Value::as_str));
    let link = link.or_else(|| links?.iter().find(rel)?.get("href")?.as_str())?;
    // Glance's link is a path.
    let base = Url::parse("http://localhost/").ok()?;
    let url = base.join(link).ok()?;
    let query: Vec<(String, String)> = url.query_pairs().into_owned().collect();
    (!query.is_empty()).then_some(query)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_next_page_is_found_in_every_form_of_link() {
        let want = Some(vec![
            ("limit".to_owned(), "2".to_owned()),
            ("marker".to_owned(), "a b".to_owned()),
        ]);
        for body in [
            json!({"servers_links": [{"rel": "prev", "href": "x"}, {"rel": "next", "href": "https://other/v2/servers?limit=2&marker=a%20b"}]}),
            json!({"next": "/v2/images?limit=2&marker=a+b"}),
            json!({"links": {"self": "x", "next": "http://h/v2/zones?limit=2&marker=a%20b"}}),
        ] {
            assert_eq!(next(&body, "servers"), want, "{body}");
        }
        for body in [
            json!({"links": {"next": null}}),
            json!({"servers_links": []}),
            json!({"servers_links": 7, "next": {}}),
            json!({"next": "/v2/images"}),
            json!([]),
        ] {
            assert_eq!(next(&body, "servers"), None, "{body}");
        }
    }
}
