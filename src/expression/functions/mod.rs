//! The functions that expressions may call: CEL's own and those of Kubernetes that guards need, each with an example that a test
//! evaluates and the reference shows.

mod kubernetes;
mod lists;
mod numbers;
mod optional;
mod texts;

use super::evaluate::{Evaluated, Machine};
use super::item::Item;

/// A function.
pub struct Function {
    /// Its name; with a point where that belongs to it: `sets.contains`.
    pub name: &'static str,
    /// How it may be called.
    pub form: Form,
    /// Fewest and most arguments, the target of a method counted.
    pub arguments: (usize, usize),
    /// How a call looks.
    pub usage: &'static str,
    /// What comes of it.
    pub about: &'static str,
    /// An expression that is true.
    pub example: &'static str,
    pub(super) run: for<'v> fn(&mut Machine<'v>, &[Item<'v>]) -> Evaluated<'v>,
}

impl std::fmt::Debug for Function {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// How a function may be called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// `f(a)`
    Function,
    /// `a.f()`
    Method,
    /// Both.
    Both,
}

/// A group of functions, in the order of the reference.
pub struct Group {
    /// Its title.
    pub title: &'static str,
    /// Its functions.
    pub functions: &'static [Function],
}

/// All functions.
pub const GROUPS: &[Group] = &[
    Group {
        title: "Texts",
        functions: texts::FUNCTIONS,
    },
    Group {
        title: "Lists and objects",
        functions: lists::FUNCTIONS,
    },
    Group {
        title: "Numbers and conversions",
        functions: numbers::FUNCTIONS,
    },
    Group {
        title: "Quantities and versions",
        functions: kubernetes::FUNCTIONS,
    },
    Group {
        title: "Optional values",
        functions: optional::FUNCTIONS,
    },
];

/// Returns the function of a name.
pub(super) fn find(name: &str) -> Option<&'static Function> {
    GROUPS
        .iter()
        .flat_map(|group| group.functions)
        .find(|function| function.name == name)
}
