//! Tests of applying and deleting documents of any kind.

use std::time::Duration;

use jiff::Timestamp;
use kubernetes::{apply, bootstrap};

use crate::given::{cluster, name, read, until};
use crate::kubelet::{KubeletIdentity, ask};

#[tokio::test(flavor = "multi_thread")]
async fn documents_are_applied_again_and_deleted_twice() {
    let given = cluster().await;
    let name = name();
    // As people often write documents, the namespace comes last and the ports have no protocol.
    let text = |settings: &str| {
        format!(
            "
apiVersion: v1
kind: ConfigMap
metadata: {{name: settings, namespace: {name}}}
data: {{{settings}}}
---
apiVersion: v1
kind: Service
metadata: {{name: web, namespace: {name}}}
spec:
  selector: {{app: web}}
  ports: [{{name: http, port: 80, targetPort: 8080}}, {{name: https, port: 443}}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {{name: web, namespace: {name}, creationTimestamp: null}}
spec:
  replicas: 0
  selector: {{matchLabels: {{app: web}}}}
  template:
    metadata: {{labels: {{app: web}}}}
    spec:
      containers: [{{name: web, image: {}, ports: [{{containerPort: 8080}}]}}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {{name: {name}}}
rules: [{{apiGroups: [''], resources: [nodes], verbs: [get]}}]
---
apiVersion: v1
kind: Namespace
metadata: {{name: {name}}}
",
            given.image
        )
    };
    given.apply(&text("a: '1', b: '2'")).await;
    let at = format!("/api/v1/namespaces/{name}/configmaps/settings");
    let data = given.object(&at).await.unwrap()["data"].clone();
    assert_eq!(data, serde_json::json!({"a": "1", "b": "2"}));
    // Fields that we no longer set are removed; fields of other managers stay.
    let other = Some(serde_json::json!({"c": "3"}));
    let theirs = serde_json::json!({"apiVersion": "v1", "kind": "ConfigMap", "data": other, "metadata": {"name": "settings"}});
    let mut whole = given.object(&at).await.unwrap();
    whole["data"]["c"] = theirs["data"]["c"].clone();
    assert_eq!(ask(&given.access, None, "PUT", &at, Some(whole)).await.0, 200);
    given.apply(&text("a: '7'")).await;
    let data = given.object(&at).await.unwrap()["data"].clone();
    assert_eq!(data, serde_json::json!({"a": "7", "c": "3"}));

    given.delete(&text("")).await;
    given.delete(&text("")).await;
    until("the namespace to be gone", || async {
        let there = given.object(&format!("/api/v1/namespaces/{name}")).await;
        Ok(there.is_none().then_some(()))
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kind_is_available_a_moment_after_its_definition() {
    let given = cluster().await;
    let group = format!("{}.example.org", name());
    let text = format!(
        "
apiVersion: {group}/v1
kind: Gadget
metadata: {{name: one}}
spec: {{size: 3}}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {{name: gadgets.{group}}}
spec:
  group: {group}
  scope: Namespaced
  names: {{kind: Gadget, listKind: GadgetList, plural: gadgets, singular: gadget}}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {{openAPIV3Schema: {{type: object, x-kubernetes-preserve-unknown-fields: true}}}}
"
    );
    let all = read(&text);
    until("the kind", || async { apply::apply(&given.client, &all).await.map(Some) }).await;
    let one = given.object(&format!("/apis/{group}/v1/namespaces/default/gadgets/one")).await;
    assert_eq!(one.unwrap()["spec"]["size"], 3);
    apply::delete(&given.client, &all).await.unwrap();
    until("its definition to be gone", || async {
        let path =
            format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/gadgets.{group}");
        Ok(given.object(&path).await.is_none().then_some(()))
    })
    .await;
    apply::delete(&given.client, &all).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_is_accepted_until_it_is_deleted() {
    let given = cluster().await;
    let id: String = name().chars().rev().filter(char::is_ascii_alphanumeric).take(6).collect();
    let expires = Timestamp::now() + Duration::from_secs(600);
    let secret = "0123456789abcdef".to_owned();
    let description = "of a test".to_owned();
    let token =
        bootstrap::Token { id: id.clone(), secret: secret.clone().into(), expires, description };
    bootstrap::put_token(&given.client, &token).await.unwrap();
    bootstrap::put_token(&given.client, &token).await.unwrap();
    let known = format!("{id}.{secret}");
    let status = || async {
        let known = Some(KubeletIdentity::Token(&known));
        ask(&given.access, known.as_ref(), "GET", "/api/v1/nodes", None).await.0
    };
    // The token is known, but has no right to list nodes.
    until("the token to be known", || async {
        let status = status().await;
        assert!([401, 403].contains(&status), "{status}");
        Ok((status == 403).then_some(()))
    })
    .await;
    bootstrap::delete_token(&given.client, &id).await.unwrap();
    bootstrap::delete_token(&given.client, &id).await.unwrap();
    until("the token to be forgotten", || async { Ok((status().await == 401).then_some(())) })
        .await;
}
