//! Sessions of one user in many projects.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::Session;

/// The most sessions that are kept.
const MOST: usize = 4096;
/// How long an unused session is kept. Tokens live about as long.
const IDLE: Duration = Duration::from_secs(3600);

/// Sessions of one user in many projects, each with its own token. They share connections and call limits.
#[derive(Debug)]
pub struct ProjectSessions {
    own: Session,
    kept: Mutex<HashMap<String, CachedSession>>,
}

#[derive(Debug)]
struct CachedSession {
    session: Session,
    used: Instant,
}

impl ProjectSessions {
    /// Makes an empty set for the user of this session.
    pub fn of(own: Session) -> Self {
        ProjectSessions { own, kept: Mutex::default() }
    }

    /// The session from which the others are derived.
    pub fn own(&self) -> &Session {
        &self.own
    }

    /// Returns the user's session in the project with this id (see [`Session::in_project`]). The same session is returned while it is in
    /// use.
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
        kept.insert(id.to_owned(), CachedSession { session: session.clone(), used: now });
        Some(session)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::CloudConfig;

    fn projects() -> ProjectSessions {
        let text = "clouds: {c: {auth: {auth_url: 'http://127.0.0.1:1/v3', username: u, password: p, \
                    project_name: own, user_domain_name: D, project_domain_name: D}}}";
        let config = CloudConfig::from_clouds_yaml(text, None).unwrap();
        ProjectSessions::of(Session::new(config).unwrap())
    }

    fn is_kept(projects: &ProjectSessions, id: &str) -> bool {
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
    fn the_number_of_sessions_is_limited() {
        let (projects, mut now) = (projects(), Instant::now());
        for number in 0..=MOST {
            projects.session_at(&number.to_string(), now).unwrap();
            now += Duration::from_millis(1);
        }
        assert_eq!(projects.kept.lock().unwrap().len(), MOST);
        assert!(!is_kept(&projects, "0") && is_kept(&projects, "1"));
    }
}
