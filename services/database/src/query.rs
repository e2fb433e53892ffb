//! Builds a query from conditions.

use sqlx::AssertSqlSafe;

use crate::{Connection, Row, SqlError, Value};

/// A query that conditions are added to, and that ends with a page. Only constants of our code become part of the SQL text; values are
/// always parameters.
pub struct Query {
    sql: String,
    values: Vec<Value>,
    joint: &'static str,
}

/// The sort key of a page.
pub struct Key {
    /// A column, or an expression that is never NULL.
    pub sql: &'static str,
    /// Whether the key is a number; otherwise it is text.
    pub is_number: bool,
    pub tie: Tie,
}

/// The unique column by which a page sorts rows with equal keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tie {
    /// The column `id`.
    Id,
    /// The column `seq`, which [`insert_numbered`](crate::columns::insert_numbered) numbers in the order of creation.
    Seq,
}

impl Tie {
    pub(crate) fn column(self) -> &'static str {
        match self {
            Tie::Id => "id",
            Tie::Seq => "seq",
        }
    }
}

impl Query {
    /// Starts with `select`, which must not have a `WHERE` clause.
    pub fn new(select: &str) -> Query {
        Query { sql: select.to_owned(), values: Vec::new(), joint: " WHERE " }
    }

    /// Adds a condition without a value.
    pub fn and(&mut self, condition: &str) {
        self.sql.push_str(self.joint);
        self.sql.push_str(condition);
        self.joint = " AND ";
    }

    /// Adds a condition in which every `?` stands for `value`.
    pub fn and_value(&mut self, condition: &str, value: impl Into<Value>) {
        let place = self.place(value.into());
        self.and(&condition.replace('?', &place));
    }

    /// Adds a condition if `value` is set.
    pub fn and_if_set(&mut self, condition: &str, value: Option<impl Into<Value>>) {
        if let Some(value) = value {
            self.and_value(condition, value);
        }
    }

    /// Adds the condition that `column` contains `part`, in upper or lower case, if `part` is set.
    pub fn and_containing(&mut self, column: &str, part: Option<&str>) {
        let condition = format!(r"lower({column}) LIKE lower(?) ESCAPE '\'");
        self.and_if_set(&condition, part.map(containing));
    }

    /// Adds the condition that `column` equals one of `values`.
    pub fn and_any(&mut self, column: &str, values: impl IntoIterator<Item = Value>) {
        let places: Vec<String> = values.into_iter().map(|value| self.place(value)).collect();
        self.and(&format!("{column} IN ({})", places.join(", ")));
    }

    /// Adds the condition that the row's `node` is one of the nodes whose `column` equals one of `values`; none if there are no values.
    pub fn and_node_with<'a>(
        &mut self,
        column: &str,
        values: impl IntoIterator<Item = &'a String>,
    ) {
        let places: Vec<String> =
            values.into_iter().map(|value| self.place(Value::from(value.as_str()))).collect();
        if !places.is_empty() {
            let places = places.join(", ");
            self.and(&format!("node IN (SELECT id FROM nodes WHERE {column} IN ({places}))"));
        }
    }

    /// Finishes with a page: at most `limit` rows after the row `after` (key and tie), in the order of the key and then of the tie.
    pub fn page(&mut self, key: &Key, after: Option<(Value, Value)>, descending: bool, limit: u32) {
        let (beyond, order) = if descending { ("<", "DESC") } else { (">", "ASC") };
        let (key, tie) = (key.sql, key.tie.column());
        if let Some((value, other)) = after {
            let other = self.place(other);
            if key == tie {
                self.and(&format!("{tie} {beyond} {other}"));
            } else {
                let value = self.place(value);
                self.and(&format!("({key}, {tie}) {beyond} ({value}, {other})"));
            }
        }
        let limit = self.place(limit.into());
        let first = if key == tie { String::new() } else { format!("{key} {order}, ") };
        self.sql.push_str(&format!(" ORDER BY {first}{tie} {order} LIMIT {limit}"));
    }

    /// Finishes with the first `limit` rows in the order of the id.
    pub fn first_by_id(mut self, limit: u32) -> Query {
        let limit = self.place(limit.into());
        self.sql.push_str(&format!(" ORDER BY id LIMIT {limit}"));
        self
    }

    /// Finishes with the first `limit` rows in the order of `column`, whose values must be unique.
    pub fn first_by(mut self, column: &str, descending: bool, limit: u32) -> Query {
        let order = if descending { "DESC" } else { "ASC" };
        let limit = self.place(limit.into());
        self.sql.push_str(&format!(" ORDER BY {column} {order} LIMIT {limit}"));
        self
    }

    /// Finishes with one row for each of the first `limit` distinct values of `column`, sorted by `column`.
    pub fn first_groups(mut self, column: &str, limit: u32) -> Query {
        let limit = self.place(limit.into());
        self.sql.push_str(&format!(" GROUP BY {column} ORDER BY {column} LIMIT {limit}"));
        self
    }

    /// Finishes with one row for each distinct combination of `columns`, sorted by `columns`.
    pub fn grouped_by(mut self, columns: &str) -> Query {
        self.sql.push_str(&format!(" GROUP BY {columns} ORDER BY {columns}"));
        self
    }

    /// Returns all rows that the query finds.
    pub async fn rows(self, connection: &mut Connection) -> Result<Vec<Row>, SqlError> {
        connection.rows(AssertSqlSafe(self.sql), self.values).await
    }

    /// Returns the row that the query finds, if it finds at most one.
    pub async fn row(self, connection: &mut Connection) -> Result<Option<Row>, SqlError> {
        connection.row(AssertSqlSafe(self.sql), self.values).await
    }

    fn place(&mut self, value: Value) -> String {
        self.values.push(value);
        format!("${}", self.values.len())
    }
}

/// Returns the LIKE pattern for text that contains `part`.
fn containing(part: &str) -> String {
    let mut pattern = String::from("%");
    for c in part.chars() {
        if matches!(c, '%' | '_' | '\\') {
            pattern.push('\\');
        }
        pattern.push(c);
    }
    pattern + "%"
}
