//! Compares the policy of both services with the reviewed files, one row for each route. The walk compares a service with its own table, so
//! a row that is loosened by mistake is loosened in both. Here it is a changed line in a file.
//!
//! `UPDATE_EXPECT=1` rewrites the files.

use expect_test::{ExpectFile, expect_file};
use serde_json::Value;

use crate::service::{Cloud, Service};

/// Formats a table: method, path, and for each scope the lowest role that may use the route. `-` means nobody.
fn text(table: &Value) -> String {
    let mut rows: Vec<[String; 7]> = table["policy"].as_array().unwrap().iter().map(row).collect();
    rows.sort_by(|one, other| (&one[1], &one[0]).cmp(&(&other[1], &other[0])));
    let header = ["METHOD", "PATH", "CLOUD", "SERVICES", "OWNER", "LESSEE", "RECORDED"];
    rows.insert(0, header.map(str::to_owned));
    let width = |column: usize| rows.iter().map(|row| row[column].len()).max().unwrap_or_default();
    let widths: Vec<usize> = (0..header.len()).map(width).collect();
    let line = |row: &[String; 7]| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
        format!("{}\n", cells.collect::<Vec<_>>().join("  ").trim_end())
    };
    rows.iter().map(line).collect()
}

fn row(row: &Value) -> [String; 7] {
    let text = |key: &str| row[key].as_str().unwrap_or("-").to_owned();
    let yes = |key: &str| if row[key] == true { "yes" } else { "-" }.to_owned();
    // A public route is open to everybody in each scope.
    let scope = |key: &str| if row["public"] == true { "anyone".to_owned() } else { text(key) };
    let services = if row["public"] == true { "anyone".to_owned() } else { yes("services") };
    [
        text("method"),
        text("path"),
        scope("cloud"),
        services,
        scope("owner"),
        scope("lessee"),
        yes("recorded"),
    ]
}

async fn compare(service: Service, reviewed: ExpectFile) {
    let table = service.ask_as("system-admin", "GET", "/bedplate/v1/policy", &Value::Null).await;
    reviewed.assert_eq(&text(&table.has(200).json()));
}

#[tokio::test]
async fn the_policy_of_machines_equals_the_reviewed_file() {
    let service = Service::machines(Cloud::emulated().await).await;
    compare(service, expect_file!["../../machines.txt"]).await;
}

#[tokio::test]
async fn the_policy_of_clusters_equals_the_reviewed_file() {
    let service = Service::clusters(Cloud::emulated().await).await;
    compare(service, expect_file!["../../clusters.txt"]).await;
}
