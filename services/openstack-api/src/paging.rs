//! Pages of a list, and the link to the next page.

use std::fmt::Display;

use uuid::Uuid;

use crate::{ApiError, Origin, Query};

/// The largest `limit`, and its default.
pub const MAX_LIMIT: u32 = 1000;

/// The requested page of a list. Each resource interprets the sort key itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Paging {
    pub limit: u32,
    /// The page begins after the element of this id.
    pub marker: Option<Uuid>,
    pub sort_key: Option<String>,
    pub direction: Direction,
}

/// The sort order of a list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Direction {
    #[default]
    Ascending,
    Descending,
}

impl Paging {
    /// Removes `limit`, `marker`, `sort_key` and `sort_dir` from `query` and parses them.
    pub fn take(query: &mut Query) -> Result<Self, ApiError> {
        let limit = match query.take("limit") {
            None => MAX_LIMIT,
            Some(raw) => match raw.parse::<i64>() {
                Ok(1..) => raw.parse::<u32>().unwrap_or(MAX_LIMIT).min(MAX_LIMIT),
                Ok(_) => return Err(ApiError::bad_field("limit", "must be positive")),
                Err(_) => return Err(ApiError::bad_field("limit", "must be an integer")),
            },
        };
        let marker = match query.take("marker") {
            None => None,
            Some(raw) => Some(
                Uuid::parse_str(&raw)
                    .map_err(|_| ApiError::bad_field("marker", "must be a UUID"))?,
            ),
        };
        let direction = match query.take("sort_dir").as_deref() {
            None | Some("asc") => Direction::Ascending,
            Some("desc") => Direction::Descending,
            Some(_) => return Err(ApiError::bad_field("sort_dir", "must be asc or desc")),
        };
        Ok(Paging { limit, marker, sort_key: query.take("sort_key"), direction })
    }
}

/// The link to the page after `last`: the same query with another marker.
pub fn next_link(
    origin: &Origin,
    path: &str,
    query: &Query,
    limit: u32,
    last: impl Display,
) -> String {
    let mut next = query.clone();
    next.take("limit");
    next.take("marker");
    next.pairs.push(("limit".to_owned(), limit.to_string()));
    next.pairs.push(("marker".to_owned(), last.to_string()));
    format!("{origin}{path}{}", next.encode())
}

#[cfg(test)]
mod tests {
    use http::HeaderMap;

    use super::*;
    use crate::{Forwarded, Scheme};

    #[track_caller]
    fn check(raw: &str, want: Result<u32, &str>) {
        let got = Paging::take(&mut Query::parse(raw).unwrap()).map(|paging| paging.limit);
        assert_eq!(got.map_err(|why| why.message), want.map_err(str::to_owned));
    }

    #[test]
    fn a_page_is_never_longer_than_the_longest() {
        check("", Ok(1000));
        check("limit=7", Ok(7));
        check("limit=99999999999", Ok(1000));
    }

    #[test]
    fn an_invalid_paging_parameter_is_named() {
        check("limit=0", Err("limit: must be positive"));
        check("limit=-1", Err("limit: must be positive"));
        check("limit=x", Err("limit: must be an integer"));
        check("marker=x", Err("marker: must be a UUID"));
        check("sort_dir=up", Err("sort_dir: must be asc or desc"));
    }

    #[test]
    fn the_next_link_keeps_everything_but_the_marker() {
        let query = Query::parse("fields=uuid,name&limit=2&marker=x&owner=a%20b").unwrap();
        let origin =
            Origin::new(&HeaderMap::new(), Some("api:6385"), Scheme::Http, Forwarded::Ignored)
                .unwrap();
        assert_eq!(
            next_link(&origin, "/v1/nodes", &query, 2, Uuid::nil()),
            "http://api:6385/v1/nodes?fields=uuid,name&owner=a%20b&limit=2&marker=00000000-0000-0000-0000-000000000000"
        );
    }
}
