//! Reads all members of a collection in as few requests as the BMC allows.

use bmc::Result;
use serde_json::Value;
use url::Url;

use crate::document::Document;
use crate::service::{Resource, Service};

/// The most members that are read. A full rack server has some 200 sensors.
const MOST_MEMBERS: usize = 256;
const MOST_PAGES: usize = 64;

impl Service {
    /// Reads the members of the collection at `url` as whole resources; none if the BMC cannot show the collection.
    pub(crate) async fn members(&self, url: &Url) -> Result<Vec<Value>> {
        let listed = self.list(url, MOST_MEMBERS).await?.unwrap_or_default();
        self.each(&listed).await
    }

    /// Turns the entries of a list into whole resources: fetches each entry that is only a reference.
    pub(crate) async fn each(&self, listed: &[Value]) -> Result<Vec<Value>> {
        let mut members = Vec::new();
        for entry in listed.iter().take(MOST_MEMBERS) {
            members.extend(self.whole(entry.clone()).await?);
        }
        Ok(members)
    }

    /// Reads up to `most` entries of a collection, as whole resources or references, whichever the BMC sends; `None` if the BMC cannot show
    /// the collection.
    pub(crate) async fn list(&self, url: &Url, most: usize) -> Result<Option<Vec<Value>>> {
        let Some(mut page) = self.first_page(url).await? else { return Ok(None) };
        let mut entries = page.body.items("Members").to_vec();
        for _ in 1..MOST_PAGES {
            // DSP0266 §7.4: a collection may be split into pages.
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

    /// Reads the ids of up to `most` members of a collection; `None` if there is no such collection.
    ///
    /// # Errors
    ///
    /// Fails if a part of the collection cannot be read now: a part of the ids must not be taken for all.
    pub(crate) async fn ids(&self, url: &Url, most: usize) -> Result<Option<Vec<String>>> {
        let Some(mut page) = self.find_unless_busy(url).await? else { return Ok(None) };
        let mut ids = Vec::new();
        for _ in 0..MOST_PAGES {
            let members = page.body.items("Members").iter();
            ids.extend(members.filter_map(|member| member.id().map(str::to_owned)));
            let next = page.body.at("Members@odata.nextLink").as_str();
            let next = next.filter(|_| ids.len() < most);
            let Some(next) = next.and_then(|link| self.origin.follow(link).ok()) else { break };
            let Some(turned) = self.find_unless_busy(&next).await? else { break };
            page = turned;
        }
        ids.truncate(most);
        Ok(Some(ids))
    }

    async fn first_page(&self, url: &Url) -> Result<Option<Resource>> {
        if let Some(expand) = self.root().await?.expand {
            let mut expanded = url.clone();
            expanded.set_query(Some(expand));
            // A BMC may announce `$expand` and then refuse it for this collection, or answer with more than the size limit.
            if let Some(page) = self.find(&expanded).await? {
                return Ok(Some(page));
            }
        }
        self.find(url).await
    }

    /// Returns `entry` if it is a whole resource, and fetches the resource if `entry` is only a reference.
    pub(crate) async fn whole(&self, entry: Value) -> Result<Option<Value>> {
        let reference = entry.as_object().is_some_and(|entry| entry.len() == 1);
        match entry.id().filter(|_| reference).map(|id| self.origin.follow(id)) {
            Some(Ok(url)) => Ok(self.find(&url).await?.map(|resource| resource.body)),
            Some(Err(_)) => Ok(None),
            None => Ok(entry.is_object().then_some(entry)),
        }
    }
}
