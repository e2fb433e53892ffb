//! A cache of flavors for the API, so that concurrent requests need a single call to Nova.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use cluster_addons::gpu_node;
use cluster_core::FlavorSize;
use openstack::compute::flavors::{self, Flavor};
use openstack::{CloudError, Session};
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::error::Result;
use super::lookups::{named, no_such_flavor};

/// How long a list of flavors is used.
const MAX_AGE: Duration = Duration::from_secs(10);

/// The flavors that each project may use, as Nova last listed them.
#[derive(Default)]
pub(crate) struct Flavors(std::sync::Mutex<HashMap<String, Arc<CachedFlavors>>>);

type CachedFlavors = Mutex<Option<(Instant, Arc<[Flavor]>)>>;

pub(crate) fn size(flavor: &Flavor) -> FlavorSize {
    FlavorSize {
        vcpus: flavor.vcpus,
        ram_mib: flavor.ram,
        disk_gib: flavor.disk,
        gpus: gpu_node(&flavor.extra_specs, &BTreeMap::new()).count,
    }
}

impl Flavors {
    /// Returns the cache entry of this project. Entries that are too old and that no request uses are removed.
    fn of(&self, project: String) -> Arc<CachedFlavors> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|_, of_project| {
            let is_fresh =
                |kept: Option<&(Instant, _)>| kept.is_some_and(|(at, _)| at.elapsed() < MAX_AGE);
            Arc::strong_count(of_project) > 1
                || of_project.try_lock().is_ok_and(|kept| is_fresh(kept.as_ref()))
        });
        all.entry(project).or_default().clone()
    }

    /// Whether the project of the session may use the flavor with this id or name.
    pub(crate) async fn has(&self, session: &Session, given: &str) -> Result<bool, CloudError> {
        let all = self.list(session, &BTreeSet::from([given.to_owned()])).await?;
        Ok(named(&all, given).is_some())
    }

    /// Returns the sizes of these flavors. Nova is called once, however many requests wait for the answer.
    pub(crate) async fn sizes(
        &self,
        session: &Session,
        wanted: &BTreeSet<String>,
    ) -> Result<BTreeMap<String, FlavorSize>> {
        let all = self.list(session, wanted).await?;
        let size = |given: &String| {
            let flavor = named(&all, given).ok_or_else(|| no_such_flavor(given))?;
            Ok((given.clone(), size(flavor)))
        };
        wanted.iter().map(size).collect()
    }

    /// Returns the flavors of the session's project, which Nova lists again if the list is old or lacks one of `wanted`.
    async fn list(
        &self,
        session: &Session,
        wanted: &BTreeSet<String>,
    ) -> Result<Arc<[Flavor]>, CloudError> {
        let of_project = self.of(session.identity().await?.project_id.unwrap_or_default());
        let mut kept = of_project.lock().await;
        let fresh = kept.as_ref().filter(|(at, _)| at.elapsed() < MAX_AGE);
        let known = fresh.map(|(_, all)| all.clone()).unwrap_or_default();
        let is_known = |given: &String| named(&known, given).is_some();
        if wanted.iter().all(is_known) {
            return Ok(known);
        }
        let all: Arc<[Flavor]> = flavors::list(session).await?.into();
        *kept = Some((Instant::now(), all.clone()));
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cloud::CloudWorkError;
    use crate::cloud::emulated::emulated_cloud;

    fn cached(flavors: &Flavors, project: &str, at: Option<Instant>) -> Arc<CachedFlavors> {
        let entry = flavors.of(project.to_owned());
        *entry.try_lock().unwrap() = at.map(|at| (at, Arc::default()));
        entry
    }

    #[test]
    fn an_old_entry_is_removed_unless_a_request_uses_it() {
        let flavors = Flavors::default();
        let old = Instant::now().checked_sub(MAX_AGE);
        let used = cached(&flavors, "used", old);
        drop(cached(&flavors, "fresh", Some(Instant::now())));
        drop(cached(&flavors, "old", old));
        drop(flavors.of("new".to_owned()));
        let mut kept: Vec<String> = flavors.0.lock().unwrap().keys().cloned().collect();
        kept.sort_unstable();
        assert_eq!(kept, ["fresh", "new", "used"]);
        assert!(Arc::ptr_eq(&used, &flavors.of("used".to_owned())), "requests share an entry");
    }

    #[test]
    fn an_entry_without_flavors_is_removed_by_the_next_request() {
        let flavors = Flavors::default();
        drop(cached(&flavors, "empty", None));
        drop(flavors.of("new".to_owned()));
        assert!(!flavors.0.lock().unwrap().contains_key("empty"));
    }

    #[tokio::test]
    async fn nova_lists_the_flavors_again_when_the_list_is_old_or_lacks_one() {
        let (emulator, session) = emulated_cloud().await;
        let project = session.identity().await.unwrap().project_id.unwrap();
        let listed: Arc<[Flavor]> = flavors::list(&session).await.unwrap().into();
        let small = FlavorSize { vcpus: 1, ram_mib: 2048, disk_gib: 20, gpus: 0 };
        let large = FlavorSize { vcpus: 4, ram_mib: 8192, disk_gib: 80, gpus: 0 };
        let (now, old) = (Instant::now(), Instant::now().checked_sub(MAX_AGE).unwrap());
        // The list in the cache, with its time, and whether Nova is called.
        let rows = [
            (None, true),
            (Some((now, listed.clone())), false),
            (Some((old, listed)), true),
            (Some((now, Arc::default())), true),
        ];
        for (number, (cached, is_called)) in rows.into_iter().enumerate() {
            let cache = Flavors::default();
            *cache.of(project.clone()).try_lock().unwrap() = cached;
            // An entry that no request uses is removed when it is old.
            let _used = cache.of(project.clone());
            emulator.cloud.forget_calls();
            let wanted = ["m1.small", "m1.large"].map(str::to_owned);
            let want = wanted.clone().into_iter().zip([small, large]).collect();
            for _ in 0..2 {
                let sizes = cache.sizes(&session, &wanted.clone().into()).await.unwrap();
                assert_eq!(sizes, want, "row {number}");
            }
            let calls = emulator.cloud.count(|call| call.path.contains("/flavors"));
            assert_eq!(calls, usize::from(is_called), "row {number}");
        }
        let missing = BTreeSet::from(["m1.small".to_owned(), "m1.absent".to_owned()]);
        let has = async |given| Flavors::default().has(&session, given).await.unwrap();
        assert_eq!((has("m1.small").await, has("m1.absent").await), (true, false));
        let refused = Flavors::default().sizes(&session, &missing).await;
        assert!(matches!(refused, Err(CloudWorkError::NoSuch { .. })), "{refused:?}");
    }
}
