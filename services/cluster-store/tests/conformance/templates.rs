//! Templates: who may use them, and that a template in use cannot be deleted.

use cluster_core::{Ident, Page, Template, TemplateSort};
use cluster_store::{Scope, Store, StoreError};
use newtype_uuid::GenericUuid;

use crate::samples::{on_both, project, stored, template};

on_both! { Store:
    a_template_comes_back_as_it_was
    a_name_is_given_once_in_a_project
    a_project_sees_its_own_and_public_ones
    a_template_in_use_stays
    a_late_change_is_refused
}

fn page(sort: TemplateSort) -> Page<TemplateSort> {
    Page { limit: 100, marker: None, sort, descending: false }
}

async fn a_template_comes_back_as_it_was(store: Store) {
    let one = template("p", "one");
    store.insert_template(&one).await.unwrap();
    for ident in [Ident::Id(one.id.into_untyped_uuid()), Ident::Name(one.name.clone())] {
        let found = store.find_templates(&ident, &project("p")).await.unwrap();
        assert_eq!(found, std::slice::from_ref(&one));
    }
    let changed = Template { hidden: true, ..one.clone() };
    let changed = store.update_template(&changed).await.unwrap();
    assert_eq!(changed.version, 2);
    let ident = Ident::Name(one.name.clone());
    let found = store.find_templates(&ident, &Scope::All).await.unwrap();
    assert_eq!(found, std::slice::from_ref(&changed));
    store.delete_template(&changed).await.unwrap();
    assert_eq!(store.find_templates(&ident, &Scope::All).await.unwrap(), []);
}

async fn a_name_is_given_once_in_a_project(store: Store) {
    store.insert_template(&template("p", "one")).await.unwrap();
    store.insert_template(&template("q", "one")).await.unwrap();
    let again = store.insert_template(&template("p", "one")).await;
    assert!(
        matches!(&again, Err(StoreError::Duplicate { field: "name", value }) if value == "one"),
        "{again:?}"
    );
    let two = template("p", "two");
    store.insert_template(&two).await.unwrap();
    let same_id = store.insert_template(&Template { name: "three".parse().unwrap(), ..two }).await;
    assert!(matches!(same_id, Err(StoreError::Duplicate { field: "uuid", .. })), "{same_id:?}");
}

async fn a_project_sees_its_own_and_public_ones(store: Store) {
    let own = template("p", "own");
    let public = Template { public: true, ..template("q", "public") };
    let hidden = Template { public: true, hidden: true, ..template("q", "hidden") };
    let private = template("q", "private");
    for one in [&own, &public, &hidden, &private] {
        store.insert_template(one).await.unwrap();
    }
    let listed = store.list_templates(&project("p"), &page(TemplateSort::Name)).await.unwrap();
    assert_eq!(listed, [own.clone(), public.clone()]);
    let all = store.list_templates(&Scope::All, &page(TemplateSort::Name)).await.unwrap();
    assert_eq!(all.len(), 4);
    // A hidden template is found by its name; a private one is not.
    let find = async |name: &str| {
        store.find_templates(&name.parse().unwrap(), &project("p")).await.unwrap().len()
    };
    assert_eq!((find("hidden").await, find("private").await), (1, 0));

    let second = Page { marker: Some(own.id.into_untyped_uuid()), ..page(TemplateSort::Name) };
    assert_eq!(store.list_templates(&project("p"), &second).await.unwrap(), [public]);
    for unseen in [uuid::Uuid::nil(), private.id.into_untyped_uuid()] {
        let after = Page { marker: Some(unseen), ..page(TemplateSort::Id) };
        let refused = store.list_templates(&project("p"), &after).await;
        assert!(matches!(refused, Err(StoreError::NoMarker(_))), "{refused:?}");
    }
}

async fn a_template_in_use_stays(store: Store) {
    let (template, cluster) = stored(&store, "p", "one").await;
    let refused = store.delete_template(&template).await;
    assert!(matches!(refused, Err(StoreError::InUse { by: "a cluster" })), "{refused:?}");
    store.delete_cluster(&cluster).await.unwrap();
    store.delete_template(&template).await.unwrap();
}

async fn a_late_change_is_refused(store: Store) {
    let one = template("p", "one");
    store.insert_template(&one).await.unwrap();
    store.update_template(&one).await.unwrap();
    assert!(matches!(store.update_template(&one).await, Err(StoreError::Stale)));
    assert!(matches!(store.delete_template(&one).await, Err(StoreError::Stale)));
}
