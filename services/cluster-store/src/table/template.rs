//! The table `templates`.

use cluster_core::{Ident, Page, Template, TemplateSort, TemplateUuid};
use database::documents::{self, known_part};
use database::table::{Listing, PagePart, PageRows, changed_one};
use database::{
    Column, Connection, Key, Query, Result, Row, StoreError, Tie, columns, program, values,
};
use newtype_uuid::GenericUuid;

use super::{deleted, refused};
use crate::Scope;

const TABLE: &str = "templates";
const SELECT: &str = "SELECT id, version, document FROM templates";
/// The templates that lists show a project.
const SEEN: &str = "(project = ? OR (public = 1 AND hidden = 0))";

pub(crate) async fn insert(connection: &mut Connection, template: &Template) -> Result<()> {
    let written = columns::insert(connection, TABLE, columns(template)?).await;
    written.map_err(|error| refuse(template, error))
}

pub(crate) async fn update(connection: &mut Connection, template: &Template) -> Result<Template> {
    let (columns, refused) = (|| columns(template), |error| refuse(template, error));
    let known = known_part::<Template>;
    changed_one(documents::update(connection, TABLE, columns, known, refused).await?)?;
    Ok(Template { version: template.version + 1, ..template.clone() })
}

pub(crate) async fn delete(connection: &mut Connection, template: &Template) -> Result<()> {
    const DELETE: &str = "DELETE FROM templates WHERE id = $1 AND version = $2";
    deleted(connection.execute(DELETE, values![template.id, template.version]).await, "a cluster")
}

/// Returns the templates with this id or name that `scope` may use, its own first.
pub(crate) async fn find(
    connection: &mut Connection,
    ident: &Ident,
    scope: &Scope,
) -> Result<Vec<Template>> {
    let mut query = Query::new(SELECT);
    match ident {
        Ident::Id(id) => query.and_value("id = ?", *id),
        Ident::Name(name) => query.and_value("name = ?", name.as_str()),
    }
    query.and_if_set("(project = ? OR public = 1)", scope.project());
    let mut found = read_all(query.first_by_id(100).rows(connection).await?)?;
    found.sort_by_key(|template| scope.project().is_some_and(|own| own != template.project));
    Ok(found)
}

/// Returns one page of the templates that `scope` may use, without the hidden templates of other projects.
pub(crate) async fn list(
    connection: &mut Connection,
    scope: &Scope,
    page: &Page<TemplateSort>,
    part: Option<&PagePart>,
) -> Result<PageRows<Template>> {
    let key = match page.sort {
        TemplateSort::CreatedAt => Key { sql: "created_at", is_number: true, tie: Tie::Id },
        TemplateSort::Id => Key { sql: "id", is_number: false, tie: Tie::Id },
        TemplateSort::Name => Key { sql: "name", is_number: false, tie: Tie::Id },
    };
    let seen = scope.project().map(|own| (SEEN, own));
    let listing = Listing { table: TABLE, key: &key, seen, document: 2 };
    let after = listing.begin(connection, page.marker, part).await?;
    let mut query = Query::new(SELECT);
    query.and_if_set(SEEN, scope.project());
    query.page(&key, after, page.descending, page.limit);
    listing.read(connection, query, page.limit, part, read).await
}

fn read_all(rows: Vec<Row>) -> Result<Vec<Template>> {
    rows.iter().map(read).collect()
}

fn read(row: &Row) -> Result<Template> {
    let template: Template = row.json(TABLE, 2)?;
    Ok(Template { id: row.parse::<TemplateUuid>(TABLE, 0)?, version: row.int(1)?, ..template })
}

fn columns(template: &Template) -> Result<Vec<Column>> {
    let document = serde_json::to_string(template)
        .map_err(|error| StoreError::corrupt(TABLE, &template.id.to_string(), error))?;
    Ok(columns![
        id: template.id,
        version: template.version,
        created_at: template.created_at,
        project: template.project.as_str(),
        name: template.name.as_str(),
        public: template.public,
        hidden: template.hidden,
        document: document,
        written_by: program::NUMBER,
    ])
}

fn refuse(template: &Template, error: database::SqlError) -> StoreError {
    let owner = ("template", template.id.into_untyped_uuid());
    refused(error, template.name.as_str(), &template.id, owner)
}
