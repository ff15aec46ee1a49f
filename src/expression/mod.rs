//! CEL, the language of guards: compiled within limits, evaluated within limits, and able to say what it looked at.
//!
//! The language is CEL's with Kubernetes' quantities and versions; [`GROUPS`] has its functions. Reading and evaluating are
//! our own (ADR 0017): every part that is evaluated and every byte that is built counts against one budget, so that no text and
//! no value can hold the process or fill its memory, and no message repeats a value. There is no clock, no chance and no cluster
//! behind it: the same values always give the same answer. An evaluation that fails is *unknown*, which is never the same
//! as false.

mod bindings;
mod budget;
mod compare;
mod compile;
mod evaluate;
mod evidence;
mod functions;
mod item;
mod operators;
mod parser;
mod quantity;
mod sort;
mod template;
#[cfg(test)]
mod tests;
mod tokens;
mod tree;

pub use bindings::Bindings;
pub use compile::{Expression, ExpressionError};
pub use evaluate::EvaluationError;
pub use evidence::evidence;
pub use functions::{Form, Function, GROUPS, Group};
pub use template::{Template, TemplateError};
