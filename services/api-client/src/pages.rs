//! Lists of the services, which answer a long list in several pages.

use std::marker::PhantomData;

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use url::Url;

use crate::client::Client;
use crate::error::ClientError;
use crate::with_json::WithJson;
use crate::{baremetald, clusterd, shared};

/// An element of a list.
pub trait Listed: DeserializeOwned {
    /// The name of the list in an answer.
    const LIST: &'static str;
}

macro_rules! lists {
    ($($element:ty = $list:literal,)+) => {
        $(impl Listed for $element {
            const LIST: &'static str = $list;
        })+
    };
}

lists! {
    baremetald::BiosSetting = "bios",
    baremetald::Conductor = "conductors",
    baremetald::Discovery = "discoveries",
    baremetald::FirmwareComponent = "firmware",
    baremetald::Node = "nodes",
    baremetald::Port = "ports",
    baremetald::Profile = "hypervisor_profiles",
    baremetald::RackSummary = "racks",
    baremetald::Reservation = "reservations",
    baremetald::Vif = "vifs",
    clusterd::Backup = "backups",
    clusterd::Cluster = "clusters",
    clusterd::ClusterTemplate = "clustertemplates",
    clusterd::Conductor = "conductors",
    clusterd::Event = "events",
    clusterd::HostSummary = "hosts",
    clusterd::IdleVm = "machines",
    clusterd::Image = "images",
    clusterd::Member = "machines",
    clusterd::NodeGroup = "nodegroups",
    clusterd::Snapshot = "snapshots",
    clusterd::Vm = "machines",
    shared::AuditRow = "audit",
    shared::Key = "keys",
    shared::PolicyRow = "policy",
    shared::Webhook = "webhooks",
}

impl<T: Listed> Listed for WithJson<T> {
    const LIST: &'static str = T::LIST;
}

/// The pages of a list that are not read yet.
pub struct Pages<'a, T> {
    client: &'a Client,
    /// Path and query of the next page; `None` after the last page.
    next: Option<String>,
    element: PhantomData<T>,
}

impl<'a, T: Listed> Pages<'a, T> {
    /// The pages of the list at `path`. Sends no request.
    pub fn of(client: &'a Client, path: &str) -> Self {
        Pages { client, next: Some(path.to_owned()), element: PhantomData }
    }

    /// Reads the next page; `None` after the last page.
    ///
    /// # Errors
    ///
    /// Returns an error if the service refuses or does not answer, or if the answer is not a list of `T`.
    pub async fn read(&mut self) -> Result<Option<Vec<T>>, ClientError> {
        let Some(path) = self.next.take() else { return Ok(None) };
        let mut page: Map<String, Value> = self.client.get(&path).await?;
        // The number of rows does not tell whether the page is the last one: a page of large rows ends before its limit.
        if let Some(Value::String(link)) = page.get("next") {
            self.next = Some(following(&path, link).ok_or(ClientError::InvalidPage)?);
        }
        let rows = page.remove(T::LIST).ok_or(ClientError::InvalidPage)?;
        let rows = serde_json::from_value(rows);
        rows.map(Some).map_err(|source| ClientError::Unreadable { source })
    }

    /// Whether the service has told of a page that is not read yet.
    pub fn has_more(&self) -> bool {
        self.next.is_some()
    }

    /// Reads all pages.
    ///
    /// # Errors
    ///
    /// Returns the first error of [`Pages::read`].
    pub async fn all(mut self) -> Result<Vec<T>, ClientError> {
        let mut all = Vec::new();
        while let Some(rows) = self.read().await? {
            all.extend(rows);
        }
        Ok(all)
    }
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
