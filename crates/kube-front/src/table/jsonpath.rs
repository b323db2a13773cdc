//! The subset of JSONPath that columns of definitions use: fields, list indexes, and filters that
//! compare a field with a value.

use serde_json::Value;

/// Maximum number of steps of a path.
const LONGEST: usize = 64;

/// One step of a path.
#[derive(Clone, Debug, PartialEq)]
enum Step {
    Field(String),
    /// Counted from the end if negative.
    Index(i64),
    /// All items or fields.
    All,
    /// The items whose field at this path is (or isn't) equal to this value.
    Where {
        path: Vec<String>,
        equal: bool,
        value: Value,
    },
}

/// Returns the first value at a path; `None` if there is none, or if the path is not in this
/// subset.
pub(super) fn first<'a>(path: &str, object: &'a Value) -> Option<&'a Value> {
    let mut found = vec![object];
    for step in parse(path)? {
        found = found.into_iter().flat_map(|value| follow(&step, value)).collect();
    }
    found.into_iter().next()
}

fn follow<'a>(step: &Step, value: &'a Value) -> Vec<&'a Value> {
    match step {
        Step::Field(name) => value.get(name).into_iter().collect(),
        Step::Index(index) => {
            let items = value.as_array().map_or(&[][..], Vec::as_slice);
            let length = i64::try_from(items.len()).unwrap_or(i64::MAX);
            let at = if *index < 0 { length.saturating_add(*index) } else { *index };
            usize::try_from(at).ok().and_then(|at| items.get(at)).into_iter().collect()
        }
        Step::All => match value {
            Value::Array(items) => items.iter().collect(),
            Value::Object(fields) => fields.values().collect(),
            _ => Vec::new(),
        },
        Step::Where { path, equal, value: wanted } => {
            let holds = |item: &&Value| {
                let found = path.iter().try_fold(*item, |at, name| at.get(name));
                found.is_some_and(|found| (found == wanted) == *equal)
            };
            value.as_array().into_iter().flatten().filter(holds).collect()
        }
    }
}

fn parse(path: &str) -> Option<Vec<Step>> {
    let path = path.trim();
    let path = path.strip_prefix('{').and_then(|path| path.strip_suffix('}')).unwrap_or(path);
    let mut rest = path.strip_prefix('$').unwrap_or(path);
    let mut steps = Vec::new();
    while !rest.is_empty() {
        if steps.len() == LONGEST {
            return None;
        }
        let (step, after) = if let Some(inner) = rest.strip_prefix('[') {
            let end = closing(inner)?;
            (bracket(&inner[..end])?, &inner[end + 1..])
        } else {
            let name = rest.strip_prefix('.').unwrap_or(rest);
            let (name, after) = field(name)?;
            (if name == "*" { Step::All } else { Step::Field(name) }, after)
        };
        steps.push(step);
        rest = after;
    }
    Some(steps)
}

/// Parses a name up to the next dot or bracket. A backslash escapes the next character.
fn field(text: &str) -> Option<(String, &str)> {
    let (mut name, mut letters) = (String::new(), text.char_indices());
    while let Some((at, letter)) = letters.next() {
        match letter {
            '\\' => name.push(letters.next()?.1),
            '.' | '[' => return (!name.is_empty()).then_some((name, &text[at..])),
            other => name.push(other),
        }
    }
    (!name.is_empty()).then_some((name, ""))
}

/// Returns the position of the bracket that closes the one before this text. Quoted brackets don't
/// count.
fn closing(text: &str) -> Option<usize> {
    let (mut quote, mut depth) = (None, 0_u32);
    for (at, letter) in text.char_indices() {
        match (quote, letter) {
            (Some(open), _) if letter == open => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(letter),
            (None, '[') => depth += 1,
            (None, ']') if depth == 0 => return Some(at),
            (None, ']') => depth -= 1,
            (None, _) => {}
        }
    }
    None
}

fn bracket(text: &str) -> Option<Step> {
    let text = text.trim();
    if text == "*" {
        return Some(Step::All);
    }
    if let Some(name) = quoted(text) {
        return Some(Step::Field(name.to_owned()));
    }
    if let Ok(index) = text.parse() {
        return Some(Step::Index(index));
    }
    let test = text.strip_prefix("?(")?.strip_suffix(')')?;
    let (path, equal, value) = match test.split_once("==") {
        Some((path, value)) => (path, true, value),
        None => test.split_once("!=").map(|(path, value)| (path, false, value))?,
    };
    let path = parse(path.trim().strip_prefix('@')?)?;
    let names = path.into_iter().map(|step| match step {
        Step::Field(name) => Some(name),
        _ => None,
    });
    let value = value.trim();
    let value = quoted(value).map(Value::from).or_else(|| serde_json::from_str(value).ok())?;
    Some(Step::Where { path: names.collect::<Option<_>>()?, equal, value })
}

fn quoted(text: &str) -> Option<&str> {
    let quote = text.chars().next().filter(|letter| matches!(letter, '\'' | '"'))?;
    text[1..].strip_suffix(quote)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[rstest]
    #[case::fields(".spec.size", json!(3))]
    #[case::a_name_with_dots(r".metadata.labels.a\.b/c", json!("x"))]
    #[case::a_name_in_brackets(".metadata.labels['a.b/c']", json!("x"))]
    #[case::an_item("{.spec.list[1]}", json!("b"))]
    #[case::the_last_item(".spec.list[-1]", json!("b"))]
    #[case::a_condition(r#".status.conditions[?(@.type=="Ready")].status"#, json!("True"))]
    #[case::another_condition(".status.conditions[?(@.type != 'Ready')].status", json!("False"))]
    #[case::the_first_of_all(".spec.list[*]", json!("a"))]
    fn a_path_leads_to_a_value(#[case] path: &str, #[case] expected: Value) {
        let object = json!({
            "metadata": {"labels": {"a.b/c": "x"}},
            "spec": {"size": 3, "list": ["a", "b"]},
            "status": {"conditions": [{"type": "Other", "status": "False"}, {"type": "Ready", "status": "True"}]},
        });
        assert_eq!(first(path, &object), Some(&expected));
    }

    #[rstest]
    #[case(".spec.nothing")]
    #[case(".spec[")]
    #[case(".spec[?(@.a)]")]
    #[case("..spec")]
    #[case(".a[?(@.b==)]")]
    #[case(".a['")]
    #[case("[é")]
    #[case(r".a\")]
    fn what_leads_nowhere_is_nothing(#[case] path: &str) {
        assert_eq!(first(path, &json!({"spec": {}, "a": [1]})), None);
    }

    #[test]
    fn a_path_without_end_is_not_followed() {
        assert_eq!(first(&".a".repeat(10_000), &json!({})), None);
    }
}
