//! Lists of the services, which answer a long list in several pages.

use anyhow::{Context, bail};
use serde_json::{Map, Value};
use url::Url;

use crate::api::Api;

/// The pages of a list that are not read yet.
pub(crate) struct Pages<'a> {
    api: &'a Api,
    /// The name of the list in the answers.
    key: &'a str,
    /// Path and query of the next page; `None` after the last page.
    next: Option<String>,
}

impl<'a> Pages<'a> {
    /// The pages of the list at `path`, which the answers call `key`. Sends no request.
    pub(crate) fn of(api: &'a Api, path: &str, key: &'a str) -> Pages<'a> {
        Pages { api, key, next: Some(path.to_owned()) }
    }

    /// Reads the next page; `None` after the last page.
    pub(crate) async fn read(&mut self) -> anyhow::Result<Option<Vec<Value>>> {
        let Some(path) = self.next.take() else { return Ok(None) };
        let mut page = self.api.get(&path).await?;
        // The number of rows does not tell whether the page is the last one: a page of large rows ends before its limit.
        if let Some(link) = page["next"].as_str() {
            self.next = Some(following(&path, link).context("the API's answer cannot be read")?);
        }
        let Some(Value::Array(rows)) = page.get_mut(self.key).map(Value::take) else {
            bail!("the API's answer cannot be read");
        };
        Ok(Some(rows))
    }
}

/// Reads all pages of the list at `path`, which the answers call `key`.
pub(crate) async fn all(api: &Api, path: &str, key: &str) -> anyhow::Result<Vec<Value>> {
    let mut pages = Pages::of(api, path, key);
    let mut all = Vec::new();
    while let Some(rows) = pages.read().await? {
        all.extend(rows);
    }
    Ok(all)
}

/// Returns all rows in the form of an answer of the API that has a single page.
pub(crate) fn whole(key: &str, rows: Vec<Value>) -> Value {
    Value::Object(Map::from_iter([(key.to_owned(), Value::Array(rows))]))
}

/// Returns the path of the page after the page at `path`; `None` if `link` does not lead on. Only the query of the link is used: its host
/// may be one that this client cannot reach.
fn following(path: &str, link: &str) -> Option<String> {
    let (route, _) = path.split_once('?').unwrap_or((path, ""));
    let link = Url::parse(link).ok()?;
    let next = format!("{route}?{}", link.query()?);
    (next != path).then_some(next)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_query_of_a_link_is_followed() {
        let link = "https://elsewhere.example/v1/nodes?fields=uuid&limit=2&marker=n2";
        let next = Some("/v1/nodes?fields=uuid&limit=2&marker=n2");
        assert_eq!(following("/v1/nodes?fields=uuid", link).as_deref(), next);
        assert_eq!(following("/v1/nodes", link).as_deref(), next);
    }

    #[test]
    fn a_link_that_does_not_lead_on_is_not_followed_for_ever() {
        assert_eq!(following("/v1/nodes?marker=n2", "http://a/v1/nodes?marker=n2"), None);
        assert_eq!(following("/v1/nodes", "http://a/v1/nodes"), None);
        assert_eq!(following("/v1/nodes", "no URL"), None);
    }
}
