//! Commands in a text, with as much of the shell's grammar as the documentation uses.

/// Keywords that are followed by a command.
const KEYWORDS: [&str; 7] = ["do", "else", "if", "then", "time", "until", "while"];

/// Returns the commands in a text, each as a list of words. Prompts, comments and redirections are
/// left out; commands within `$(…)` and `<(…)` are included.
pub fn commands(text: &str) -> Vec<Vec<String>> {
    let text = text.replace("\\\n", " ");
    text.lines().flat_map(|line| of_line(line.trim_start().trim_start_matches("$ "))).collect()
}

/// Returns a command up to its first optional argument: in `explore [SCENARIO…]` the rest is a
/// synopsis.
pub fn without_synopsis(text: &str) -> &str {
    let words = text.split_inclusive(' ');
    let typed = words.take_while(|word| !word.starts_with('[') && !word.contains('…'));
    &text[..typed.map(str::len).sum()]
}

/// Returns the commands of one line.
fn of_line(line: &str) -> Vec<Vec<String>> {
    let (mut commands, mut words, mut word) = (Vec::new(), Vec::new(), None::<String>);
    let mut rest = line.chars().peekable();
    while let Some(letter) = rest.next() {
        match letter {
            '#' if word.is_none() => break,
            '\'' | '"' => {
                let quoted: String = rest.by_ref().take_while(|it| *it != letter).collect();
                word.get_or_insert_default().push_str(&quoted);
            }
            '$' if rest.peek() == Some(&'(') => {}
            '|' | ';' | '&' | '(' | ')' | '<' => {
                words.extend(word.take());
                commands.push(std::mem::take(&mut words));
            }
            // A redirection ends the command, as the pages have nothing after the file name.
            '>' => {
                words.extend(word.take());
                commands.push(std::mem::take(&mut words));
                while rest.next_if(|it| !matches!(it, '|' | ';' | '&' | ')')).is_some() {}
            }
            it if it.is_whitespace() => words.extend(word.take()),
            it => word.get_or_insert_default().push(it),
        }
    }
    words.extend(word);
    commands.push(words);
    commands.retain(|words| !words.is_empty());
    commands
}

/// Returns the program that these words run, and its arguments. Looks through `cargo run`.
pub fn program_of<'a, 'b>(words: &'b [&'a str]) -> Option<(&'a str, &'b [&'a str])> {
    let is_variable = |word: &&&str| word.split_once('=').is_some_and(|(name, _)| name.chars().all(is_of_a_variable));
    let is_before = |word: &&&str| is_variable(word) || KEYWORDS.contains(word);
    let words = &words[words.iter().take_while(is_before).count()..];
    let (first, arguments) = words.split_first()?;
    if *first != "cargo" {
        return Some((first.rsplit('/').next().unwrap_or(first), arguments));
    }
    let split = arguments.iter().position(|word| *word == "--").unwrap_or(arguments.len());
    let (cargo, given) = (&arguments[..split], arguments.get(split + 1..).unwrap_or_default());
    let which = cargo.iter().position(|word| matches!(*word, "-p" | "--bin"))?;
    (cargo.first() == Some(&"run")).then_some((*cargo.get(which + 1)?, given))
}

fn is_of_a_variable(letter: char) -> bool {
    letter.is_ascii_uppercase() || letter.is_ascii_digit() || letter == '_'
}

#[test]
fn commands_are_told_from_what_stands_around_them() {
    let text = "$ A=1 just demo -f 'a b' # as it is\nfor i in 1; do stowage-proof merge $i | sed -n p > x.json; done\n\
                diff <(stowage-proof explore \\\n  --hashes) y";
    let commands = commands(text);
    let commands: Vec<Vec<&str>> = commands.iter().map(|words| words.iter().map(String::as_str).collect()).collect();
    assert_eq!(commands[0], ["A=1", "just", "demo", "-f", "a b"]);
    assert!(commands.contains(&vec!["stowage-proof", "explore", "--hashes"]));
    assert_eq!(program_of(&commands[0]), Some(("just", &["demo", "-f", "a b"][..])));
    assert_eq!(
        program_of(&["cargo", "run", "--release", "-p", "stowage-sim", "--", "demo"]),
        Some(("stowage-sim", &["demo"][..]))
    );
    assert_eq!(program_of(&["do", "target/debug/stowage-sim", "demo"]), Some(("stowage-sim", &["demo"][..])));
    assert_eq!(program_of(&["cargo", "test"]), None);
}
