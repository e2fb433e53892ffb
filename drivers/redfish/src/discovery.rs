//! Discovery of resources: every address comes from a link, none is guessed.

use bmc::{BmcError, Result};
use reqwest::StatusCode;
use serde_json::Value;
use url::Url;

use crate::document::Document;
use crate::quirks;
use crate::service::{Resource, Service};

/// The most chassis or managers that are read for one machine.
const MOST_RELATIVES: usize = 8;

impl Service {
    /// Reads the machine's resource (DSP0268 `ComputerSystem`).
    pub(crate) async fn system(&self) -> Result<Resource> {
        let url = self.system_url().await?;
        self.get(&url).await
    }

    /// Like [`Service::system`], and closes the connection after the request.
    pub(crate) async fn system_and_close(&self) -> Result<Resource> {
        let url = self.system_url().await?;
        self.get_and_close(&url).await
    }

    async fn system_url(&self) -> Result<Url> {
        let known = self.links().system.clone();
        if let Some(known) = known {
            return Ok(known);
        }
        let url = match &self.target.system {
            Some(path) => self.origin.follow(&format!("/{}", path.trim_start_matches('/')))?,
            None => self.only_system().await?,
        };
        self.links().system = Some(url.clone());
        Ok(url)
    }

    async fn only_system(&self) -> Result<Url> {
        let nothing = || BmcError::Unsupported { what: "show a computer system".to_owned() };
        let systems = self.root().await?.systems.clone().ok_or_else(nothing)?;
        let systems = self.get(&systems).await?;
        let found: Vec<&str> =
            systems.body.items("Members").iter().filter_map(Document::id).collect();
        match found[..] {
            [] => Err(nothing()),
            [only] => self.origin.follow(only),
            [first, second, ..] => Err(BmcError::Unsupported {
                what: format!(
                    "decide which of its {} systems is meant: give the id of one system, such as {first} or {second}",
                    found.len()
                ),
            }),
        }
    }

    /// Returns the BMCs that manage `system` (DSP0268 `Manager`).
    pub(crate) async fn managers(&self, system: &Value) -> Result<Vec<Url>> {
        let links = quirks::managers_of(system);
        self.related(links, self.root().await?.managers.clone()).await
    }

    /// Returns the chassis that contain `system` (DSP0268 `Chassis`).
    pub(crate) async fn chassis(&self, system: &Value) -> Result<Vec<Url>> {
        let links = system.at("Links").items("Chassis");
        self.related(links, self.root().await?.chassis.clone()).await
    }

    /// Returns the targets of `links`, or the members of the collection `all` if there are no links.
    async fn related(&self, links: &[Value], all: Option<Url>) -> Result<Vec<Url>> {
        let follow = |links: &[Value]| -> Vec<Url> {
            let ids = links.iter().take(MOST_RELATIVES).filter_map(Document::id);
            ids.filter_map(|id| self.origin.follow(id).ok()).collect()
        };
        let direct = follow(links);
        match all {
            Some(all) if direct.is_empty() => {
                let all = self.find(&all).await?;
                Ok(all.map(|all| follow(all.body.items("Members"))).unwrap_or_default())
            }
            _ => Ok(direct),
        }
    }

    /// Returns the target of the property `name` of `of`, if it is on this BMC.
    pub(crate) fn link(&self, of: &Value, name: &str) -> Option<Url> {
        self.origin.follow(of.link(name)?).ok()
    }

    /// Returns the URL of the action `name` of `of` (DSP0266 §7.12).
    pub(crate) fn action(&self, of: &Value, name: &str) -> Option<Url> {
        self.origin.follow(of.at("Actions").at(name).at("target").as_str()?).ok()
    }

    /// Returns the values that the action `name` of `of` accepts for `parameter`; `None` if the BMC does not list them. The list is beside
    /// the action or, in newer services, in a resource of its own.
    pub(crate) async fn allowed(
        &self,
        of: &Value,
        name: &str,
        parameter: &str,
    ) -> Result<Option<Vec<String>>> {
        let owned = |words: Vec<&str>| words.into_iter().map(str::to_owned).collect();
        let action = of.at("Actions").at(name);
        if let Some(listed) = action.words(&format!("{parameter}@Redfish.AllowableValues")) {
            return Ok(Some(owned(listed)));
        }
        let Some(info) = action.at("@Redfish.ActionInfo").as_str() else { return Ok(None) };
        let info = match self.origin.follow(info) {
            Ok(info) => self.find(&info).await?,
            Err(_) => None,
        };
        let parameters = info.as_ref().map(|info| info.body.items("Parameters")).unwrap_or(&[]);
        let described = parameters.iter().find(|p| p.word("Name") == parameter);
        Ok(described.and_then(|p| p.words("AllowableValues")).map(owned))
    }

    /// Reads the resource at `url`; `None` if the BMC links to the resource but cannot show it, which is common, or denies it to our
    /// account.
    pub(crate) async fn find(&self, url: &Url) -> Result<Option<Resource>> {
        let answer = self.fetch(url).await?;
        if answer.status == StatusCode::FORBIDDEN {
            return Ok(None);
        }
        match self.resource(url, answer) {
            Ok(resource) => Ok(Some(resource)),
            Err(BmcError::Refused { .. } | BmcError::Malformed { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Reads the resource at `url` as [`Service::find`] does, but fails if the BMC may be able to show the resource later: the caller must
    /// not mistake a resource that cannot be read now for one that is missing.
    pub(crate) async fn find_unless_busy(&self, url: &Url) -> Result<Option<Resource>> {
        let answer = self.fetch(url).await?;
        if answer.status == StatusCode::FORBIDDEN {
            return Ok(None);
        }
        match self.resource(url, answer) {
            Ok(resource) => Ok(Some(resource)),
            Err(BmcError::Refused { transient: false, .. } | BmcError::Malformed { .. }) => {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}
