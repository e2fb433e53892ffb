//! Upgrades of many clusters at once: how long until every member of every cluster is replaced.

use std::time::Instant;

use http::Method;
use serde_json::json;

use super::{LOOK_EVERY, PATIENCE, Site, list, template};
use crate::client::Call;
use crate::load;
use crate::process;
use crate::report::{Report, Row};

impl Site {
    /// Upgrades the clusters that were made last, and waits until they are complete.
    pub(super) async fn upgrade(
        &self,
        count: usize,
        clients: usize,
        report: &mut Report,
    ) -> anyhow::Result<()> {
        let mut client = self.daemon.server.client().await?;
        template(&mut client, "newer", "v1.34.2").await?;
        let ask = |number: usize| {
            let path = format!("/bedplate/v1/clusters/bench-{number}/upgrade");
            Call::send(Method::POST, path, json!({"cluster_template": "newer"}))
        };
        let (begun, cpu) = (Instant::now(), process::cpu(self.daemon.server.pid)?);
        let asked =
            load::run(self.daemon.server.api, clients.min(count), (0..count).map(ask)).await?;
        let mut done = 0;
        while done < count && begun.elapsed() < PATIENCE {
            tokio::time::sleep(LOOK_EVERY).await;
            let all = list(&mut client).await?;
            done = all.iter().filter(|it| it.status == "UPDATE_COMPLETE").count();
        }
        let row = Row {
            phase: &format!("{count} clusters: upgraded"),
            count: Some(count),
            at_once: Some(count),
            seconds: Some(begun.elapsed().as_secs_f64()),
            cpu_seconds: Some((process::cpu(self.daemon.server.pid)? - cpu).as_secs_f64()),
            errors: asked.errors + count - done.min(count),
            ..self.memory()?
        };
        report.row(&row)?;
        if let Some(why) = asked.first_error {
            report.note(&format!("the first upgrade that was refused: {why}"))?;
        }
        Ok(())
    }
}
