//! From text to an expression that keeps the limits.

use std::sync::Arc;

use super::parser::parse;
use super::tree::{Kind, Node};
use crate::model::limits;

/// An expression that was read and keeps the limits. Cloning is cheap.
#[derive(Debug, Clone)]
pub struct Expression {
    text: Arc<str>,
    pub(super) tree: Arc<Node>,
    /// Bytes before it in the text that it stands in.
    before: usize,
}

/// Why a text is no expression.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ExpressionError {
    /// What is wrong, as a lowercase fragment.
    pub message: String,
    /// Bytes from the start of the text, where that is known.
    pub offset: Option<usize>,
    /// The function that was probably meant by one that does not exist.
    pub meant: Option<&'static str>,
}

impl Expression {
    /// Reads an expression.
    ///
    /// # Errors
    ///
    /// When it is longer, deeper or more nested than the limits allow, or is no CEL.
    pub fn compile(text: &str) -> Result<Self, ExpressionError> {
        if text.len() > limits::EXPRESSION_SIZE_MAX {
            return Err(ExpressionError {
                message: format!(
                    "it has {} bytes, more than {}",
                    text.len(),
                    limits::EXPRESSION_SIZE_MAX
                ),
                offset: None,
                meant: None,
            });
        }
        Ok(Self {
            text: text.into(),
            tree: Arc::new(parse(text)?),
            before: 0,
        })
    }

    /// Says how many bytes stand before it in the text that it is a part of.
    pub(super) fn behind(self, before: usize) -> Self {
        Self { before, ..self }
    }

    /// Returns the text.
    pub fn text(&self) -> &str {
        &self.text
    }
}

impl Expression {
    /// Returns the paths that the expression names, the longest form of each: `objects.claim.spec.resources`. Variables of
    /// loops are no paths.
    pub fn paths(&self) -> Vec<Vec<String>> {
        self.places().into_iter().map(|(path, _)| path).collect()
    }

    /// Returns the same paths, each with how many bytes its first occurrence stands behind the start of the text that the
    /// expression is, or is a part of.
    pub fn places(&self) -> Vec<(Vec<String>, usize)> {
        let mut paths = paths_in(&self.tree);
        for (_, at) in &mut paths {
            *at += self.before;
        }
        paths
    }
}

/// Returns the paths that a part names, each with the bytes before it.
pub(super) fn paths_in(node: &Node) -> Vec<(Vec<String>, usize)> {
    let mut paths = Vec::new();
    collect(node, &mut Vec::new(), &mut paths);
    paths.sort();
    paths.dedup_by(|later, first| later.0 == first.0);
    paths
}

fn collect<'a>(node: &'a Node, bound: &mut Vec<&'a str>, paths: &mut Vec<(Vec<String>, usize)>) {
    if let Some(path) = node.path() {
        if !bound.contains(&path[0].as_str()) {
            paths.push((path, node.start()));
        }
        return;
    }
    let Kind::Loop(turns) = &node.kind else {
        for child in node.children() {
            collect(child, bound, paths);
        }
        return;
    };
    collect(&turns.range, bound, paths);
    bound.push(&turns.variable);
    for inside in turns.condition.iter().chain([&turns.body]) {
        collect(inside, bound, paths);
    }
    bound.pop();
}
