//! Limits of live pages: in total, for each account, and for each session.
//!
//! The newest page replaces the oldest page of the same session or account, so the tabs of one user never displace the pages of others.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;

use crate::problem::{Problem, Result};

/// The maximum number of live pages at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LivePages {
    /// Over all accounts.
    pub at_most: usize,
    /// For one account over all its sessions.
    pub of_an_account: usize,
    /// For one session.
    pub of_a_session: usize,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct LivePageOwner {
    /// The user's account; `None` without authentication.
    pub(crate) account: Option<String>,
    /// The session: a digest of the cookie.
    pub(crate) session: String,
}

/// All live pages. Clones share their state.
#[derive(Clone, Debug)]
pub(crate) struct LivePageRegistry {
    limits: LivePages,
    open: Arc<Mutex<Open>>,
}

#[derive(Debug, Default)]
struct Open {
    next: u64,
    /// The oldest page comes first.
    pages: Vec<Page>,
}

#[derive(Debug)]
struct Page {
    number: u64,
    owner: LivePageOwner,
    replaced: CancellationToken,
}

/// The place of one live page. Dropping the place frees it.
#[derive(Debug)]
pub(crate) struct Place {
    number: u64,
    replaced: CancellationToken,
    registry: LivePageRegistry,
}

impl LivePageRegistry {
    pub(crate) fn new(limits: LivePages) -> Self {
        LivePageRegistry { limits, open: Arc::default() }
    }

    /// Gives a page of `owner` a place. Ends the oldest page of the same session or account if the owner has too many pages.
    ///
    /// # Errors
    ///
    /// Returns an error if all places are taken and no other account has more pages than this account would have.
    pub(crate) fn enter(&self, owner: LivePageOwner) -> Result<Place> {
        let mut open = self.open();
        open.keep(self.limits.of_a_session, |page| page.session == owner.session);
        if let Some(account) = &owner.account {
            open.keep(self.limits.of_an_account, |page| page.account.as_ref() == Some(account));
        }
        if open.pages.len() >= self.limits.at_most {
            open.end_one_of_the_largest(&owner)?;
        }
        open.next += 1;
        let (number, replaced) = (open.next, CancellationToken::new());
        open.pages.push(Page { number, owner, replaced: replaced.clone() });
        drop(open);
        Ok(Place { number, replaced, registry: self.clone() })
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Open {
    /// Ends the oldest pages that `is_one` selects, until one more page fits into `at_most`.
    fn keep(&mut self, at_most: usize, is_one: impl Fn(&LivePageOwner) -> bool) {
        let count = self.pages.iter().filter(|page| is_one(&page.owner)).count();
        for _ in at_most..=count {
            self.end_oldest(&is_one);
        }
    }

    fn end_oldest(&mut self, is_one: impl Fn(&LivePageOwner) -> bool) {
        if let Some(oldest) = self.pages.iter().position(|page| is_one(&page.owner)) {
            self.pages.remove(oldest).replaced.cancel();
        }
    }

    /// Ends a page of the owner with the most pages, if that owner has more pages than the newcomer would have.
    fn end_one_of_the_largest(&mut self, newcomer: &LivePageOwner) -> Result<()> {
        let mut counts: HashMap<&str, usize> = HashMap::new();
        for page in &self.pages {
            *counts.entry(page.owner.account_or_session()).or_default() += 1;
        }
        let own = counts.get(newcomer.account_or_session()).copied().unwrap_or_default();
        let largest = counts.into_iter().max_by_key(|(_, count)| *count);
        let Some((owner, _)) = largest.filter(|(_, count)| *count > own + 1) else {
            return Err(Problem::TooManyLivePages);
        };
        let owner = owner.to_owned();
        self.end_oldest(|it| it.account_or_session() == owner);
        Ok(())
    }
}

impl LivePageOwner {
    fn account_or_session(&self) -> &str {
        self.account.as_ref().unwrap_or(&self.session)
    }
}

impl Place {
    /// Waits until a newer page takes this place.
    pub(crate) async fn replaced(&self) {
        self.replaced.cancelled().await;
    }
}

/// The notice on a page that a newer page replaced.
pub(crate) const REPLACED: &str = "This page is no longer updated, because you opened newer pages. Reload it to resume the updates.";

impl Drop for Place {
    fn drop(&mut self) {
        self.registry.open().pages.retain(|page| page.number != self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn registry() -> LivePageRegistry {
        LivePageRegistry::new(LivePages { at_most: 8, of_an_account: 4, of_a_session: 2 })
    }

    fn owner(account: Option<&str>, session: &str) -> LivePageOwner {
        LivePageOwner { account: account.map(str::to_owned), session: session.to_owned() }
    }

    /// Which of these pages still have their place.
    fn there(places: &[Place]) -> Vec<bool> {
        places.iter().map(|place| !place.replaced.is_cancelled()).collect()
    }

    #[test]
    fn the_newest_page_takes_the_place_of_the_oldest_of_its_session() {
        let registry = registry();
        let other = registry.enter(owner(Some("bob"), "b")).unwrap();
        let enter = || registry.enter(owner(Some("ann"), "a")).unwrap();
        let places = [enter(), enter(), enter()];
        assert_eq!(there(&places), [false, true, true]);
        assert_eq!(there(&[other]), [true], "another's page goes on");
    }

    #[test]
    fn an_account_has_no_more_places_in_many_sessions() {
        let registry = registry();
        let places: Vec<Place> = (0..6)
            .map(|session| registry.enter(owner(Some("ann"), &session.to_string())).unwrap())
            .collect();
        assert_eq!(there(&places), [false, false, true, true, true, true]);
        drop(places);
        assert!(registry.open().pages.is_empty(), "closed pages are forgotten");
    }

    #[test]
    fn an_account_with_few_pages_displaces_one_with_many() {
        let registry = registry();
        let mut places: Vec<Place> = ["ann", "ann", "ann", "ann", "bob", "bob", "bob", "bob"]
            .into_iter()
            .enumerate()
            .map(|(n, who)| registry.enter(owner(Some(who), &n.to_string())).unwrap())
            .collect();
        let eve = [registry.enter(owner(Some("eve"), "e")).unwrap()];
        assert_eq!(there(&places).iter().filter(|there| !**there).count(), 1);
        assert_eq!(there(&eve), [true]);
        places.retain(|place| !place.replaced.is_cancelled());
        let more = registry.enter(owner(None, "f")).unwrap();
        assert_eq!(there(&places).iter().filter(|there| !**there).count(), 1);
        assert_eq!(there(&[more]), [true]);
    }

    #[test]
    fn the_total_is_limited_if_every_account_has_few_pages() {
        let registry = registry();
        let enter = |n: usize| registry.enter(owner(None, &n.to_string()));
        let places: Vec<Place> = (0..8).map(|n| enter(n).unwrap()).collect();
        assert!(matches!(enter(9), Err(Problem::TooManyLivePages)));
        assert_eq!(there(&places), [true; 8]);
        drop(places);
        assert!(enter(9).is_ok());
    }
}
