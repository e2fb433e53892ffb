//! Writes the code of a file with its edits.

use std::ops::Range;

use crate::list::Number;

/// A replacement of a part of the file. The parts of edits are nested or apart.
pub(super) struct Edit {
    pub(super) range: Range<usize>,
    pub(super) kind: Kind,
}

pub(super) enum Kind {
    Delete,
    /// Returns from a function at once.
    Return(Vec<(Number, String)>),
    /// Replaces the iterator that a function with `impl Iterator` returns. Its code becomes one of several chained iterators, because an
    /// early return of another type would change the type behind `impl`.
    Chain(Vec<(Number, String)>),
    /// Replaces the operator between `left` and `right`.
    Binary {
        left: Range<usize>,
        right: Range<usize>,
        operators: Vec<(Number, String)>,
    },
    /// Leaves out the operator before `operand`.
    Unary {
        operand: Range<usize>,
        number: Number,
    },
    /// Makes an arm or its guard depend on the mutants.
    Arm {
        guard: Option<Range<usize>>,
        never: Option<Number>,
        always: Option<Number>,
    },
    /// Leaves out fields of a struct with a base.
    Fields(Vec<(Number, Range<usize>)>),
}

pub(super) struct Renderer<'a> {
    pub(super) text: &'a str,
    /// In the order of their start, the outer before the inner.
    pub(super) edits: &'a [Edit],
}

impl Renderer<'_> {
    /// Returns the code of a part with the edits in it, without the edit `within` whose part it is.
    pub(super) fn render(&self, part: Range<usize>, within: Option<usize>) -> String {
        let mut written = String::new();
        let mut at = part.start;
        let first = self.edits.partition_point(|edit| edit.range.start < part.start);
        for (index, edit) in self.edits.iter().enumerate().skip(first) {
            if edit.range.start >= part.end && part.start != part.end {
                break;
            }
            let inside = edit.range.start >= at && edit.range.end <= part.end;
            if !inside || within.is_some_and(|outer| index <= outer) {
                continue;
            }
            written += &self.text[at..edit.range.start];
            written += &self.edit(index, edit);
            at = edit.range.end;
        }
        written += &self.text[at..part.end];
        written
    }

    fn edit(&self, index: usize, edit: &Edit) -> String {
        let original = |part: &Range<usize>| &self.text[part.clone()];
        let rendered = |part: &Range<usize>| self.render(part.clone(), Some(index));
        match &edit.kind {
            Kind::Delete => String::new(),
            Kind::Chain(values) => {
                let active: Vec<String> =
                    values.iter().map(|(n, _)| format!("crate::mutant::is({n})")).collect();
                let changed: String = values
                    .iter()
                    .map(|(n, value)| {
                        format!("/*M{n}*/.chain(crate::mutant::is({n}).then(|| {value}).into_iter().flatten())/*M-{n}*/")
                    })
                    .collect();
                format!(
                    "(if {} {{ None }} else {{ Some({{{}}}) }}).into_iter().flatten(){changed}",
                    active.join(" || "),
                    rendered(&edit.range)
                )
            }
            Kind::Return(values) => values
                .iter()
                .map(|(n, value)| {
                    format!("/*M{n}*/if crate::mutant::is({n}) {{ return {value}; }}/*M-{n}*/ ")
                })
                .collect(),
            Kind::Binary { left, right, operators } => {
                let changed: String = operators
                    .iter()
                    .map(|(n, operator)| {
                        let (left, right) = (original(left), original(right));
                        format!("/*M{n}*/if crate::mutant::is({n}) {{ {left} {operator} {right} }}/*M-{n}*/ else ")
                    })
                    .collect();
                let operator = &self.text[left.end..right.start];
                format!("({changed}{{ {}{operator}{} }})", rendered(left), rendered(right))
            }
            Kind::Unary { operand, number: n } => format!(
                "(/*M{n}*/if crate::mutant::is({n}) {{ {} }}/*M-{n}*/ else {{ {}{} }})",
                original(operand),
                &self.text[edit.range.start..operand.start],
                rendered(operand),
            ),
            Kind::Arm { guard, never, always } => {
                let mut condition = match guard {
                    Some(guard) => format!("({})", rendered(guard)),
                    None => "true".to_owned(),
                };
                if let Some(n) = never {
                    condition = format!("/*M{n}*/!crate::mutant::is({n})/*M-{n}*/ && {condition}");
                }
                if let Some(n) = always {
                    condition = format!("/*M{n}*/crate::mutant::is({n})/*M-{n}*/ || ({condition})");
                }
                format!(" if {condition} ")
            }
            Kind::Fields(fields) => {
                let changed: String = fields
                    .iter()
                    .map(|(n, field)| {
                        let before = &self.text[edit.range.start..field.start];
                        let after = &self.text[field.end..edit.range.end];
                        format!(
                            "/*M{n}*/if crate::mutant::is({n}) {{ {before}{after} }}/*M-{n}*/ else "
                        )
                    })
                    .collect();
                format!("({changed}{{ {} }})", rendered(&edit.range))
            }
        }
    }
}
