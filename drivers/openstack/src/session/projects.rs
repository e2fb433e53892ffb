//! One user in many projects.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::Session;

/// So many projects' sessions are kept at most.
const MOST: usize = 4096;
/// How long one is kept that nobody asks for. Tokens last about as long.
const IDLE: Duration = Duration::from_secs(3600);

/// One user's sessions in many projects, each with a token of its own. They share connections, and how much is asked of the cloud at
/// once.
#[derive(Debug)]
pub struct Projects {
    own: Session,
    kept: Mutex<HashMap<String, Kept>>,
}

#[derive(Debug)]
struct Kept {
    session: Session,
    used: Instant,
}

impl Projects {
    /// The projects that the user of this session has roles in.
    pub fn of(own: Session) -> Self {
        Projects { own, kept: Mutex::default() }
    }

    /// The session that all others are like.
    pub fn own(&self) -> &Session {
        &self.own
    }

    /// The user in the project of this id, as [`Session::in_project`] has it; the same session as long as it is asked for.
    pub fn session(&self, id: &str) -> Option<Session> {
        self.session_at(id, Instant::now())
    }

    fn session_at(&self, id: &str, now: Instant) -> Option<Session> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = kept.get_mut(id) {
            known.used = now;
            return Some(known.session.clone());
        }
        let session = self.own.in_project(id)?;
        kept.retain(|_, it| now.duration_since(it.used) < IDLE);
        if kept.len() >= MOST {
            let oldest = kept.iter().min_by_key(|(_, it)| it.used).map(|(id, _)| id.clone());
            oldest.and_then(|id| kept.remove(&id));
        }
        kept.insert(id.to_owned(), Kept { session: session.clone(), used: now });
        Some(session)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::CloudConfig;

    fn projects() -> Projects {
        let text = "clouds: {c: {auth: {auth_url: 'http://127.0.0.1:1/v3', username: u, password: p, \
                    project_name: own, user_domain_name: D, project_domain_name: D}}}";
        let config = CloudConfig::from_clouds_yaml(text, None).unwrap();
        Projects::of(Session::new(config).unwrap())
    }

    fn is_kept(projects: &Projects, id: &str) -> bool {
        projects.kept.lock().unwrap().contains_key(id)
    }

    #[test]
    fn a_session_is_kept_while_it_is_used() {
        let (projects, begun) = (projects(), Instant::now());
        let first = projects.session_at("a", begun).unwrap();
        projects.session_at("b", begun).unwrap();
        assert!(Arc::ptr_eq(&first.shared.turns, &projects.own().shared.turns));
        let again = projects.session_at("a", begun + IDLE / 2).unwrap();
        assert!(Arc::ptr_eq(&first.shared, &again.shared));
        projects.session_at("c", begun + IDLE).unwrap();
        assert!(is_kept(&projects, "a") && !is_kept(&projects, "b"));
    }

    #[test]
    fn there_are_never_more_than_so_many() {
        let (projects, mut now) = (projects(), Instant::now());
        for number in 0..=MOST {
            projects.session_at(&number.to_string(), now).unwrap();
            now += Duration::from_millis(1);
        }
        assert_eq!(projects.kept.lock().unwrap().len(), MOST);
        assert!(!is_kept(&projects, "0") && is_kept(&projects, "1"));
    }
}
