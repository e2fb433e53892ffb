//! Neutron: networks, and the objects on them.

pub mod floating_ips;
pub mod networks;
pub mod ports;
pub mod quotas;
pub mod routers;
pub mod security_groups;
pub mod subnets;
pub mod tags;

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::error::Result;
use crate::service::Service;
use crate::session::Session;

const SERVICE: Service = Service::Network;

/// A kind of Neutron objects, with its names in paths and bodies.
#[derive(Clone, Copy, Debug)]
struct Kind {
    path: &'static str,
    one: &'static str,
    many: &'static str,
}

impl Kind {
    async fn create<T: DeserializeOwned>(self, session: &Session, body: Value) -> Result<T> {
        let body = Value::Object([(self.one.to_owned(), body)].into_iter().collect());
        session.post(SERVICE, &[self.path], body).under(self.one).await
    }

    async fn update<T: DeserializeOwned>(
        self,
        session: &Session,
        id: &str,
        body: Value,
    ) -> Result<T> {
        let body = Value::Object([(self.one.to_owned(), body)].into_iter().collect());
        session.put(SERVICE, &[self.path, id], body).under(self.one).await
    }

    async fn show<T: DeserializeOwned>(self, session: &Session, id: &str) -> Result<Option<T>> {
        session.get(SERVICE, &[self.path, id]).find_under(self.one).await
    }

    async fn list<T: DeserializeOwned>(
        self,
        session: &Session,
        query: &[(&str, String)],
    ) -> Result<Vec<T>> {
        session.get(SERVICE, &[self.path]).queries(query).all(self.many).await
    }

    /// Lists the objects whose `field` is one of `values`: a repeated filter is an alternative (Networking API v2.0, "Filtering and Column
    /// Selection").
    async fn any_of<T: DeserializeOwned>(
        self,
        session: &Session,
        field: &str,
        values: &[String],
    ) -> Result<Vec<T>> {
        // With this many names of up to 64 letters, the path stays well within the 8 KiB that servers accept.
        const AT_ONCE: usize = 50;
        let mut found = Vec::new();
        for some in values.chunks(AT_ONCE) {
            let query: Vec<_> = some.iter().map(|value| (field, value.clone())).collect();
            found.extend(self.list::<T>(session, &query).await?);
        }
        Ok(found)
    }

    async fn delete(self, session: &Session, id: &str) -> Result<()> {
        session.delete(SERVICE, &[self.path, id]).await
    }
}
