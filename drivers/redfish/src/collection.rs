//! Reading all members of a collection in as few requests as the BMC allows.

use bmc::BmcError;
use serde_json::Value;
use url::Url;

use crate::document::Document;
use crate::service::{Resource, Service};

/// Members beyond this many are left out. A full rack server has some 200 sensors.
const MOST_MEMBERS: usize = 256;
/// Pages beyond this many are not turned.
const MOST_PAGES: usize = 64;

impl Service {
    /// The members of the collection at `url`, in full; none when the BMC cannot show it.
    pub(crate) async fn members(&self, url: &Url) -> Result<Vec<Value>, BmcError> {
        let listed = self.list(url, MOST_MEMBERS).await?.unwrap_or_default();
        self.each(&listed).await
    }

    /// The resources of a list, in full: those that are mere references are asked for.
    pub(crate) async fn each(&self, listed: &[Value]) -> Result<Vec<Value>, BmcError> {
        let mut members = Vec::new();
        for entry in listed.iter().take(MOST_MEMBERS) {
            members.extend(self.whole(entry.clone()).await?);
        }
        Ok(members)
    }

    /// Up to `most` entries of a collection, in full or as references, as it has them; nothing
    /// when the BMC cannot show it.
    pub(crate) async fn list(
        &self,
        url: &Url,
        most: usize,
    ) -> Result<Option<Vec<Value>>, BmcError> {
        let Some(mut page) = self.first_page(url).await? else { return Ok(None) };
        let mut entries = page.body.items("Members").to_vec();
        for _ in 1..MOST_PAGES {
            // DSP0266 §7.4: a collection may come in parts.
            let next = page.body.at("Members@odata.nextLink").as_str();
            let next = next.filter(|_| entries.len() < most);
            let Some(next) = next.and_then(|link| self.origin.follow(link).ok()) else { break };
            let Some(turned) = self.find(&next).await? else { break };
            page = turned;
            entries.extend_from_slice(page.body.items("Members"));
        }
        entries.truncate(most);
        Ok(Some(entries))
    }

    async fn first_page(&self, url: &Url) -> Result<Option<Resource>, BmcError> {
        if let Some(expand) = self.root().await?.expand {
            let mut expanded = url.clone();
            expanded.set_query(Some(expand));
            // A service may promise expansion and not keep it here, or overdo it.
            if let Some(page) = self.find(&expanded).await? {
                return Ok(Some(page));
            }
        }
        self.find(url).await
    }

    /// `entry` itself if it is a whole resource, what it refers to if it is a mere reference.
    async fn whole(&self, entry: Value) -> Result<Option<Value>, BmcError> {
        let reference = entry.as_object().is_some_and(|entry| entry.len() == 1);
        match entry.id().filter(|_| reference).map(|id| self.origin.follow(id)) {
            Some(Ok(url)) => Ok(self.find(&url).await?.map(|resource| resource.body)),
            Some(Err(_)) => Ok(None),
            None => Ok(entry.is_object().then_some(entry)),
        }
    }
}
