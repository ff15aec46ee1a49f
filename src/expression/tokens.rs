//! From text to words, after the lexical part of CEL's specification.

use super::compile::ExpressionError;
use super::tree::Literal;

/// A word and where it begins.
#[derive(Debug, Clone)]
pub(super) struct Token {
    /// Bytes from the start of the text.
    pub(super) at: usize,
    pub(super) kind: TokenKind,
}

#[derive(Debug, Clone)]
pub(super) enum TokenKind {
    /// A name, or a word like `in` and `true`.
    Word(String),
    /// A name in backticks, which only a field may be.
    Quoted(String),
    Literal(Literal),
    Symbol(&'static str),
    End,
}

impl TokenKind {
    /// Says what stands there.
    pub(super) fn describe(&self) -> String {
        match self {
            Self::Word(word) => format!("`{word}`"),
            Self::Quoted(name) => format!("`` `{name}` ``"),
            Self::Literal(Literal::Text(_)) => "a text".to_owned(),
            Self::Literal(_) => "a number".to_owned(),
            Self::Symbol(symbol) => format!("`{symbol}`"),
            Self::End => "the end".to_owned(),
        }
    }
}

/// Symbols, the longer ones first.
const SYMBOLS: &[&str] = &[
    "&&", "||", "==", "!=", "<=", ">=", "<", ">", "+", "-", "*", "/", "%", "!", "?", ":", ".", ",",
    "(", ")", "[", "]", "{", "}",
];

pub(super) fn error(at: usize, message: impl Into<String>) -> ExpressionError {
    ExpressionError {
        message: message.into(),
        offset: Some(at),
        meant: None,
    }
}

/// Splits a text into words; the last one is the end.
pub(super) fn tokens(text: &str) -> Result<Vec<Token>, ExpressionError> {
    let mut tokens = Vec::new();
    let mut at = 0;
    loop {
        at += blank(&text[at..]);
        let rest = &text[at..];
        let Some(first) = rest.chars().next() else {
            let kind = TokenKind::End;
            tokens.push(Token { at, kind });
            return Ok(tokens);
        };
        let (kind, length) = match first {
            '`' => quoted_name(rest, at)?,
            '0'..='9' => number(rest, at)?,
            '.' if rest[1..].starts_with(|it: char| it.is_ascii_digit()) => number(rest, at)?,
            _ => match text_start(rest) {
                Some(start) => text_literal(rest, start, at)?,
                None if is_name_start(first) => {
                    let length = rest.find(|it| !is_name(it)).unwrap_or(rest.len());
                    (TokenKind::Word(rest[..length].to_owned()), length)
                }
                None => match SYMBOLS.iter().find(|symbol| rest.starts_with(**symbol)) {
                    Some(symbol) => (TokenKind::Symbol(symbol), symbol.len()),
                    None => return Err(unexpected(first, at)),
                },
            },
        };
        tokens.push(Token { at, kind });
        at += length;
    }
}

fn unexpected(first: char, at: usize) -> ExpressionError {
    let hint = match first {
        '=' => "; equality is written `==`",
        '&' => "; `and` is written `&&`",
        '|' => "; `or` is written `||`",
        _ => "",
    };
    error(
        at,
        format!("`{}` means nothing here{hint}", first.escape_debug()),
    )
}

fn is_name_start(it: char) -> bool {
    it.is_ascii_alphabetic() || it == '_'
}

fn is_name(it: char) -> bool {
    it.is_ascii_alphanumeric() || it == '_'
}

/// Returns the bytes of white space and comments at the start.
fn blank(text: &str) -> usize {
    let mut at = 0;
    loop {
        let rest = &text[at..];
        let spaces = rest.len()
            - rest
                .trim_start_matches([' ', '\t', '\n', '\r', '\u{c}'])
                .len();
        at += spaces;
        if text[at..].starts_with("//") {
            at += text[at..].find('\n').unwrap_or(text.len() - at);
        } else if spaces == 0 {
            return at;
        }
    }
}

fn quoted_name(rest: &str, at: usize) -> Result<(TokenKind, usize), ExpressionError> {
    let name = rest[1..]
        .split_once('`')
        .map(|(name, _)| name)
        .filter(|name| !name.is_empty() && !name.contains('\n'))
        .ok_or_else(|| error(at, "a name in backticks has no end"))?;
    Ok((TokenKind::Quoted(name.to_owned()), name.len() + 2))
}

fn number(rest: &str, at: usize) -> Result<(TokenKind, usize), ExpressionError> {
    let digits = |from: usize| {
        rest[from..]
            .find(|it: char| !it.is_ascii_digit())
            .map_or(rest.len(), |length| from + length)
    };
    let hexadecimal = rest
        .strip_prefix("0x")
        .or_else(|| rest.strip_prefix("0X"))
        .map(|hex| {
            let length = hex
                .find(|it: char| !it.is_ascii_hexdigit())
                .unwrap_or(hex.len());
            (&hex[..length], length + 2)
        });
    let (literal, end) = if let Some((hex, end)) = hexadecimal {
        let value = u64::from_str_radix(hex, 16).ok();
        let is_unsigned = rest[end..].starts_with(['u', 'U']);
        let literal = if is_unsigned {
            value.map(Literal::UInt)
        } else {
            value
                .and_then(|it| i64::try_from(it).ok())
                .map(Literal::Int)
        };
        (literal, end + usize::from(is_unsigned))
    } else {
        let mut end = digits(0);
        let mut is_float = false;
        if rest[end..].starts_with('.')
            && rest[end + 1..].starts_with(|it: char| it.is_ascii_digit())
        {
            end = digits(end + 1);
            is_float = true;
        }
        if rest[end..].starts_with(['e', 'E']) {
            let sign = usize::from(rest[end + 1..].starts_with(['+', '-']));
            let exponent = digits(end + 1 + sign);
            if exponent > end + 1 + sign {
                end = exponent;
                is_float = true;
            }
        }
        let word = &rest[..end];
        if is_float {
            let value = word.parse::<f64>().ok().filter(|it| it.is_finite());
            (value.map(Literal::Float), end)
        } else if rest[end..].starts_with(['u', 'U']) {
            (word.parse().ok().map(Literal::UInt), end + 1)
        } else if word == "9223372036854775808" {
            // The smallest number is written as the negation of one that is too large.
            (Some(Literal::UInt(1 << 63)), end)
        } else {
            (word.parse().ok().map(Literal::Int), end)
        }
    };
    if rest[end..].starts_with(is_name) {
        return Err(error(at, "a number and a name stand together"));
    }
    let literal = literal.ok_or_else(|| error(at, "the number is too large, or none"))?;
    Ok((TokenKind::Literal(literal), end))
}

/// How a text begins: is it raw, how long is the prefix, and what closes it.
#[derive(Clone, Copy)]
struct TextStart {
    is_raw: bool,
    prefix: usize,
    quote: &'static str,
}

fn text_start(rest: &str) -> Option<TextStart> {
    let is_raw = rest.starts_with(['r', 'R']);
    let prefix = usize::from(is_raw);
    let quote = ["\"\"\"", "'''", "\"", "'"]
        .into_iter()
        .find(|quote| rest[prefix..].starts_with(quote))?;
    Some(TextStart {
        is_raw,
        prefix,
        quote,
    })
}

fn text_literal(
    rest: &str,
    start: TextStart,
    at: usize,
) -> Result<(TokenKind, usize), ExpressionError> {
    let mut text = String::new();
    let mut position = start.prefix + start.quote.len();
    loop {
        let inside = &rest[position..];
        if inside.starts_with(start.quote) {
            position += start.quote.len();
            break;
        }
        let Some(first) = inside.chars().next() else {
            return Err(error(at, "a text has no end"));
        };
        if first == '\n' && start.quote.len() == 1 {
            return Err(error(at, "a text has no end on its line"));
        }
        if first == '\\' && !start.is_raw {
            let length = escape(inside, &mut text)
                .ok_or_else(|| error(at + position, "`\\` escapes nothing here"))?;
            position += length;
        } else {
            position += first.len_utf8();
            text.push(first);
        }
    }
    Ok((TokenKind::Literal(Literal::Text(text.into())), position))
}

/// Reads an escape, and returns its length.
fn escape(inside: &str, text: &mut String) -> Option<usize> {
    let kind = *inside.as_bytes().get(1)?;
    let simple = match kind {
        b'a' => '\u{7}',
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b'n' => '\n',
        b'r' => '\r',
        b't' => '\t',
        b'v' => '\u{b}',
        b'\\' | b'?' | b'"' | b'\'' | b'`' => char::from(kind),
        _ => '\0',
    };
    if simple != '\0' {
        text.push(simple);
        return Some(2);
    }
    let (from, length, radix) = match kind {
        b'x' | b'X' => (2, 2, 16),
        b'u' => (2, 4, 16),
        b'U' => (2, 8, 16),
        b'0'..=b'3' => (1, 3, 8),
        _ => return None,
    };
    let digits = inside.get(from..from + length)?;
    if !digits.chars().all(|it| it.is_digit(radix)) {
        return None;
    }
    text.push(char::from_u32(u32::from_str_radix(digits, radix).ok()?)?);
    Some(from + length)
}
