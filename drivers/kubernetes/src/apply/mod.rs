//! Applies and deletes objects of any kind, like `kubectl apply --server-side` and `kubectl delete`.

mod documents;
mod kinds;
mod quirks;

use crate::client::{Body, Call, Client};
use crate::error::{KubernetesError, Result, ignore_not_found};

pub use documents::{Document, DocumentError, documents};
pub(crate) use kinds::resource;

/// The field manager of server-side apply that owns the fields we set.
const FIELD_MANAGER: &str = "bedplate";

/// Applies all documents and takes over fields that other managers have set. Objects that others depend on (namespaces, definitions of
/// kinds) come first, the rest in the given order.
///
/// The first error ends the pass; repeating the pass is harmless.
pub async fn apply(client: &Client, documents: &[Document]) -> Result<()> {
    for document in in_order(documents) {
        one(client, document).await?;
    }
    Ok(())
}

/// Deletes the objects that the documents name, the last first. A missing object is no error. The cluster deletes dependent objects
/// afterwards.
pub async fn delete(client: &Client, documents: &[Document]) -> Result<()> {
    for document in in_order(documents).into_iter().rev() {
        let there = match kinds::object_path(client, document).await {
            // If a kind does not exist any more, neither do its objects.
            Err(KubernetesError::NoSuchKind { .. }) => continue,
            there => there?,
        };
        let path: Vec<&str> = there.iter().map(String::as_str).collect();
        let call: Call<'_> = client.delete(&path).query("propagationPolicy", "Background");
        ignore_not_found(call.done().await)?;
    }
    Ok(())
}

/// Applies one document.
pub(crate) async fn one(client: &Client, document: &Document) -> Result<()> {
    let there = kinds::object_path(client, document).await?;
    let path: Vec<&str> = there.iter().map(String::as_str).collect();
    let call = client.patch(&path).query("fieldManager", FIELD_MANAGER).query("force", "true");
    let body = quirks::with_protocols(document.kind(), document.body().clone());
    call.body(Body::Apply(body)).done().await
}

fn in_order(documents: &[Document]) -> Vec<&Document> {
    let mut all: Vec<&Document> = documents.iter().collect();
    all.sort_by_key(|document| match document.kind() {
        "Namespace" => 0,
        "CustomResourceDefinition" => 1,
        _ => 2,
    });
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn namespaces_come_first_and_the_rest_keeps_its_order() {
        let text = "
{apiVersion: v1, kind: ConfigMap, metadata: {name: b, namespace: n}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: n}}
---
{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: d}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: n}}
";
        let all = documents(text).unwrap();
        let names: Vec<&str> = in_order(&all).iter().map(|it| it.name()).collect();
        assert_eq!(names, ["n", "d", "b", "a"]);
    }
}
