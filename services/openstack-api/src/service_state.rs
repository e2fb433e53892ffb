//! The traits that the state of every API implements for its routes, implemented once for both APIs.

/// Implements [`crate::ApiState`], [`crate::KeyRotation`], [`crate::HealthSource`] and [`crate::WebhookSource`] for the state of an API,
/// whose handlers fail with `$error`. The state has the fields `auth`, `clock`, `conductor` and `store`.
///
/// A macro, because the conductors and stores of the services are different types with equal methods.
#[macro_export]
macro_rules! service_state {
    ($app:ty, $error:ty, $ownership:ident) => {
        impl ::axum::extract::FromRef<$app> for $crate::Auth {
            fn from_ref(app: &$app) -> $crate::Auth {
                app.auth.clone()
            }
        }

        impl $crate::ApiState for $app {
            const POLICY: $crate::ResourceOwnership = $crate::ResourceOwnership::$ownership;
        }

        impl $crate::KeyRotation for $app {
            async fn keys(&self) -> Result<Vec<::sealing::KeyUsage>, $crate::ApiError> {
                Ok(self.conductor.keys().await.map_err(<$error>::from)?)
            }

            async fn rotate(&self) -> Result<String, $crate::ApiError> {
                Ok(self.conductor.rotate_keys().await.map_err(<$error>::from)?)
            }

            async fn retire(&self, id: &str) -> Result<(), $crate::ApiError> {
                Ok(self.conductor.retire_key(id).await.map_err(<$error>::from)?)
            }
        }

        impl $crate::HealthSource for $app {
            async fn health(&self) -> Result<$crate::Health, $crate::ApiError> {
                let (kind, version) = self.store.schema().await.map_err(<$error>::from)?;
                let (schema_found, schema_known) = (version.found, version.known);
                let database = $crate::DatabaseHealth { kind, schema_found, schema_known };
                Ok($crate::Health { now: $crate::Time((self.clock)()), database })
            }
        }

        impl $crate::WebhookSource for $app {
            async fn webhooks(&self) -> Result<Vec<$crate::WebhookState>, $crate::ApiError> {
                let outbox = self.store.webhook_outbox();
                let names = self.store.webhooks().map(str::to_owned);
                let mut all: Vec<_> = names.map($crate::WebhookState::configured).collect();
                for backlog in outbox.backlogs().await.map_err(<$error>::from)? {
                    let dead = outbox.dead(&backlog.webhook, $crate::SHOWN_DEAD).await;
                    let last_dead = dead.map_err(<$error>::from)?.into_iter().map(|it| {
                        $crate::DeadEventState {
                            id: it.event,
                            event_type: it.kind,
                            subject: it.object,
                            time: $crate::Time(it.created_at),
                            dead_at: $crate::Time(it.dead_at),
                            problem: it.problem,
                        }
                    });
                    let at = all.iter().position(|it| it.name == backlog.webhook);
                    let state = $crate::WebhookState {
                        configured: at.is_some(),
                        waiting: backlog.waiting,
                        waiting_since: backlog.waiting_since.map($crate::Time),
                        dead: backlog.dead,
                        last_dead: last_dead.collect(),
                        name: backlog.webhook,
                    };
                    match at {
                        Some(at) => all[at] = state,
                        None => all.push(state),
                    }
                }
                Ok(all)
            }
        }
    };
}
